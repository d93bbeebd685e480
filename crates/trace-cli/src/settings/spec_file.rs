//! Test specifications: JSON with comments that defines what to record and what to measure.
//= docs/measure.md#specification

use super::measurement::Measurement;
use super::position;
use crate::args::bad_value::BadValue;
use crate::args::record::Recording;
use crate::args::values::{BufferSize, CategoryList, Mode, ProviderBufferSize, Span};
use crate::shell::exit::Failure;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A specification.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct SpecFile {
    /// The name of the test, for people.
    pub test_name: Option<String>,
    /// The program to run.
    pub app: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    spawn: Option<bool>,
    environment: Option<Environment>,
    categories: Vec<String>,
    buffering_mode: Option<Mode>,
    buffer_size_in_mb: Option<u32>,
    provider_specs: Vec<ProviderEntry>,
    duration: Option<u64>,
    /// Name of the suite in the results.
    pub test_suite_name: Option<String>,
    /// The measurements.
    pub measure: Vec<Measurement>,
    #[serde(skip)]
    path: PathBuf,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Environment {
    #[serde(rename = "name")]
    _name: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct ProviderEntry {
    name: String,
    buffer_size_in_mb: Option<u32>,
}

impl SpecFile {
    /// Reads one.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let failed = |why: String| Failure::usage(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let plain = position::without_comments(text).map_err(|why| failed(why.message))?;
        if plain.trim().is_empty() {
            return Err(failed("it is empty".to_owned()));
        }
        let mut spec: Self = serde_json::from_str(&plain).map_err(|error| {
            failed(position::describe(&plain, position::offset(&plain, &error), &position::message(&error)))
        })?;
        spec.path = path.to_owned();
        spec.measure.iter().try_for_each(Measurement::check).map_err(|why| failed(why.to_string()))?;
        Ok(spec)
    }

    /// Its options of a recording.
    pub fn recording(&self) -> Result<Recording, Failure> {
        let failed =
            |what: &str, why: BadValue| Failure::usage(format!("{}: {what}: {why}", self.path.display()));
        let size =
            |what: &str, size: u32| size.to_string().parse::<BufferSize>().map_err(|why| failed(what, why));
        let categories = match self.categories.is_empty() {
            true => None,
            false => {
                let list = self.categories.join(",").parse::<CategoryList>();
                Some(list.map_err(|why| failed("categories", why))?)
            }
        };
        let mut program_buffer_size = Vec::new();
        for entry in &self.provider_specs {
            if let Some(found) = entry.buffer_size_in_mb {
                let size = size("buffer_size_in_mb", found)?;
                program_buffer_size.push(ProviderBufferSize { name: entry.name.clone(), size });
            }
        }
        let command = self.app.iter().chain(self.app.iter().flat_map(|_| &self.args));
        Ok(Recording {
            categories,
            // A duration of 0 means no limit.
            duration: self
                .duration
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Span(Duration::from_secs(seconds))),
            buffering_mode: self.buffering_mode,
            buffer_size: self.buffer_size_in_mb.map(|found| size("buffer_size_in_mb", found)).transpose()?,
            program_buffer_size,
            test_suite: self.test_suite_name.clone(),
            command: command.cloned().collect(),
            ..Recording::default()
        })
    }

    /// Reports members that the command line, or a configuration file, overrides.
    pub fn report_overridden(&self, by: &Recording, report: &mut dyn FnMut(&str)) {
        let said = [
            ("categories", !self.categories.is_empty() && by.categories.is_some()),
            ("duration", self.duration.is_some() && by.duration.is_some()),
            ("buffering_mode", self.buffering_mode.is_some() && by.buffering_mode.is_some()),
            ("buffer_size_in_mb", self.buffer_size_in_mb.is_some() && by.buffer_size.is_some()),
            ("provider_specs", !self.provider_specs.is_empty() && !by.program_buffer_size.is_empty()),
            ("test_suite_name", self.test_suite_name.is_some() && by.test_suite.is_some()),
            ("app", self.app.is_some() && !by.command.is_empty()),
        ];
        for (member, _) in said.iter().filter(|(_, is_overridden)| *is_overridden) {
            report(&format!("warning: {}: {member} is overridden by an option", self.path.display()));
        }
    }
}
