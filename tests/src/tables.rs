//! Asks other programs what they read in tables.
//!
//! `TRACE_TEST_PYTHON` names an interpreter that has the package `duckdb`, `TRACE_TEST_SPARK` one that has
//! `pyspark`.

use crate::build::workspace;
use crate::skip::skip;
use serde_json::Value;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::Command;

/// Rows of an answer, each a list.
pub type Rows = Vec<Value>;

/// A program that reads Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// DuckDB.
    DuckDb,
    /// Apache Spark, with two executors.
    Spark,
}

impl Peer {
    const fn name(self) -> &'static str {
        match self {
            Self::DuckDb => "duckdb",
            Self::Spark => "spark",
        }
    }

    /// The answers of a program to questions about the tables in a directory; none, and reported as skipped,
    /// where it is not installed.
    ///
    /// # Panics
    /// If it fails, or is required and absent.
    #[must_use]
    pub fn ask(self, test: &str, directory: &Path, questions: &[String]) -> Option<Vec<Rows>> {
        let (variable, package) = match self {
            Self::DuckDb => ("TRACE_TEST_PYTHON", "duckdb"),
            Self::Spark => ("TRACE_TEST_SPARK", "pyspark"),
        };
        let python = std::env::var_os(variable).unwrap_or_else(|| "python3".into());
        let imported = Command::new(&python).args(["-c", &format!("import {package}")]).output();
        if !imported.is_ok_and(|output| output.status.success()) {
            skip(test, self.name(), &format!("the Python package {package} is not installed"));
            return None;
        }
        let mut input = tempfile::tempfile().expect("a temporary file");
        write!(input, "{}", serde_json::to_string(questions).expect("JSON")).expect("it can be written");
        input.rewind().expect("it can be read");
        let script = workspace().join("tests/parquet/ask.py");
        let mut command = Command::new(&python);
        command.env("PYSPARK_PYTHON", &python);
        let output = command.arg(script).arg(self.name()).arg(directory).stdin(input).output();
        let output = output.expect("python runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answers: Vec<Rows> = serde_json::from_slice(&output.stdout).expect("answers as JSON");
        assert_eq!(answers.len(), questions.len());
        Some(answers)
    }
}

/// Questions that all programs answer alike.
///
/// # Panics
/// If the file cannot be read.
#[must_use]
pub fn questions() -> Vec<String> {
    let text = std::fs::read_to_string(workspace().join("tests/parquet/questions.sql")).expect("a file");
    let all = text.split("\n\n").map(str::trim).filter(|sql| !sql.is_empty() && !sql.starts_with("--"));
    all.map(str::to_owned).collect()
}
