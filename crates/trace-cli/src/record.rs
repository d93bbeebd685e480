//! `trace record`: from the first message to the summary.

pub mod absence;
pub mod command;
pub mod config;
pub mod destination;
pub mod doctor;
mod hangs;
pub mod kernel;
mod limits;
pub mod live;
pub mod patience;
mod recording;
pub mod recover;
mod status_line;
pub mod summary;
mod triggers;
pub mod verify;

use crate::args;
use crate::args::record::Recording as Options;
use crate::compare::measure;
use crate::connection::own_manager;
use crate::connection::state;
use crate::connection::{self, Connection, not_started, recover_command};
use crate::convert;
use crate::files::input::is_stdin;
use crate::files::output::{Removing, remove_on_signal, remove_on_signal_saying};
use crate::look::report;
use crate::look::stats;
use crate::record::command::RecordedCommand;
use crate::record::verify::Expected;
use crate::settings::{Settings, checks};
use crate::shell::caller;
use crate::shell::exit::{self, Failure};
use crate::shell::json;
use crate::shell::signals::{end_with, note_signals};
use crate::shell::stdio::{self, say};
use destination::{Destination, Finished, Worth};
use recording::{ASK_INTERVAL, Happening, Recording};
use status_line::StatusLine;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use trace_analysis::counted::Counted;
use trace_archive::problem;
use trace_client::limited;
use trace_protocol::controller::{
    ProviderDisposition, ProviderStats, Refusal, SessionRequest, SessionResponse, StartOptions, StopOptions,
    StopResult, TraceConfig,
};
use triggers::Triggers;
use zx_sim::process::end_in_words;

/// How long a manager may exceed its own timeouts.
const GRACE: Duration = Duration::from_secs(10);
/// How often the memory of programs is looked at, where it is a condition.
const MEMORY_INTERVAL: Duration = Duration::from_millis(100);
/// How long a command may take to end after a SIGTERM or a Ctrl-C.
const TERM_WAIT: Duration = Duration::from_secs(5);

