//! Packets that other threads write.
//!
//! Names of tracks, numbers of strings and of flows depend on all that came before. The thread that reads
//! finds them, and passes them on with the records, so that any thread can write the packets of events. All
//! other packets are few; they are passed on ready-made.

use super::exported::Own;
use super::interned::Interned;
use super::track_event::{End, Known, flags, write};
use super::{Ending, Exporter};
use crate::export::jobs::{Batch, Collector, Crew, Extras, Jobs, Work};
use crate::output::Output;
use std::io::{self, Write};
use trace_format::event::EventKind;
use trace_reader::{Event, Item, Resolved, Text, TextKey};

/// The output of a batch is handed on when it has so many bytes: indices may stand for long texts.
const MAX_OUTPUT_BYTES: usize = if cfg!(test) { 10_000 } else { 4 << 20 };

/// Work for other threads.
pub(super) struct Sharing {
    crew: Crew<Packets>,
    /// Events for the next batch.
    collector: Collector<Script>,
    batch_bytes: usize,
    /// How many of the collected bytes come before the last event of the batch.
    placed: usize,
    /// What is known of an event.
    words: Vec<u32>,
    /// Buffers that were used before.
    spare: Vec<Batch<Script>>,
}

/// What is known of the events of a batch, and what is between their packets.
#[derive(Default)]
pub(super) struct Script {
    /// Of each event: how many bytes come before it, how many define its strings, the flags of its first
    /// packet, and its numbers.
    words: Vec<u32>,
    /// Packets before, between and behind those of events, and definitions of strings.
    ready: Output,
    /// How much of both was used.
    next_word: usize,
    used: usize,
}

impl Extras for Script {
    fn clear(&mut self) {
        self.words.clear();
        self.ready.clear();
        (self.next_word, self.used) = (0, 0);
    }
}

/// Numbers that were found before.
struct Words<'a> {
    words: &'a [u32],
    ending: Ending,
}

impl Words<'_> {
    #[inline]
    fn word(&mut self) -> u32 {
        let Some((first, rest)) = self.words.split_first() else { return 0 };
        self.words = rest;
        *first
    }

    #[inline]
    fn long(&mut self) -> u64 {
        u64::from(self.word()) | u64::from(self.word()) << 32
    }
}

fn long(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

impl End for Words<'_> {
    #[inline]
    fn end(&mut self, output: &mut Output) -> u32 {
        let next = Ending { interned: Vec::new(), flags: flags(false) };
        std::mem::replace(&mut self.ending, next).end(output)
    }
}

impl Known for Words<'_> {
    #[inline]
    fn track(&mut self) -> u64 {
        self.long()
    }

    #[inline]
    fn named(&mut self) -> (u64, u64) {
        (self.word().into(), self.word().into())
    }

    #[inline]
    fn argument(&mut self, _: Text<'_>, _: TextKey) -> u64 {
        self.word().into()
    }

    fn flow(&mut self) -> u64 {
        self.long()
    }
}

impl Script {
    #[inline]
    fn event(&mut self, event: &Event<'_>, output: &mut Output) {
        let Self { words, ready, next_word, used } = self;
        let words = words.get(*next_word..).unwrap_or_default();
        let mut known = Words { words, ending: Ending { interned: Vec::new(), flags: 0 } };
        let (before, new, flags) = (known.word() as usize, known.word() as usize, known.word());
        let mut take = |length| {
            let bytes = ready.bytes().get(*used..*used + length).unwrap_or_default();
            *used += length;
            bytes
        };
        if before > 0 {
            output.slice(take(before));
        }
        let interned = if new > 0 { take(new).to_vec() } else { Vec::new() };
        known.ending = Ending { interned, flags };
        write(output, event, &mut known);
        *next_word += words.len() - known.words.len();
    }

    /// What comes behind the events.
    fn end(&mut self, output: &mut Output) {
        if self.used == 0 && output.len() == 0 {
            std::mem::swap(&mut self.ready, output);
        } else {
            output.slice(self.ready.bytes().get(self.used..).unwrap_or_default());
        }
    }
}

/// Writes the packets of batches.
struct Packets;

impl Work for Packets {
    type Batch = Batch<Script>;
    type Done = Batch<Script>;

