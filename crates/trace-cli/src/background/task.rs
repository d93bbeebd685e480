//! `trace start`, `stop`, `status` and `flush`: a recording that the manager holds, so that it outlives the
//! shell.

mod written_file;

use crate::args::format::{Compression, Format, of_name};
use crate::args::record::Recording;
use crate::args::running::{Flush, Stop};
use crate::args::trigger::Condition;
use crate::args::{Machinery, Start};
use crate::connection::{self, Connection, NOTHING_RECORDED};
use crate::convert;
use crate::files::output::create_new;
use crate::record::absence;
use crate::record::add_kept;
use crate::record::config::trace_config;
use crate::record::destination::{self, Worth, has_events};
use crate::record::kernel;
use crate::record::summary;
use crate::record::verify::{self, Expected};
use crate::settings::{Settings, checks};
use crate::shell::caller;
use crate::shell::exit::Failure;
use crate::shell::json::Answer;
use crate::shell::stdio::{self, print, print_folded, say};
use serde_json::json;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace_analysis::counted::Counted;
use trace_format::shown::Shown;
use trace_protocol::BufferingMode;
use trace_protocol::controller::{
    TaskEnd, TaskError, TaskFailure, TaskOptions, TaskRequest, TaskResponse, TaskStatus, Trigger,
    TriggerAction, Triggered,
};
use written_file::WrittenFile;
use zx_sim::Handle;
use zx_sim::process::start_time;

/// Stands for the only task in a request that names none.
const ONLY: u64 = 0;

/// Begins a recording.
pub fn start(options: &Start) -> Result<(), Failure> {
    let settings = Settings::resolve(options.record.recording.clone(), options.record.config_file())?;
    let asked = &settings.recording;
    let is_json = options.record.json;
    checks::of_background(&settings, options.record.recording.compress)?;
    let triggers = triggers(&asked.trigger);
    let config = trace_config(&settings)?;
    caller::begin(asked.user.as_deref())?;
    // A file name on start's command line takes precedence.
    let named = options.record.recording.output.as_deref();
    let (file, path) = create(named)?;
    let options = TaskOptions {
        duration_ns: asked.duration.map(|span| u64::try_from(span.0.as_nanos()).unwrap_or(u64::MAX)),
        triggers,
        requested_categories: asked.categories.as_ref().map(|list| list.0.clone()).unwrap_or_default(),
        name: options.label.clone().unwrap_or_else(|| stem(&path)),
        file: path.to_string_lossy().into_owned(),
    };
    let started = begin(config, options, file, asked);
    let (mut connection, task) = started.map_err(|failure| {
        // What a program had recorded before, and handed over, is nowhere else.
        if File::open(&path).is_ok_and(|mut file| has_events(&mut file)) {
            return add_kept(failure, &path);
        }
        if caller::files(true).is_ok_and(|_files| std::fs::remove_file(&path).is_err()) {
            say!("trace: warning: {} is left", path.display());
        }
        failure
    })?;
    let status = status_of(&mut connection, task)?;
    let end = match &status {
        Some(TaskStatus { others, .. }) if !others.is_empty() => format!("trace stop {task}"),
        _ => "trace stop".to_owned(),
    };
    say!("trace: recording number {task} into {}; to end it: {end}", path.display());
    match status {
        status if is_json => {
            Answer::of(status.as_ref().map(machine).into()).give();
            Ok(())
        }
        Some(status) => print_folded(&text(&status)),
        None => Ok(()),
    }
}

/// What ends a recording in the background: alerts, as [`checks::of_background`] has seen.
fn triggers(options: &[crate::args::trigger::Trigger]) -> Vec<Trigger> {
    let alerts = options.iter().filter_map(|trigger| match &trigger.condition {
        Condition::Alert(alert) => Some(alert.clone()),
        _ => None,
    });
    alerts.map(|alert| Trigger { alert, action: TriggerAction::Terminate }).collect()
}

