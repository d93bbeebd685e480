//! Traces that are open, so that further questions need not read them again.

use super::answer::{Answer, cost, shown, shown_within};
use super::error::CallError;
use super::jail::Jail;
use crate::files::input;
use crate::look::stats;
use crate::shell::exit::Failure;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use trace_analysis::stats::Stats;
use trace_convert::tables::Cell;
use trace_convert::tables::sqlite::{Answers, Database};

/// How many traces are kept open.
pub const MAX_OPEN: usize = 4;
/// Losses that are kept, with their times.
const MAX_LOSSES: usize = 10_000;
/// Losses that an answer lists.
const LISTED_LOSSES: usize = 5;
/// Bytes that a name or path may have there.
const NAME_BYTES: usize = 80;
const PATH_BYTES: usize = 250;
/// Bytes that SQL may have in an answer.
const SQL_BYTES: usize = 2000;
/// Bytes of a trace that are hashed at a time.
const CHUNK_BYTES: usize = 1 << 16;

const LOSSES: &str = "SELECT first_ts, last_ts, p.name, l.reason, l.count FROM losses l \
                      LEFT JOIN programs p ON p.id = l.program_id ORDER BY l.count DESC, 3, 4, 1";

/// A trace.
pub struct Archive {
    /// Its path, as it was asked for.
    path: String,
    identity: Identity,
    pub sha256: String,
    pub stats: Stats,
    pub database: Database,
    losses: Vec<Loss>,
}

/// What changes with a file's contents.
#[derive(Debug, PartialEq, Eq)]
struct Identity(u64, u64, u64, i64, i64, i64, i64);

impl Identity {
    fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        let (changed, nanos) = (found.ctime(), found.ctime_nsec());
        Ok(Self(found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec(), changed, nanos))
    }
}

/// A window of time, both of whose ends are in it.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub from: i64,
    pub to: i64,
    /// Where losses count: records may be missing before the first event that is there, and after the last.
    losses: (i64, i64),
}

/// Records that are missing.
struct Loss {
    first_ts: Option<i64>,
    last_ts: Option<i64>,
    provider: String,
    reason: String,
    /// How many records; none if that is unknown.
    count: Option<i64>,
}

impl Loss {
    fn is_in(&self, (from, to): (i64, i64)) -> bool {
        self.first_ts.is_none_or(|first| first <= to) && self.last_ts.is_none_or(|last| last >= from)
    }
}

/// The traces that were asked for last.
pub struct Open {
    jail: Jail,
    archives: Vec<Rc<Archive>>,
}

impl Open {
    pub fn new(jail: Jail) -> Self {
        Self { jail, archives: Vec::new() }
    }

    pub const fn jail(&self) -> &Jail {
        &self.jail
    }

    /// A trace, which is read if it is not open, or has changed.
    pub fn archive(&mut self, path: &str) -> Result<Rc<Archive>, CallError> {
        let named = || shown(path, PATH_BYTES);
        let file = self.jail.file(path).map_err(|error| CallError::Path { path: named(), error })?;
        let identity = Identity::of(&file).map_err(|error| CallError::File { path: named(), error })?;
        // A link has an answer of its own, with its name.
        let is_it = |archive: &Rc<Archive>| archive.identity == identity && archive.path == path;
        let archive = match self.archives.iter().position(is_it) {
            Some(place) => self.archives.remove(place),
            None => {
                self.archives.truncate(MAX_OPEN - 1);
                Rc::new(Archive::read(path, file, identity)?)
            }
        };
        self.archives.insert(0, archive.clone());
        Ok(archive)
    }
}

impl Archive {
    fn read(path: &str, mut file: File, identity: Identity) -> Result<Self, Failure> {
        let shown_path = shown(path, PATH_BYTES);
        let failed = |why: io::Error| Failure::new(format!("cannot read {shown_path}: {why}"));
        let name = Path::new(&shown_path);
        let sha256 = hash(&mut file).map_err(failed)?;
        let again = || {
            let mut file = file.try_clone()?;
            file.rewind()?;
            Ok(input::OpenFile::from(file))
        };
        let stats = stats::by_name_of(again().map_err(failed)?, name)?;
        let (trace, _) = input::again(again().map_err(failed)?, name, "reading")?;
        let database = Database::open(vec![trace]).map_err(|why| Failure::new(why.to_string()))?;
        let mut losses = Losses(Vec::new());
        let asked = database.select(LOSSES, &mut losses);
        asked.map_err(|why| Failure::new(format!("{shown_path}: {why}")))?;
        if Identity::of(&file).map_err(failed)? != identity {
            return Err(Failure::new(format!(
                "{shown_path}: it is being written; try again when it is complete"
            )));
        }
        Ok(Self { path: path.to_owned(), identity, sha256, stats, database, losses: losses.0 })
    }