/// Records, and returns the exit code.
pub fn run(options: args::Record) -> Result<u8, Failure> {
    let (is_json, parent) = (options.json, options.parent);
    let files = [options.config.as_deref(), options.recording.spec_file.as_deref()];
    let is_pipe = files.into_iter().flatten().any(|file| is_stdin(file) || !file.is_file());
    let settings = Settings::resolve(options.recording.clone(), options.config_file())?;
    let options = &settings.recording;
    // Before anything is taken over that other programs have recorded.
    command::check(&options.command)?;
    caller::begin(options.user.as_deref())?;
    let mut config = config::trace_config(&settings)?;
    // Handles a Ctrl-C before anything is recorded.
    let removing = remove_on_signal()?;
    parent.map(end_with).transpose()?;
    let was_interrupted = note_signals()?;
    let mut destination = destination::create_partial(options)?;
    let is_stdout = options.output.as_deref().is_some_and(destination::is_stdout);
    // The kernel forgets this where files are made as another user.
    parent.map(end_with).transpose()?;
    if is_stdout {
        checks::of_stdout(options, is_json)?;
    }
    (config.confirms, config.wants_untraced, config.file) = (true, true, destination.archive_file());
    let is_of_root = !options.command.is_empty() || kernel::is_wanted(&config);
    let mut connection = connection::open_for(is_of_root)?;
    config.user = connection::limited_to(&connection);
    // Of a command, only the programs that it starts are wanted. Other commands of this tool, for which this
    // one records, look for the recording at the usual manager. Options from a pipe cannot be read again.
    let may_have_own_manager = !options.command.is_empty() && parent.is_none() && !is_pipe;
    if let Some(obstacle) = state::obstacle(&connection) {
        if may_have_own_manager {
            destination.discard();
            drop(connection);
            return Err(own_manager::record_with_one(&obstacle, &was_interrupted));
        }
        say!("trace: warning: {obstacle}, less than this command");
    }
    let mut expected = Expected::new(options.categories.as_ref().map_or(&[], |list| &list.0));
    // A command's categories are known only when it runs.
    if options.command.is_empty() {
        expected.check_running(&mut connection)?;
        verify::programs_running(&mut connection, &options.program)?;
    }
    config.wants_known_categories = !expected.is_empty();
    kernel::provide(&mut connection, &config, options)?;
    let mut kept = Kept::IfEvents;
    let recording = RequestedRecording { config, expected, settings: &settings, is_json };
    let recorded = record(&mut connection, recording, &mut destination, removing, &mut kept);
    let Recorded { stats, expected, status, code, is_cut } = match recorded {
        Ok(recorded) => recorded,
        Err(failure) if kept.applies(&mut destination) => return Err(keep(destination, failure)),
        Err(failure) => {
            destination.discard();
            // Another recording is in the way, or too many are. A refusal for another reason holds anywhere.
            let is_in_use = |refusal: &Refusal| refusal.recorder.is_some() || refusal.limit.is_some();
            match &failure.refusal {
                Some(refusal) if may_have_own_manager && is_in_use(refusal) => {
                    drop(connection);
                    return Err(own_manager::record_with_one(&refusal.reason, &was_interrupted));
                }
                _ => return Err(failure),
            }
        }
    };
    // The conversion may take longer than the user wants to wait.
    let words = destination.separate_archive().map(|path| {
        format!("interrupted; what was recorded is in {0}: trace convert {0} OUTPUT", path.display())
    });
    let _removing = remove_on_signal_saying(words)?;
    // What was open and had not ended is no event of a program's, and worth as much.
    let has_events = stats.iter().any(|provider| provider.events_archived.is_some_and(|events| events > 0))
        || destination.has_events();
    let may_be_empty = options.command.is_empty() || options.allow_empty == Some(true);
    let worth = match has_events {
        true => Worth::Events,
        false if stats.is_empty() && !may_be_empty => Worth::NoPrograms,
        false => Worth::NoEvents,
    };
    let finished = destination::finish(destination, worth)?;
    let command = (!options.command.is_empty()).then(|| absence::Command { words: &options.command, status });
    let absence = absence::of_none(&stats, connection.directory(), command);
    let is_measured = report(&stats, &finished, &expected, absence.as_deref(), &settings, is_json)?;
    let code = if options.return_child_result == Some(false) { 0 } else { code };
    if code == 0 && stats.iter().all(summary::is_untraced) {
        if !may_be_empty {
            return Ok(exit::NOTHING_RECORDED);
        } else if !stats.is_empty() && options.command.is_empty() {
            return Ok(exit::FAILURE);
        }
    }
    if code == 0 && !is_measured {
        return Ok(exit::NO);
    }
    let has_lost = is_cut || stats.iter().any(summary::has_lost);
    if code == 0 && has_lost && options.fail_on_loss == Some(true) {
        return Ok(exit::LOST);
    }
    let is_commands = status.is_some_and(|status| exit::of_command(status) == code);
    if is_commands && options.return_child_result != Some(false) {
        json::code_is_the_commands();
    }
    Ok(code)
}

/// The requested recording.
struct RequestedRecording<'a> {
    config: TraceConfig,
    expected: Expected,
    settings: &'a Settings,
    is_json: bool,
}

/// A complete recording.
struct Recorded {
    stats: Vec<ProviderStats>,
    expected: Expected,
    /// How the command ended, if it has.
    status: Option<ExitStatus>,
    code: u8,
    /// The archive had no room for some of the data.
    is_cut: bool,
}

/// Keeps the archive of an incomplete recording, and reports its path.
fn keep(destination: Destination, failure: Failure) -> Failure {
    let what = match destination.keep() {
        Ok(Some(path)) if !path.exists() => {
            let path = path.display();
            let rest = format!("{} saves what is still in the programs' buffers", recover_command());
            return Failure { text: format!("{path} was deleted while it was written; {rest}"), ..failure };
        }
        Ok(Some(path)) => return add_kept(failure, &path),
        Ok(None) => format!("{} can save what the programs recorded", recover_command()),
        Err(error) => problem(&error),
    };
    Failure { text: format!("{}; {what}", failure.text), ..failure }
}

/// A failure that also says which file has what had arrived.
pub fn add_kept(failure: Failure, path: &Path) -> Failure {
    let rest = format!("{} adds what is still in the programs' buffers", recover_command());
    let text = format!("{}; {} has the data that had arrived; {rest}", failure.text, path.display());
    Failure { text, ..failure }
}

