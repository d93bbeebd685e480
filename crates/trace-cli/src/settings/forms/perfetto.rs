//! Perfetto's configuration, in the text form of protocol buffers.

use super::chrome::{self, SYSTRACE};
use super::keys::{COMPRESSION, CONFIG, LOCKDOWN, USERS};
use super::{Selection, Translation, entries, ftrace, sizes, text_proto};
use crate::args::bad_value::BadValue;
use crate::args::record::Recording;
use crate::args::trigger::{Action, Condition, Trigger};
use crate::args::values::{BufferSize, Mode, ProviderBufferSize};
use ktrace_provider::categories::{APPLICATION, ATRACE, META, RETAIN};
use ktrace_provider::profiler;
use trace_config::chrome::{Chrome, TO_CONSOLE, not_recorded};
use trace_config::filter::{Filter, Rules};
use trace_config::near;
use trace_config::position;
use trace_config::schema::{self, each, find, is_set, number, unprotected};
use trace_config::tree::{Field, Value, Wrong};
use trace_format::markers::{self, OF_TAG};
use trace_protocol::limits::MAX_PROVIDER_NAME_BYTES;

const TRACK_EVENT: &str = "track_event";
const CHROME: &str = "org.chromium.trace_event";
const FTRACE: &str = "linux.ftrace";
const PROCESS_STATS: &str = "linux.process_stats";
const SYS_STATS: &str = "linux.sys_stats";
const PERF: &str = "linux.perf";
/// Data sources that become something.
const SOURCES: [&str; 6] = [TRACK_EVENT, CHROME, FTRACE, PROCESS_STATS, SYS_STATS, PERF];
/// How data sources of Perfetto's and of its users begin that no program here has.
const SYSTEMS: [&str; 8] =
    ["android.", "linux.", "org.chromium.", "dev.perfetto.", "perfetto.", "com.google.", "gpu.", "vulkan."];
/// Names of data sources may have so many mistakes.
const MAX_CHANGES: usize = 3;

/// The polled files, and the categories that have what is in them.
const POLLED: [(&str, &str); 5] = [
    ("meminfo_period_ms", "system_metrics:memory"),
    ("vmstat_period_ms", "system_metrics:memory"),
    ("stat_period_ms", "system_metrics:cpu"),
    ("psi_period_ms", "system_metrics:cpu"),
    ("diskstat_period_ms", "system_metrics:disk"),
];
const OF_PROCESSES: &str = "system_metrics:processes";
const SHARES: &str = "system_metrics:pss";
const PROFILE_HERTZ: std::ops::RangeInclusive<u64> = 1..=100_000;

/// The names of keys at the top.
pub fn keys() -> impl Iterator<Item = &'static str> {
    CONFIG.iter().map(|known| known.name)
}

/// Translates a text.
pub fn translate(text: &str) -> Result<Translation, Wrong> {
    let fields = text_proto::parse(text)?;
    let mut lacks = Vec::new();
    schema::check(&fields, CONFIG, &mut lacks)?;
    let mut config = Perfetto::new(&fields)?;
    config.notes.extend(lacks.iter().map(|lack| not_recorded(lack.at, &lack.message)));
    for source in each(&fields, "data_sources") {
        config.source(source)?;
    }
    config.finish(&fields)
}

/// Whose events a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writers {
    Programs,
    Kernel,
}

#[derive(Debug)]
struct Buffer<'a> {
    at: usize,
    name: Option<&'a str>,
    kibibytes: u64,
    is_ring: bool,
}

#[derive(Debug, Default)]
struct Perfetto<'a> {
    recording: Recording,
    selection: Selection,
    buffers: Vec<Buffer<'a>>,
    /// The buffers in use, by their numbers.
    of_programs: Option<usize>,
    of_kernel: Option<usize>,
    /// Intervals of polls with the places where they are asked for.
    polls: Vec<(u64, usize)>,
    notes: Vec<Wrong>,
}