    /// The first and the last time.
    pub fn times(&self) -> Option<(i64, i64)> {
        let nanos = |nanos: u64| i64::try_from(nanos).unwrap_or(i64::MAX);
        self.stats.walked.times.map(|(first, last)| (nanos(first), nanos(last)))
    }

    /// All of the time.
    pub fn whole(&self) -> Window {
        self.window(None, None)
    }

    /// A window of time: up to the ends of the trace where no limit is given.
    pub fn window(&self, from: Option<i64>, to: Option<i64>) -> Window {
        let (first, last) = self.times().unwrap_or_default();
        let losses = (from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX));
        Window { from: from.unwrap_or(first), to: to.unwrap_or(last), losses }
    }

    /// What is missing in a window of time.
    fn losses(&self, window: Window) -> Value {
        let found = || self.losses.iter().filter(|loss| loss.is_in(window.losses));
        let listed = found().take(LISTED_LOSSES).map(|loss| {
            json!([
                shown_within(&loss.provider, NAME_BYTES),
                loss.reason,
                loss.count,
                loss.first_ts,
                loss.last_ts
            ])
        });
        let listed: Vec<Value> = listed.collect();
        let losses = &self.stats.walked.losses;
        let lost = count(found());
        let elsewhere = count(self.losses.iter()) - lost;
        let mut value = json!({"lost": lost});
        if elsewhere > 0 {
            value["lost_elsewhere"] = elsewhere.into();
        }
        if !listed.is_empty() {
            value["first"] = listed.into();
        }
        if found().count() > LISTED_LOSSES {
            value["more"] = (found().count() - LISTED_LOSSES).into();
        }
        // What has no time may be missing in any window.
        if losses.may_be_more() {
            let problems = losses.problems.iter().map(|(kind, count)| format!("{kind}: {count}"));
            let unbalanced =
                losses.unbalanced.iter().map(|text| format!("the records do not add up: {text}"));
            let stopped =
                losses.stopped.iter().map(|why| format!("the rest cannot be read: {}", input::problem(why)));
            let unended = (losses.unended > 0).then(|| "the end of the recording is missing".to_owned());
            let stopped = stopped.chain(unended);
            let texts: Vec<String> =
                stopped.chain(unbalanced).chain(problems).map(|text| shown(&text, 100)).collect();
            value["problems"] = shown_within(&texts.join("; "), 300).into();
        }
        value["balance"] = match (losses.ledgers, losses.unbalanced.is_empty()) {
            (0, true) => "unknown: no program has counted its records".into(),
            (_, false) => "the records do not add up".into(),
            (_, true) => losses.adds_up().into(),
        };
        value
    }

    /// Begins an answer about a window of time.
    pub fn answer(&self, window: Window, sql: Option<&str>) -> Answer {
        let mut answer = Answer::new();
        self.describe(window, |name, value| answer.member(name, value));
        if let Some(sql) = sql {
            answer.member("sql", &shown_within(sql, SQL_BYTES).into());
        }
        answer
    }

    /// What says which trace and window something is about.
    pub fn describe(&self, window: Window, mut member: impl FnMut(&str, &Value)) {
        member("trace", &shown_within(&self.path, PATH_BYTES).into());
        member("sha256", &self.sha256.as_str().into());
        member("window_ns", &json!([window.from, window.to]));
        let losses = self.losses(window);
        debug_assert!(cost(&losses.to_string()) < 1800);
        member("losses", &losses);
    }
}

/// How many records are missing, as far as that is known.
fn count<'a>(losses: impl Iterator<Item = &'a Loss>) -> i64 {
    losses.filter_map(|loss| loss.count).fold(0, i64::saturating_add)
}

/// The rows of the losses.
struct Losses(Vec<Loss>);

impl Answers for Losses {
    fn begin(&mut self, _: &[String]) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        let number = |place: usize| match cells.get(place) {
            Some(Cell::Integer(value)) => Some(*value),
            _ => None,
        };
        let text = |place: usize| match cells.get(place) {
            Some(Cell::Text(text)) => (*text).to_owned(),
            _ => String::new(),
        };
        if self.0.len() < MAX_LOSSES {
            let (provider, reason) = (text(2), text(3));
            let (first_ts, last_ts, count) = (number(0), number(1), number(4));
            self.0.push(Loss { first_ts, last_ts, provider, reason, count });
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The SHA-256 of a file, as `sha256sum` prints it.
fn hash(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            length => hash.update(&chunk[..length]),
        }
    }
    let mut text = String::new();
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