fn begin(
    mut config: trace_protocol::controller::TraceConfig,
    options: TaskOptions,
    file: File,
    asked: &Recording,
) -> Result<(Connection, u64), Failure> {
    let mut connection = connection::open_for(kernel::is_wanted(&config))?;
    config.user = connection::limited_to(&connection);
    Expected::new(&options.requested_categories).check_running(&mut connection)?;
    verify::programs_running(&mut connection, &asked.program)?;
    kernel::provide(&mut connection, &config, asked)?;
    let wait = Duration::from_millis(config.start_timeout_milliseconds) + Duration::from_secs(10);
    let request = TaskRequest::Start { config, options, file: Handle::new(file.into()) };
    match ask(&mut connection, request, Some(wait))? {
        TaskResponse::Start(Ok(task)) => Ok((connection, task)),
        TaskResponse::Start(Err(failure)) => Err(connection::not_started(failure.refusal)),
        _ => Err(another_answer()),
    }
}

/// The file of a recording: a new one, so that no existing data is lost.
fn create(named: Option<&Path>) -> Result<(File, PathBuf), Failure> {
    let directory = std::env::current_dir()
        .map_err(|error| Failure::new(format!("cannot find the current directory: {error}")))?;
    let names: Vec<PathBuf> = match named {
        Some(path) => {
            if of_name(path) != (Some(Format::Fxt), Compression::None) {
                let text = "-o: the manager writes .fxt; trace stop -o converts it to other formats, and compresses it";
                return Err(Failure::usage(text));
            }
            vec![path.to_owned()]
        }
        None => destination::unused_name("trace", Format::Fxt, Compression::None)?.names().collect(),
    };
    for name in &names {
        let path = directory.join(name);
        match create_new(&path)? {
            Some(created) => return Ok(created),
            None if named.is_none() => {}
            None => {
                let path = path.display();
                let text = format!("cannot write {path}: it exists already; name another file with -o");
                return Err(Failure::new(text));
            }
        }
    }
    Err(Failure::new("others have taken all names for traces meanwhile; name one with -o"))
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    stem[..stem.floor_char_boundary(trace_protocol::limits::MAX_TASK_NAME_BYTES)].to_owned()
}