/// Whether an archive is kept that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// If it has an event: what a program had recorded before, and handed over, is nowhere else.
    IfEvents,
    /// It is not: no program had recorded anything before.
    No,
    /// It is.
    Yes,
}

impl Kept {
    fn applies(self, destination: &mut Destination) -> bool {
        match self {
            Self::IfEvents => destination.has_events(),
            Self::No => false,
            Self::Yes => true,
        }
    }
}

/// Records into a destination, from the first message to the last byte. The archive is worth everything when
/// the programs record and the command runs.
fn record(
    connection: &mut Connection,
    wanted: RequestedRecording,
    destination: &mut Destination,
    removing: Removing,
    kept: &mut Kept,
) -> Result<Recorded, Failure> {
    let RequestedRecording { config, expected, settings, is_json } = wanted;
    let options = &settings.recording;
    let start_timeout = Duration::from_millis(config.start_timeout_milliseconds);
    let is_stdout = options.output.as_deref().is_some_and(destination::is_stdout);
    let stdout_is_ours = is_stdout || is_json;
    let mut sink = destination.sink()?;
    if let Some(size) = options.max_size {
        sink.limit(size.0);
    }
    let mut recording = Recording::begin(connection, config, sink, expected)?;
    removing.close();
    // Before it is announced: without a handler, a signal would end this program.
    let mut triggers = Triggers::new(options, &recording)?;
    let shares = options.manager_fd == Some(true);
    let command = start(&mut recording, start_timeout).and_then(|()| {
        RecordedCommand::spawn(&command_of(options), connection.directory(), stdout_is_ours, shares)
    });
    let mut command = match command {
        Ok(command) => command,
        Err(failure) => {
            destination.keep_unless_finished();
            *kept = discard(recording, connection);
            return Err(failure);
        }
    };
    *kept = Kept::Yes;
    destination.keep_unless_finished();
    recording.watch(command.as_mut())?;
    announce(options, command.is_some());
    let end = wait_for_end(&mut recording, command.is_some(), options, &mut triggers)?;
    // Reap it: then its exit status is known, and the manager does not wait for that.
    command.as_mut().map(RecordedCommand::status);
    // A Ctrl-C has reached the command too; a signal to this process alone has not.
    let is_asked = end != End::Interrupted || recording.was_terminated();
    if end == End::Interrupted && is_asked {
        command.iter().for_each(RecordedCommand::terminate);
    }
    let result = match end {
        End::ManagerGone => None,
        _ => stop(&mut recording, command.as_mut(), &mut triggers)?,
    };
    if let End::MaxSize(size) = end {
        say!("trace: stopped: the recording has reached {size}");
    }
    let Some(result) = result else {
        let runs_on = if let Some(command) = &mut command
            && command.status().is_none()
        {
            format!("; {} (pid {}) runs on", command.name(), command.pid())
        } else {
            String::new()
        };
        let why = recording.why_gone();
        return Err(Failure { text: format!("{}{runs_on}", why.text), ..why });
    };
    if let Some(command) = &mut command {
        end_command(&mut recording, command, end, is_asked, options)?;
    }
    let mut stats = result.provider_stats;
    let expected = recording.take_expected();
    let left_out = recording.finish(connection, &mut stats)?;
    if left_out.records > 0 {
        say!(
            "trace: {} ({} bytes) {} deleted: the archive would be larger than --max-size",
            Counted(left_out.records, "records"),
            left_out.bytes,
            if left_out.records == 1 { "was" } else { "were" }
        );
    }
    triggers.finish();
    if let Some(command) = &mut command
        && let Some(status) = command.status()
    {
        say_how_it_ended(&mut stats, command.pid(), status, end);
    }
    let code = command.as_mut().map_or(0, |command| code_of(command, end));
    let status = command.as_mut().and_then(RecordedCommand::status);
    Ok(Recorded { stats, expected, status, code, is_cut: left_out.records > 0 })
}

