//! The kernel as a provider: `trace ktrace`, and the provider that a recording of kernel events starts.

use crate::args::ktrace::Ktrace;
use crate::args::record::Recording;
use crate::connection::{self, Connection};
use crate::shell::exit::Failure;
use crate::shell::stdio::say;
use ktrace_provider::profiler::Sampling;
use ktrace_provider::{NAME, Options, READY, categories, cpu_counters, metrics, profiler};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};
use trace_protocol::controller::{
    ProviderInfo, ProviderSpec, ProvisionerRequest, ProvisionerResponse, TraceConfig,
};
use trace_protocol::names::RUNTIME_VARIABLE;

/// Minimum size of the provider's buffer, in mebibytes: the kernel writes much more than a program.
const BUFFER_MEGABYTES: u32 = 32;

/// Marks the provider of a single recording.
const ON_DEMAND: &str = "--on-demand";
/// How long such a provider may take to leave when its recording is over.
const LEAVE_WAIT: Duration = Duration::from_secs(3);
const LOOK_INTERVAL: Duration = Duration::from_millis(3);
/// Metrics are sampled at most this often.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// `trace ktrace`.
pub fn run(options: &Ktrace) -> Result<(), Failure> {
    let options = Options {
        is_on_demand: options.on_demand,
        buffer_kilobytes: options.kernel_buffer_size.0.div_ceil(1024),
        sample_interval: options.sample_interval.0.max(MIN_INTERVAL),
        sampling: options.profile.map(|hertz| Sampling { hertz, stack_bytes: options.profile_stack }),
        help: help(),
    };
    ktrace_provider::run(&options).map_err(|failure| Failure::new(failure.to_string()))
}

/// The command that runs it with the privileges that it needs, for the manager of this user. It changes no
/// privileges of other processes. With root's manager for all users, it is a recording of root's: root's
/// provider is in no other.
//= docs/kernel.md#access
pub fn help() -> String {
    let tool = std::env::current_exe().map_or_else(|_| "trace".into(), |tool| tool.display().to_string());
    let directories = connection::directories();
    let is_usable = |directory: &&PathBuf| {
        let own = rustix::process::geteuid().as_raw();
        std::fs::metadata(directory).is_ok_and(|found| [0, own].contains(&found.uid()))
    };
    let used = directories.iter().find(is_usable).or(directories.first());
    let directory = used.map_or_else(String::new, |used| format!("{RUNTIME_VARIABLE}={} ", used.display()));
    let is_roots = used.is_some_and(|used| connection::is_roots(used));
    format!("sudo {directory}{tool} {}", if is_roots { "record" } else { "ktrace" })
}

/// Whether a recording has such an entry, for all or for some program.
fn has_entry(config: &TraceConfig, is_it: impl Fn(&str) -> bool) -> bool {
    let of_providers = config.provider_specs.iter().flat_map(|spec| &spec.categories);
    config.categories.iter().chain(of_providers).any(|entry| is_it(entry))
}

/// Whether a recording wants anything of the kernel's provider.
pub fn is_wanted(config: &TraceConfig) -> bool {
    has_entry(config, is_ours)
}

/// Has the kernel's provider take part in a recording of some programs if that wants anything of it.
pub fn add(config: &mut TraceConfig) {
    let is_wanted = is_wanted(config) && !config.programs.is_empty();
    if is_wanted && !config.programs.iter().any(|name| name == NAME) {
        config.programs.push(NAME.to_owned());
    }
}

/// Asks the kernel's provider for a profile, and for markers that some programs are to write, and gives it a
/// buffer that is large enough for events, unless an option has set that size.
pub fn ask(config: &mut TraceConfig, has_profile: bool) {
    if !has_entry(config, categories::is_of_kernel) && !has_profile {
        return;
    }
    let profile = has_profile.then_some(profiler::CATEGORY);
    let writes_markers =
        |spec: &ProviderSpec| spec.categories.iter().any(|entry| categories::is_of_markers(entry));
    let markers = config.provider_specs.iter().any(writes_markers).then_some(categories::ATRACE);
    let more = profile.into_iter().chain(markers).map(str::to_owned);
    let size = config.buffer_size_megabytes_hint.max(BUFFER_MEGABYTES);
    match config.provider_specs.iter_mut().find(|spec| spec.name == NAME) {
        Some(spec) => {
            spec.buffer_size_megabytes_hint.get_or_insert(size);
            spec.categories.extend(more);
        }
        None => config.provider_specs.push(ProviderSpec {
            name: NAME.to_owned(),
            buffer_size_megabytes_hint: Some(size),
            categories: more.collect(),
        }),
    }
}

