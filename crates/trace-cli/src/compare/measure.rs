//! `trace measure`: statistics of a finished trace, as a test specification requests them.
//= docs/measure.md#measurements

#[cfg(test)]
mod tests;

use crate::args::Measure;
use crate::files::account::{self, Accounting};
use crate::files::input::{as_archive, failed, name, open, stopped};
use crate::files::output::{OutputFile, refuse_input};
use crate::files::several::each;
use crate::settings::measurement::Measurement;
use crate::settings::spec_file::SpecFile;
use crate::shell::exit::{self, Failure};
use crate::shell::progress;
use crate::shell::stdio::say;
use serde_json::json;
use std::io::{Read, Write};
use std::path::Path;
use trace_analysis::counted::Counted;
use trace_analysis::population::Population;
use trace_analysis::samples::{Measured, Quantity};
use trace_format::shown::Shown;
use trace_model::Selection;
use trace_reader::ReadError;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// For people, on stdout.
    Text,
    /// For programs, on stdout.
    Json,
    /// For people, because stdout has something else for programs.
    OnStderr,
}

/// Measures a trace, and returns the exit code.
pub fn run(options: &Measure) -> Result<u8, Failure> {
    let spec = SpecFile::read(&options.spec_file)?;
    if spec.measure.is_empty() {
        let path = options.spec_file.display();
        return Err(Failure::usage(format!("{path}: it has no measurements")));
    }
    if options.benchmark_results_file.is_some() && options.inputs.len() > 1 {
        return Err(Failure::usage(
            "--benchmark-results-file has the results of one trace, and there are several",
        ));
    }
    if let Some(results) = &options.benchmark_results_file {
        refuse_input(&options.inputs[0], results)?;
        refuse_input(&options.spec_file, results)?;
    }
    let suite = options.test_suite.clone().or(spec.test_suite_name);
    let results = options.benchmark_results_file.as_deref();
    let printed = if options.json { Printed::Json } else { Printed::Text };
    each(&options.inputs, |input| {
        if options.inputs.len() > 1 && !options.json {
            crate::shell::stdio::print(&format!("{}:\n", Shown(&name(input))))?;
        }
        let is_complete = file(&spec.measure, input, results, suite.as_deref(), printed)?;
        Ok(if is_complete { 0 } else { exit::NO })
    })
}

/// Measures a file, prints the results, and writes them into a file for programs, unless a measurement has
/// no sample, or another number of them than it should: then it reports that, and returns false.
pub fn file(
    measurements: &[Measurement],
    input: &Path,
    results_file: Option<&Path>,
    suite: Option<&str>,
    printed: Printed,
) -> Result<bool, Failure> {
    let output = results_file.map(OutputFile::create).transpose()?;
    let accounting = account::begin(printed == Printed::Json, input, &Selection::default())?;
    let file = open(input)?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let bar = progress::bar("measuring", bytes);
    let archive = as_archive(progress::reading(file, &bar));
    let archive =
        archive.map_err(|error| Failure::unreadable(format!("cannot read {}: {error}", name(input))))?;
    let samples = measure(measurements, archive);
    bar.finish_and_clear();
    let samples = samples.map_err(|error| failed(input, &error))?;
    let Measured { samples, mixed, stopped: why } = samples;
    if let Some((place, mixed)) = mixed.first() {
        let choice = "say which with \"event_kind\": \"operation\" or \"slice\"";
        return Err(Failure::usage(format!("measurement {}: {mixed}: {choice}", measurements[*place])));
    }
    // The remaining messages apply to the part that was read.
    let rest =
        why.map_or(Ok(()), |error| Err(stopped(input, &error, "the measurements are of what comes before")));
    let mut text = String::new();
    let mut is_any_empty = false;
    for (measurement, values) in measurements.iter().zip(&samples) {
        match measurement.expected_sample_count {
            Some(expected) if expected != values.len() as u64 => {
                is_any_empty = true;
                let found = Counted(values.len() as u64, "samples");
                say!("trace: measurement {measurement} has {found}, expected {expected}");
            }
            _ if values.is_empty() => {
                is_any_empty = true;
                say!("trace: measurement {measurement} has no sample");
            }
            _ => text.push_str(&describe(measurement, values)),
        }
    }
    let results: Vec<_> =
        measurements.iter().zip(&samples).map(|(of, values)| machine(of, values, suite)).collect();
    if let Some(account) = accounting.map(Accounting::finish) {
        let is_complete = !is_any_empty && rest.is_ok() && !account.is_cut_off();
        account.answer(json!({"complete": is_complete, "results": results})).give();
    }
    match printed {
        Printed::Text => crate::shell::stdio::print(&text)?,
        Printed::Json => {}
        Printed::OnStderr => crate::shell::stdio::report(&text),
    }
    if is_any_empty {
        return rest.map(|()| false);
    }
    if let Some(mut output) = output {
        let text = serde_json::to_vec(&results).map_err(|error| Failure::new(error.to_string()))?;
        let written = output.file().write_all(&text);
        written.map_err(|error| Failure::new(format!("cannot write the results: {error}")))?;
        let path = output.finish()?;
        say!("trace: Benchmark results written to {}", path.display());
    }
    rest.map(|()| true)
}