    /// Writes those that are left, as many as make an output of a moderate size.
    fn run(&mut self, mut batch: Batch<Script>) -> Batch<Script> {
        let mut output = std::mem::take(&mut batch.output);
        output.clear();
        batch.advance(|item, script| {
            if let Item::Event(event) = item {
                script.event(event, &mut output);
            }
            output.len() < MAX_OUTPUT_BYTES
        });
        if !batch.has_more() {
            batch.extras.end(&mut output);
        }
        batch.output = output;
        batch
    }
}

impl Sharing {
    pub fn new(jobs: Jobs) -> Self {
        Self {
            crew: Crew::new(jobs.threads - 1, || Packets),
            collector: Collector::new(),
            batch_bytes: jobs.batch_bytes,
            placed: 0,
            words: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Leaves an event to others; false if the calling thread has to write it.
    #[inline]
    pub fn event(
        &mut self,
        event: &Event<'_>,
        record: &Resolved<'_>,
        own: &mut Own<'_>,
        bytes: &mut Output,
    ) -> bool {
        self.words.clear();
        self.words.extend(long(own.track()));
        if !matches!(event.kind, EventKind::DurationEnd | EventKind::AsyncEnd { .. }) {
            let (category, name) = own.named();
            self.words.extend([category as u32, name as u32]);
        }
        for (name, _, [key, _]) in event.arguments.keyed() {
            self.words.push(own.argument(name, key) as u32);
        }
        if let EventKind::FlowBegin { .. } | EventKind::FlowStep { .. } | EventKind::FlowEnd { .. } =
            event.kind
        {
            self.words.extend(long(own.flow()));
        }
        self.add(record, own.interned, bytes)
    }

    /// The same for a counter, with the tracks of its samples, if these are known.
    pub fn samples(
        &mut self,
        event: &Event<'_>,
        record: &Resolved<'_>,
        mut track: impl FnMut(Text<'_>, TextKey) -> Option<u64>,
        interned: &mut Interned,
        bytes: &mut Output,
    ) -> bool {
        self.words.clear();
        for (name, _, [key, _]) in event.arguments.keyed().filter(|(_, value, _)| value.is_number()) {
            let Some(track) = track(name, key) else { return false };
            self.words.extend(long(track));
        }
        self.words.is_empty() || self.add(record, interned, bytes)
    }

    #[inline]
    fn add(&mut self, record: &Resolved<'_>, interned: &mut Interned, bytes: &mut Output) -> bool {
        // Then numbers may change between the packets of the event.
        if interned.is_full() {
            return false;
        }
        let Self { collector, placed, words, .. } = self;
        collector.add(record, |script| {
            let Ending { interned, flags } = interned.ending();
            script.words.extend([(bytes.len() - *placed) as u32, interned.len() as u32, flags]);
            script.words.extend_from_slice(words);
            bytes.slice(&interned);
            *placed = bytes.len();
        })
    }
}

impl<W: Write> Exporter<W> {
    #[inline]
    pub(super) fn give_if_full(&mut self) -> io::Result<()> {
        let Some(Sharing { collector, batch_bytes, .. }) = &self.sharing else { return Ok(()) };
        if collector.batch.len() + self.bytes.len() >= *batch_bytes { self.give() } else { Ok(()) }
    }

    /// Gives all that was collected to others.
    #[cold]
    fn give(&mut self) -> io::Result<()> {
        let Some(Sharing { crew, collector, placed, spare, .. }) = &mut self.sharing else { return Ok(()) };
        let next = spare.pop().unwrap_or_default();
        let mut batch = std::mem::replace(&mut collector.batch, next);
        std::mem::swap(&mut batch.extras.ready, &mut self.bytes);
        *placed = 0;
        crew.give(batch);
        self.write_batches(false)
    }

    /// Writes the packets of batches that are ready, or of all.
    fn write_batches(&mut self, all: bool) -> io::Result<()> {
        while let Some(Sharing { crew, spare, .. }) = &mut self.sharing
            && let Some(mut batch) = crew.take(&mut Packets, all)?
        {
            self.output.write_all(batch.output.bytes())?;
            while batch.has_more() {
                batch = Packets.run(batch);
                self.output.write_all(batch.output.bytes())?;
            }
            spare.push(batch.emptied());
        }
        Ok(())
    }

    pub(super) fn give_all(&mut self) -> io::Result<()> {
        if self.sharing.is_some() {
            self.give()?;
        }
        self.write_batches(true)
    }
}