/// The exit code for the command's end. A signal that ended it is reported, unless it was sent because the
/// recording was over.
//= docs/recording.md#exit-code
fn code_of(command: &mut RecordedCommand, end: End) -> u8 {
    let Some(status) = command.status() else { return 0 };
    let is_as_asked = matches!(end, End::Duration | End::Trigger | End::MaxSize(_));
    if is_as_asked && command.has_obeyed(status) {
        return 0;
    }
    if status.signal().is_some() && end != End::Interrupted {
        say!("trace: {}: {}", command.name(), end_in_words(status));
    }
    exit::of_command(status)
}

/// The client knows how its own child ended; the manager sees only that descriptors were closed.
//= docs/recording.md#how-a-program-ended
fn say_how_it_ended(stats: &mut [ProviderStats], pid: u64, status: ExitStatus, end: End) {
    // A command that drops its provider and then ends may or may not have received the Stop in between: that
    // is chance, so "stopped" is replaced too.
    let is_over = |disposition: &String| {
        *disposition == ProviderDisposition::Ended
            || *disposition == ProviderDisposition::Left
            || *disposition == ProviderDisposition::Stopped && end == End::CommandEnded
    };
    for stats in stats.iter_mut().filter(|stats| stats.pid == pid && is_over(&stats.disposition)) {
        stats.disposition = end_in_words(status);
    }
}

/// The command with the appended arguments.
fn command_of(options: &Options) -> Vec<String> {
    let appended = options.append_args.iter().flat_map(|pieces| &pieces.0);
    options.command.iter().chain(appended).cloned().collect()
}

fn announce(options: &Options, has_command: bool) {
    match options.duration {
        Some(duration) if !has_command => {
            say!("trace: recording for {duration}; press Ctrl-C to stop before")
        }
        None if !has_command || options.decouple == Some(true) => {
            say!("trace: recording; press Ctrl-C to stop");
        }
        _ => {}
    }
}

/// Reports what was recorded and what is missing, and runs the measurements. Returns whether all of those
/// have samples.
fn report(
    providers: &[ProviderStats],
    finished: &Finished,
    expected: &Expected,
    absence: Option<&str>,
    settings: &Settings,
    is_json: bool,
) -> Result<bool, Failure> {
    let options = &settings.recording;
    let summary = summary::Summary {
        providers,
        place: &finished.place,
        is_unchanged: finished.is_unchanged,
        file_bytes: finished.bytes,
        absence,
        programs: &options.program,
        buffer_size: options.buffer_size.map_or(4, |size| size.0),
        room: connection::room(),
    };
    stdio::report(&summary.text());
    if is_json {
        summary.answer().give();
    }
    if let Some(conversion) = &finished.conversion {
        convert::advise(conversion, finished.format);
    }
    let archive = finished.archive.as_ref();
    if options.no_verify_trace != Some(true)
        && let Some(requested) = &options.categories
        && (archive.is_some() || finished.is_unchanged)
    {
        verify::categories(&requested.0, expected, archive.map(|archive| archive.path()), providers)?;
    }
    let Some(archive) = archive else {
        return Ok(true);
    };
    if options.stats == Some(true) {
        stats::report(archive.path())?;
    }
    if options.report == Some(true) {
        let recording = finished.path.as_deref().unwrap_or_else(|| archive.path());
        report::of_recording(archive.path(), recording)?;
    }
    match &settings.spec {
        Some(spec) if !spec.measure.is_empty() => {
            let results = options.benchmark_results_file.as_deref();
            let printed = if is_json { measure::Printed::OnStderr } else { measure::Printed::Text };
            measure::file(&spec.measure, archive.path(), results, options.test_suite.as_deref(), printed)
        }
        _ => Ok(true),
    }
}

/// Why a recording ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    CommandEnded,
    Duration,
    Trigger,
    MaxSize(args::values::FileSize),
    Interrupted,
    ManagerGone,
}

/// Waits until all providers record, or have timed out.
fn start(recording: &mut Recording, timeout: Duration) -> Result<(), Failure> {
    recording.request(SessionRequest::StartTracing(StartOptions::default()))?;
    let deadline = Instant::now() + timeout + GRACE;
    loop {
        match recording.next(Some(deadline))? {
            Happening::Response(SessionResponse::StartTracing(Ok(()))) => return Ok(()),
            Happening::Response(SessionResponse::StartTracing(Err(error))) => {
                return Err(Failure::new(format!("unable to start trace: {error:?}")));
            }
            Happening::Response(SessionResponse::Refused(refusal)) => return Err(not_started(refusal)),
            Happening::Response(SessionResponse::OnWaiting(names)) => {
                report_waiting_programs(&names, "start")
            }
            Happening::Warning(text) => say!("{text}"),
            Happening::ManagerGone => {
                let why = recording.why_gone();
                return Err(Failure { text: format!("unable to start trace: {}", why.text), ..why });
            }
            Happening::Signal => return Err(Failure::new("interrupted before the recording started")),
            Happening::Timeout => {
                return Err(Failure::new("unable to start trace: the trace manager does not answer"));
            }
            _ => {}
        }
    }
}