/// Ends the recording, and moves it to the requested path.
pub fn stop(options: &Stop) -> Result<(), Failure> {
    checks::of_json(options.json, options.output.as_deref())?;
    let none = || Failure::nothing_recorded(nothing_in_background());
    caller::begin(None)?;
    let mut connection = connection::find()?.ok_or_else(none)?;
    let _files = connection::named_files(&connection)?;
    let number = options.number.unwrap_or(ONLY);
    let none = || no_such_recording(number);
    let status = status_of(&mut connection, number)?;
    if let (ONLY, Some(status)) = (number, &status) {
        one_of(status)?;
    }
    if options.abort {
        let status = status.ok_or_else(none)?;
        let file = WrittenFile::open(Path::new(&status.options.file), status.config.file.as_ref());
        return match ask(&mut connection, TaskRequest::Abort(number), None)? {
            TaskResponse::Abort(Ok(())) => {
                if let Err(why) = file.and_then(WrittenFile::delete) {
                    say!("trace: warning: {} is not deleted: {why}", Shown(&status.options.file));
                }
                if options.json {
                    Answer::of(machine(&status)).give();
                    return Ok(());
                }
                print("Trace aborted.\n")
            }
            TaskResponse::Abort(Err(failure)) => Err(failed("cannot abort", &failure)),
            _ => Err(another_answer()),
        };
    }
    // An unusable path is reported before the recording ends.
    let mut destination = None;
    if let Some(path) = &options.output {
        destination = Some(destination::create(Some(path.clone()), "trace")?);
    }
    if let Some(remaining) = status.as_ref().and_then(|status| status.remaining_ns) {
        say!("trace: waiting for its end in {} s", seconds(remaining));
    }
    // Managers that keep the ends of recordings report the size of each provider's buffer.
    let buffer_size = status.as_ref().map_or(0, |status| status.config.buffer_size_megabytes_hint);
    let programs = status.as_ref().map(|status| status.config.programs.clone()).unwrap_or_default();
    // The manager answers without an active recording too, if an alert ended one and its end was not reported
    // yet.
    let TaskEnd { options: task, result, triggered, file } =
        match ask(&mut connection, TaskRequest::End(number), None)? {
            TaskResponse::End(Ok(ended)) => ended,
            TaskResponse::End(Err(failure)) if status.is_none() && failure.error == TaskError::NoSuchTask => {
                return Err(none());
            }
            TaskResponse::End(Err(failure)) => return Err(failed("unable to stop trace", &failure)),
            _ => return Err(another_answer()),
        };
    if let Some(triggered) = &triggered {
        say!("{}", what_ended(triggered));
    }
    let stats = &result.provider_stats;
    let mut path = PathBuf::from(&task.file);
    let mut place = task.file.clone();
    let known = file.or_else(|| status.and_then(|status| status.config.file));
    let written = WrittenFile::open(&path, known.as_ref());
    if !options.no_verify_trace && written.is_ok() {
        verify::categories(&task.requested_categories, &Expected::default(), Some(&path), stats)?;
    }
    if let Some(mut destination) = destination {
        let unreadable =
            |error: io::Error| Failure::new(format!("cannot move {}: {error}", Shown(&task.file)));
        let mut written = written.map_err(unreadable)?;
        io::copy(written.file(), &mut destination.sink()?).map_err(unreadable)?;
        let finished = destination::finish(destination, Worth::Events)?;
        if let Some(conversion) = &finished.conversion {
            convert::advise(conversion, finished.format);
        }
        if let Err(why) = written.delete() {
            say!("trace: warning: {} is not deleted: {why}", Shown(&task.file));
        }
        place = finished.place;
        path = finished.path.unwrap_or_default();
    }
    let absence = absence::of_none(&result.provider_stats, connection.directory(), None);
    let summary = summary::Summary {
        providers: &result.provider_stats,
        place: &place,
        is_unchanged: false,
        file_bytes: std::fs::metadata(&path).ok().map(|metadata| metadata.len()),
        absence: absence.as_deref(),
        programs: &programs,
        buffer_size,
        room: connection::room(),
    };
    stdio::report(&summary.text());
    if options.json {
        summary.answer().give();
    }
    if options.verbose {
        stdio::report(&summary.details());
    }
    Ok(())
}

/// Reports what is being recorded.
pub fn status(options: &Machinery) -> Result<(), Failure> {
    let mut all = Vec::new();
    if let Some(mut connection) = connection::find()? {
        all.extend(status_of(&mut connection, ONLY)?);
        let others = all.first().map(|first| first.others.clone()).unwrap_or_default();
        for other in others {
            // It may have ended meanwhile.
            all.extend(status_of(&mut connection, other)?);
        }
    }
    all.sort_by_key(|status| status.task);
    match (&all[..], options.is_json()) {
        ([], false) => print(&format!("{}\n", Shown(&nothing_in_background()))),
        (all, true) => {
            Answer::of(all.iter().map(machine).collect()).bare_if(options.is_bare()).give();
            Ok(())
        }
        (all, false) => print_folded(&all.iter().map(text).collect::<Vec<_>>().join("\n")),
    }
}

/// Checks that a request that names no recording can only mean this one.
fn one_of(status: &TaskStatus) -> Result<(), Failure> {
    if status.others.is_empty() {
        return Ok(());
    }
    let mut numbers: Vec<u64> = status.others.iter().copied().chain([status.task]).collect();
    numbers.sort_unstable();
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    Err(Failure::usage(format!(
        "recordings {} are running: give the number of one; trace status shows them",
        numbers.join(", ")
    )))
}

