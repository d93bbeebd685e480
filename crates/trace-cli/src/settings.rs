//! The settings of a recording, from the command line, configuration files and a test specification: earlier
//! ones in this list override later ones.

pub mod checks;
mod forms;
pub mod measurement;
pub mod spec_file;

use crate::args::bad_value::BadValue;
use crate::args::categories::Groups;
use crate::args::record::Recording;
use crate::args::values::ConfigFile;
use crate::shell::exit::Failure;
use crate::shell::stdio::say;
use clap::Args;
use forms::{Form, Translation};
use spec_file::SpecFile;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trace_config::position;

/// Longest configuration that is read.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

/// All settings of a recording, including defaults.
#[derive(Debug)]
pub struct Settings {
    /// Options.
    pub recording: Recording,
    /// Groups of categories.
    pub groups: Groups,
    /// The test specification's parts other than options.
    pub spec: Option<SpecFile>,
}

impl Settings {
    /// Reads the files, checks that the options are consistent, and reports what has no effect.
    pub fn resolve(command_line: Recording, config: Option<ConfigFile<'_>>) -> Result<Self, Failure> {
        Self::read(command_line, config, &mut |remark| say!("trace: {remark}"))
    }

    /// The same, with a function that gets what is to be reported.
    pub fn read(
        command_line: Recording,
        config: Option<ConfigFile<'_>>,
        report: &mut dyn FnMut(&str),
    ) -> Result<Self, Failure> {
        let mut groups = Groups::built_in();
        // The lowest first.
        let mut layers = Vec::new();
        for path in standard_files().iter().rev().filter(|path| path.is_file()) {
            layers.push(read(path, &mut groups)?);
        }
        let has_categories = command_line.categories.is_some();
        let explicit = config.map(|file| file.read(&mut groups, has_categories, report)).transpose()?;
        let mut recording =
            explicit.map_or_else(|| command_line.clone(), |file| command_line.clone().over(file));
        let standard = layers.into_iter().rev().reduce(Recording::over).unwrap_or_default();
        let spec_path = recording.spec_file.clone().or_else(|| standard.spec_file.clone());
        let spec = spec_path.as_deref().map(SpecFile::read).transpose()?;
        if let Some(spec) = &spec {
            spec.report_overridden(&recording, report);
            recording = recording.over(spec.recording()?);
        }
        let mut recording = recording.over(standard).over(Recording::defaults());
        recording.buffering_mode = Some(recording.meant_buffering_mode());
        checks::of_all(&recording, spec.as_ref(), report)?;
        Ok(Self { recording, groups, spec })
    }

    /// These settings as a configuration file.
    pub fn to_toml(&self) -> Result<String, Failure> {
        let failed =
            |error: toml::ser::Error| Failure::new(format!("cannot write the configuration: {error}"));
        let mut table = toml::Table::try_from(&self.recording).map_err(failed)?;
        table.insert("category-groups".to_owned(), toml::Value::Table(self.groups.to_toml()));
        toml::to_string(&table).map_err(failed)
    }
}

/// The user's configuration file and the system's.
pub fn standard_files() -> Vec<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let user = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let bases = user.or_else(home).into_iter().chain([PathBuf::from("/etc")]);
    bases.map(|base| base.join("trace").join("config.toml")).collect()
}

