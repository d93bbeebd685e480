//! What is recorded, and how.

use crate::error::{Error, Result};
use std::ops::Range;
use std::time::Duration;
use trace_protocol::BufferingMode;
use trace_protocol::controller::{ProviderSpec, TraceConfig};
use trace_protocol::limits::MAX_COMMAND_LINE_BYTES;
use trace_protocol::memory::{MemoryDumpLevel, MemoryDumps};

/// The largest buffer of a program, in MiB: its slabs are addressed with 32 bits of offset.
pub const MAX_BUFFER_MIB: u32 = 4096;
/// How often a quiet stream is written.
pub const WRITE_PERIOD: Duration = Duration::from_secs(1);

/// What is recorded, and how. The default is all categories, in buffers of 4 MiB which are read at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub(crate) config: TraceConfig,
    /// Categories were named, if only none.
    pub(crate) is_list: bool,
    pub(crate) max_bytes: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        let config = TraceConfig { command_line: command_line(0..0), ..TraceConfig::default() };
        Self { config, is_list: false, max_bytes: None }.write_period(WRITE_PERIOD)
    }
}

impl Config {
    /// Records these categories: a list with commas, in which `db*` is all that begin with `db`, and `-noisy`
    /// none of that name. The command's groups such as `#default` are refused when the recording begins.
    #[must_use]
    pub fn of(categories: &str) -> Self {
        let names = categories.split(',').map(str::trim).filter(|name| !name.is_empty());
        let mut config = Self { is_list: true, ..Self::default() };
        config.config.categories = names.map(str::to_owned).collect();
        config
    }

    /// Why nothing can be recorded with this.
    pub(crate) fn check(&self) -> Result<()> {
        let Self { config: TraceConfig { categories, provider_specs, .. }, is_list, .. } = self;
        if *is_list && categories.is_empty() {
            let why = "no category is named; the default configuration has all";
            return Err(Error::Start(why.to_owned().into()));
        }
        let TraceConfig { buffer_size_megabytes_hint, .. } = &self.config;
        let of_programs = provider_specs.iter().filter_map(|spec| spec.buffer_size_megabytes_hint);
        if let Some(size) =
            of_programs.chain([*buffer_size_megabytes_hint]).find(|size| *size > MAX_BUFFER_MIB)
        {
            let why = format!("a buffer has at most {MAX_BUFFER_MIB} MiB, not {size}");
            return Err(Error::Start(why.into()));
        }
        let all = categories.iter().chain(provider_specs.iter().flat_map(|spec| &spec.categories));
        let is_group = |entry: &&String| entry.strip_prefix('-').unwrap_or(entry).starts_with('#');
        let group = all.into_iter().find(is_group);
        let why = |group| format!("{group} is a group, which only the command knows: name its categories");
        group.map_or(Ok(()), |group| Err(Error::Start(why(group).into())))
    }

    /// How buffers are used: until they are full (the default), in a circle, or as a stream.
    #[must_use]
    pub fn mode(mut self, mode: BufferingMode) -> Self {
        self.config.buffering_mode = mode;
        self
    }

    /// The size of each program's buffer in MiB; 0 counts as 1.
    #[must_use]
    pub fn buffer_size_mib(mut self, mebibytes: u32) -> Self {
        self.config.buffer_size_megabytes_hint = mebibytes;
        self
    }

    /// Gives the programs with a provider of this name buffers of another size, in MiB, and records more
    /// categories of them, a list as in [`Config::of`].
    #[must_use]
    pub fn provider(mut self, name: &str, mebibytes: Option<u32>, categories: &str) -> Self {
        let categories = Self::of(categories).config.categories;
        let name = name.to_owned();
        let spec = ProviderSpec { name, buffer_size_megabytes_hint: mebibytes, categories };
        self.config.provider_specs.push(spec);
        self
    }

    /// Records only the programs with a provider of this name, and of other names that are given. Several
    /// recordings can run at once if no program could be in two of them.
    #[must_use]
    pub fn program(mut self, name: &str) -> Self {
        self.config.programs.push(name.to_owned());
        self
    }

