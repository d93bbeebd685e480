//! The recordings of a comparison in a directory: `0001-old.fxt`, `0001-new.fxt`, and `ab.json` about them.
//= docs/ab.md#recordings

use super::Judging;
use crate::connection::scratch::Scratch;
use crate::files::analysis;
use crate::shell::caller;
use crate::shell::exit::Failure;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use trace_analysis::ab::run::Run;
use trace_model::Chosen;

/// The file about the recordings.
const ABOUT: &str = "ab.json";
/// The version of that file.
const VERSION: u32 = 1;

/// Which command a run is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The old one.
    Old,
    /// The new one.
    New,
}

impl Side {
    /// Its name.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// What there is to know about recordings besides themselves.
#[derive(Debug, Deserialize, Serialize)]
pub struct About {
    version: u32,
    /// How many runs of each command there were to be.
    pub runs: usize,
    /// The seed.
    pub seed: u64,
    /// The old command.
    pub old: Vec<String>,
    /// The new command.
    pub new: Vec<String>,
}

/// A directory of recordings.
#[derive(Debug)]
pub struct Recordings {
    directory: PathBuf,
    /// Removes it at the end.
    temporary: Option<Scratch>,
}

impl Recordings {
    /// A new directory, which stays.
    pub fn create(directory: &Path) -> Result<Self, Failure> {
        let cannot = |why: String| Failure::new(format!("--save-runs {}: {why}", directory.display()));
        let make = |_files| fs::DirBuilder::new().mode(0o700).create(directory);
        let made = caller::files(true).map_err(std::io::Error::from).and_then(make);
        match made {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(cannot(error.to_string())),
            Err(_) => {
                let mut entries = fs::read_dir(directory).map_err(|error| cannot(error.to_string()))?;
                if entries.next().is_some() {
                    let shown = directory.display();
                    return Err(Failure::usage(format!(
                        "--save-runs {shown}: the directory is not empty; name a new one"
                    )));
                }
            }
            Ok(()) => {}
        }
        Ok(Self { directory: directory.to_owned(), temporary: None })
    }

    /// A directory for as long as this lives.
    pub fn temporary() -> Result<Self, Failure> {
        let made = Scratch::in_directory(&std::env::temp_dir(), "trace-ab-");
        let temporary =
            made.map_err(|error| Failure::new(format!("cannot make a temporary directory: {error}")))?;
        Ok(Self { directory: temporary.path().to_owned(), temporary: Some(temporary) })
    }

    /// A directory that was kept.
    pub fn open(directory: &Path) -> Result<Self, Failure> {
        match fs::metadata(directory) {
            Ok(found) if found.is_dir() => Ok(Self { directory: directory.to_owned(), temporary: None }),
            Ok(_) => Err(Failure::usage(format!("--judge {}: it is no directory", directory.display()))),
            Err(error) => Err(Failure::usage(format!("--judge {}: {error}", directory.display()))),
        }
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where a run is recorded; pairs count from 1.
    pub fn path(&self, number: usize, side: Side) -> PathBuf {
        self.directory.join(format!("{number:04}-{}.fxt", side.text()))
    }

    /// Where a run is recorded that does not count.
    pub fn warmup(&self) -> PathBuf {
        self.directory.join("warmup.fxt")
    }

    /// Removes a recording whose numbers are known, unless it is to be kept.
    pub fn read_enough(&self, path: &Path) {
        if self.temporary.is_some() {
            let _ = fs::remove_file(path);
        }
    }

    /// How many pairs are complete, from the first on.
    pub fn pairs(&self) -> Result<usize, Failure> {
        let is_there = |number: usize, side: Side| self.path(number, side).is_file();
        let both = |number: usize| is_there(number, Side::Old) && is_there(number, Side::New);
        let pairs = (1..).take_while(|number| both(*number)).count();
        let shown = self.directory.display();
        let entries = fs::read_dir(&self.directory);
        let entries =
            entries.map_err(|error| Failure::unreadable(format!("cannot read {shown}: {error}")))?;
        let is_run = |name: &str| name.ends_with("-old.fxt") || name.ends_with("-new.fxt");
        let runs = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_run)).count();
        // The run after these may lack its partner. A gap is something else.
        if runs > 2 * pairs + 1 {
            let next = pairs + 1;
            let why = format!("{shown}: pair {next:04} is not complete, and later ones are there");
            return Err(Failure::usage(why));
        }
        Ok(pairs)
    }

    /// The numbers of a run.
    pub fn read(&self, number: usize, side: Side, judging: &Judging) -> Result<Run, Failure> {
        let Judging { selection, statistic } = judging;
        let read = |archive, disorder: &_, chosen: Option<Chosen>| {
            Run::of(archive, disorder, chosen.as_ref(), *statistic)
        };
        let (mut run, report) = analysis::read(&self.path(number, side), "reading", selection, read)?;
        run.missing.extend(report.counts().iter().map(|(kind, count)| format!("{kind}: {count}")));
        Ok(run)
    }

    /// Writes down what `about` reads.
    pub fn note(&self, runs: usize, seed: u64, commands: &[Vec<String>; 2]) -> Result<(), Failure> {
        let [old, new] = commands.clone();
        let text = serde_json::to_vec_pretty(&About { version: VERSION, runs, seed, old, new });
        let path = self.directory.join(ABOUT);
        let written = text.map_err(Into::into).and_then(|text| {
            let _files = if self.temporary.is_none() { caller::files(true)? } else { None };
            fs::write(&path, text)
        });
        written.map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
    }

    /// What is known about the recordings; none if they came without.
    pub fn about(&self) -> Result<Option<About>, Failure> {
        let path = self.directory.join(ABOUT);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => {
                text.map_err(|error| Failure::unreadable(format!("cannot read {}: {error}", path.display())))?
            }
        };
        let about: About = serde_json::from_slice(&text)
            .map_err(|error| Failure::unreadable(format!("{}: {error}", path.display())))?;
        match about.version {
            VERSION => Ok(Some(about)),
            other => {
                Err(Failure::unreadable(format!("{}: version {other}, expected {VERSION}", path.display())))
            }
        }
    }
}
