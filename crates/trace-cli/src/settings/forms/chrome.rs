//! Chrome's `TraceConfig`: the object itself, the file of `--trace-config-file`, or the parameters of
//! `Tracing.start` in DevTools.

use super::filter::Rules;
use super::keys::{ARGUMENTS, PROCESSES};
use super::schema::{
    self, Expected, Known, WHOLE, each, find, idle, is_set, key, lacking, many, number, protecting,
    unprotected,
};
use super::tree::{Field, Kind, Value, Wrong, unknown};
use super::{Selection, Translation, json, not_recorded, sizes};
use crate::args::record::Recording;
use crate::args::values::Mode;

/// A buffer of so many events has this many bytes for each.
const EVENT_BYTES: u64 = 64;
/// What a recording has instead of the events that Chrome asks other tools for.
const SYSTRACE: &str = "kernel:sched";

const UNTIL_FULL: &str = "record-until-full";
const CONTINUOUSLY: &str = "record-continuously";
const AS_MUCH_AS_POSSIBLE: &str = "record-as-much-as-possible";
const TO_CONSOLE: &str = "trace-to-console";
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
    /// Options other than categories.
    pub recording: Recording,
    /// Categories.
    pub rules: Rules,
    /// Whether events of the kernel are part of it.
    pub has_kernel: bool,
    /// Messages.
    pub notes: Vec<Wrong>,
}

/// The names of keys at the top.
pub fn keys() -> impl Iterator<Item = &'static str> {
    CONFIG.iter().chain(FILE).chain(PARAMETERS).map(|known| known.name)
}

/// Translates a text.
pub fn translate(text: &str) -> Result<Translation, Wrong> {
    let found = Chrome::read(text)?;
    let mut selection = Selection::default();
    selection.programs.push((None, found.rules.filter()?));
    if found.has_kernel {
        selection.kernel.insert(SYSTRACE.to_owned());
    }
    let nothing = "nothing would be recorded: all categories are excluded".to_owned();
    let nothing = selection.is_nothing().then_some(nothing);
    let recording = Recording { categories: selection.categories(), ..found.recording };
    Ok(Translation { recording, notes: found.notes, nothing })
}

impl Chrome {
    /// Reads a text.
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
        chrome.buffer(config)?;
        if let Some(dumps) = find(config, "memory_dump_config") {
            chrome.memory_dumps(dumps.message()?)?;
            if chrome.recording.memory_dump_interval.is_some() {
                chrome.rules.enabled.push((dumps.at, MEMORY_DUMP.to_owned()));
            }
        }
        chrome.recording.duration =
            number(&fields, "startup_duration")?.map(|seconds| sizes::span(seconds * 1000));
        if let Some(file) = find(&fields, "result_file").filter(|file| !file.is_nothing()) {
            chrome.recording.output = Some(file.text()?.into());
        }
        Ok(chrome)
    }

    /// A word of the options.
    fn option(&mut self, at: usize, word: &str) {
        self.recording.buffering_mode = match word {
            UNTIL_FULL => Some(Mode::Oneshot),
            CONTINUOUSLY => Some(Mode::Circular),
            AS_MUCH_AS_POSSIBLE => Some(Mode::Streaming),
            SYSTRACE_OPTION => {
                self.has_kernel = true;
                return;
            }
            _ => {
                self.notes.push(not_recorded(at, word));
                return;
            }
        };
    }

    fn buffer(&mut self, config: &[Field]) -> Result<(), Wrong> {
        let kibibytes = match number(config, "trace_buffer_size_in_kb")? {
            Some(kibibytes) => Some(("trace_buffer_size_in_kb", kibibytes)),
            None => number(config, "trace_buffer_size_in_events")?
                .map(|events| ("trace_buffer_size_in_events", (events * EVENT_BYTES).div_ceil(1024))),
        };
        self.recording.buffer_size = kibibytes.map(|(name, kibibytes)| {
            let at = find(config, name).map_or(0, |value| value.at);
            sizes::buffer(at, kibibytes, &mut self.notes)
        });
        Ok(())
    }

    /// A recording has one interval and one level: those of the shortest interval.
    fn memory_dumps(&mut self, dumps: &[Field]) -> Result<(), Wrong> {
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
            self.recording.memory_dump_interval = Some(sizes::span(interval));
            self.recording.detailed_memory_dumps = Some(is_detailed);
        }
        for (interval, is_detailed, at) in periodic {
            let level = if is_detailed { "detailed" } else { "light" };
            let what = format!("{level} memory dumps every {interval} ms besides the more frequent ones");
            self.notes.push(not_recorded(at, &what));
        }
        Ok(())
    }
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
