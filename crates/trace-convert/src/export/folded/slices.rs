//! Slices as folded stacks: for each stack of names, the time that its slices took without those in them.
//= docs/folded.md#slices

use super::Roots;
use super::label::push;
use crate::export::threads::{Collector, Entry, Keep, Kind, Names, ThreadName, collect};
use crate::tables::Trace;
use crate::{ConvertError, Filter, Summary};
use std::io::{self, Write};
use trace_model::{Interval, Place, Placing};
use trace_reader::Numbered;

/// Different stacks; the slices of further ones are counted.
const MAX_STACKS: usize = 4 << 20;

/// Converts the slices of threads.
///
/// # Errors
/// The input is no archive or cannot be read, or the output cannot be written.
pub fn convert_slices(
    trace: Trace,
    mut output: impl Write,
    filter: Filter,
    roots: Roots,
) -> Result<Summary, ConvertError> {
    write(trace, &mut output, filter, roots)
}

fn write(
    mut trace: Trace,
    output: &mut dyn Write,
    filter: Filter,
    roots: Roots,
) -> Result<Summary, ConvertError> {
    let (collector, mut summary) = collect(&mut trace, filter, Keep::Slices)?;
    let Collector { threads, names, entries, slices, open, skipped, .. } = collector;
    let mut placing = Placing::new(Tree::new(roots, &names));
    let mut thread = None;
    let take = |entry: Entry<'_>| {
        let is_left_out = match entry.kind {
            Kind::Slice => false,
            Kind::LeftOut => true,
            _ => return Ok(()),
        };
        if thread != Some(entry.thread) {
            placing.end()?;
            placing.place().begin_thread(threads.get(entry.thread));
            thread = Some(entry.thread);
        }
        placing.push(0, &entry.interval, (entry.what, is_left_out))
    };
    entries.finish(&threads.in_order(), take).map_err(ConvertError::Write)?;
    placing.end().map_err(ConvertError::Write)?;
    let tree = placing.place();
    tree.write(output).map_err(ConvertError::Write)?;
    summary.events = slices - tree.beyond;
    summary.add_skipped(skipped);
    summary.add_skipped([("slices of stacks beyond those that there is room for", tree.beyond)]);
    summary.add_remarks([
        ("slices without an end: their own time is not counted", open),
        (
            "names beyond those that there is room for, which have one name in common",
            names.dropped + tree.labels.dropped,
        ),
    ]);
    Ok(summary)
}

/// All different stacks, each with the one around it.
struct Tree<'a> {
    roots: Roots,
    names: &'a Names,
    labels: Names,
    /// The stack around each one, and its label.
    stacks: Numbered<(u32, u32)>,
    /// Their own times.
    own: Vec<u64>,
    /// The stack of the thread.
    root: Option<u32>,
    /// Slices without a stack.
    beyond: u64,
}

/// What is around the outermost ones.
const NOTHING: u32 = u32::MAX;

impl<'a> Tree<'a> {
    fn new(roots: Roots, names: &'a Names) -> Self {
        Self {
            roots,
            names,
            labels: Names::default(),
            stacks: Numbered::default(),
            own: Vec::new(),
            root: None,
            beyond: 0,
        }
    }

    /// The stack of a name inside of another; none if there is no room.
    fn stack(&mut self, around: u32, name: &str) -> Option<u32> {
        let mut label = String::new();
        // The first name of a line is protected more than the others.
        if around != NOTHING {
            label.push(';');
        }
        push(&mut label, name);
        let label = self.labels.text(label.trim_start_matches(';'));
        let stack = self.stacks.number((around, label), MAX_STACKS);
        self.own.resize(self.stacks.list().len(), 0);
        stack
    }

    fn begin_thread(&mut self, thread: &ThreadName) {
        let process = match thread.process.as_str() {
            "" if self.roots == Roots::Processes && !thread.thread.is_empty() => thread.thread.clone(),
            "" => thread.pid.to_string(),
            name => name.to_owned(),
        };
        self.root = self.stack(NOTHING, &process);
        if self.roots == Roots::Threads {
            self.root = self.root.and_then(|root| self.stack(root, &thread.thread()));
        }
    }

    /// Writes a line for each stack with time of its own; stacks in stacks, by their labels.
    fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let stacks = (0..).zip(self.stacks.list());
        let mut inside: Vec<(u32, &str, u32)> =
            stacks.map(|(stack, (around, label))| (*around, self.labels.get(*label).1, stack)).collect();
        inside.sort_unstable();
        let of = |around: u32| {
            let start = inside.partition_point(|(other, ..)| *other < around);
            let end = inside.partition_point(|(other, ..)| *other <= around);
            inside.get(start..end).unwrap_or_default()
        };
        // The stacks that are left at each depth, and the length of the line up to there.
        let mut left = vec![(of(NOTHING).iter(), 0)];
        let mut line = String::new();
        while let Some((stacks, length)) = left.last_mut() {
            line.truncate(*length);
            let Some((_, label, stack)) = stacks.next() else {
                left.pop();
                continue;
            };
            if !line.is_empty() {
                line.push(';');
            }
            line.push_str(label);
            if let Some(own @ 1..) = self.own.get(*stack as usize) {
                writeln!(output, "{line} {own}")?;
            }
            left.push((of(*stack).iter(), line.len()));
        }
        output.flush()
    }
}

impl Place for Tree<'_> {
    /// The number of the name, and whether only what is inside has a line.
    type Item = (u32, bool);
    /// The stack, and the same.
    type Kept = (Option<u32>, bool);
    type Track = ();

    fn begin(
        &mut self,
        _: (u64, &mut ()),
        _: &Interval,
        (what, is_left_out): (u32, bool),
        parent: Option<(&Interval, &(Option<u32>, bool))>,
    ) -> io::Result<Option<(Option<u32>, bool)>> {
        let around = parent.map_or(self.root, |(_, (stack, _))| *stack);
        let stack = around.and_then(|around| self.stack(around, self.names.get(what).1));
        self.beyond += u64::from(stack.is_none() && !is_left_out);
        Ok(Some((stack, is_left_out)))
    }

    fn end(
        &mut self,
        _: (u64, &mut ()),
        _: &Interval,
        (stack, is_left_out): (Option<u32>, bool),
        own: Option<u64>,
    ) -> io::Result<()> {
        if let (Some(stack), Some(own), false) = (stack, own, is_left_out) {
            let sum = &mut self.own[stack as usize];
            *sum = sum.saturating_add(own);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
