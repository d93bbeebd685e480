//! Rows that are only complete when the archive ends.

use super::{Filler, Rows, Slice};
use crate::tables::spans::Role;
use crate::tables::{Cell, Kind};
use std::collections::HashSet;
use std::io;
use trace_format::units::Koid;
use trace_reader::Thread;

impl<R: Rows> Filler<'_, R> {
    /// Writes spans that have not ended, and the threads.
    pub(super) fn finish_rows(&mut self) -> io::Result<()> {
        self.end_large_blob(None)?;
        let mut names = Vec::new();
        for thread in self.seen.keys() {
            let process = self.processes.get(&thread.process).cloned();
            names.push((*thread, process, self.threads.get(*thread).map(str::to_owned)));
        }
        // A name that was recorded without a process belongs to the thread with its number, if one occurs.
        let numbers: HashSet<Koid> = names.iter().map(|(thread, ..)| thread.thread).collect();
        for (thread, name) in self.threads.iter() {
            let is_known = thread.process == Koid(0) && numbers.contains(&thread.thread);
            if !is_known && !self.seen.contains_key(&thread) {
                let process = self.processes.get(&thread.process).cloned();
                names.push((thread, process, Some(name.to_owned())));
            }
        }
        names.sort();
        // Those that do not occur have their numbers behind the others.
        names.iter().for_each(|(thread, ..)| _ = self.number(*thread));
        let of = |thread: &Thread| {
            let found = names.binary_search_by_key(thread, |(thread, ..)| *thread).ok()?;
            names.get(found)
        };
        let whose = |thread: &Thread| {
            let found = of(thread);
            [
                Cell::Unsigned(thread.process.0),
                Cell::Unsigned(thread.thread.0),
                found.and_then(|found| found.1.as_deref()).into(),
                found.and_then(|found| found.2.as_deref()).into(),
            ]
        };
        self.late.take().finish(|part, role| {
            if let Role::Complete(end) = role {
                self.spans.has_ended(part.thread, part.at);
                let slice = Slice { begun_at: None, ..Slice::of(&part, Some(end)) };
                return self.slice_row(&slice, whose(&part.thread));
            }
            match self.matched(part, role) {
                Some((open, end)) => self.slice_row(&Slice::of(&open, Some(end)), whose(&open.thread)),
                None => Ok(()),
            }
        })?;
        for mut open in std::mem::take(&mut self.spans).rest() {
            // What says that it has no end is one record, and stands behind what began later.
            let is_pair = open.ending.is_none();
            let (process, at) = (open.thread.process, open.at);
            let parting = match open.async_id {
                Some(_) => self.partings.of_operation(process, at),
                None => self.partings.of(process, at),
            };
            if let Some((ending, lasted)) = parting.filter(|_| is_pair) {
                open.say_why(ending, lasted);
            }
            let slice = Slice::of(&open, None);
            let slice = Slice { begun_at: slice.begun_at.filter(|_| is_pair), ..slice };
            self.slice_row(&slice, whose(&open.thread))?;
        }
        let mut running: Vec<_> = self.running.drain().collect();
        running.sort_by_key(|(cpu, running)| (running.since, *cpu));
        for (cpu, running) in running {
            self.sched_row(cpu, &running, whose(&running.thread), [Cell::Null, Cell::Null])?;
        }
        for (thread, ..) in &names {
            let [pid, tid, process, name] = whose(thread);
            let id = Cell::Integer(self.number(*thread));
            self.rows.row(Kind::Threads, &[pid, tid, process, name, id])?;
        }
        self.session.finish(self.providers.sums(), self.rows)?;
        self.providers.finish(self.rows)
    }
}
