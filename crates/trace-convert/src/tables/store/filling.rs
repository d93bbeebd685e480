//! A pass over the archives, on two threads: one reads, and makes the values of the columns that are
//! missing; the calling one keeps them, or looks at them. They go from one to the other in blocks, of which
//! few wait at a time.

use super::column::{BLOCK_ROWS, Block, Column, Width};
use super::spill::Spill;
use super::texts::{Recent, Texts};
use super::{Data, NESTED, TableData, Trace, width_of};
use crate::tables::rows::{FirstPass, fill, fill_in_order};
use crate::tables::{Cell, ColumnSet, KINDS, Kind, Rows, slices};
use crate::{ConvertError, Filter, Summary};
use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, Builder};

/// Parts that wait at a time.
const WAITING: usize = 3;

/// Why a pass failed, and on which trace; its name is empty if that is not known.
pub type Failed = (String, ConvertError);

/// Some rows of a table: [`BLOCK_ROWS`], or fewer if they are the last ones.
struct Part {
    kind: Kind,
    rows: usize,
    /// The columns that the pass is for, with their places.
    columns: Vec<(usize, Block)>,
}

/// Looks at the rows of a pass, in their order.
pub trait Watcher {
    /// The rows so far are void: all come again.
    fn again(&mut self);
    /// Some rows of a table: blocks of columns, with their places.
    ///
    /// # Errors
    /// The pass ends with them.
    fn rows(&mut self, kind: Kind, rows: usize, columns: &[(usize, &Block)]) -> io::Result<()>;
}

enum Message {
    Part(Part),
    Again,
}

/// What is done with the columns of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They are kept, in a file if there is no memory for them.
    All,
    /// They are only looked at.
    Nothing,
}

/// Reads all traces for the columns that are missing, and again if one turns out to be out of order.
pub fn fill_all<'a>(
    traces: &mut [Trace],
    filter: &Filter,
    data: &'a mut Data,
    missing: ColumnSet,
    keep: Keep,
    watcher: Option<&'a mut dyn Watcher>,
) -> Result<Vec<Summary>, Failed> {
    let Data { tables, texts, spill, .. } = data;
    let mut reading = Reading { traces, filter, missing, texts, spill: spill.clone() };
    let mut keeping = Keeping::new(tables, missing, spill, keep, watcher);
    let read = thread::scope(|scope| {
        let (sender, receiver) = sync_channel(WAITING);
        let deliver = move |message| sender.send(message).map_err(|_| io::ErrorKind::BrokenPipe.into());
        let reader =
            Builder::new().name("read".to_owned()).spawn_scoped(scope, || reading.run(deliver)).ok()?;
        let kept = keeping.take_all(receiver);
        let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // The reading thread only knows that there is no other one.
        Some(kept.map_err(|error| (String::new(), ConvertError::Write(error))).and(read))
    });
    // There may be no more threads.
    let read = read.unwrap_or_else(|| reading.run(|message| keeping.take(message)));
    read.map(|(summaries, starts)| keeping.finish(summaries, starts))
}

/// The first rows of the traces, by table.
type Starts = [Vec<u64>; KINDS];

/// The thread that reads.
struct Reading<'a> {
    traces: &'a mut [Trace],
    filter: &'a Filter,
    missing: ColumnSet,
    texts: &'a mut Texts,
    spill: Spill,
}

impl Reading<'_> {
    fn run(
        &mut self,
        mut deliver: impl FnMut(Message) -> io::Result<()>,
    ) -> Result<(Vec<Summary>, Starts), Failed> {
        let unnamed = |error| (String::new(), ConvertError::Write(error));
        let Self { traces, filter, missing, texts, spill } = self;
        'again: loop {
            let mut sending = Sending::new(*missing, texts, spill, &mut deliver);
            let mut summaries = Vec::new();
            for trace in &mut **traces {
                let named = |error| (trace.name.clone(), error);
                sending.begin_trace();
                let input = (trace.open)().map_err(|error| named(ConvertError::Write(error)))?;
                let filter = filter.clone();
                summaries.push(match &trace.disorder {
                    Some(disorder) => fill(input, disorder, &mut sending, filter).map_err(named)?,
                    None => match fill_in_order(input, &mut sending, filter).map_err(named)? {
                        FirstPass::InOrder(summary, disorder) => {
                            trace.disorder = Some(disorder);
                            summary
                        }
                        FirstPass::OutOfOrder(disorder) => {
                            trace.disorder = Some(disorder);
                            deliver(Message::Again).map_err(unnamed)?;
                            continue 'again;
                        }
                    },
                });
            }
            return Ok((summaries, sending.finish().map_err(unnamed)?));
        }
    }
}

