//! Asks other programs what they read in tables.
//!
//! `TRACE_TEST_PYTHON` names an interpreter that has the package `duckdb`, `TRACE_TEST_SPARK` one that has
//! `pyspark`.

use crate::build::workspace;
use crate::requirement::Requirement;
use serde_json::Value;
use std::ffi::OsString;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::Command;

/// Rows of an answer, each a list.
pub type Rows = Vec<Value>;

/// The interpreter that has the Python packages of tests.
#[must_use]
pub fn python() -> OsString {
    std::env::var_os("TRACE_TEST_PYTHON").unwrap_or_else(|| "python3".into())
}

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
    /// where it does not run.
    ///
    /// # Panics
    /// If it fails, or is required and absent.
    #[must_use]
    pub fn ask(self, test: &str, directory: &Path, questions: &[String]) -> Option<Vec<Rows>> {
        let requirement = match self {
            Self::DuckDb => Requirement::DuckDb,
            Self::Spark => Requirement::Spark,
        };
        if !requirement.is_met(test) {
            return None;
        }
        let mut input = tempfile::tempfile().expect("a temporary file");
        write!(input, "{}", serde_json::to_string(questions).expect("JSON")).expect("it can be written");
        input.rewind().expect("it can be read");
        let output = self.command(directory).stdin(input).output().expect("python runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answers: Vec<Rows> = serde_json::from_slice(&output.stdout).expect("answers as JSON");
        assert_eq!(answers.len(), questions.len());
        Some(answers)
    }

    /// Asks the program questions about the tables in a directory, which are its input.
    #[must_use]
    pub(crate) fn command(self, directory: &Path) -> Command {
        let python = match self {
            Self::DuckDb => python(),
            Self::Spark => std::env::var_os("TRACE_TEST_SPARK").unwrap_or_else(|| "python3".into()),
        };
        let mut command = Command::new(&python);
        command.env("PYSPARK_PYTHON", &python).arg(workspace().join("tests/parquet/ask.py"));
        command.arg(self.name()).arg(directory);
        command
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
