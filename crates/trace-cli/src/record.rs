//! `trace record`: from the first message to the summary.

mod recording;

use crate::args::Record;
use crate::command::RecordedCommand;
use crate::connection::Connection;
use crate::exit::{self, Failure};
use crate::output::OutputFile;
use crate::{convert, summary};
use recording::{Happening, Recording};
use std::fs::File;
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;
use trace_protocol::controller::{
    SessionRequest, SessionResponse, StartOptions, StopOptions, StopResult, TraceConfig,
};

/// How long a manager may take beyond its own timeouts.
const GRACE: Duration = Duration::from_secs(10);
/// How long a command may take to end when it was asked to.
const TERM_WAIT: Duration = Duration::from_secs(5);

/// Records, and returns the exit code.
pub fn run(options: Record) -> Result<u8, Failure> {
    let mut output = OutputFile::create(&options.output_file)?;
    let is_converted = convert::is_json(&options.output_file);
    let mut archive =
        if is_converted { Some(convert::temporary_archive(&options.output_file)?) } else { None };
    let connection = Connection::open()?;
    let config = TraceConfig {
        categories: options.categories.as_ref().map(|list| list.0.clone()).unwrap_or_default(),
        buffer_size_megabytes_hint: options.buffer_size.0,
        buffering_mode: options.buffering_mode.into(),
        start_timeout_milliseconds: milliseconds(options.start_timeout),
        stop_timeout_milliseconds: milliseconds(options.stop_timeout),
        metadata: !options.no_metadata,
        command_line: command_line(),
        ..TraceConfig::default()
    };
    let start_timeout = Duration::from_millis(config.start_timeout_milliseconds);
    let file = match &mut archive {
        Some(archive) => archive.as_file_mut(),
        None => output.file(),
    };
    let mut recording = Recording::begin(&connection, config, file)?;
    start(&mut recording, start_timeout)?;
    let mut command = RecordedCommand::spawn(&options.command, connection.directory())?;
    recording.watch(command.as_mut())?;
    if command.is_none() && options.duration.is_none() {
        eprintln!("trace: recording; press Ctrl-C to stop");
    }
    let end = wait_for_end(&mut recording, command.as_mut(), options.duration)?;
    let result = match end {
        End::ManagerGone => None,
        End::CommandEnded | End::Duration | End::Interrupted => stop(&mut recording)?,
    };
    let mut note = result.is_none().then(|| {
        format!("{}; what had come is kept, and trace recover saves the rest", recording.why_gone())
    });
    if matches!(end, End::Duration)
        && let Some(command) = &mut command
    {
        end_command(&mut recording, command)?;
    }
    if let Some(failure) = recording.finish()? {
        // The manager had handed over everything before.
        note = note.or(Some(format!("{failure}; what was written before is kept")));
    }
    if note.is_some() {
        let file = archive.as_mut().map_or_else(|| output.file(), NamedTempFile::as_file_mut);
        if cut_to_whole_records(file)? == 0 {
            return Err(Failure::new(note.unwrap_or_default()));
        }
    }
    let stats = result.map(|result| result.provider_stats).unwrap_or_default();
    let summary = match archive {
        Some(archive) => {
            let summary = convert::to_catapult(archive.path(), output.file())?;
            let path = output.finish()?;
            report(&stats, &path, command.is_some());
            convert::advise(&summary);
            return finish(note, command);
        }
        None => output.finish()?,
    };
    report(&stats, &summary, command.is_some());
    finish(note, command)
}

/// Leaves out what is less than a record at the end. The bytes that remain.
fn cut_to_whole_records(file: &mut File) -> Result<u64, Failure> {
    let cut = trace_reader::whole_records(file).and_then(|bytes| file.set_len(bytes).map(|()| bytes));
    cut.map_err(|error| Failure::new(format!("cannot read what was written: {error}")))
}

/// The exit code after everything was saved.
fn finish(note: Option<String>, command: Option<RecordedCommand>) -> Result<u8, Failure> {
    if let Some(note) = note {
        return Err(Failure::new(note));
    }
    Ok(command.and_then(|mut command| command.status()).map_or(0, exit::of_command))
}

