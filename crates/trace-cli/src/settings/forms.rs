//! Configurations of other tools: Chrome's `TraceConfig` in JSON and Perfetto's in the text form of protocol
//! buffers become options of a recording.
//= docs/configurations.md#chrome

mod chrome;
mod entries;
mod ftrace;
mod keys;
mod perfetto;
mod sizes;
mod text_proto;

use crate::args::record::Recording;
use crate::args::values::CategoryList;
use clap::Args;
use ktrace_provider::{categories, metrics};
use std::collections::BTreeSet;
use trace_config::filter::Filter;
use trace_config::near;
pub use trace_config::tree::Wrong;
use trace_format::shown::Shown;

/// Maximum number of changes between similar keys.
const MAX_CHANGES: usize = 4;

/// Forms of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Our own.
    Toml,
    /// Chrome's.
    Json,
    /// Perfetto's.
    TextProto,
}

/// What a configuration of another tool becomes.
#[derive(Debug, Default)]
pub struct Translation {
    /// The options.
    pub recording: Recording,
    /// Messages about what is not recorded, or differently, with their places.
    pub notes: Vec<Wrong>,
    /// Why nothing would be recorded, if so.
    pub nothing: Option<String>,
}

/// What a configuration selects.
#[derive(Debug, Default)]
struct Selection {
    /// What programs record: all, or those with a name.
    programs: Vec<(Option<String>, Filter)>,
    /// Categories of the kernel and of metrics.
    kernel: BTreeSet<String>,
}

/// The form of a text, by the first thing that is no comment.
pub fn detect(text: &str) -> Result<Form, Wrong> {
    let at = text_proto::skip(text, 0);
    let rest = &text[at..];
    let is_key = |letter: &char| letter.is_alphanumeric() || ['_', '-'].contains(letter);
    let key: String = rest.chars().take_while(is_key).collect();
    let behind = rest[key.len()..].trim_start_matches([' ', '\t']);
    let next = behind.chars().next();
    match (rest.chars().next(), next) {
        (None, _) => Err(Wrong::new(0, "it is empty")),
        (Some('{'), _) => Ok(Form::Json),
        (Some('/'), _) if rest.starts_with("//") || rest.starts_with("/*") => Ok(Form::Json),
        (Some('[' | '"' | '\''), _) => Ok(Form::Toml),
        (_, Some('=' | '.')) if !key.is_empty() => Ok(Form::Toml),
        (_, Some(':' | '{' | '<')) if !key.is_empty() => Ok(Form::TextProto),
        _ => Err(Wrong::new(at, neither(&key))),
    }
}

/// The text of an error about a word that begins none of the forms.
fn neither(word: &str) -> String {
    let command = Recording::augment_args(clap::Command::new("record"));
    let options = command.get_arguments().filter_map(clap::Arg::get_long).map(str::to_owned);
    let keys: Vec<String> =
        options.chain(perfetto::keys().chain(trace_config::chrome::keys()).map(str::to_owned)).collect();
    let plain = |text: &str| text.replace(['-', '_'], "");
    match near::nearest(word, keys.iter().map(String::as_str), MAX_CHANGES, plain) {
        Some(near) if near == word => {
            format!(
                "{word} has no value: expected `{word} = ...` in TOML, or `{word}: ...` in Perfetto's form"
            )
        }
        Some(near) => format!("{} is no key of a configuration; did you mean {near}?", Shown(word)),
        None => {
            "this is no configuration: expected TOML (key = value), Chrome's JSON ({ ... }) or Perfetto's \
            text form (key: value)"
                .to_owned()
        }
    }
}

/// Translates a text in one of the other tools' forms.
pub fn translate(text: &str, form: Form) -> Result<Translation, Wrong> {
    let mut translation = match form {
        Form::TextProto => perfetto::translate(text)?,
        Form::Json | Form::Toml => chrome::translate(text)?,
    };
    translation.notes.sort_by_key(|note| note.at);
    Ok(translation)
}

impl Selection {
    /// Whether nothing is selected.
    fn is_nothing(&self) -> bool {
        self.kernel.is_empty() && self.programs.iter().all(|(_, filter)| filter.is_nothing())
    }

    /// As a list of categories.
    fn categories(&self) -> Option<CategoryList> {
        let mut entries: Vec<String> = Vec::new();
        for (program, filter) in &self.programs {
            entries.extend(filter.entries(program.as_deref()));
        }
        entries.extend(self.kernel.iter().cloned());
        let has_all = self.programs.iter().any(|(program, filter)| program.is_none() && filter.has_all());
        if has_all && !self.kernel.is_empty() {
            entries.extend(self.kernel_exclusions());
        }
        (!entries.is_empty()).then_some(CategoryList(entries))
    }

    /// What the kernel's provider leaves out, for which `*` would stand for everything, too.
    fn kernel_exclusions(&self) -> Vec<String> {
        let has_events = self.kernel.iter().any(|entry| categories::is_of_kernel(entry));
        let groups = categories::GROUPS.iter().map(|group| group.name);
        let groups = groups.filter(|name| *name != categories::META || !has_events);
        let of_metrics = metrics::CATEGORIES.iter().map(|(name, _)| *name);
        let all = [categories::ALL, "cpu:*"].into_iter().chain(groups).chain(of_metrics);
        let others = all.filter(|name| !self.kernel.contains(*name));
        others.map(|name| format!("-{}/{name}", ktrace_provider::NAME)).collect()
    }
}

#[cfg(test)]
mod tests;
