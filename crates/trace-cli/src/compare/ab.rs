//! `trace ab`: whether one of two commands takes longer.
//= docs/ab.md#comparing-two-commands

mod junit;
mod machine;
mod recorder;
mod recordings;
mod text;

use crate::args::ab::Ab;
use crate::args::analysis::Sort;
use crate::files::output::OutputFile;
use crate::shell::exit::{Failure, INTERRUPTED, NO, UNDECIDED};
use crate::shell::stdio::{self, say};
use recorder::{Ended, Recorder};
use recordings::{Recordings, Side};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::Write;
use trace_analysis::ab::comparison::{self, Pair, Result as Found, Unjudged};
use trace_analysis::ab::judge::{Plan, Verdict};
use trace_analysis::ab::looks::pairs_needed;
use trace_analysis::ab::order;
use trace_analysis::ab::run::Run;
use trace_analysis::counted::Counted;
use trace_analysis::stats::Statistic;
use trace_model::Selection;

/// How many runs of each command there are at most, unless the user says otherwise.
const RUNS: usize = 30;
/// Seeds that are drawn have so many bits, so that they are easily typed.
const SEED_BITS: u32 = 20;

/// What of the recordings is judged.
struct Judging {
    selection: Selection,
    statistic: Statistic,
}

/// A comparison with its results.
struct Comparison {
    plan: Plan,
    /// The statistic, as the user names it.
    statistic: Sort,
    /// How many pairs were recorded.
    pairs: usize,
    /// The commands; none of them if the recordings do not tell.
    commands: Option<[Vec<String>; 2]>,
    found: Found,
}

/// Compares, and returns the exit code: the same as for an assertion that nothing takes longer.
//= docs/ab.md#exit-codes
pub fn run(options: &Ab) -> Result<u8, Failure> {
    compare(options)
}

fn compare(options: &Ab) -> Result<u8, Failure> {
    let junit = options.junit.as_deref().map(OutputFile::create).transpose()?;
    let judging = Judging { selection: options.within.selection(), statistic: options.statistic.statistic() };
    let comparison = match &options.judge {
        Some(directory) => kept(options, &judging, &Recordings::open(directory)?)?,
        None => recorded(options, &judging)?,
    };
    if let Some(mut file) = junit {
        let written = file.file().write_all(junit::document(&comparison).as_bytes());
        written.map_err(|error| Failure::new(format!("cannot write the results: {error}")))?;
        file.finish()?;
    }
    if options.json {
        machine::answer(&comparison, options.limit).give();
    } else {
        stdio::print_folded(&text::report(&comparison, options.limit))?;
    }
    Ok(comparison.code())
}

impl Comparison {
    fn slower(&self) -> usize {
        self.found.rows.iter().filter(|row| row.judged.verdict == Verdict::Slower).count()
    }

    /// Whether the runs cannot tell that nothing takes longer.
    fn is_incomplete(&self) -> bool {
        let has_losses = |(_, why): &(_, Unjudged)| matches!(why, Unjudged::Incomplete(_));
        self.found.unjudged.iter().any(has_losses)
            || !self.found.judgement.as_ref().is_some_and(|judgement| judgement.has_enough)
    }

    fn code(&self) -> u8 {
        match (self.slower(), self.is_incomplete()) {
            (0, false) => 0,
            (0, true) => UNDECIDED,
            _ => NO,
        }
    }
}

fn drawn_seed() -> u64 {
    RandomState::new().hash_one(std::process::id()) >> (u64::BITS - SEED_BITS)
}

/// The old command and the new one: the middle one of all `--` is between them.
//= docs/ab.md#comparing-two-commands
fn split(words: &[String]) -> Result<[Vec<String>; 2], Failure> {
    let places: Vec<usize> = (0..words.len()).filter(|at| words[*at] == "--").collect();
    let wrong = |why: &str| Err(Failure::usage(format!("{why}: trace ab -- OLD -- NEW")));
    if places.is_empty() {
        return wrong("there is only one command");
    }
    if places.len().is_multiple_of(2) {
        return wrong("it is not clear which -- separates the commands, because their number is even");
    }
    let middle = places[places.len() / 2];
    let (old, new) = (words[..middle].to_vec(), words[middle + 1..].to_vec());
    if old.is_empty() || new.is_empty() {
        return wrong("a command is empty");
    }
    Ok([old, new])
}

