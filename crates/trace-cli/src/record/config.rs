//! What a recording asks of the manager.

use crate::args;
use crate::args::record::Recording as Options;
use crate::record::kernel;
use crate::settings::Settings;
use crate::shell::exit::Failure;
use crate::shell::stdio::say;
use trace_client::config::{WRITE_PERIOD, command_line, milliseconds};
use trace_format::shown::Shown;
use trace_protocol::controller::{EventCosts, TraceConfig};
use trace_protocol::limits::{MAX_PROVIDER_NAME_BYTES, MAX_PROVIDERS};
use trace_protocol::memory::{MemoryDumpLevel, MemoryDumps};

/// The configuration for the manager.
pub fn trace_config(settings: &Settings) -> Result<TraceConfig, Failure> {
    let options = &settings.recording;
    let entries = options.categories.as_ref().map(|list| list.0.as_slice()).unwrap_or_default();
    let plan = settings.groups.plan(entries).map_err(|why| Failure::usage(format!("--categories: {why}")))?;
    if entries.iter().any(|entry| entry.contains('#')) {
        say!("trace: categories: {}", plan.session.join(", "));
    }
    let default = TraceConfig::default();
    let time =
        |span: Option<args::values::Span>, default: u64| span.map_or(default, |span| milliseconds(span.0));
    let privacy = options.privacy == Some(true);
    let has_metadata = options.no_metadata != Some(true) && !privacy;
    let mut config = TraceConfig {
        provider_specs: plan.provider_specs(&options.program_buffer_size),
        categories: plan.session,
        programs: options.program.clone(),
        buffer_size_megabytes_hint: options.buffer_size.map_or(4, |size| size.0),
        buffering_mode: options.meant_buffering_mode().into(),
        start_timeout_milliseconds: time(options.start_timeout, default.start_timeout_milliseconds),
        stop_timeout_milliseconds: time(options.stop_timeout, default.stop_timeout_milliseconds),
        metadata: has_metadata,
        command_line: if privacy { Vec::new() } else { own_command_line() },
        privacy,
        event_costs: has_metadata.then(event_costs).flatten(),
        memory_dumps: memory_dumps(options),
        write_period_milliseconds: Some(time(options.write_period, milliseconds(WRITE_PERIOD)).max(1)),
        thread_time: options.thread_time == Some(true),
        mirror_markers: options.mirror_markers == Some(true),
        keep_ended_bytes: options.keep_ended.map_or(default.keep_ended_bytes, |size| size.0),
        ..default
    };
    check_programs(&options.program)?;
    kernel::ask(&mut config, options.profile.is_some());
    kernel::add(&mut config);
    // The kernel's provider may be one too many.
    check_programs(&config.programs)?;
    Ok(config)
}

/// Checks that programs can have these names.
fn check_programs(names: &[String]) -> Result<(), Failure> {
    let refuse = |what: String| Err(Failure::usage(format!("--program: {what}")));
    if names.len() > MAX_PROVIDERS {
        return refuse(format!("{} names, at most {MAX_PROVIDERS} are possible", names.len()));
    }
    for name in names {
        if name.is_empty() {
            return refuse("a name is empty".to_owned());
        }
        if name.len() > MAX_PROVIDER_NAME_BYTES {
            return refuse(format!("{} has more than {MAX_PROVIDER_NAME_BYTES} bytes", Shown(name)));
        }
        if name.contains(char::is_control) {
            return refuse(format!("{} has control characters, which no name has", Shown(name)));
        }
    }
    Ok(())
}

/// What events cost on this machine: what tracing has taken of a program's time can be estimated from it.
fn event_costs() -> Option<EventCosts> {
    let costs = trace_provider::event_costs()?;
    Some(EventCosts {
        instant_picoseconds: costs.instant_picoseconds,
        duration_picoseconds: costs.duration_picoseconds,
        counter_picoseconds: costs.counter_picoseconds,
    })
}

/// The periodic memory dumps.
fn memory_dumps(options: &Options) -> Option<MemoryDumps> {
    let interval = options.memory_dump_interval?.0;
    let is_detailed = options.detailed_memory_dumps == Some(true);
    Some(MemoryDumps {
        interval_milliseconds: milliseconds(interval).max(1),
        level: if is_detailed { MemoryDumpLevel::Detailed } else { MemoryDumpLevel::Light },
    })
}

/// This process's own command line. Commands of this program add a word and a number for themselves, before
/// all others.
fn own_command_line() -> Vec<String> {
    let is_of_another = std::env::args_os().nth(2).is_some_and(|word| word == "--parent");
    command_line(if is_of_another { 2..4 } else { 0..0 })
}