    /// The recording ends by itself when its archive has so many bytes, before any compression, and the
    /// archive is cut there. What is left out counts as dropped.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes.max(1));
        self
    }

    /// How long the start waits for programs that run already. 5 s if it is not set.
    #[must_use]
    pub fn start_timeout(mut self, wait: Duration) -> Self {
        self.config.start_timeout_milliseconds = milliseconds(wait);
        self
    }

    /// How long the stop waits for programs. 5 s if it is not set.
    #[must_use]
    pub fn stop_timeout(mut self, wait: Duration) -> Self {
        self.config.stop_timeout_milliseconds = milliseconds(wait);
        self
    }

    /// How often programs hand over what they have while they stream and little happens. 1 s if it is not
    /// set; at least 1 ms.
    #[must_use]
    pub fn write_period(mut self, period: Duration) -> Self {
        self.config.write_period_milliseconds = Some(milliseconds(period).max(1));
        self
    }

    /// Events have the processor time of their thread as an argument.
    #[must_use]
    pub fn thread_time(mut self) -> Self {
        self.config.thread_time = true;
        self
    }

    /// Programs write a mark of each event into the kernel's trace as well.
    #[must_use]
    pub fn mirror_markers(mut self) -> Self {
        self.config.mirror_markers = true;
        self
    }

    /// Programs record only texts that their call sites mark as literals, and the archive says nothing of the
    /// machine, its user and the command line of this process.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.config.privacy = true;
        self.config.command_line.clear();
        self.without_metadata()
    }

    /// The archive says nothing of the machine, its user and the command line of this process.
    #[must_use]
    pub fn without_metadata(mut self) -> Self {
        self.config.metadata = false;
        self
    }

    /// Programs write down what they use memory for, at this interval.
    #[must_use]
    pub fn memory_dumps(mut self, interval: Duration, level: MemoryDumpLevel) -> Self {
        let interval_milliseconds = milliseconds(interval).max(1);
        self.config.memory_dumps = Some(MemoryDumps { interval_milliseconds, level });
        self
    }
}

/// A time as messages have it.
#[must_use]
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// This process's own command line, without some of its words, cut to the limit of a message.
#[must_use]
pub fn command_line(left_out: Range<usize>) -> Vec<String> {
    let mut left = MAX_COMMAND_LINE_BYTES;
    let words = (0..).zip(std::env::args_os()).filter(|(number, _)| !left_out.contains(number));
    words
        .map(|(_, word)| word.to_string_lossy().into_owned())
        .take_while(|word| {
            let fits = word.len() <= left;
            left = left.saturating_sub(word.len());
            fits
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_what_its_parts_say() {
        let config = Config::of("app, db*,")
            .mode(BufferingMode::Streaming)
            .buffer_size_mib(16)
            .provider("server", Some(64), "net")
            .program("server")
            .program("client")
            .start_timeout(Duration::from_millis(1500))
            .memory_dumps(Duration::ZERO, MemoryDumpLevel::Light)
            .without_metadata();
        let TraceConfig { categories, buffering_mode, provider_specs, programs, .. } = &config.config;
        assert_eq!(programs, &["server", "client"]);
        assert_eq!(
            (&categories[..], *buffering_mode),
            (&["app", "db*"].map(str::to_owned)[..], BufferingMode::Streaming)
        );
        let spec = ProviderSpec {
            name: "server".to_owned(),
            buffer_size_megabytes_hint: Some(64),
            categories: vec!["net".to_owned()],
        };
        assert_eq!(provider_specs, &[spec]);
        let TraceConfig { start_timeout_milliseconds, write_period_milliseconds, memory_dumps, .. } =
            config.config;
        assert_eq!((start_timeout_milliseconds, write_period_milliseconds), (1500, Some(1000)));
        assert_eq!(memory_dumps.map(|dumps| dumps.interval_milliseconds), Some(1));
    }

    #[test]
    fn a_list_without_categories_and_groups_of_the_command_are_refused() {
        let why = |config: Config| config.check().unwrap_err().to_string();
        assert!(why(Config::of(" ,")).contains("no category is named"));
        for group in ["#default", "-#mine"] {
            let expected = format!("{group} is a group, which only the command knows: name its categories");
            assert!(why(Config::of(&format!("app,{group}"))).ends_with(&expected));
            assert!(why(Config::default().provider("app", None, group)).ends_with(&expected));
        }
        assert!(Config::of("app,-#").check().is_err());
        assert!(Config::of("*,-app").provider("app", Some(1), "").check().is_ok());
        assert!(Config::default().check().is_ok());
        for config in
            [Config::default().buffer_size_mib(4097), Config::default().provider("app", Some(4097), "")]
        {
            assert!(why(config).ends_with("a buffer has at most 4096 MiB, not 4097"));
        }
        assert!(Config::default().buffer_size_mib(4096).check().is_ok());
    }

    #[test]
    fn a_private_recording_says_nothing_of_this_process() {
        let TraceConfig { privacy, metadata, command_line, mirror_markers, .. } =
            Config::default().private().mirror_markers().config;
        assert_eq!((privacy, metadata, &command_line[..], mirror_markers), (true, false, &[][..], true));
    }
}