fn report(stats: &[trace_protocol::controller::ProviderStats], path: &std::path::Path, has_command: bool) {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    eprint!("{}", summary::text(stats, path, bytes, has_command));
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// This process's own command line, cut where a message ends.
fn command_line() -> Vec<String> {
    let mut left = trace_protocol::limits::MAX_COMMAND_LINE_BYTES;
    std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .take_while(|argument| {
            let fits = argument.len() <= left;
            left = left.saturating_sub(argument.len());
            fits
        })
        .collect()
}

/// Why recording ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    CommandEnded,
    Duration,
    Interrupted,
    ManagerGone,
}

/// Waits until all providers record, or were given up.
fn start(recording: &mut Recording<'_>, timeout: Duration) -> Result<(), Failure> {
    recording.request(SessionRequest::StartTracing(StartOptions::default()))?;
    let deadline = Instant::now() + timeout + GRACE;
    loop {
        match recording.next(Some(deadline))? {
            Happening::Response(SessionResponse::StartTracing(Ok(()))) => return Ok(()),
            Happening::Response(SessionResponse::StartTracing(Err(error))) => {
                return Err(Failure::new(format!("unable to start trace: {error:?}")));
            }
            Happening::Response(SessionResponse::Refused { reason }) => {
                return Err(Failure::new(format!("unable to start trace: {reason}")));
            }
            Happening::Response(SessionResponse::OnWaiting(names)) => tell_waiting(&names, "start"),
            Happening::ManagerGone => {
                return Err(Failure::new(format!("unable to start trace: {}", recording.why_gone())));
            }
            Happening::Signal => return Err(Failure::new("interrupted before the recording started")),
            Happening::Timeout => {
                return Err(Failure::new("unable to start trace: the trace manager does not answer"));
            }
            _ => {}
        }
    }
}

/// Records until the command has ended, the time is over or the user has had enough.
fn wait_for_end(
    recording: &mut Recording<'_>,
    mut command: Option<&mut RecordedCommand>,
    duration: Option<Duration>,
) -> Result<End, Failure> {
    let deadline = duration.map(|duration| Instant::now() + duration);
    let mut interrupts = 0;
    loop {
        match recording.next(deadline)? {
            Happening::CommandEnded => {
                return Ok(if interrupts > 0 { End::Interrupted } else { End::CommandEnded });
            }
            Happening::Timeout => return Ok(End::Duration),
            Happening::ManagerGone => return Ok(End::ManagerGone),
            Happening::Signal => {
                interrupts += 1;
                let Some(command) = command.as_deref_mut() else {
                    return Ok(End::Interrupted);
                };
                // A Ctrl-C has reached the command too; a signal to us alone has not.
                if recording.was_terminated() {
                    command.terminate();
                }
                if interrupts == 1 {
                    eprintln!("trace: waiting for {}; press Ctrl-C again to kill it", command.name());
                } else {
                    command.kill();
                }
            }
            Happening::Response(_) | Happening::OutputEnded => {}
        }
    }
}

/// Stops, and waits until everybody's data has come.
fn stop(recording: &mut Recording<'_>) -> Result<Option<StopResult>, Failure> {
    recording.request(SessionRequest::StopTracing(StopOptions { write_results: true }))?;
    loop {
        match recording.next(None)? {
            Happening::Response(SessionResponse::StopTracing(Ok(result))) => return Ok(Some(result)),
            Happening::Response(SessionResponse::StopTracing(Err(error))) => {
                return Err(Failure::new(format!("unable to stop trace: {error:?}")));
            }
            // Or nobody can write what it sends.
            Happening::ManagerGone => return Ok(None),
            Happening::Response(SessionResponse::OnWaiting(names)) => tell_waiting(&names, "stop"),
            _ => {}
        }
    }
}

fn tell_waiting(names: &[String], what: &str) {
    eprintln!("trace: waiting for {} to {what}", names.join(", "));
}

/// Asks the command to end, and makes it.
fn end_command(recording: &mut Recording<'_>, command: &mut RecordedCommand) -> Result<(), Failure> {
    if command.status().is_some() {
        return Ok(());
    }
    command.terminate();
    let mut deadline = Some(Instant::now() + TERM_WAIT);
    loop {
        match recording.next(deadline)? {
            Happening::CommandEnded => return Ok(()),
            Happening::Timeout => {
                eprintln!("trace: {} does not end; killing it", command.name());
                command.kill();
                deadline = None;
            }
            Happening::Signal => command.kill(),
            _ => {}
        }
    }
}