/// Takes the rows of a pass, and sends them on.
struct Sending<'a, D> {
    missing: ColumnSet,
    texts: &'a mut Texts,
    recent: Recent,
    spill: &'a Spill,
    open: [Open; KINDS],
    /// What is known of the next slice.
    pair: u64,
    deliver: D,
}

/// Rows of a table that are not sent yet.
#[derive(Default)]
struct Open {
    is_used: bool,
    rows: usize,
    columns: Vec<(usize, Width, Block)>,
    /// What the rows have behind their cells, if that is used.
    pairs: Option<Block>,
    /// How many rows there are of all traces.
    all: u64,
    starts: Vec<u64>,
}

/// Whether a pass finds which slices have two records.
fn has_pairs(kind: Kind, missing: ColumnSet) -> bool {
    kind == Kind::Slices && missing.has_column(kind, slices::PAIR)
}

/// The columns that a pass finds, with their widths.
fn columns(kind: Kind, missing: ColumnSet) -> impl Iterator<Item = (usize, Width)> {
    let is_nested = move |place: usize| kind == Kind::Slices && NESTED & 1 << place != 0;
    let columns = kind.table().columns.iter().enumerate();
    columns
        .filter(move |(place, _)| missing.has_column(kind, *place) && !is_nested(*place))
        .map(|(place, (name, of))| (place, width_of(name, *of)))
}

impl<'a, D: FnMut(Message) -> io::Result<()>> Sending<'a, D> {
    fn new(missing: ColumnSet, texts: &'a mut Texts, spill: &'a Spill, deliver: D) -> Self {
        let open = |number: usize| {
            let kind = Kind::ALL[number];
            let columns: Vec<_> =
                columns(kind, missing).map(|(place, width)| (place, width, Block::default())).collect();
            let pairs = has_pairs(kind, missing).then(Block::default);
            let is_used = missing.has(kind) || !columns.is_empty() || pairs.is_some();
            Open { is_used, columns, pairs, ..Open::default() }
        };
        let open = std::array::from_fn(open);
        Self { missing, texts, recent: Recent::default(), spill, open, pair: 0, deliver }
    }

    fn begin_trace(&mut self) {
        self.open.iter_mut().for_each(|open| open.starts.push(open.all));
    }

    /// Sends the remaining rows.
    fn finish(mut self) -> io::Result<Starts> {
        Kind::ALL.into_iter().try_for_each(|kind| self.send(kind))?;
        Ok(self.open.map(|open| open.starts))
    }

    fn send(&mut self, kind: Kind) -> io::Result<()> {
        let open = &mut self.open[kind as usize];
        let rows = std::mem::take(&mut open.rows);
        if rows == 0 {
            return Ok(());
        }
        let block = |(place, width, block): &mut (usize, Width, Block)| {
            (*place, std::mem::replace(block, Block::with_room(*width)))
        };
        let mut columns: Vec<(usize, Block)> = open.columns.iter_mut().map(block).collect();
        if let Some(pairs) = &mut open.pairs {
            columns.push((slices::PAIR, std::mem::replace(pairs, Block::with_room(Width::Wide))));
        }
        (self.deliver)(Message::Part(Part { kind, rows, columns }))
    }

