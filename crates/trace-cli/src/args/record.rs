//! Options of a recording. Each may stand on the command line, in a configuration file and, some of them, in
//! a test specification; so each may be absent here.

use super::format::Format;
use super::values::{BufferSize, CategoryList, FileSize, Mode, Pieces, ProviderBufferSize, Span, Trigger};
use clap::Args;
use ktrace_provider::profiler::MAX_STACK_BYTES;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;

/// What is asked for of a recording.
#[derive(Args, Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Recording {
    /// Categories to record, separated by commas; all when not given. An entry is a name, a prefix ending in
    /// `*`, a group `#name`, or any of these for one program only: `program/name`. A `-` before it leaves out
    /// what it names, last
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories: Option<CategoryList>,
    /// Stop after so long, such as 10s, 500ms or 1.5
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// When an alert is raised, stop, or write a snapshot, or have programs say what they use memory for:
    /// such as stall:stop, stall:snapshot, stall:dump-memory. May be repeated
    #[arg(long, value_name = "ALERT:ACTION")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trigger: Vec<Trigger>,
    /// How long after a snapshot the same alert takes no other, such as 500ms; 10s when not given
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<Span>,
    /// Stop when the archive, with what is in the buffers, has this size, such as 500MB. It does not get
    /// larger
    #[arg(long, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<FileSize>,
    /// How often programs hand over what they have while they stream and little happens, such as 200ms; every
    /// second when not given
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_period: Option<Span>,
    /// How much of what ended programs recorded stays in memory for snapshots, the newest first, such as
    /// 256MB; 64MB when not given
    #[arg(long, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_ended: Option<FileSize>,
    /// Where the trace goes; `-` is stdout, `tcp:HOST:PORT` a connection. The name tells the format: .fxt,
    /// .fxt.gz, .fxt.zst, .json, .json.gz. All but .fxt are made of the archive in the end, and need room for
    /// both
    #[arg(long, short = 'o', value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_file: Option<PathBuf>,
    /// The format, whatever the name
    #[arg(long, value_name = "FORMAT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Size of each program's buffer: MiB, or with a unit such as 64MB or 1GB
    #[arg(long, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_size: Option<BufferSize>,
    /// Size of the buffers of programs of this name. May be repeated
    #[arg(long, value_name = "NAME:SIZE")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provider_buffer_size: Vec<ProviderBufferSize>,
    /// What a program does when its buffer is full: end (oneshot), write over the oldest (circular), or hand
    /// it over while it records (streaming, which is meant when the output is a file; else oneshot)
    #[arg(long, value_name = "MODE", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffering_mode: Option<Mode>,
    /// How often figures of the system are sampled (categories system_metrics:*), such as 50ms; every 100ms
    /// when not given
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_interval: Option<Span>,
    /// Sample where threads are so many times a second, such as 99
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<u64>,
    /// How much of a thread's stack is copied with each sample, in bytes, to find callers without frame
    /// pointers; 16384 when not given, 0 to follow frame pointers alone
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_STACK_BYTES)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_stack: Option<u32>,
    /// Have programs write down what they use memory for, as often as this, such as 1s
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_dump_interval: Option<Span>,
    /// These dumps tell everything that programs know, not only sums
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detailed_memory_dumps: Option<bool>,
    /// Record how long its thread has run on processors with each duration and instant, as `thread_ts` and
    /// `thread_dur`; costs a system call per event
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_time: Option<bool>,
    /// How long programs may take to start; who does not is named, and recorded when it does
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<Span>,
    /// How long programs may take to stop; what a late one has recorded is saved all the same
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_timeout: Option<Span>,
    /// Leave out host, command line and the other facts about the recording
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_metadata: Option<bool>,
    /// Exit with code 4 if something was lost and the command itself did not fail
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_on_loss: Option<bool>,
    /// Do not complain of requested categories that recorded nothing
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_verify_trace: Option<bool>,
    /// Further arguments for the command, separated by commas. May be repeated
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    #[serde(skip_serializing_if = "Vec::is_empty", with = "pieces")]
    pub append_args: Vec<Pieces>,
    /// Leave the command alone when recording ends
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detach: Option<bool>,
    /// Go on recording when the command has ended
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decouple: Option<bool>,
    /// End with the command's exit code, as is done unless this is false
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_child_result: Option<bool>,
    /// Run the command as a process, as is always done
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawn: Option<bool>,
    /// Accepted as Fuchsia's old tool has it: a command runs in the caller's environment
    #[arg(long, hide = true, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_name: Option<String>,
    /// The archive as it is (FXT), as is done unless the name or the format say otherwise; Catapult if this
    /// is false
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<bool>,
    /// Compress with gzip
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress: Option<bool>,
    /// A test specification: what to record, and what to measure of it
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_file: Option<PathBuf>,
    /// Where the results of the specification's measurements go, for programs
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub benchmark_results_file: Option<PathBuf>,
    /// Name of the suite in that file
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_suite: Option<String>,
    /// A program to run and record, with its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
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

/// What stands in both is taken from the first.
macro_rules! over {
    ($upper:ident, $lower:ident: $($option:ident)+; $($list:ident)+) => {
        Recording {
            $($option: $upper.$option.or($lower.$option),)+
            $($list: if $upper.$list.is_empty() { $lower.$list } else { $upper.$list },)+
        }
    };
}

impl Recording {
    /// What is asked for here, and of the rest what is asked for there.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        over! { self, lower:
            categories duration cooldown max_size write_period keep_ended output_file format buffer_size buffering_mode sample_interval profile profile_stack memory_dump_interval detailed_memory_dumps thread_time start_timeout
            stop_timeout
            no_metadata fail_on_loss no_verify_trace detach decouple return_child_result spawn environment_name binary compress spec_file
            benchmark_results_file test_suite;
            trigger provider_buffer_size append_args command
        }
    }

    /// What programs do with full buffers, if it is not asked for.
    //= docs/recording.md#buffering-modes
    #[must_use]
    pub fn meant_buffering_mode(&self) -> Mode {
        let output = self.output_file.as_ref().map_or_else(Cow::default, |path| path.to_string_lossy());
        let is_file = output != "-" && !output.starts_with("tcp:");
        self.buffering_mode.unwrap_or(if is_file { Mode::Streaming } else { Mode::Oneshot })
    }

    /// What holds where nothing is asked for.
    #[must_use]
    pub fn defaults() -> Self {
        Self {
            buffer_size: Some(BufferSize(4)),
            start_timeout: Some(Span(std::time::Duration::from_secs(5))),
            stop_timeout: Some(Span(std::time::Duration::from_secs(5))),
            no_metadata: Some(false),
            fail_on_loss: Some(false),
            no_verify_trace: Some(false),
            detach: Some(false),
            decouple: Some(false),
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

    //= docs/recording.md#buffering-modes
    #[test]
    fn a_file_is_streamed_unless_something_else_is_asked_for() {
        let mode = |output: &str, asked| {
            let output_file = Some(PathBuf::from(output)).filter(|output| output.as_os_str() != "");
            Recording { output_file, buffering_mode: asked, ..Recording::default() }.meant_buffering_mode()
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
            max-size = "2GB"
            write-period = "200ms"
            keep-ended = "128MB"
            output-file = "x.fxt.zst"
            format = "fxt"
            buffer-size = 64
            provider-buffer-size = ["app:128MB"]
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
            no-verify-trace = true
            append-args = ["--fast", "x,y"]
            detach = true
            decouple = true
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
        assert!(error.contains("expected whole mebibytes"), "{error}");
    }
}
