//! Chrome's `TraceConfig`: the object itself, the file of `--trace-config-file`, or the parameters of
//! `Tracing.start` in DevTools.

use crate::filter::Rules;
use crate::json;
use crate::schema::{
    self, Expected, Known, WHOLE, each, find, idle, is_set, key, lacking, many, number, protecting,
    unprotected,
};
use crate::tree::{Field, Kind, Value, Wrong, unknown};

/// A buffer of so many events has this many bytes for each.
const EVENT_BYTES: u64 = 64;
/// Instead of keys that leave out arguments.
pub const ARGUMENTS: &str =
    "--privacy leaves out texts that are no literals, and trace filter --strip-args all arguments";
/// Instead of keys that leave out processes.
pub const PROCESSES: &str =
    "choose programs with --program, or remove the others with trace filter --process";

const UNTIL_FULL: &str = "record-until-full";
const CONTINUOUSLY: &str = "record-continuously";
const AS_MUCH_AS_POSSIBLE: &str = "record-as-much-as-possible";
/// Events are printed.
pub const TO_CONSOLE: &str = "trace-to-console";
const MODES: [&str; 4] = [UNTIL_FULL, CONTINUOUSLY, AS_MUCH_AS_POSSIBLE, TO_CONSOLE];
const SYSTRACE_OPTION: &str = "enable-systrace";
const ARGUMENT_OPTION: &str = "enable-argument-filter";
/// Words of the options in one text.
const OPTIONS: [&str; 8] = [
    UNTIL_FULL,
    CONTINUOUSLY,
    AS_MUCH_AS_POSSIBLE,
    TO_CONSOLE,
    SYSTRACE_OPTION,
    ARGUMENT_OPTION,
    "enable-sampling",
    "sampling-frequency",
];
/// The category of memory dumps, without which none is recorded.
const MEMORY_DUMP: &str = "memory_dump";

const TRIGGER: &[Known] = &[
    key("mode", Expected::Word(&["background", "light", "detailed"])),
    key("type", Expected::Word(&["periodic_interval", "peak_memory_usage"])),
    key("periodic_interval_ms", WHOLE),
    key("min_time_between_dumps_ms", WHOLE),
];

const MEMORY_DUMPS: &[Known] = &[
    many("triggers", Expected::Message(TRIGGER)),
    lacking("allowed_dump_modes"),
    lacking("heap_profiler_options"),
];

const CONFIG: &[Known] = &[
    key("record_mode", Expected::Text),
    key("recording_mode", Expected::Text),
    many("included_categories", Expected::Text),
    many("excluded_categories", Expected::Text),
    key("enable_systrace", Expected::Truth),
    key("trace_buffer_size_in_kb", WHOLE),
    key("trace_buffer_size_in_events", WHOLE),
    key("memory_dump_config", Expected::Message(MEMORY_DUMPS)),
    lacking("systrace_events"),
    lacking("enable_sampling"),
    protecting("enable_argument_filter", ARGUMENTS),
    protecting("enable_package_name_filter", ARGUMENTS),
    protecting("enable_event_package_name_filter", ARGUMENTS),
    lacking("histogram_names"),
    protecting("process_filter_config", PROCESSES),
    protecting("included_process_ids", PROCESSES),
    lacking("event_filters"),
    lacking("synthetic_delays"),
];

/// A file, in which the configuration is a member.
const FILE: &[Known] = &[
    key("trace_config", Expected::Message(CONFIG)),
    key("startup_duration", WHOLE),
    key("result_file", Expected::Text),
    lacking("result_directory"),
];

/// Parameters of DevTools, with filters in texts.
const PARAMETERS: &[Known] = &[
    key("trace_config", Expected::Message(CONFIG)),
    key("categories", Expected::Text),
    key("options", Expected::Text),
    idle("buffer_usage_reporting_interval"),
    idle("transfer_mode"),
    idle("stream_format"),
    idle("stream_compression"),
    idle("tracing_backend"),
    lacking("perfetto_config"),
];

/// What a configuration of Chrome's asks for.
#[derive(Debug, Default)]
pub struct Chrome {
    /// What happens when the buffer is full.
    pub mode: Option<Mode>,
    /// Size of the buffer in kibibytes, and where it stands.
    pub buffer: Option<(usize, u64)>,
    /// Reports of memory.
    pub memory_dumps: Option<MemoryDumps>,
    /// How long a recording from the start of a program lasts, in seconds.
    pub startup_seconds: Option<u64>,
    /// The file for it.
    pub result_file: Option<String>,
    /// Categories.
    pub rules: Rules,
    /// Whether events of the kernel are part of it.
    pub has_kernel: bool,
    /// Whether events are to be printed, and where that is said.
    pub to_console: Option<usize>,
    /// Messages.
    pub notes: Vec<Wrong>,
}