impl<'a> Perfetto<'a> {
    fn new(fields: &'a [Field]) -> Result<Self, Wrong> {
        let buffer = |value: &'a Value| {
            let fields = value.message()?;
            let size = find(fields, "size_kb");
            let kibibytes = number(fields, "size_kb")?.ok_or_else(|| {
                Wrong::new(size.map_or(value.at, |size| size.at), "a buffer needs a size_kb above 0")
            })?;
            let at = size.map_or(value.at, |size| size.at);
            let policy = find(fields, "fill_policy")
                .map(|policy| policy.word(&["UNSPECIFIED", "RING_BUFFER", "DISCARD"]));
            let is_ring = policy.transpose()? != Some("DISCARD");
            let name = find(fields, "name").map(Value::text).transpose()?;
            Ok(Buffer { at, name, kibibytes, is_ring })
        };
        let buffers = each(fields, "buffers").map(buffer).collect::<Result<_, _>>()?;
        Ok(Self { buffers, ..Self::default() })
    }

    fn lack(&mut self, at: usize, what: &str) {
        self.notes.push(not_recorded(at, what));
    }

    fn source(&mut self, source: &'a Value) -> Result<(), Wrong> {
        let fields = source.message()?;
        let config = find(fields, "config").map_or(Ok(&[][..]), Value::message)?;
        let name = find(config, "name")
            .ok_or_else(|| Wrong::new(source.at, "a data source needs config { name }"))?;
        let (at, value) = (name.at, name);
        let name = value.text()?;
        let programs = each(fields, "producer_name_filter")
            .map(|value| program(value).map(Some))
            .collect::<Result<Vec<_>, _>>()?;
        let programs = if programs.is_empty() { vec![None] } else { programs };
        let of = |name: &str| find(config, name).map_or(Ok(&[][..]), Value::message);
        match name {
            TRACK_EVENT => {
                let events = of("track_event_config")?;
                if is_set(events, "filter_dynamic_event_names")? {
                    self.recording.privacy = Some(true);
                }
                let rules = track_events(events)?;
                let filter = rules.filter(entries::check)?;
                let ineffective = rules.enabled.iter().find(|(_, entry)| !filter.included.contains(entry));
                if let Some((at, entry)) = ineffective {
                    let message = format!(
                        "other categories than {entry:?} are recorded, too: Perfetto records only those that are \
                         enabled if disabled_categories has \"*\""
                    );
                    self.notes.push(Wrong::new(*at, message));
                }
                self.programs(programs, &filter, config, at)
            }
            CHROME => {
                let filter = self.chrome(of("chrome_config")?)?;
                self.programs(programs, &filter, config, at)
            }
            FTRACE => {
                self.ftrace(of("ftrace_config")?)?;
                self.buffer(Writers::Kernel, config)
            }
            PROCESS_STATS => {
                self.process_stats(of("process_stats_config")?)?;
                self.buffer(Writers::Kernel, config)
            }
            SYS_STATS => {
                self.sys_stats(of("sys_stats_config")?, at)?;
                self.buffer(Writers::Kernel, config)
            }
            PERF => {
                self.perf(of("perf_event_config")?, at)?;
                self.buffer(Writers::Kernel, config)
            }
            other => self.custom(value, programs, config).unwrap_or_else(|| {
                let near = near::nearest(other, SOURCES, MAX_CHANGES, str::to_owned);
                let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                let message =
                    format!("the configuration asks for data source {other:?}, which is not recorded{hint}");
                self.notes.push(Wrong::new(at, message));
                Ok(())
            }),
        }
    }

    /// A data source of a program's own: all that a program of its name records. None for those of Perfetto,
    /// and for names that may be mistakes.
    fn custom(
        &mut self,
        name: &Value,
        mut programs: Vec<Option<String>>,
        config: &[Field],
    ) -> Option<Result<(), Wrong>> {
        let text = name.text().ok()?;
        let is_perfettos = SYSTEMS.iter().any(|system| text.starts_with(system));
        let is_mistake = near::nearest(text, SOURCES, MAX_CHANGES, str::to_owned).is_some();
        let own = program(name).ok().filter(|_| text.contains('.') && !is_perfettos && !is_mistake)?;
        if programs == [None] {
            programs = vec![Some(own)];
        }
        let named: Vec<String> = programs.iter().flatten().map(|name| format!("{name:?}")).collect();
        let message = format!(
            "data source {text:?} is recorded as everything of the program {}: a program here has no data sources",
            named.join(", ")
        );
        self.notes.push(Wrong::new(name.at, message));
        Some(
            Rules::default()
                .filter(entries::check)
                .and_then(|filter| self.programs(programs, &filter, config, name.at)),
        )
    }

    /// Adds what programs record.
    fn programs(
        &mut self,
        names: Vec<Option<String>>,
        filter: &Filter,
        config: &[Field],
        at: usize,
    ) -> Result<(), Wrong> {
        for name in names {
            match self.selection.programs.iter_mut().find(|(other, _)| *other == name) {
                Some((_, other)) => *other = other.or(filter, at)?,
                None => self.selection.programs.push((name, filter.clone())),
            }
        }
        self.buffer(Writers::Programs, config)
    }

    /// Notes which buffer is used.
    fn buffer(&mut self, writers: Writers, config: &[Field]) -> Result<(), Wrong> {
        let number = find(config, "target_buffer");
        let mut index = match number {
            Some(number) => usize::try_from(number.whole(u64::MAX)?).unwrap_or(usize::MAX),
            None => 0,
        };
        let mut at = number.map(|number| number.at);
        if let Some(name) = find(config, "target_buffer_name") {
            let text = name.text()?;
            let found = self.buffers.iter().position(|buffer| buffer.name == Some(text));
            index = found.ok_or_else(|| Wrong::new(name.at, format!("there is no buffer {text:?}")))?;
            at = None;
        }
        if let Some(at) = at.filter(|_| index >= self.buffers.len().max(1)) {
            let message = format!(
                "there is no buffer {index}: the first one is 0, and there are {}",
                self.buffers.len()
            );
            return Err(Wrong::new(at, message));
        }
        let used = match writers {
            Writers::Programs => &mut self.of_programs,
            Writers::Kernel => &mut self.of_kernel,
        };
        // The largest one, if there are several.
        let size = |index: usize| self.buffers.get(index).map_or(0, |buffer| buffer.kibibytes);
        if used.is_none_or(|used| size(index) > size(used)) {
            *used = Some(index);
        }
        Ok(())
    }

    fn chrome(&mut self, config: &[Field]) -> Result<Filter, Wrong> {
        if is_set(config, "privacy_filtering_enabled")? {
            self.recording.privacy = Some(true);
        }
        let Some(value) = find(config, "trace_config") else {
            return Rules::default().filter(entries::check);
        };
        let text = value.text()?;
        let inside = |wrong: Wrong| {
            let message = position::describe(text, Some(wrong.at), &wrong.message);
            Wrong::new(value.at, format!("trace_config: {message}"))
        };
        let chrome = Chrome::read(text).map_err(inside)?;
        self.notes.extend(chrome.notes.iter().cloned().map(inside));
        if chrome.has_kernel {
            self.selection.kernel.insert(SYSTRACE.to_owned());
        }
        // Modes and sizes are those of Perfetto's buffers.
        self.recording = std::mem::take(&mut self.recording).over(chrome::memory_dumps(&chrome));
        if let Some(at) = chrome.to_console {
            self.notes.push(inside(not_recorded(at, TO_CONSOLE)));
        }
        chrome.rules.filter(entries::check).map_err(inside)
    }

    fn ftrace(&mut self, config: &[Field]) -> Result<(), Wrong> {
        for value in each(config, "ftrace_events") {
            let event = value.text()?;
            match ftrace::categories(event) {
                Some(found) => self.kernel(value, found)?,
                None => {
                    let message = format!(
                        "the configuration asks for event {event:?}, which is not recorded: its system is missing, \
                         as in sched/sched_switch"
                    );
                    self.notes.push(Wrong::new(value.at, message));
                }
            }
        }
        self.atrace_categories(config)?;
        let apps: Vec<&Value> = each(config, "atrace_apps").collect();
        match apps.iter().find(|value| value.text() == Ok("*")) {
            Some(all) => self.kernel(all, vec![ATRACE.to_owned()])?,
            None => {
                for value in apps {
                    self.kernel(value, vec![format!("{APPLICATION}{}", value.text()?)])?;
                    // So that programs of this name write them.
                    let of_program = program(value).ok().map(|name| format!("{name}/{ATRACE}"));
                    self.selection.kernel.extend(of_program);
                }
            }
        }
        for value in each(config, "kprobe_events") {
            let probe = value.message()?;
            let symbol =
                find(probe, "probe").ok_or_else(|| Wrong::new(value.at, "a kprobe needs a probe"))?;
            let kind = find(probe, "type").map_or("", |kind| match &kind.kind {
                trace_config::tree::Kind::Word(word) => word.as_str(),
                _ => "",
            });
            let text = symbol.text()?;
            let entry = |kind: &str| format!("kernel:{kind}:{text}");
            let found = match kind {
                "KPROBE_TYPE_KRETPROBE" => vec![entry("kretprobe")],
                "KPROBE_TYPE_BOTH" => vec![entry("kprobe"), entry("kretprobe")],
                _ => vec![entry("kprobe")],
            };
            self.kernel(symbol, found)?;
        }
        if is_set(config, "preserve_ftrace_buffer")? {
            self.selection.kernel.insert(RETAIN.to_owned());
        }
        Ok(())
    }

    /// The categories of atrace are tags of markers, events of the kernel, or both.
    //= docs/configurations.md#events-of-the-kernel
    fn atrace_categories(&mut self, config: &[Field]) -> Result<(), Wrong> {
        let is_userspace = is_set(config, "atrace_userspace_only")?;
        let mut tags = Vec::new();
        for value in each(config, "atrace_categories") {
            let name = value.text()?;
            let of_kernel = ftrace::of_atrace(name);
            let tag = Some(format!("{OF_TAG}{name}")).filter(|tag| markers::tag(tag).is_some());
            if of_kernel.is_none() && tag.is_none() {
                let message =
                    format!("the configuration asks for atrace category {name:?}, which is not recorded");
                self.notes.push(Wrong::new(value.at, message));
            }
            tags.extend(tag.is_some().then_some((name, value.at)));
            let of_kernel = of_kernel.filter(|_| !is_userspace).map(str::to_owned);
            self.kernel(value, of_kernel.into_iter().chain(tag).collect())?;
        }
        if let Some((_, at)) = tags.first() {
            let names: Vec<String> = tags.iter().map(|(name, _)| format!("{name:?}")).collect();
            let message = format!(
                "the configuration asks for atrace_categories {}, which select only what programs with this library \
                 write: a marker in the kernel's buffer has no tag, and all markers of other programs are recorded",
                names.join(", ")
            );
            self.notes.push(Wrong::new(*at, message));
        }
        Ok(())
    }

    /// Adds categories that a value stands for.
    fn kernel(&mut self, value: &Value, found: Vec<String>) -> Result<(), Wrong> {
        found.iter().try_for_each(|entry| entries::check(value.at, entry))?;
        self.selection.kernel.extend(found);
        Ok(())
    }

    fn process_stats(&mut self, config: &[Field]) -> Result<(), Wrong> {
        let poll = number(config, "proc_stats_poll_ms")?;
        let has_shares = is_set(config, "scan_smaps_rollup")?;
        if let Some(poll) = poll {
            let at = find(config, "proc_stats_poll_ms").map_or(0, |value| value.at);
            self.polls.push((poll, at));
            self.selection.kernel.insert(OF_PROCESSES.to_owned());
            self.selection.kernel.extend(has_shares.then(|| SHARES.to_owned()));
        } else {
            self.selection.kernel.insert(META.to_owned());
        }
        Ok(())
    }

    fn sys_stats(&mut self, config: &[Field], at: usize) -> Result<(), Wrong> {
        let mut has_any = false;
        for (name, category) in POLLED {
            if let (Some(interval), Some(value)) = (number(config, name)?, find(config, name)) {
                self.polls.push((interval, value.at));
                self.selection.kernel.insert(category.to_owned());
                has_any = true;
            }
        }
        if !has_any {
            self.lack(at, "linux.sys_stats without the period of anything that is sampled");
        }
        Ok(())
    }

    fn perf(&mut self, config: &[Field], at: usize) -> Result<(), Wrong> {
        let timebase = find(config, "timebase").map_or(Ok(&[][..]), Value::message)?;
        let hertz = number(timebase, "frequency")?.or(number(config, "sampling_frequency")?);
        match hertz {
            Some(hertz) if PROFILE_HERTZ.contains(&hertz) => {
                self.recording.profile = Some(hertz);
                // So that programs record nothing, unless another data source is for them.
                let entry = format!("{}/{}", ktrace_provider::NAME, profiler::CATEGORY);
                self.selection.kernel.insert(entry);
            }
            Some(hertz) => {
                let (least, most) = (PROFILE_HERTZ.start(), PROFILE_HERTZ.end());
                let message = format!(
                    "a profile of {hertz} samples per second is not possible: expected {least} to {most}"
                );
                return Err(Wrong::new(at, message));
            }
            None => self.lack(at, "linux.perf without a timebase { frequency }"),
        }
        Ok(())
    }

    fn finish(mut self, fields: &[Field]) -> Result<Translation, Wrong> {
        let is_file = is_set(fields, "write_into_file")?;
        if let Some(mode) = find(fields, "lockdown_mode")
            && mode.word(LOCKDOWN)? == "LOCKDOWN_SET"
        {
            return Err(unprotected(mode.at, "lockdown_mode", USERS));
        }
        if let Some(compression) = find(fields, "compression_type")
            && compression.word(COMPRESSION)? == "COMPRESSION_TYPE_DEFLATE"
        {
            let message = "the configuration asks for compression_type, which is not done: name the output \
                           trace.fxt.zst, or give --compress";
            self.notes.push(Wrong::new(compression.at, message));
        }
        self.modes_and_sizes(is_file);
        for producer in each(fields, "producers") {
            self.producer(producer)?;
        }
        self.intervals();
        self.triggers(fields)?;
        let recording = &mut self.recording;
        recording.categories = self.selection.categories();
        recording.duration = number(fields, "duration_ms")?.map(sizes::span);
        recording.max_size = number(fields, "max_file_size_bytes")?.map(sizes::file);
        recording.stop_timeout = number(fields, "data_source_stop_timeout_ms")?.map(sizes::span);
        if let Some(path) = find(fields, "output_path").filter(|path| !path.is_nothing()) {
            recording.output = Some(path.text()?.into());
        }
        if is_file {
            // What programs hold back is in the file when both have happened.
            let periods = [number(fields, "file_write_period_ms")?, number(fields, "flush_period_ms")?];
            recording.write_period = periods.into_iter().flatten().max().map(sizes::span);
        }
        let nothing = format!(
            "nothing would be recorded: it has no data source with something to record; possible ones are {}",
            SOURCES.join(", ")
        );
        let nothing = self.selection.is_nothing().then_some(nothing);
        Ok(Translation { recording: self.recording, notes: self.notes, nothing })
    }

    /// A recording has one mode, and a size for programs and for the kernel.
    fn modes_and_sizes(&mut self, is_file: bool) {
        let first = self.of_programs.or(self.of_kernel).unwrap_or_default();
        let Some(buffer) = self.buffers.get(first) else {
            self.recording.buffering_mode = is_file.then_some(Mode::Streaming);
            return;
        };
        let mode = if buffer.is_ring { Mode::Circular } else { Mode::Oneshot };
        self.recording.buffering_mode = Some(if is_file { Mode::Streaming } else { mode });
        let other = self.of_kernel.and_then(|of_kernel| self.buffers.get(of_kernel));
        if let Some(other) = other.filter(|other| !is_file && other.is_ring != buffer.is_ring) {
            let policy = if buffer.is_ring { "RING_BUFFER" } else { "DISCARD" };
            let message = format!("the buffers have different fill policies: {policy} is used for all");
            self.notes.push(Wrong::new(other.at, message));
        }
        let mut size = |index: Option<usize>| -> Option<BufferSize> {
            let buffer = self.buffers.get(index?)?;
            Some(sizes::buffer(buffer.at, buffer.kibibytes, &mut self.notes))
        };
        let of_kernel = self.of_kernel.filter(|of_kernel| self.of_programs != Some(*of_kernel));
        if let Some(size) = size(of_kernel) {
            let name = ktrace_provider::NAME.to_owned();
            self.recording.program_buffer_size.push(ProviderBufferSize { name, size });
        }
        self.recording.buffer_size = size(self.of_programs);
    }

    /// A program with a buffer of a size of its own.
    fn producer(&mut self, producer: &Value) -> Result<(), Wrong> {
        let fields = producer.message()?;
        let name = find(fields, "producer_name");
        let name = name.ok_or_else(|| Wrong::new(producer.at, "a producer needs a producer_name"))?;
        if let Some(kibibytes) = number(fields, "shm_size_kb")? {
            let size = sizes::buffer(producer.at, kibibytes, &mut self.notes);
            self.recording.program_buffer_size.push(ProviderBufferSize { name: program(name)?, size });
        }
        Ok(())
    }

    /// A recording samples everything at one interval.
    fn intervals(&mut self) {
        let Some(shortest) = self.polls.iter().map(|(interval, _)| *interval).min() else {
            return;
        };
        self.recording.sample_interval = Some(sizes::span(shortest));
        for (interval, at) in self.polls.iter().filter(|(interval, _)| *interval != shortest) {
            let message =
                format!("this is sampled every {shortest} ms instead of {interval}, like everything else");
            self.notes.push(Wrong::new(*at, message));
        }
    }

    fn triggers(&mut self, fields: &[Field]) -> Result<(), Wrong> {
        let Some(config) = find(fields, "trigger_config") else {
            return Ok(());
        };
        let triggers = config.message()?;
        let modes = ["UNSPECIFIED", "START_TRACING", "STOP_TRACING", "CLONE_SNAPSHOT"];
        let mode = find(triggers, "trigger_mode").map(|mode| mode.word(&modes)).transpose()?;
        let action = match mode {
            Some("CLONE_SNAPSHOT") => Action::Snapshot,
            Some("STOP_TRACING") if is_set(triggers, "use_clone_snapshot_if_available")? => Action::Snapshot,
            Some("STOP_TRACING") => Action::Stop,
            _ => {
                // Without a mode, or with START_TRACING.
                let message = "the configuration asks for a trigger_config that starts the recording, which begins at \
                     once instead: programs raise alerts only while they are recorded; STOP_TRACING with RING_BUFFER \
                     keeps what led to a trigger, and stop_delay_ms what followed";
                self.notes.push(Wrong::new(config.at, message));
                return Ok(());
            }
        };
        for trigger in each(triggers, "triggers") {
            let name = find(trigger.message()?, "name");
            let name = name.ok_or_else(|| Wrong::new(trigger.at, "a trigger needs a name"))?;
            let fields = trigger.message()?;
            let mut delay = number(fields, "stop_delay_ms")?.map(sizes::span);
            if action != Action::Stop && delay.take().is_some() {
                let message = "stop_delay_ms has no meaning here: a snapshot is taken at once";
                self.notes.push(Wrong::new(trigger.at, message));
            }
            let condition = Condition::Alert(name.text()?.to_owned());
            let shown = Trigger { condition, action, delay }.to_string();
            let trigger = shown.parse().map_err(|why: BadValue| Wrong::new(name.at, why.to_string()))?;
            self.recording.trigger.push(trigger);
        }
        Ok(())
    }
}

/// The rules of `track_event_config`.
fn track_events(config: &[Field]) -> Result<Rules, Wrong> {
    let list = |name: &'static str| {
        each(config, name)
            .map(|value| Ok((value.at, value.text()?.to_owned())))
            .collect::<Result<Vec<_>, Wrong>>()
    };
    Ok(Rules { enabled: list("enabled_categories")?, disabled: list("disabled_categories")? })
}

/// The name of a program.
fn program(value: &Value) -> Result<String, Wrong> {
    let name = value.text()?;
    let is_wrong = |letter: char| letter.is_whitespace() || ['/', ',', '"', '*'].contains(&letter);
    if name.is_empty()
        || name.len() > MAX_PROVIDER_NAME_BYTES
        || name.contains(is_wrong)
        || name.starts_with(['-', '#'])
    {
        return Err(Wrong::new(value.at, format!("{name:?} cannot be the name of a program here")));
    }
    Ok(name.to_owned())
}