    #[inline]
    fn add<'c>(&mut self, kind: Kind, cell: impl Fn(usize) -> Option<Cell<'c>>) -> io::Result<()> {
        let Self { texts, recent, spill, open, pair, .. } = self;
        let open = &mut open[kind as usize];
        if !open.is_used {
            return Ok(());
        }
        for (place, width, block) in &mut open.columns {
            let value = match cell(*place).unwrap_or(Cell::Null) {
                Cell::Null => None,
                Cell::Integer(value) => Some(value as u64),
                Cell::Unsigned(value) => Some(value),
                Cell::Double(value) => Some(value.to_bits()),
                Cell::Text(text) if *width == Width::Narrow => {
                    Some(texts.number(text, recent, spill)?.into())
                }
                Cell::Text(text) => Some(texts.push(text, spill)?),
            };
            block.push(*width, value);
        }
        if let Some(pairs) = &mut open.pairs {
            pairs.push(Width::Wide, Some(std::mem::take(pair)));
        }
        open.rows += 1;
        open.all += 1;
        if open.rows == BLOCK_ROWS { self.send(kind) } else { Ok(()) }
    }
}

impl<D: FnMut(Message) -> io::Result<()>> Rows for Sending<'_, D> {
    fn wanted(&self) -> ColumnSet {
        let mut wanted = self.missing;
        for kind in Kind::ALL.into_iter().filter(|kind| self.open[*kind as usize].is_used) {
            wanted.add(kind, 0);
        }
        wanted
    }

    #[inline]
    fn pair(&mut self, rows: u64) {
        self.pair = rows + 1;
    }

    #[inline]
    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()> {
        self.add(kind, |place| cells.get(place).copied())
    }

    #[inline]
    fn row_of<'c, const N: usize>(&mut self, kind: Kind, cell: impl Fn(usize) -> Cell<'c>) -> io::Result<()> {
        self.add(kind, |place| Some(cell(place)))
    }
}

/// The calling thread.
struct Keeping<'a> {
    tables: &'a mut [TableData; KINDS],
    missing: ColumnSet,
    spill: &'a Spill,
    keep: Keep,
    watcher: Option<&'a mut dyn Watcher>,
}

impl<'a> Keeping<'a> {
    fn new(
        tables: &'a mut [TableData; KINDS],
        missing: ColumnSet,
        spill: &'a Spill,
        keep: Keep,
        watcher: Option<&'a mut dyn Watcher>,
    ) -> Self {
        let mut keeping = Self { tables, missing, spill, keep, watcher };
        keeping.renew();
        keeping
    }

    /// Replaces all columns of the pass.
    fn renew(&mut self) {
        if self.keep == Keep::Nothing {
            return;
        }
        for kind in Kind::ALL {
            let table = &mut self.tables[kind as usize];
            let pairs = has_pairs(kind, self.missing).then_some((slices::PAIR, Width::Wide));
            for (place, width) in columns(kind, self.missing).chain(pairs) {
                if let Some(old) = table.columns[place].replace(Column::new(width)) {
                    old.release(self.spill);
                }
            }
            if self.missing.has(kind) {
                (table.rows, table.starts) = (0, Vec::new());
            }
        }
    }

    fn take_all(&mut self, messages: Receiver<Message>) -> io::Result<()> {
        messages.into_iter().try_for_each(|message| self.take(message))
    }

    fn take(&mut self, message: Message) -> io::Result<()> {
        let Message::Part(part) = message else {
            self.renew();
            if let Some(watcher) = &mut self.watcher {
                watcher.again();
            }
            return Ok(());
        };
        if let Some(watcher) = &mut self.watcher {
            let columns: Vec<_> = part.columns.iter().map(|(place, block)| (*place, block)).collect();
            watcher.rows(part.kind, part.rows, &columns)?;
        }
        if self.keep == Keep::Nothing {
            return Ok(());
        }
        let table = &mut self.tables[part.kind as usize];
        if self.missing.has(part.kind) {
            table.rows += part.rows as u64;
        }
        for (place, block) in part.columns {
            if let Some(column) = &mut table.columns[place] {
                column.append(block, self.spill)?;
            }
        }
        Ok(())
    }

    fn finish(self, summaries: Vec<Summary>, starts: Starts) -> Vec<Summary> {
        for (kind, starts) in Kind::ALL.into_iter().zip(starts) {
            if self.keep == Keep::All && self.missing.has(kind) {
                self.tables[kind as usize].starts = starts;
            }
        }
        summaries
    }
}