/// Has programs hand over the data recorded so far.
//= docs/recording.md#in-the-background
pub fn flush(options: &Flush) -> Result<(), Failure> {
    let mut connection =
        connection::find()?.ok_or_else(|| Failure::nothing_recorded(nothing_in_background()))?;
    let number = options.number.unwrap_or(ONLY);
    let status = status_of(&mut connection, number)?;
    if let (ONLY, Some(status)) = (number, &status) {
        one_of(status)?;
    }
    let mode = status.map(|status| status.config.buffering_mode);
    match ask(&mut connection, TaskRequest::Flush(number), None)? {
        TaskResponse::Flush(Ok(())) => {
            if let Some(mode) = mode.filter(|mode| *mode != BufferingMode::Streaming) {
                say!(
                    "trace: nothing to flush: a {mode} recording stays in the programs' buffers until trace \
                     stop; trace snapshot copies it"
                );
            }
            if options.json {
                let mode = mode.map(|mode| mode.to_string());
                Answer::of(json!({"buffering_mode": mode})).give();
            }
            Ok(())
        }
        TaskResponse::Flush(Err(failure)) if failure.error == TaskError::NoSuchTask => {
            Err(no_such_recording(number))
        }
        TaskResponse::Flush(Err(failure)) => Err(failed("cannot flush", &failure)),
        _ => Err(another_answer()),
    }
}

/// That there is no recording of this number.
fn no_such_recording(number: u64) -> Failure {
    match number {
        ONLY => Failure::nothing_recorded(nothing_in_background()),
        _ => Failure::nothing_recorded(format!(
            "no recording has the number {number}: trace status shows those that run"
        )),
    }
}

/// The status of a recording; of any, if it has no number.
fn status_of(connection: &mut Connection, number: u64) -> Result<Option<TaskStatus>, Failure> {
    match ask(connection, TaskRequest::Status(number), Some(Duration::from_secs(5)))? {
        TaskResponse::Status(status) => Ok(status.map(|status| *status)),
        _ => Err(another_answer()),
    }
}

fn ask(
    connection: &mut Connection,
    request: TaskRequest<Handle>,
    wait: Option<Duration>,
) -> Result<TaskResponse, Failure> {
    Ok(connection.ask_about_task(request, wait)?)
}

/// That there is no recording in the background, and how to end the one in the foreground, if there is one.
fn nothing_in_background() -> String {
    let directories = connection::directories();
    let sessions = directories.iter().flat_map(|directory| connection::sessions_of(directory));
    let running = sessions.filter(|session| session.has_manager());
    let found = running.map(|session| session.manifest.session).find(|info| !info.command_line.is_empty());
    let Some(info) = found else { return NOTHING_RECORDED.to_owned() };
    let command = info.command_line.join(" ");
    match info.recorder.filter(|(pid, started)| start_time(*pid) == Some(*started)) {
        Some((pid, _)) => format!(
            "no recording in the background; {command} (pid {pid}) is recording: end it with kill -INT {pid}"
        ),
        None => format!("no recording in the background; {command} is recording: end it with Ctrl-C"),
    }
}

fn another_answer() -> Failure {
    Failure::new("the trace manager sent an unexpected answer")
}

fn failed(what: &str, failure: &TaskFailure) -> Failure {
    Failure::new(format!("{what}: {}", failure.refusal))
}

/// Reports which alert has ended a recording, and when.
fn what_ended(Triggered { alert, elapsed_ns, wall_clock_ns }: &Triggered) -> String {
    format!(
        "trace: alert {} of {} (pid {}) ended the recording at {}, {} s after its start",
        Shown(&alert.name),
        Shown(&alert.provider),
        alert.pid,
        utc(*wall_clock_ns),
        seconds(*elapsed_ns),
    )
}

