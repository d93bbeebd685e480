//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use trace_protocol::BufferingMode;

/// Records what programs do, and looks at the result.
#[derive(Debug, Parser)]
#[command(name = "trace", version = crate::version::text(), subcommand_required = true)]
#[command(after_help = "Examples:
  trace record -- ./app --flag      record a program until it ends, into trace.fxt
  trace list-providers              who can be recorded right now
  trace convert --to catapult trace.fxt

Open a .fxt file at https://ui.perfetto.dev.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record until a command ends, a time is over, or Ctrl-C
    #[command(after_help = "Examples:
  trace record -- ./app             until the program ends
  trace record --duration 5         all running providers, for five seconds
  trace record --categories 'gfx,net:*' --output-file app.json -- ./app
  trace record --buffering-mode circular --buffer-size 64MB --duration 60
  trace record --buffering-mode streaming -- ./app

Exit codes: that of the command; 128 + n if signal n ended it; 127 if it was not
found, 126 if it cannot be executed; 125 if recording failed; 2 for a wrong command line.")]
    Record(Record),
    /// List the programs that can be recorded
    #[command(after_help = "Example:
  trace list-providers --machine json")]
    ListProviders(List),
    /// List the categories that running programs know
    #[command(after_help = "Example:
  trace list-categories")]
    ListCategories(List),
    /// Print one line for each record of a trace
    #[command(after_help = "Examples:
  trace dump trace.fxt | grep draw
  trace dump --json trace.fxt | jq 'select(.kind == \"complete\")'
  trace dump --raw trace.fxt | head
  zstd -dc trace.fxt.zst | trace dump -")]
    Dump(Dump),
    /// Look for everything that is wrong with a trace
    #[command(after_help = "Examples:
  trace check trace.fxt
  trace check --json trace.fxt.gz | jq .problems
  trace check --allow loss,unmatched-begin trace.fxt

Exit codes: 0 if the trace is clean, 1 if it has problems, 2 if it cannot be read to its end
or the command line is wrong. The kinds of problem are described in docs/check.md.")]
    Check(Check),
    /// Convert a trace to another format
    #[command(after_help = "Examples:
  trace convert --to catapult trace.fxt             writes trace.json
  trace convert --to catapult trace.fxt - | less")]
    Convert(Convert),
    /// Make a trace of what a recording left whose manager, client and programs have died
    #[command(after_help = "Examples:
  trace recover                              what was cut off, into recovered.fxt
  trace recover --list                       what there is
  trace recover /dev/shm/trace-1000/session-3f -o crash.fxt
  trace recover --delete                     what is older than a week
  trace recover --delete /dev/shm/trace-1000/session-3f

Nothing that can be recovered is deleted unasked; but a directory in memory, such as /dev/shm or
$XDG_RUNTIME_DIR, ends with the machine or the login.")]
    Recover(Recover),
    /// Run the manager that programs register with; other commands start one when they need it
    #[command(after_help = "Example:
  trace manager &")]
    Manager(Manager),
}

/// Options of `record`.
#[derive(Debug, Args)]
pub struct Record {
    /// Categories to record: exact names, or prefixes ending in `*`; all when not given
    #[arg(long, value_name = "LIST", value_parser = categories)]
    pub categories: Option<CategoryList>,
    /// Stop after so many seconds, such as 5 or 0.5
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Where the trace goes; a name ending in .json is converted to Catapult
    #[arg(long, short = 'o', value_name = "FILE", default_value = "trace.fxt")]
    pub output_file: PathBuf,
    /// Size of each program's buffer: MiB, or with a unit such as 64MB or 1GB
    #[arg(long, value_name = "SIZE", default_value = "4", value_parser = buffer_size)]
    pub buffer_size: BufferSize,
    /// What a program does when its buffer is full: end (oneshot), write over the oldest (circular), or hand it over while it
    /// records (streaming)
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Mode::Oneshot)]
    pub buffering_mode: Mode,
    /// How long programs may take to start, in seconds; who does not is named, and recorded when it does
    #[arg(long, value_name = "SECONDS", value_parser = duration, default_value = "5")]
    pub start_timeout: Duration,
    /// How long programs may take to stop, in seconds; what a late one has recorded is saved all the same
    #[arg(long, value_name = "SECONDS", value_parser = duration, default_value = "5")]
    pub stop_timeout: Duration,
    /// Leave out host, command line and the other facts about the recording
    #[arg(long)]
    pub no_metadata: bool,
    /// A program to run and record, with its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub command: Vec<String>,
}

/// Mebibytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSize(pub u32);

/// How a program uses its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Record until the buffer is full
    Oneshot,
    /// Keep the newest
    Circular,
    /// Keep everything, as fast as it can be written away
    Streaming,
}

impl From<Mode> for BufferingMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Oneshot => Self::Oneshot,
            Mode::Circular => Self::Circular,
            Mode::Streaming => Self::Streaming,
        }
    }
}

/// A list of categories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategoryList(pub Vec<String>);

/// Options of the list commands.
#[derive(Debug, Args)]
pub struct List {
    /// Output for programs
    #[arg(long, value_name = "FORMAT")]
    pub machine: Option<Machine>,
}

/// Formats for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Machine {
    /// One JSON array
    Json,
}

/// Options of `dump`.
#[derive(Debug, Args)]
pub struct Dump {
    /// Output for programs: an object on a line for each record
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
    /// The words of each record in hexadecimal
    #[arg(long)]
    pub raw: bool,
    /// The trace, plain or compressed with gzip or zstd; `-` is stdin
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Output for programs: one object
    #[arg(long)]
    pub json: bool,
    /// Kinds of problem that are told and do not count, separated by commas
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = problem_kind)]
    pub allow: Vec<String>,
    /// Begins whose end has not come yet that are remembered
    #[arg(long, value_name = "COUNT", default_value_t = trace_reader::check::MAX_OPEN_SPANS)]
    pub open_spans: usize,
    /// Memory for strings, threads and names, in MiB
    #[arg(long, value_name = "MIB", default_value_t = trace_reader::reader::TABLE_BYTES >> 20)]
    pub table_size: usize,
    /// The trace, plain or compressed with gzip or zstd; `-` is stdin
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
}

/// Options of `convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// The format to convert to
    #[arg(long, value_name = "FORMAT")]
    pub to: Format,
    /// The trace, plain or compressed with gzip or zstd; `-` is stdin
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// The result; `-` is stdout; else the input's name with the format's suffix
    #[arg(value_name = "OUT")]
    pub output: Option<PathBuf>,
}

/// Formats to convert to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// JSON for Catapult (chrome://tracing)
    Catapult,
}

impl Format {
    /// The suffix of its files.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Catapult => "json",
        }
    }
}

/// Options of `recover`.
#[derive(Debug, Args)]
pub struct Recover {
    /// The directory of a recording, or one in which to look for them; the runtime directories when not given
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Where the trace goes
    #[arg(long, short = 'o', value_name = "FILE", default_value = "recovered.fxt", conflicts_with_all = ["list", "delete"])]
    pub output_file: PathBuf,
    /// Show what there is, and what became of it
    #[arg(long, conflicts_with = "delete")]
    pub list: bool,
    /// Output for programs
    #[arg(long, value_name = "FORMAT", requires = "list")]
    pub machine: Option<Machine>,
    /// Delete the recording that DIR names, or all that are older than --older-than
    #[arg(long)]
    pub delete: bool,
    /// Age for --delete
    #[arg(long, value_name = "DAYS", default_value_t = 7, requires = "delete")]
    pub older_than: u32,
}

/// Options of `manager`.
#[derive(Debug, Args)]
pub struct Manager {
    /// Serve every user's programs and clients, each client with what its user may see; only for root, and what root's manager
    /// does when TRACE_RUNTIME_DIR is not set
    #[arg(long, conflicts_with = "on_demand")]
    pub all_users: bool,
    /// End when there was no client and no session for a while
    #[arg(long)]
    pub on_demand: bool,
    /// That while, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = duration, default_value = "30", requires = "on_demand")]
    pub idle_timeout: Duration,
}

fn problem_kind(text: &str) -> Result<String, String> {
    let kinds = trace_reader::check::KINDS;
    if kinds.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(format!("no such kind of problem; there are {}", kinds.join(", ")))
}