impl ConfigFile<'_> {
    /// Reads it, in whichever form it is, and reports what a recording does not do.
    fn read(
        self,
        groups: &mut Groups,
        has_categories: bool,
        report: &mut dyn FnMut(&str),
    ) -> Result<Recording, Failure> {
        let name = if self.path == Path::new("-") { "stdin".into() } else { self.path.display().to_string() };
        let text = self.text().map_err(|why| failed(&name, &why.to_string()))?;
        let plain = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let place = |wrong: forms::Wrong| position::describe(plain, Some(wrong.at), &wrong.message);
        let wrong = |wrong: forms::Wrong| failed(&name, &place(wrong));
        let form = if self.is_text_proto { Form::TextProto } else { forms::detect(plain).map_err(wrong)? };
        if form == Form::Toml {
            return parse(&name, plain, groups);
        }
        let Translation { recording, notes, nothing } = forms::translate(plain, form).map_err(wrong)?;
        for note in notes {
            report(&format!("warning: {name}: {}", place(note)));
        }
        match nothing.filter(|_| !has_categories) {
            Some(nothing) => Err(failed(&name, &nothing)),
            None => Ok(recording),
        }
    }

    fn text(self) -> Result<String, BadValue> {
        let mut bytes = Vec::new();
        let read = if self.path == Path::new("-") {
            io::stdin().lock().take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes)
        } else {
            std::fs::File::open(self.path)
                .and_then(|file| file.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes))
        };
        let length = read.map_err(|error| error.to_string())?;
        if u64::try_from(length).unwrap_or(u64::MAX) > MAX_CONFIG_BYTES {
            return Err(format!("a configuration has at most {MAX_CONFIG_BYTES} bytes").into());
        }
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!(
                "it is not text: byte {at} is not UTF-8; binary configurations of Perfetto cannot be read"
            )
            .into()
        })
    }
}

fn failed(name: &str, why: &str) -> Failure {
    Failure::usage(format!("{name}: {}", why.trim_end().replace('\n', "; ")))
}

/// Reads a file of ours.
fn read(path: &Path, groups: &mut Groups) -> Result<Recording, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| failed(&name, &error.to_string()))?;
    parse(&name, &text, groups)
}

/// Reads a text of ours: options at its top, and a table of groups, which are added to the known ones.
fn parse(name: &str, text: &str, groups: &mut Groups) -> Result<Recording, Failure> {
    let position = |error: toml::de::Error| {
        failed(name, &position::describe(text, error.span().map(|span| span.start), error.message()))
    };
    let mut recording: Recording = toml::from_str(text).map_err(position)?;
    let found = std::mem::take(&mut recording.category_groups);
    let in_group = |group: &str, why: &str| {
        let place = place_of_group(text, group);
        failed(name, &position::describe(text, place, &format!("category-groups: {group}: {why}")))
    };
    if let Some(option) = found.keys().find(|name| is_option(name)) {
        return Err(in_group(option, "this is an option, which has to stand above [category-groups]"));
    }
    groups.add(found).map_err(|(group, why)| in_group(&group, &why))?;
    Ok(recording)
}

/// Where a group stands in a file.
fn place_of_group(text: &str, group: &str) -> Option<usize> {
    #[derive(serde::Deserialize)]
    struct Places {
        #[serde(rename = "category-groups")]
        groups: BTreeMap<toml::Spanned<String>, toml::Value>,
    }
    let places: Places = toml::from_str(text).ok()?;
    places.groups.keys().find(|name| name.get_ref() == group).map(|name| name.span().start)
}