/// Ends a recording that has not begun. Its data is read, so that none of it is left to be recovered; returns
/// what that is worth.
fn discard(mut recording: Recording, connection: &mut Connection) -> Kept {
    let stop = SessionRequest::StopTracing(StopOptions { write_results: true });
    let deadline = Instant::now() + GRACE;
    if recording.request(stop).is_err() {
        return Kept::IfEvents;
    }
    let mut stats = loop {
        match recording.next(Some(deadline)) {
            Ok(Happening::Response(SessionResponse::StopTracing(Ok(result)))) => break result.provider_stats,
            Ok(Happening::Response(SessionResponse::StopTracing(Err(_)))) => break Vec::new(),
            Ok(Happening::ManagerGone | Happening::Timeout | Happening::Signal) | Err(_) => {
                return Kept::IfEvents;
            }
            Ok(_) => {}
        }
    };
    if recording.finish(connection, &mut stats).is_err() {
        return Kept::IfEvents;
    }
    let is_handed_over = |stats: &ProviderStats| stats.disposition == ProviderDisposition::HandedOver;
    if stats.iter().any(is_handed_over) { Kept::IfEvents } else { Kept::No }
}

/// Records until the command has ended, the time is over, the size is reached, or the user stops it.
fn wait_for_end(
    recording: &mut Recording,
    has_command: bool,
    options: &Options,
    triggers: &mut Triggers,
) -> Result<End, Failure> {
    // Some may have come while it started.
    if triggers.handle_news() {
        return Ok(End::Trigger);
    }
    let deadline = options.duration.map(|duration| Instant::now() + duration.0);
    let mut line = StatusLine::new(options.meant_buffering_mode());
    if triggers.are_alerts_needed() {
        recording.request(SessionRequest::WatchAlert)?;
    }
    let begun = Instant::now();
    let interval = options.max_size.map(|_| limited::INTERVAL);
    let interval = interval.or(triggers.is_progress_needed().then_some(MEMORY_INTERVAL));
    let interval = interval.or(line.as_ref().map(|_| status_line::INTERVAL));
    let mut next_look = interval.map(|interval| Instant::now() + interval);
    let end = loop {
        let next = [deadline, next_look, triggers.ends_at()].into_iter().flatten().min();
        match recording.next(next)? {
            Happening::CommandEnded if has_command && options.decouple != Some(true) => {
                break End::CommandEnded;
            }
            Happening::Timeout if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                break End::Duration;
            }
            Happening::Timeout if triggers.ends_at().is_some_and(|end| end <= Instant::now()) => {
                break End::Trigger;
            }
            Happening::Timeout => {
                next_look = interval.map(|interval| Instant::now() + interval);
                recording.request(SessionRequest::GetProgress)?;
            }
            Happening::ManagerGone => break End::ManagerGone,
            Happening::Signal => break End::Interrupted,
            Happening::Response(SessionResponse::Progress(providers)) => {
                let held = providers.iter().map(|provider| provider.held).fold(0, u64::saturating_add);
                let all = recording.written().saturating_add(held);
                if let Some(size) =
                    options.max_size.filter(|size| limited::is_near(size.0, all, begun.elapsed()))
                {
                    break End::MaxSize(size);
                }
                if triggers.handle_progress(&providers) {
                    break End::Trigger;
                }
                if let Some(line) = &mut line {
                    line.show(&providers, recording.written());
                }
            }
            Happening::Response(SessionResponse::WatchAlert(alert)) => {
                if triggers.handle(&alert) {
                    break End::Trigger;
                }
                recording.request(SessionRequest::WatchAlert)?;
            }
            Happening::News => {
                triggers.report(|text| say_above(line.as_ref(), text));
                if triggers.handle_news() {
                    break End::Trigger;
                }
            }
            Happening::Warning(text) => say_above(line.as_ref(), &text),
            _ => {}
        }
    };
    if let Some(line) = line {
        line.clear();
    }
    Ok(end)
}