/// A time of day and its date, from nanoseconds since 1970.
fn utc(wall_clock_ns: u64) -> String {
    let seconds = wall_clock_ns / 1_000_000_000;
    let (mut day, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC", day + 1)
}

/// Nanoseconds as seconds, with three decimal places.
fn seconds(nanos: u64) -> String {
    format!("{:.3}", nanos as f64 / 1e9)
}

/// The text that ffx prints of a task, and further facts.
fn text(status: &TaskStatus) -> String {
    let options = &status.options;
    let total =
        options.duration_ns.map_or_else(|| "infinite".to_owned(), |ns| format!("{} seconds", seconds(ns)));
    let remaining =
        status.remaining_ns.map_or_else(|| "infinite".to_owned(), |ns| format!("{} seconds", seconds(ns)));
    let categories = match options.requested_categories.as_slice() {
        [] => "all".to_owned(),
        list => Shown(&list.join(",")).to_string(),
    };
    let mut text = format!(
        "Task Id: {}\nName: {}\nStarted by: {} (pid {}, user {})\nFile: {}\nMode: {}\nElapsed: {} seconds\n\
         Total Duration: {total}\nRemaining Duration: {remaining}\nCategories: {categories}\n",
        status.task,
        Shown(&options.name),
        Shown(&status.config.command_line.join(" ")),
        status.pid,
        status.uid,
        Shown(&options.file),
        status.config.buffering_mode,
        seconds(status.elapsed_ns),
    );
    if options.triggers.is_empty() {
        text.push_str("Triggers: none\n");
    } else {
        text.push_str("Triggers:\n");
        for trigger in &options.triggers {
            text.push_str(&format!("- {} : Terminate\n", Shown(&trigger.alert)));
        }
    }
    text.push_str("Programs:\n");
    if status.progress.is_empty() && status.ended.is_empty() {
        text.push_str("- none\n");
    }
    for provider in &status.progress {
        let damage = if provider.is_damaged { "; the buffer's counters are damaged" } else { "" };
        text.push_str(&format!(
            "- {} (pid {}): {}, buffer {:.0} %, {} lost{damage}\n",
            Shown(&provider.name),
            provider.pid,
            Counted(provider.records, "records"),
            provider.fill,
            provider.dropped
        ));
    }
    for provider in &status.ended {
        let problem = match provider.problem.as_str() {
            "" => String::new(),
            problem => format!("; {}", Shown(problem)),
        };
        text.push_str(&format!(
            "- {} (pid {}): {}, {}, {} lost{problem}\n",
            Shown(&provider.name),
            provider.pid,
            Shown(&provider.disposition),
            Counted(provider.events_archived.unwrap_or(0), "events"),
            provider.records_dropped.unwrap_or(0),
        ));
    }
    if status.ended_left_out > 0 {
        text.push_str(&format!("- {} more that ended before these\n", status.ended_left_out));
    }
    text
}

fn machine(status: &TaskStatus) -> serde_json::Value {
    let options = &status.options;
    json!({
        "number": status.task,
        "label": options.name,
        "file": options.file,
        "pid": status.pid,
        "uid": status.uid,
        "command_line": status.config.command_line,
        "buffering_mode": status.config.buffering_mode.to_string(),
        "elapsed_ns": status.elapsed_ns,
        "duration_ns": options.duration_ns,
        "remaining_ns": status.remaining_ns,
        "categories": options.requested_categories,
        "triggers": options.triggers.iter().map(|trigger| &trigger.alert).collect::<Vec<_>>(),
        "programs": status.progress.iter().map(|provider| json!({
            "id": provider.id,
            "name": provider.name,
            "pid": provider.pid,
            "started": start_time(provider.pid),
            "records": provider.records,
            "bytes": provider.bytes,
            "lost": provider.dropped,
            "fill_percent": provider.fill,
            "damaged": provider.is_damaged,
        })).collect::<Vec<_>>(),
        "ended": status.ended.iter().map(|provider| json!({
            "id": provider.id,
            "name": provider.name,
            "pid": provider.pid,
            "end_reason": provider.disposition,
            "events": provider.events_archived,
            "lost": provider.records_dropped,
            "problem": (!provider.problem.is_empty()).then_some(&provider.problem),
        })).collect::<Vec<_>>(),
        "ended_left_out": status.ended_left_out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_protocol::controller::{Alert, ProviderProgress, ProviderStats, TraceConfig};

    fn status() -> TaskStatus {
        TaskStatus {
            task: 100,
            options: TaskOptions {
                duration_ns: Some(10_000_000_000),
                triggers: vec![Trigger { alert: "stall".to_owned(), action: TriggerAction::Terminate }],
                requested_categories: vec!["#default".to_owned(), "app".to_owned()],
                name: "night".to_owned(),
                file: "/home/me/trace.fxt".to_owned(),
            },
            elapsed_ns: 1_500_000_000,
            remaining_ns: Some(8_500_000_000),
            config: TraceConfig {
                command_line: vec!["trace".to_owned(), "start".to_owned()],
                ..TraceConfig::default()
            },
            pid: 4242,
            uid: 1000,
            progress: vec![ProviderProgress {
                id: 3,
                name: "demo".to_owned(),
                pid: 4343,
                records: 1000,
                bytes: 32_000,
                dropped: 2,
                fill: 62.5,
                is_damaged: false,
                held: 0,
            }],
            ended: vec![ProviderStats {
                name: "early".to_owned(),
                pid: 4444,
                events_archived: Some(7),
                records_dropped: Some(0),
                disposition: "ended".to_owned(),
                ..ProviderStats::default()
            }],
            ended_left_out: 0,
            others: Vec::new(),
        }
    }

    #[test]
    fn the_alert_that_ended_a_recording_is_named() {
        let alert = Alert { name: "stall".to_owned(), provider: "demo".to_owned(), pid: 4343, dropped: 0 };
        let triggered =
            Triggered { alert, elapsed_ns: 1_500_400_000, wall_clock_ns: 1_709_251_199_999_999_999 };
        assert_eq!(
            what_ended(&triggered),
            "trace: alert stall of demo (pid 4343) ended the recording at 2024-02-29 23:59:59 UTC, 1.500 s \
             after its start"
        );
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (1_735_689_600, "2025-01-01 00:00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (u64::MAX / 1_000_000_000, "2554-07-21 23:34:33 UTC"),
        ] {
            assert_eq!(utc(seconds * 1_000_000_000), expected);
        }
    }

    #[test]
    fn a_status_reads_well() {
        insta::assert_snapshot!(text(&status()), @r"
        Task Id: 100
        Name: night
        Started by: trace start (pid 4242, user 1000)
        File: /home/me/trace.fxt
        Mode: oneshot
        Elapsed: 1.500 seconds
        Total Duration: 10.000 seconds
        Remaining Duration: 8.500 seconds
        Categories: #default,app
        Triggers:
        - stall : Terminate
        Programs:
        - demo (pid 4343): 1000 records, buffer 62 %, 2 lost
        - early (pid 4444): ended, 7 events, 0 lost
        ");
        let refused = ProviderStats {
            name: "old".to_owned(),
            pid: 9,
            disposition: "refused".to_owned(),
            problem: "it uses protocol 7".to_owned(),
            ..ProviderStats::default()
        };
        let ended = TaskStatus { ended: vec![refused], ended_left_out: 3, progress: Vec::new(), ..status() };
        let expected = "Programs:\n- old (pid 9): refused, 0 events, 0 lost; it uses protocol 7\n\
                        - 3 more that ended before these\n";
        assert!(text(&ended).ends_with(expected), "{}", text(&ended));
        let none = TaskStatus { ended: Vec::new(), progress: Vec::new(), ..status() };
        assert!(text(&none).ends_with("Programs:\n- none\n"), "{}", text(&none));
    }

    #[test]
    fn damaged_counters_are_reported() {
        let mut status = status();
        status.progress[0].is_damaged = true;
        let line =
            "- demo (pid 4343): 1000 records, buffer 62 %, 2 lost; the buffer's counters are damaged\n";
        assert!(text(&status).contains(line), "{}", text(&status));
        assert_eq!(machine(&status)["programs"][0]["damaged"], true);
    }

    #[test]
    fn programs_get_the_same() {
        let value = machine(&status());
        assert_eq!((&value["number"], &value["remaining_ns"]), (&100.into(), &8_500_000_000_u64.into()));
        assert_eq!(
            (&value["triggers"][0], &value["programs"][0]["fill_percent"]),
            (&"stall".into(), &62.5.into())
        );
    }
}
