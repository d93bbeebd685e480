//! Options of a recording. Each may come from the command line, a configuration file and, some of them, a
//! test specification; so each may be absent here.

use super::format::Format;
use super::trigger::Trigger;
use super::values::{BufferSize, CategoryList, Compress, FileSize, Mode, Pieces, ProviderBufferSize, Span};
use crate::args::bad_value::BadValue;
use crate::args::completion;
use clap::Args;
use clap_complete::ArgValueCompleter;
use ktrace_provider::profiler::MAX_STACK_BYTES;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The options of a recording.
#[derive(Args, Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Recording {
    /// Record only these categories, separated by commas (default: all). An entry is a name, a prefix ending
    /// in `*`, a group `#name`, or any of these for one program only: `program/name`. An entry that begins
    /// with `-` excludes what it names. Names of events are not chosen here, for a program switches its call
    /// sites by category; the commands that read a trace have --name
    #[arg(long, visible_alias = "category", value_name = "LIST", allow_hyphen_values = true, add = ArgValueCompleter::new(completion::category_list))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories: Option<CategoryList>,
    /// Record only programs with this name (default: all). May be repeated. Recordings of different programs
    /// can run at the same time
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(completion::provider_names))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    /// As root, record only programs of this user and of root, and make files as this user (default: the
    /// caller of sudo). A name or a number; `root` stands for all users
    #[arg(long, value_name = "USER")]
    #[serde(skip)]
    pub user: Option<String>,
    /// Stop after this long, such as 10s, 500ms or 1.5
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Stop, take a snapshot or request memory dumps when a program raises an alert (stall:stop,
    /// stall:snapshot, stall:dump-memory), this command receives SIGUSR1 or SIGUSR2 (SIGUSR2:snapshot), a
    /// program holds much memory ('rss(app)>1GB:stop'), or durations are long
    /// ('p99(app:frame)>16ms:snapshot'). May be repeated
    #[arg(long, value_name = "CONDITION:ACTION")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trigger: Vec<Trigger>,
    /// After a snapshot, ignore further snapshots of the same condition for this long (default: 10s)
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<Span>,
    /// Stop when the archive and the data in the buffers reach this size, such as 500MiB. The archive never
    /// exceeds it
    #[arg(long, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<FileSize>,
    /// Add the processor time of the thread to each duration and instant, as the arguments `thread_ts` and
    /// `thread_dur`. Costs a system call per event
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_time: Option<bool>,
    /// Have programs write a mark of each event into the kernel's trace as well, for perf, trace-cmd and
    /// others that record it. Costs a system call per event
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror_markers: Option<bool>,
    /// Record no texts but those that programs mark as literals: other arguments, messages and names read
    /// `(redacted)`. Bytes and the description of the machine are left out
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<bool>,
    /// Request memory dumps from all programs this often, such as 1s
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_dump_interval: Option<Span>,
    /// Request detailed memory dumps instead of totals
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detailed_memory_dumps: Option<bool>,
    /// Write the trace to this file, to stdout (`-`) or to a connection (`tcp:HOST:PORT`). The ending of the
    /// name selects the format: .fxt, .fxt.gz, .fxt.zst, .json (Chrome's), .json.gz, .pftrace, .folded.
    /// Formats other than .fxt and .fxt.zst are converted at the end and need disk space for both files.
    /// Default: trace.fxt, or trace-1.fxt if that exists
    #[arg(long, short = 'o', alias = "output-file", value_name = "FILE", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none", alias = "output-file")]
    pub output: Option<PathBuf>,
    /// Use this format, regardless of the file's name
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Write FXT (the default), or Catapult's JSON with `=false`
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<bool>,
    /// Compress the trace with gzip at the end, or with zstd while it is recorded: `=zstd`, or `=zstd:LEVEL`
    /// with a level from -7 (fastest) to 19 (smallest). Default: 1, for a name that ends in .fxt.zst
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "HOW", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress: Option<Compress>,
    /// In streaming mode, write out the buffers of programs that record little this often (default: 1s)
    #[arg(long, value_name = "TIME", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_period: Option<Span>,
    /// Do not record host, command line and other metadata of the recording
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_metadata: Option<bool>,
    /// Do not report requested categories without events
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_verify_trace: Option<bool>,
    /// Exit with code 4 if events were lost and the command itself succeeded
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_on_loss: Option<bool>,
    /// Succeed also if no program was recorded while the command ran, instead of exit code 5
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_empty: Option<bool>,
    /// Print statistics of the trace at the end, as trace stats does
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<bool>,
    /// Write the trace as a page beside it, as trace report does, and open it
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<bool>,
    /// Use buffers of this size in each program, in MiB or with a unit such as 64MiB or 1GiB (default: 4)
    #[arg(long, value_name = "SIZE", help_heading = "Buffers")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_size: Option<BufferSize>,
    /// Use buffers of this size in programs with this name. May be repeated
    #[arg(long, alias = "provider-buffer-size", value_name = "NAME:SIZE", help_heading = "Buffers", add = ArgValueCompleter::new(completion::provider_names))]
    #[serde(skip_serializing_if = "Vec::is_empty", alias = "provider-buffer-size")]
    pub program_buffer_size: Vec<ProviderBufferSize>,
    /// Select what a program does when its buffer is full: stop recording (oneshot), overwrite the oldest
    /// events (circular), or hand data over while it records (streaming). Default: streaming into a file,
    /// oneshot otherwise. Perfetto's names DISCARD and RING_BUFFER stand for oneshot and circular
    #[arg(long, value_name = "MODE", value_enum, ignore_case = true, help_heading = "Buffers")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffering_mode: Option<Mode>,
    /// For snapshots, keep this much data of programs that have ended, the newest first (default: 64MiB)
    #[arg(long, value_name = "SIZE", help_heading = "Buffers")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_ended: Option<FileSize>,
    /// Wait this long for programs to start recording (default: 5s). Late programs are reported and join when
    /// they are ready
    #[arg(long, value_name = "TIME", help_heading = "Buffers")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<Span>,
    /// Wait this long for programs to stop recording (default: 5s). Data of late programs is saved from their
    /// buffers
    #[arg(long, value_name = "TIME", help_heading = "Buffers")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_timeout: Option<Span>,
    /// Sample the system's metrics (categories system_metrics:*) this often (default: 100ms)
    #[arg(long, value_name = "TIME", help_heading = "Kernel")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_interval: Option<Span>,
    /// Sample the stacks of running threads this many times per second, such as 99
    #[arg(long, value_name = "HZ", value_parser = hertz, help_heading = "Kernel")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<u64>,
    /// Copy this many bytes of a thread's stack with each sample, to find callers without frame pointers
    /// (default: 16384). 0 uses frame pointers only
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_STACK_BYTES)), help_heading = "Kernel")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_stack: Option<u32>,
    /// Append these arguments, separated by commas, to the command. May be repeated
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, help_heading = "Commands")]
    #[serde(skip_serializing_if = "Vec::is_empty", with = "pieces")]
    pub append_args: Vec<Pieces>,
    /// Leave the command running when the recording ends
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Commands")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detach: Option<bool>,
    /// Continue recording when the command has ended
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Commands")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decouple: Option<bool>,
    /// Have the command inherit a connection with the manager (TRACE_MANAGER_FD), for sandboxes in which it
    /// can open no socket or no file
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Commands")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager_fd: Option<bool>,
    /// Exit with the command's exit code (default); with `=false` exit with 0 if the recording succeeded
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Commands")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_child_result: Option<bool>,
    /// Accepted for compatibility: the command always runs as a process
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Commands")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawn: Option<bool>,
    /// Accepted for compatibility: a command runs in the caller's environment
    #[arg(long, hide = true, value_name = "NAME", help_heading = "Commands")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_name: Option<String>,
    /// Record and measure what this test specification describes
    #[arg(long, value_name = "FILE", help_heading = "Tests")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_file: Option<PathBuf>,
    /// Write the results of the specification's measurements to this file
    #[arg(long, value_name = "FILE", value_parser = super::not_stdout(), help_heading = "Tests")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub benchmark_results_file: Option<PathBuf>,
    /// Use this name for the test suite in the results
    #[arg(long, value_name = "NAME", help_heading = "Tests")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_suite: Option<String>,
    /// The program to run and record, with its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The groups of categories of a configuration file, which are added to those of other files.
    #[arg(skip)]
    #[serde(skip_serializing)]
    pub category_groups: BTreeMap<String, Vec<String>>,
}