/// Takes the samples of all measurements; an error if the input is no trace.
pub(crate) fn measure(measurements: &[Measurement], input: impl Read) -> Result<Measured, ReadError> {
    let quantities: Vec<&Quantity> = measurements.iter().map(|measurement| &measurement.kind).collect();
    trace_analysis::samples::measure(&quantities, input)
}

fn describe(measurement: &Measurement, values: &[f64]) -> String {
    let (label, unit) = (Shown(&measurement.label), &Shown(&measurement.unit).to_string());
    if !measurement.split_first || values.len() == 1 {
        return format!("{label} -> {}\n", statistics(values, unit));
    }
    let last = values.len() - 1;
    format!(
        "{label}\n  sample 0: {}\n  samples 1 to {last}: {}\n",
        statistics(&values[..1], unit),
        statistics(&values[1..], unit)
    )
}

fn statistics(values: &[f64], unit: &str) -> String {
    match Population::of(values) {
        None => String::new(),
        Some(Population { count: 1, min, .. }) => format!("{}{unit}", number(min)),
        Some(Population { count, mean, deviation, min, max }) => format!(
            "avg {}{unit} out of {count} samples. (std dev {}, min {}, max {})",
            number(mean),
            number(deviation),
            number(min),
            number(max)
        ),
    }
}

/// At most six decimal places, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn machine(measurement: &Measurement, values: &[f64], suite: Option<&str>) -> serde_json::Value {
    let mut result = json!({
        "label": measurement.label,
        "unit": measurement.unit,
        "split_first": measurement.split_first,
        "values": values,
    });
    if let Some(suite) = suite {
        result["test_suite"] = suite.into();
    }
    result
}

#[cfg(test)]
mod texts {
    use super::*;

    fn parse(text: &str) -> Result<Measurement, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn labels_and_units_follow_from_the_members() {
        let of = |text: &str| parse(text).map(|found| (found.label, found.unit)).unwrap();
        let pair = |label: &str, unit: &str| (label.to_owned(), unit.to_owned());
        let duration = r#"{"type": "duration", "event_name": "n", "event_category": "c"}"#;
        assert_eq!(of(duration), pair("n (c)", "ms"));
        let between = r#"{"type": "time_between", "first_event_name": "a", "first_event_category": "c",
            "second_event_name": "b", "second_event_category": "d", "second_event_anchor": "end"}"#;
        assert_eq!(of(between), pair("a (c) to b (d)", "ms"));
        let argument = r#"{"type": "argument_value", "event_name": "n", "event_category": "c",
            "argument_name": "size", "argument_unit": "B", "output_test_name": "sizes"}"#;
        assert_eq!(of(argument), pair("sizes", "B"));
    }

    #[test]
    fn wrong_members_are_named() {
        let wrong = |text: &str| parse(text).unwrap_err();
        assert!(wrong(r#"{"type": "x"}"#).starts_with("type is \"x\", expected duration, time_between or"));
        assert!(
            wrong(r#"{"type": "duration", "event_name": "n"}"#).contains("duration needs event_category")
        );
        let extra = r#"{"type": "duration", "event_name": "n", "event_category": "c", "argument_name": "a"}"#;
        assert!(wrong(extra).contains("duration has no argument"));
        assert!(wrong(r#"{"type": "duration", "evnt": 1}"#).contains("unknown field `evnt`"));
        let anchor = r#"{"type": "time_between", "first_event_anchor": "middle"}"#;
        assert!(wrong(anchor).contains("unknown variant `middle`"));
        let none =
            r#"{"type": "duration", "event_name": "n", "event_category": "c", "expected_sample_count": 0}"#;
        assert!(parse(none).unwrap().check().unwrap_err().to_string().contains("is 0, expected 1 or more"));
    }

    #[test]
    fn results_read_well() {
        let text = r#"{"type": "duration", "event_name": "n", "event_category": "c"}"#;
        let mut measurement = parse(text).unwrap();
        let four = [1.0, 2.0, 3.0, 6.0];
        assert_eq!(
            describe(&measurement, &four),
            "n (c) -> avg 3ms out of 4 samples. (std dev 1.870829, min 1, max 6)\n"
        );
        assert_eq!(describe(&measurement, &[0.25]), "n (c) -> 0.25ms\n");
        measurement.split_first = true;
        assert_eq!(
            describe(&measurement, &four),
            "n (c)\n  sample 0: 1ms\n  samples 1 to 3: avg 3.666667ms out of 3 samples. \
             (std dev 1.699673, min 2, max 6)\n"
        );
        let result = machine(&measurement, &four, Some("suite")).to_string();
        assert_eq!(
            result,
            r#"{"label":"n (c)","split_first":true,"test_suite":"suite","unit":"ms","values":[1.0,2.0,3.0,6.0]}"#
        );
        assert!(!machine(&measurement, &four, None).to_string().contains("test_suite"));
    }
}
