//! Rows of profiles: samples, and the different stacks that they have found.

use super::{Filler, integer};
use crate::profile::Profile;
use crate::tables::{Cell, Kind, Rows, samples};
use foldhash::HashMap;
use std::io;
use trace_format::profiler::ProfilerKind;
use trace_format::units::Koid;
use trace_reader::dump::called_at;
use trace_reader::{Names, Thread, Time};

/// Maximum memory of different stacks, in bytes; samples of further ones have none.
const MAX_BYTES: usize = 64 << 20;
/// Memory of a stack besides its addresses.
const ENTRY_BYTES: usize = 64;

/// A process, and the addresses of a stack.
type Stack = (Koid, Box<[u64]>);
/// The number of a stack, and its innermost function.
type Numbered = (i64, Option<String>);

/// What is known of the code of processes, and the stacks so far.
#[derive(Default)]
pub struct Samples {
    profile: Profile,
    /// By process and addresses, innermost first: the number, and the innermost function.
    stacks: HashMap<Stack, Numbered>,
    bytes: usize,
}

impl<R: Rows> Filler<'_, R> {
    //= docs/tables.md#profiles
    pub(super) fn profiler(
        &mut self,
        time: Time,
        thread: Thread,
        kind: &ProfilerKind<'_>,
        names: &Names,
    ) -> io::Result<()> {
        let ProfilerKind::Backtrace { frames } = kind else {
            self.samples.profile.learn(thread.process, kind);
            return Ok(());
        };
        self.events += 1;
        self.number(thread);
        if !self.wanted.has(Kind::Samples) && !self.wanted.has(Kind::Stacks) {
            return Ok(());
        }
        let frames: Vec<u64> = frames.iter().collect();
        let key = (thread.process, frames.into_boxed_slice());
        let mut stack = self.samples.stacks.get(&key).cloned();
        if stack.is_none() && !key.1.is_empty() {
            stack = self.stack(key, names)?;
        }
        let (id, function) = stack.map_or((None, None), |(id, function)| (Some(id), function));
        let whose = self.whose(Kind::Samples, thread, names);
        let [pid, tid, process, name] = whose.cells();
        let at = time.nanos().0;
        let cells = [
            integer(at),
            pid,
            tid,
            process,
            name,
            Cell::from(id),
            Cell::from(function.as_deref()),
            self.utc(at),
        ];
        self.rows.row(Kind::Samples, &cells)
    }

    /// Adds a stack with its rows, outermost function first; none if there is no room left for it.
    fn stack(&mut self, key: (Koid, Box<[u64]>), names: &Names) -> io::Result<Option<(i64, Option<String>)>> {
        let size = size_of_val(&*key.1) + ENTRY_BYTES;
        if self.samples.bytes + size > MAX_BYTES {
            self.skip("stacks beyond those that there is room for");
            return Ok(None);
        }
        self.samples.bytes += size;
        let id = self.samples.stacks.len() as i64 + 1;
        // Also if only another column of `stacks` is wanted: a function that was inlined is a row.
        let has_functions =
            self.wanted.has(Kind::Stacks) || self.wanted.has_column(Kind::Samples, samples::FUNCTION);
        let (process, frames) = (key.0, &key.1);
        let (mut depth, mut innermost) = (0, None);
        for (place, frame) in frames.iter().enumerate().rev() {
            let address = called_at(place, *frame);
            let module = self.samples.profile.place(process, address).map(|code| {
                String::from_utf8_lossy(&self.samples.profile.module(code.module).name).into_owned()
            });
            let functions = match has_functions {
                true => self.samples.profile.functions(process, address, names),
                false => vec![String::new()],
            };
            // Inlined ones have rows of their own.
            for function in functions.into_iter().rev() {
                let function = has_functions.then_some(function);
                let cells = [
                    Cell::Integer(id),
                    Cell::Integer(depth),
                    Cell::Unsigned(address),
                    Cell::from(function.as_deref()),
                    Cell::from(module.as_deref()),
                ];
                self.rows.row(Kind::Stacks, &cells)?;
                depth += 1;
                innermost = function;
            }
        }
        self.samples.bytes += innermost.as_ref().map_or(0, String::len);
        self.samples.stacks.insert(key, (id, innermost.clone()));
        Ok(Some((id, innermost)))
    }
}