fn duration(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number of seconds above 0, such as 5 or 0.5".to_owned())
}

/// A bare number is mebibytes, as in Fuchsia; so is one with `MB`.
fn buffer_size(text: &str) -> Result<BufferSize, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "m" | "mb" | "mib" => Some(1),
        "g" | "gb" | "gib" => Some(1024),
        _ => None,
    };
    let size = digits.parse::<u32>().ok().zip(factor).and_then(|(size, factor)| size.checked_mul(factor));
    size.filter(|size| (1..=MAX_BUFFER_MIB).contains(size))
        .map(BufferSize)
        .ok_or_else(|| format!("expected whole mebibytes from 1 to {MAX_BUFFER_MIB}, such as 4, 64MB or 1GB"))
}

/// Blanks around entries are dropped, and so are empty entries.
fn categories(text: &str) -> Result<CategoryList, String> {
    let entries: Vec<String> =
        text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
    for entry in &entries {
        let name = entry.strip_suffix('*').unwrap_or(entry);
        if name.contains(|letter: char| letter == '*' || letter == '"' || letter.is_whitespace()) {
            return Err(format!("category {entry:?} is invalid: no blanks or quotes, and * only at the end"));
        }
        let limit = trace_protocol::limits::MAX_CATEGORY_NAME_BYTES;
        if entry.len() > limit {
            return Err(format!(
                "category {entry:?} has {} bytes, at most {limit} are possible",
                entry.len()
            ));
        }
    }
    Ok(CategoryList(entries))
}

/// Largest buffer: its slabs are counted from 32 bits of offset.
const MAX_BUFFER_MIB: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{}", command.get_name());
        }
    }

    #[test]
    fn durations_are_seconds() {
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "x", "inf", "NaN", "1e300"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn buffer_sizes_are_mebibytes() {
        for (text, expected) in
            [("1", 1), ("64", 64), ("64MB", 64), ("3mib", 3), ("4g", 4096), ("1GiB", 1024)]
        {
            assert_eq!(buffer_size(text), Ok(BufferSize(expected)), "{text}");
        }
        for wrong in ["", "0", "MB", "-1", "1.5", "4097", "5GB", "1kB", "1 MB", "99999999999"] {
            assert!(buffer_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn kinds_of_problem_are_known() {
        assert_eq!(problem_kind("loss"), Ok("loss".to_owned()));
        assert!(problem_kind("los").unwrap_err().contains("end-before-begin, loss, lost"));
        let cli = Cli::try_parse_from(["trace", "check", "--allow", "loss,lost", "x"]);
        let Command::Check(check) = cli.unwrap().command else { panic!("check was asked for") };
        assert_eq!(
            (check.allow, check.open_spans, check.table_size),
            (vec!["loss".into(), "lost".into()], 200_000, 24)
        );
    }

    #[test]
    fn categories_are_cleaned_and_checked() {
        assert_eq!(categories(" a, b:c* ,,").unwrap().0, ["a", "b:c*"]);
        assert_eq!(categories("*").unwrap().0, ["*"]);
        for wrong in ["a b", "a*b", "\"a\"", "a**"] {
            assert!(categories(wrong).is_err(), "{wrong}");
        }
        assert!(categories(&"x".repeat(101)).is_err());
    }

    #[test]
    fn what_follows_the_command_is_the_commands() {
        let cli =
            Cli::try_parse_from(["trace", "record", "--duration", "1", "--", "app", "--categories", "x"]);
        let Command::Record(record) = cli.unwrap().command else { panic!("record was asked for") };
        assert_eq!(record.command, ["app", "--categories", "x"]);
        assert_eq!(record.categories, None);
        assert_eq!(record.output_file, PathBuf::from("trace.fxt"));
        let cli = Cli::try_parse_from(["trace", "record", "app", "--categories", "x"]);
        let Command::Record(record) = cli.unwrap().command else { panic!("record was asked for") };
        assert_eq!(record.command, ["app", "--categories", "x"]);
        assert!(Cli::try_parse_from(["trace", "record", "--unknown", "app"]).is_err());
    }
}