/// What happens when the buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The recording ends.
    UntilFull,
    /// The oldest events make room.
    Continuously,
    /// There is always more room.
    AsMuchAsPossible,
}

/// Reports of memory while recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryDumps {
    /// Milliseconds between two.
    pub interval: u64,
    /// Whether they have what is expensive to compute.
    pub is_detailed: bool,
}

/// A message about what is asked for, but not recorded.
pub fn not_recorded(at: usize, what: &str) -> Wrong {
    Wrong::new(at, format!("the configuration asks for {what}, which is not recorded"))
}

/// The names of keys at the top.
pub fn keys() -> impl Iterator<Item = &'static str> {
    CONFIG.iter().chain(FILE).chain(PARAMETERS).map(|known| known.name)
}

impl Chrome {
    /// Reads a text.
    ///
    /// # Errors
    /// With its place, an error of the text, a key that is not known, or one that asks for protection which a
    /// recording does not give.
    pub fn read(text: &str) -> Result<Self, Wrong> {
        let mut fields = json::parse(text)?;
        // DevTools writes the same names in another case.
        fields.iter_mut().for_each(in_snake_case);
        let has = |name: &str| find(&fields, name).is_some();
        let schema = match () {
            () if ["categories", "options", "perfetto_config", "transfer_mode"].into_iter().any(has) => {
                PARAMETERS
            }
            () if ["trace_config", "startup_duration", "result_file"].into_iter().any(has) => FILE,
            () => CONFIG,
        };
        let mut chrome = Self::default();
        let mut lacks = Vec::new();
        schema::check(&fields, schema, &mut lacks)?;
        chrome.notes.extend(lacks.iter().map(|lack| not_recorded(lack.at, &lack.message)));
        let config = match find(&fields, "trace_config") {
            Some(config) => config.message()?,
            None if schema[0].name == CONFIG[0].name => &fields,
            None => &[],
        };
        if fields.is_empty() || (config.is_empty() && fields.len() == 1 && has("trace_config")) {
            return Err(Wrong::new(text.find('{').unwrap_or_default(), "it sets nothing"));
        }
        let mut included = entries(config, "included_categories")?;
        let mut excluded = entries(config, "excluded_categories")?;
        if let Some(value) = find(&fields, "categories") {
            filter_text(value.at, value.text()?, &mut included, &mut excluded);
        }
        chrome.rules = Rules::of_chrome(included, excluded);
        for name in ["record_mode", "recording_mode"] {
            if let Some(value) = find(config, name) {
                let word = value.text()?;
                let mode = MODES.into_iter().find(|mode| *mode == in_kebab_case(word));
                let mode = mode.ok_or_else(|| Wrong::new(value.at, unknown("value", word, &MODES)))?;
                chrome.option(value.at, mode);
            }
        }
        if let Some(value) = find(&fields, "options") {
            for word in value.text()?.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                // Some have a number.
                let word = word.split_once('=').map_or(word, |(word, _)| word);
                if !OPTIONS.contains(&word) {
                    return Err(Wrong::new(value.at, unknown("option", word, &OPTIONS)));
                }
                if word == ARGUMENT_OPTION {
                    return Err(unprotected(value.at, word, ARGUMENTS));
                }
                chrome.option(value.at, word);
            }
        }
        chrome.has_kernel |= is_set(config, "enable_systrace")?;
        chrome.buffer = buffer(config)?;
        if let Some(dumps) = find(config, "memory_dump_config") {
            chrome.dump_memory(dumps.message()?)?;
            if chrome.memory_dumps.is_some() {
                chrome.rules.enabled.push((dumps.at, MEMORY_DUMP.to_owned()));
            }
        }
        chrome.startup_seconds = number(&fields, "startup_duration")?;
        if let Some(file) = find(&fields, "result_file").filter(|file| !file.is_nothing()) {
            chrome.result_file = Some(file.text()?.into());
        }
        Ok(chrome)
    }

    /// A word of the options.
    fn option(&mut self, at: usize, word: &str) {
        match word {
            UNTIL_FULL => self.mode = Some(Mode::UntilFull),
            CONTINUOUSLY => self.mode = Some(Mode::Continuously),
            AS_MUCH_AS_POSSIBLE => self.mode = Some(Mode::AsMuchAsPossible),
            TO_CONSOLE => self.to_console = Some(at),
            SYSTRACE_OPTION => self.has_kernel = true,
            _ => self.notes.push(not_recorded(at, word)),
        }
    }

    /// A recording has one interval and one level: those of the shortest interval.
    fn dump_memory(&mut self, dumps: &[Field]) -> Result<(), Wrong> {
        let mut periodic = Vec::new();
        for trigger in each(dumps, "triggers") {
            let fields = trigger.message()?;
            let legacy = number(fields, "periodic_interval_ms")?;
            let interval = legacy.or(number(fields, "min_time_between_dumps_ms")?);
            let word = |name: &str| find(fields, name).map(Value::text).transpose();
            match (word("type")?, interval) {
                (None | Some("periodic_interval"), Some(interval)) => {
                    periodic.push((interval, word("mode")? == Some("detailed"), trigger.at));
                }
                (None | Some("periodic_interval"), None) => {
                    let message = "the trigger has no interval: expected periodic_interval_ms or \
                        min_time_between_dumps_ms above 0";
                    return Err(Wrong::new(trigger.at, message));
                }
                _ => self.notes.push(not_recorded(trigger.at, "memory dumps at peaks of memory usage")),
            }
        }
        periodic.sort_by_key(|(interval, ..)| *interval);
        let mut periodic = periodic.into_iter();
        if let Some((interval, is_detailed, _)) = periodic.next() {
            self.memory_dumps = Some(MemoryDumps { interval, is_detailed });
        }
        for (interval, is_detailed, at) in periodic {
            let level = if is_detailed { "detailed" } else { "light" };
            let what = format!("{level} memory dumps every {interval} ms besides the more frequent ones");
            self.notes.push(not_recorded(at, &what));
        }
        Ok(())
    }
}

