//! Rows of slices.

use super::session::Session;
use super::{Kind, Of, Open, integer};
use crate::tables::intervals::MAX_TIME;
use crate::tables::{Cell, Rows};
use std::io;
use trace_format::scopes::Ending;
use trace_format::units::ProviderId;
use trace_reader::{Thread, Time};

/// A row of `slices`, but for its thread. Its times are nanoseconds, or become such where they are used.
pub(super) struct Slice<'a, T> {
    pub at: T,
    pub end: Option<T>,
    /// How many rows there were when a slice with two records began.
    pub begun_at: Option<i64>,
    pub thread: Thread,
    pub provider: ProviderId,
    pub category: &'a str,
    pub name: &'a str,
    pub async_id: Option<u64>,
    pub of: Option<Of>,
    pub args: Option<&'a str>,
    /// Why it has no end, if the trace says so.
    pub ending: Option<Ending>,
}

/// A time that can be converted to nanoseconds.
pub(super) trait Moment: Copy {
    fn nanos(self) -> u64;
}

impl Moment for Time {
    #[inline]
    fn nanos(self) -> u64 {
        Time::nanos(self).0
    }
}

impl Moment for u64 {
    fn nanos(self) -> u64 {
        self
    }
}

impl<'a> Slice<'a, u64> {
    pub fn of(open: &'a Open, end: Option<u64>) -> Self {
        let Open { at, rows, thread, provider, category, name, async_id, of, args, ending } = open;
        let args = (!args.is_empty()).then_some(&**args);
        let (thread, provider, async_id, of) = (*thread, *provider, *async_id, *of);
        let (at, begun_at, ending) = (*at, Some(*rows), *ending);
        Self { at, end, begun_at, thread, provider, category, name, async_id, of, args, ending }
    }
}

impl<T: Moment> Slice<'_, T> {
    /// Adds the row, with the thread's names and number, and its own.
    #[inline]
    pub fn add(
        &self,
        rows: &mut impl Rows,
        session: &Session,
        [pid, tid, process, thread]: [Cell<'_>; 4],
        slice: i64,
        number: i64,
    ) -> io::Result<()> {
        let dur = |end: T| integer(end.nanos().min(MAX_TIME).saturating_sub(self.at.nanos()));
        let args = Cell::from(self.args);
        let async_id = Cell::from(self.async_id);
        let provider = Cell::Integer(self.provider.0.into());
        let (kind, operation, parent_operation) = match (self.async_id, self.of) {
            (Some(id), Some(Of::Poll(of) | Of::Within(of))) => ("operation", Some(id), Some(of)),
            (Some(id), None) => ("operation", Some(id), None),
            (None, Some(Of::Poll(of))) => ("poll", Some(of), None),
            (None, Some(Of::Within(of))) => ("slice", None, Some(of)),
            (None, None) => ("slice", None, None),
        };
        let kind = Cell::Text(kind);
        let reason = self.ending.map_or(Cell::Null, |ending| Cell::Text(ending.text()));
        let [operation, parent_operation] = [operation, parent_operation].map(Cell::from);
        if rows.takes_all() {
            let at = self.at.nanos();
            let dur = self.end.map_or(Cell::Null, dur);
            let (category, name) = (Cell::Text(self.category), Cell::Text(self.name));
            let (id, number, utc) = (Cell::Integer(slice), Cell::Integer(number), session.utc(at));
            let [parent, depth, own] = [Cell::Null; 3];
            let cells = [
                integer(at),
                dur,
                pid,
                tid,
                process,
                thread,
                category,
                name,
                async_id,
                args,
                id,
                parent,
                depth,
                own,
                number,
                provider,
                utc,
                kind,
                operation,
                parent_operation,
                reason,
            ];
            return rows.row(Kind::Slices, &cells);
        }
        rows.row_of::<{ Kind::Slices.table().columns.len() }>(Kind::Slices, |place| match place {
            0 => integer(self.at.nanos()),
            1 => self.end.map_or(Cell::Null, dur),
            2 => pid,
            3 => tid,
            4 => process,
            5 => thread,
            6 => Cell::Text(self.category),
            7 => Cell::Text(self.name),
            8 => async_id,
            9 => args,
            10 => Cell::Integer(slice),
            14 => Cell::Integer(number),
            15 => provider,
            16 => session.utc(self.at.nanos()),
            17 => kind,
            18 => operation,
            19 => parent_operation,
            20 => reason,
            // Another pass adds the others.
            _ => Cell::Null,
        })
    }
}