/// Judges recordings that were kept, as they were judged when they were made.
fn kept(options: &Ab, judging: &Judging, recordings: &Recordings) -> Result<Comparison, Failure> {
    let about = recordings.about()?;
    let mut pairs = Vec::new();
    for number in 1..=recordings.pairs()? {
        let read = |side| recordings.read(number, side, judging);
        pairs.push(Pair { old: read(Side::Old)?, new: read(Side::New)? });
    }
    if pairs.is_empty() {
        let directory = recordings.directory().display();
        return Err(Failure::usage(format!("{directory}: it has no recordings of trace ab --save-runs")));
    }
    let planned = about.as_ref().map_or(pairs.len(), |about| about.runs).max(pairs.len());
    let seed = options.seed.or(about.as_ref().map(|about| about.seed)).unwrap_or_else(drawn_seed);
    let commands = about.map(|about| [about.old, about.new]);
    let plan = Plan {
        pairs: planned.next_multiple_of(2),
        min_effect: options.min_effect,
        seed,
        has_looks: !options.all_runs,
    };
    let found = comparison::result(&pairs, &plan);
    Ok(Comparison { plan, statistic: options.statistic, pairs: pairs.len(), commands, found })
}

/// Records both commands in turns until enough is known.
fn recorded(options: &Ab, judging: &Judging) -> Result<Comparison, Failure> {
    let commands = split(&options.commands)?;
    let seed = options.seed.unwrap_or_else(drawn_seed);
    let plan = Plan {
        pairs: options.runs.unwrap_or(RUNS).next_multiple_of(2),
        min_effect: options.min_effect,
        seed,
        has_looks: !options.all_runs,
    };
    let recordings = match &options.save_runs {
        Some(directory) => Recordings::create(directory)?,
        None => Recordings::temporary()?,
    };
    recordings.note(plan.pairs, seed, &commands)?;
    let recorder = Recorder::new(options, &commands)?;
    for number in 0..options.warmup {
        for side in [Side::Old, Side::New] {
            let path = recordings.warmup();
            let ended = recorder.record(side, &path, &format!("warmup {}", number + 1))?;
            let _ = std::fs::remove_file(&path);
            if ended == Ended::Interrupted {
                return Err(Failure::with_code(INTERRUPTED, "interrupted before there were any runs"));
            }
        }
    }
    let order = order(seed, 2 * plan.pairs);
    let mut pairs: Vec<Pair> = Vec::new();
    for (both, number) in order.chunks(2).zip(1..) {
        let Some(pair) = record_pair(&recorder, &recordings, both, number, judging)? else {
            break;
        };
        pairs.push(pair);
        if number == 2 {
            warn_early(&pairs, &plan);
        }
        if recorder.is_interrupted() || comparison::is_decided(&pairs, &plan) {
            break;
        }
    }
    if pairs.is_empty() {
        return Err(Failure::with_code(INTERRUPTED, "interrupted before there was a run of each command"));
    }
    let found = comparison::result(&pairs, &plan);
    let (statistic, commands) = (options.statistic, Some(commands));
    Ok(Comparison { plan, statistic, pairs: pairs.len(), commands, found })
}

/// Records a pair in its order; none if the user has interrupted it.
fn record_pair(
    recorder: &Recorder,
    recordings: &Recordings,
    order: &[bool],
    number: usize,
    judging: &Judging,
) -> Result<Option<Pair>, Failure> {
    let (mut old, mut new): (Option<Run>, Option<Run>) = (None, None);
    for is_new in order {
        let side = if *is_new { Side::New } else { Side::Old };
        if recorder.is_interrupted() {
            return Ok(None);
        }
        let path = recordings.path(number, side);
        if recorder.record(side, &path, &format!("run {number}"))? == Ended::Interrupted {
            return Ok(None);
        }
        let run = recordings.read(number, side, judging)?;
        recordings.read_enough(&path);
        *(if *is_new { &mut new } else { &mut old }) = Some(run);
    }
    Ok(old.zip(new).map(|(old, new)| Pair { old, new }))
}

/// Says what will make the runs useless while there are few of them.
fn warn_early(pairs: &[Pair], plan: &Plan) {
    let (names, unjudged) = comparison::names(pairs);
    if let Some((_, Unjudged::Incomplete(why))) = unjudged.first() {
        say!("trace: {why}; nothing can be judged without them: a larger --buffer-size may help");
    }
    let needed = pairs_needed(names.len());
    if !names.is_empty() && plan.pairs < needed {
        let names = Counted(names.len() as u64, "names");
        say!("trace: {names} need at least --runs {needed}; --name and --categories select fewer names");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::exit::USAGE;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    //= docs/ab.md#comparing-two-commands
    #[test]
    fn the_middle_separator_is_between_the_commands() {
        let of = |text: &str| split(&words(text)).map(|both| both.map(|words| words.join(" ")));
        let both = |old: &str, new: &str| Ok([old.to_owned(), new.to_owned()]);
        assert_eq!(of("a 1 -- b 2"), both("a 1", "b 2"));
        assert_eq!(of("cargo run -- x -- cargo run -- y"), both("cargo run -- x", "cargo run -- y"));
        for (wrong, why) in
            [("a", "only one"), ("a -- b -- c", "is even"), ("a --", "is empty"), ("-- b", "is empty")]
        {
            let failure = of(wrong).unwrap_err();
            assert_eq!(failure.code, USAGE);
            assert!(failure.text.contains(why), "{wrong}: {}", failure.text);
        }
    }
}