/// Its size in kibibytes.
fn buffer(config: &[Field]) -> Result<Option<(usize, u64)>, Wrong> {
    let at = |name: &str| find(config, name).map_or(0, |value| value.at);
    let kibibytes = number(config, "trace_buffer_size_in_kb")?;
    if let Some(kibibytes) = kibibytes {
        return Ok(Some((at("trace_buffer_size_in_kb"), kibibytes)));
    }
    let events = number(config, "trace_buffer_size_in_events")?;
    let kibibytes = |events: u64| (events * EVENT_BYTES).div_ceil(1024);
    Ok(events.map(|events| (at("trace_buffer_size_in_events"), kibibytes(events))))
}

fn entries(config: &[Field], name: &str) -> Result<Vec<(usize, String)>, Wrong> {
    each(config, name).map(|value| Ok((value.at, value.text()?.to_owned()))).collect()
}

/// A list in one text, where a hyphen excludes.
fn filter_text(
    at: usize,
    text: &str,
    included: &mut Vec<(usize, String)>,
    excluded: &mut Vec<(usize, String)>,
) {
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        match entry.strip_prefix('-') {
            Some(entry) => excluded.push((at, entry.to_owned())),
            None => included.push((at, entry.to_owned())),
        }
    }
}

fn in_snake_case(field: &mut Field) {
    if field.name.starts_with(|first: char| first.is_ascii_lowercase()) {
        field.name = split_words(&field.name, '_');
    }
    for_each_message(&mut field.value, &mut |field| in_snake_case(field));
}

fn for_each_message(value: &mut Value, visit: &mut impl FnMut(&mut Field)) {
    match &mut value.kind {
        Kind::Message(fields) => fields.iter_mut().for_each(visit),
        Kind::List(list) => list.iter_mut().for_each(|value| for_each_message(value, visit)),
        _ => {}
    }
}

/// `recordContinuously` as `record-continuously`; DevTools calls the console an echo.
fn in_kebab_case(word: &str) -> String {
    match word {
        "echoToConsole" => TO_CONSOLE.to_owned(),
        word => split_words(word, '-'),
    }
}

fn split_words(word: &str, between: char) -> String {
    let mut split = String::new();
    for letter in word.chars() {
        if letter.is_ascii_uppercase() {
            split.push(between);
        }
        split.push(letter.to_ascii_lowercase());
    }
    split
}