/// Whether `record` has an option with this name, which was probably put below a table by mistake.
fn is_option(name: &str) -> bool {
    let options = Recording::augment_args(clap::Command::new("record"));
    options.get_arguments().any(|argument| argument.get_long() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::values::BufferSize;

    fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_the_file_over_the_specification() {
        let directory = tempfile::tempdir().unwrap();
        let spec = r#"{ "buffer_size_in_mb": 32, "duration": 7, "categories": ["spec"] } // said"#;
        let spec = write(directory.path(), "spec.json", spec);
        let text = format!("buffer-size = 16\ncategories = 'file'\nspec-file = '{}'\n", spec.display());
        let config =
            write(directory.path(), "config.toml", &(text + "[category-groups]\nmine = ['a', 'b*']\n"));
        let command_line = Recording { buffer_size: Some(BufferSize(8)), ..Recording::default() };
        let settings = Settings::resolve(command_line, Some(config.as_path().into())).unwrap();
        let recording = &settings.recording;
        assert_eq!(recording.buffer_size, Some(BufferSize(8)));
        assert_eq!(recording.categories.as_ref().unwrap().0, ["file"]);
        assert_eq!(recording.duration.unwrap().0.as_secs(), 7);
        assert_eq!(recording.output, None);
        assert_eq!(settings.groups.get("mine").unwrap(), ["a", "b*"]);
        assert!(settings.groups.get("default").is_some());
        let effective = settings.to_toml().unwrap();
        let again = write(directory.path(), "again.toml", &effective);
        let again = Settings::resolve(Recording::default(), Some(again.as_path().into())).unwrap();
        assert_eq!(again.recording, settings.recording);
        assert_eq!(again.to_toml().unwrap(), effective);
    }

    #[test]
    fn a_wrong_file_is_named_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let failure = |text: &str| {
            let config = write(directory.path(), "config.toml", text);
            let failure = Settings::resolve(Recording::default(), Some(config.as_path().into())).unwrap_err();
            assert_eq!(failure.code, crate::shell::exit::USAGE);
            failure.text.replace(&config.display().to_string(), "FILE")
        };
        assert!(failure("\nbuffer = 4").starts_with("FILE: line 2, column 1: unknown key buffer; the keys"));
        assert!(failure("buffer-size = '4kB'").contains("line 1, column 15: expected a size from 1"));
        assert!(failure("duration = ").starts_with("FILE: line 1, column"));
        assert!(failure("[category-groups]\nx = 5").starts_with("FILE: line 2, column 5: invalid type"));
        let below = failure("[category-groups]\nmine = ['a']\ntrigger = ['stall:stop']\n");
        let why = "this is an option, which has to stand above [category-groups]";
        assert_eq!(below, format!("FILE: line 3, column 1: category-groups: trigger: {why}"));
        let behind = failure("[category-groups]\nx = ['#a']\n");
        assert_eq!(behind, "FILE: line 2, column 1: category-groups: x: \"#a\" is no category");
        let empty = failure("[category-groups]\nx = ['a']\n  y = []\n");
        assert_eq!(empty, "FILE: line 3, column 3: category-groups: y: the group has no category");
        let list = failure("categories = { a = 1 }\n");
        assert_eq!(list, "FILE: line 1, column 14: expected a text, or a list of texts");
        let near = failure("cooldown = '1s'\n\nbufering_mode = 'oneshot'\n[category-groups]\nx = ['a']\n");
        assert_eq!(near, "FILE: line 3, column 1: unknown key bufering_mode; did you mean buffering-mode?");
        let missing = directory.path().join("missing.toml");
        let failure = Settings::resolve(Recording::default(), Some(missing.as_path().into())).unwrap_err();
        assert!(failure.text.contains("No such file"), "{}", failure.text);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let refused = |recording: Recording| Settings::resolve(recording, None).unwrap_err().text;
        let detach = Recording { detach: Some(true), ..Recording::default() };
        assert!(refused(detach).starts_with("--detach needs a command"));
        let decouple = Recording { decouple: Some(true), ..Recording::default() };
        assert!(refused(decouple).starts_with("--decouple needs a command"));
        let append = Recording { append_args: vec!["x".parse().unwrap()], ..Recording::default() };
        assert!(refused(append).starts_with("--append-args needs a command"));
        let trigger = vec!["a:stop".parse().unwrap(), "a:snapshot".parse().unwrap()];
        let twice = Recording { trigger, ..Recording::default() };
        assert_eq!(refused(twice), "--trigger: multiple trigger options for \"a\"");
        let results = Recording { benchmark_results_file: Some("x".into()), ..Recording::default() };
        assert!(refused(results).contains("needs a --spec-file with measurements"));
        let results = Recording { benchmark_results_file: Some("-".into()), ..Recording::default() };
        assert!(refused(results).contains("cannot be written to stdout"));
    }
}