/// Starts the kernel's provider if a recording wants it and none runs. It ends with the recording. If it
/// cannot run, that is reported, and everything else is recorded.
pub fn provide(
    connection: &mut Connection,
    config: &TraceConfig,
    options: &Recording,
) -> Result<(), Failure> {
    if !is_wanted(config) {
        return Ok(());
    }
    let deadline = Instant::now() + LEAVE_WAIT;
    while let ProvisionerResponse::Providers { listed, .. } =
        connection.ask(ProvisionerRequest::GetProviders)?
    {
        let mut found =
            listed.iter().filter(|provider| is_kernels(provider, connection.directory())).peekable();
        if found.peek().is_none() {
            break;
        }
        // A provider of another recording ends with that one: it is about to leave.
        if found.any(|provider| stays(provider.pid)) || Instant::now() >= deadline {
            return Ok(());
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    start(connection.directory(), options);
    Ok(())
}

/// Whether an entry of a recording's list is for the kernel's provider.
pub fn is_ours(entry: &str) -> bool {
    categories::is_of_kernel(entry)
        || metrics::is_metric(entry)
        || cpu_counters::is_counter(entry)
        || entry == profiler::CATEGORY
}

/// The process that provides the kernel's events with its own privileges, for the recordings of this user.
pub fn running() -> Option<u64> {
    let mut connection = connection::open().ok()?;
    let providers = connection.settled_providers().ok()?;
    providers
        .listed
        .iter()
        .find(|provider| is_kernels(provider, connection.directory()) && stays(provider.pid))
        .map(|provider| provider.pid)
}

/// Whether a provider is the kernel's in recordings of this user with a manager in a directory. The manager
/// believes the same users.
//= docs/protocol.md#several-sessions
fn is_kernels(provider: &ProviderInfo, directory: &Path) -> bool {
    let owner = || std::fs::metadata(directory).ok().map(|found| found.uid());
    let is_believed =
        |uid: u32| uid == 0 || uid == rustix::process::geteuid().as_raw() || Some(uid) == owner();
    // Managers of earlier releases believe each.
    provider.name == NAME && provider.uid.is_none_or(is_believed)
}

/// Whether a process is a provider that was started by hand. One that is ending no longer has a command line.
fn stays(pid: u64) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    !line.is_empty() && line.split(|byte| *byte == 0).all(|argument| argument != ON_DEMAND.as_bytes())
}

fn start(runtime_dir: &Path, options: &Recording) {
    let child = std::env::current_exe().and_then(|tool| {
        Command::new(tool)
            .arg0(NAME)
            .args(["ktrace", ON_DEMAND])
            .args(options.sample_interval.map(|interval| format!("--sample-interval={interval}")))
            .args(options.profile.map(|hertz| format!("--profile={hertz}")))
            .args(options.profile_stack.map(|bytes| format!("--profile-stack={bytes}")))
            .env(RUNTIME_VARIABLE, runtime_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C is for the recording, which ends this one when it is time.
            .process_group(0)
            .spawn()
    });
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return say!("trace: kernel events are not recorded: {error}"),
    };
    let mut printed = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut printed);
    }
    let Some(mut stderr) = child.stderr.take() else {
        return;
    };
    if printed.trim_end() == READY {
        // Its later messages are printed between those of the recording.
        std::thread::spawn(move || forward(stderr));
        return;
    }
    let mut why = String::new();
    let _ = stderr.read_to_string(&mut why);
    let why = why.trim().trim_start_matches("trace: ");
    say!(
        "trace: kernel events are not recorded: {}",
        if why.is_empty() { "it reported no reason" } else { why }
    );
    let _ = child.wait();
}

fn forward(stderr: ChildStderr) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        say!("trace: {line}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_manager_knows_the_name_that_no_other_users_program_may_have() {
        assert_eq!(super::NAME, trace_protocol::names::KERNEL_PROVIDER);
    }
}