fn say_above(line: Option<&StatusLine>, text: &str) {
    match line {
        Some(line) => line.say(text),
        None => say!("{text}"),
    }
}

/// Stops, and waits until the data of all providers has come, and all alerts.
fn stop(
    recording: &mut Recording,
    mut command: Option<&mut RecordedCommand>,
    triggers: &mut Triggers,
) -> Result<Option<StopResult>, Failure> {
    recording.request(SessionRequest::StopTracing(StopOptions { write_results: true }))?;
    let mut stopped = None;
    loop {
        match recording.next(Some(Instant::now() + ASK_INTERVAL))? {
            // A manager that is alive answers this at once, even while it waits for providers.
            Happening::Timeout if recording.is_in_vain() => return Err(frozen()),
            Happening::Timeout => recording.request(SessionRequest::GetProgress)?,
            Happening::CommandEnded => drop(command.as_mut().map(|command| command.status())),
            Happening::Response(SessionResponse::StopTracing(Ok(result))) => {
                if !triggers.are_alerts_needed() {
                    return Ok(Some(result));
                }
                // The manager answers this only after it has sent the waiting alerts.
                stopped = Some(result);
                recording.request(SessionRequest::GetProgress)?;
            }
            Happening::Response(SessionResponse::WatchAlert(alert)) => {
                triggers.handle_late(&alert);
                recording.request(SessionRequest::WatchAlert)?;
                if stopped.is_some() {
                    recording.request(SessionRequest::GetProgress)?;
                }
            }
            Happening::Response(SessionResponse::Progress(_)) if !recording.waits_for_answer() => {
                if let Some(result) = stopped {
                    return Ok(Some(result));
                }
            }
            Happening::Response(SessionResponse::StopTracing(Err(error))) => {
                return Err(Failure::new(format!("unable to stop trace: {error:?}")));
            }
            // Or no process is left to write what the provider sends.
            Happening::ManagerGone => return Ok(stopped),
            Happening::Response(SessionResponse::OnWaiting(names)) => report_waiting_programs(&names, "stop"),
            Happening::Warning(text) => say!("{text}"),
            // The first signal may have come together with the end of the command that it ended.
            Happening::Signal if recording.has_given_up() => return Err(aborted()),
            _ => {}
        }
    }
}

/// The manager is stopped, or its machine is.
fn frozen() -> Failure {
    Failure::with_code(exit::INTERRUPTED, "the trace manager does not answer")
}

/// The user has pressed Ctrl-C twice.
fn aborted() -> Failure {
    Failure::with_code(exit::INTERRUPTED, "aborted")
}

fn report_waiting_programs(names: &[String], what: &str) {
    say!("trace: waiting for {} to {what}", names.join(", "));
}

/// Asks the command to end, and kills it if it does not, unless it is to be left running.
fn end_command(
    recording: &mut Recording,
    command: &mut RecordedCommand,
    end: End,
    mut is_asked: bool,
    options: &Options,
) -> Result<(), Failure> {
    if command.status().is_some() {
        return Ok(());
    }
    if options.detach == Some(true) {
        say!("trace: {} runs on", command.name());
        return Ok(());
    }
    if end == End::Interrupted {
        // It has received the Ctrl-C too.
        say!("trace: waiting for {} to end; press Ctrl-C again to kill it", command.name());
    } else {
        command.terminate();
    }
    let mut deadline = Some(Instant::now() + TERM_WAIT);
    loop {
        match recording.next(deadline)? {
            Happening::CommandEnded => return Ok(()),
            Happening::Timeout if !is_asked => {
                is_asked = true;
                command.terminate();
                deadline = Some(Instant::now() + TERM_WAIT);
            }
            Happening::Timeout => {
                say!("trace: {} does not end; killing it", command.name());
                command.kill();
                deadline = None;
            }
            Happening::Signal => command.kill(),
            Happening::Warning(text) => say!("{text}"),
            _ => {}
        }
    }
}