fn hertz(text: &str) -> Result<u64, BadValue> {
    let hertz = text.parse().ok().filter(|hertz| (1..=100_000).contains(hertz));
    hertz.ok_or_else(|| "expected 1 to 100000".into())
}

/// A list of pieces is one list in a file.
mod pieces {
    use super::Pieces;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(list: &[Pieces], serializer: S) -> Result<S::Ok, S::Error> {
        list.iter().flat_map(|pieces| &pieces.0).collect::<Vec<_>>().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pieces>, D::Error> {
        Vec::<String>::deserialize(deserializer).map(|list| vec![Pieces(list)])
    }
}

/// Options that both have are taken from the first.
macro_rules! over {
    ($upper:ident, $lower:ident: $($option:ident)+; $($list:ident)+) => {
        Recording {
            $($option: $upper.$option.or($lower.$option),)+
            $($list: if $upper.$list.is_empty() { $lower.$list } else { $upper.$list },)+
            category_groups: BTreeMap::new(),
        }
    };
}

impl Recording {
    /// These options, and for missing ones those of `lower`.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        over! { self, lower:
            categories user duration cooldown max_size write_period keep_ended output format buffer_size buffering_mode sample_interval profile profile_stack memory_dump_interval detailed_memory_dumps thread_time mirror_markers privacy start_timeout
            stop_timeout
            no_metadata fail_on_loss allow_empty stats report no_verify_trace detach decouple manager_fd return_child_result spawn environment_name binary compress spec_file
            benchmark_results_file test_suite;
            program trigger program_buffer_size append_args command
        }
    }

    /// The effective buffering mode: the requested one, or the default for the output.
    //= docs/recording.md#buffering-modes
    #[must_use]
    pub fn meant_buffering_mode(&self) -> Mode {
        let output = self.output.as_ref().map_or_else(Cow::default, |path| path.to_string_lossy());
        let is_file = output != "-" && !output.starts_with("tcp:");
        self.buffering_mode.unwrap_or(if is_file { Mode::Streaming } else { Mode::Oneshot })
    }

    /// Defaults of options.
    #[must_use]
    pub fn defaults() -> Self {
        Self {
            buffer_size: Some(BufferSize(4)),
            start_timeout: Some(Span(std::time::Duration::from_secs(5))),
            stop_timeout: Some(Span(std::time::Duration::from_secs(5))),
            no_metadata: Some(false),
            fail_on_loss: Some(false),
            allow_empty: Some(false),
            stats: Some(false),
            no_verify_trace: Some(false),
            detach: Some(false),
            decouple: Some(false),
            manager_fd: Some(false),
            return_child_result: Some(true),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wins_and_the_rest_is_the_others() {
        let upper = Recording { buffer_size: Some(BufferSize(8)), ..Recording::default() };
        let lower = Recording {
            buffer_size: Some(BufferSize(16)),
            detach: Some(true),
            command: vec!["app".to_owned()],
            ..Recording::default()
        };
        let both = upper.over(lower);
        assert_eq!((both.buffer_size, both.detach), (Some(BufferSize(8)), Some(true)));
        assert_eq!(both.command, ["app"]);
        let all = both.over(Recording::defaults());
        assert_eq!(all.stop_timeout, Recording::defaults().stop_timeout);
    }

    #[test]
    fn options_stand_under_headings() {
        let command = Recording::augment_args(clap::Command::new("record"));
        let mut groups: Vec<(Option<&str>, usize)> = Vec::new();
        for option in
            command.get_arguments().filter(|option| !option.is_hide_set() && !option.is_positional())
        {
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty(), "{option:?}");
            let heading = option.get_help_heading();
            match groups.last_mut() {
                Some((last, count)) if *last == heading => *count += 1,
                _ => groups.push((heading, 1)),
            }
        }
        let headings: Vec<Option<&str>> = groups.iter().map(|(heading, _)| *heading).collect();
        let expected =
            [None, Some("Output"), Some("Buffers"), Some("Kernel"), Some("Commands"), Some("Tests")];
        assert_eq!(headings, expected, "each group is in one place");
        assert_eq!(groups.iter().map(|(_, count)| count).sum::<usize>(), 39, "{groups:?}");
    }

    //= docs/recording.md#buffering-modes
    #[test]
    fn a_file_is_streamed_unless_something_else_is_asked_for() {
        let mode = |output: &str, asked| {
            let output = Some(PathBuf::from(output)).filter(|output| output.as_os_str() != "");
            Recording { output, buffering_mode: asked, ..Recording::default() }.meant_buffering_mode()
        };
        for file in ["", "a.fxt", "a.json.gz", "/dev/null"] {
            assert_eq!(mode(file, None), Mode::Streaming, "{file}");
        }
        for reader in ["-", "tcp:localhost:9000"] {
            assert_eq!(mode(reader, None), Mode::Oneshot, "{reader}");
            assert_eq!(mode(reader, Some(Mode::Circular)), Mode::Circular, "{reader}");
        }
    }

    #[test]
    fn every_option_can_stand_in_a_file() {
        let text = r##"
            categories = ["app", "#default", "-noisy"]
            duration = "500ms"
            trigger = ["stall:stop"]
            cooldown = "1s"
            max-size = "2GiB"
            write-period = "200ms"
            keep-ended = "128MiB"
            output = "x.fxt.zst"
            format = "fxt"
            buffer-size = 64
            program-buffer-size = ["app:128MiB"]
            buffering-mode = "circular"
            sample-interval = "50ms"
            profile = 99
            profile-stack = 32768
            memory-dump-interval = "1s"
            detailed-memory-dumps = true
            thread-time = true
            start-timeout = 1.5
            stop-timeout = "2s"
            no-metadata = true
            fail-on-loss = true
            allow-empty = true
            stats = true
            report = true
            no-verify-trace = true
            append-args = ["--fast", "x,y"]
            detach = true
            decouple = true
            manager-fd = true
            return-child-result = false
            spawn = true
            environment-name = "nested"
            binary = true
            compress = false
            spec-file = "spec.json"
            benchmark-results-file = "results.json"
            test-suite = "suite"
            command = ["./app", "--flag"]
        "##;
        let read: Recording = toml::from_str(text).unwrap();
        let written = toml::to_string(&read).unwrap();
        assert_eq!(toml::from_str::<Recording>(&written).unwrap(), read);
        // As many lines as options.
        let fields = text.lines().filter(|line| line.contains('=')).count();
        assert_eq!(written.lines().count(), fields, "{written}");
        assert_eq!(read.start_timeout.unwrap().to_string(), "1500ms");
        let error = toml::from_str::<Recording>("buffersize = 4").unwrap_err().to_string();
        assert!(error.contains("unknown field `buffersize`"), "{error}");
        let error = toml::from_str::<Recording>("buffer-size = \"4 kB\"").unwrap_err().to_string();
        assert!(error.contains("expected a size from 1 to 4096 MiB"), "{error}");
    }
}
