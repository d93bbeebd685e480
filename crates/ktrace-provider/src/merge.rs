//! Puts the events of all CPUs in the order of their times.
//!
//! Each CPU's events come in order. Events younger than the moment up to which every CPU has been read wait
//! for the next round.

use crate::page::{Damaged, Lost, Page, PageLayout};

/// An event or a loss of a CPU.
#[derive(Clone, Copy, Debug)]
struct Item {
    time: u64,
    cpu: u16,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// The position of its payload.
    Event { start: u32, end: u32 },
    /// Events that were lost before this time, and how many if that is known.
    Lost(Option<u64>),
}

/// The output, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged<'a> {
    /// An event's payload.
    Event(&'a [u8]),
    /// Events were lost up to now, and how many if that is known.
    Lost(Option<u64>),
}

/// Pages that were read, until their events are due.
#[derive(Debug, Default)]
pub struct Merge {
    bytes: Vec<u8>,
    items: Vec<Item>,
    /// Pages that could not be read to their end.
    damaged: u64,
}

impl Merge {
    /// Room for the next page; [`Merge::keep`] or [`Merge::give_back`] follows.
    pub fn page(&mut self, layout: &PageLayout) -> &mut [u8] {
        let start = self.bytes.len();
        self.bytes.resize(start + layout.size, 0);
        &mut self.bytes[start..]
    }

    /// Returns the room: there was no page.
    pub fn give_back(&mut self, layout: &PageLayout) {
        self.bytes.truncate(self.bytes.len() - layout.size);
    }

    /// Keeps the page that was read into the room. Returns the time of its last event, if it has any.
    pub fn keep(&mut self, layout: &PageLayout, cpu: u16) -> Option<u64> {
        let start = self.bytes.len() - layout.size;
        let bytes = &self.bytes[start..];
        let mut last = None;
        let mut page = match Page::new(layout, bytes) {
            Ok(page) => page,
            Err(Damaged) => {
                self.damaged += 1;
                return None;
            }
        };
        let mut lost = match page.lost {
            Lost::Nothing => None,
            Lost::Some => Some(None),
            Lost::Count(count) => Some(Some(count)),
        };
        loop {
            match page.next_entry() {
                Ok(Some(entry)) => {
                    let time = entry.time;
                    if let Some(count) = lost.take() {
                        self.items.push(Item { time, cpu, what: What::Lost(count) });
                    }
                    let what = What::Event {
                        start: (start + entry.payload.start) as u32,
                        end: (start + entry.payload.end) as u32,
                    };
                    self.items.push(Item { time, cpu, what });
                    last = Some(time);
                }
                Ok(None) => return last,
                Err(Damaged) => {
                    self.damaged += 1;
                    return last;
                }
            }
        }
    }

    /// Passes on events that are not younger than a moment, in order; the rest waits.
    pub fn take_until(&mut self, horizon: u64, mut take: impl FnMut(u64, u16, Merged<'_>)) {
        // The input consists of ordered runs, which this sort is fast at; equal times stay in order.
        self.items.sort_by_key(|item| item.time);
        let due = self.items.partition_point(|item| item.time <= horizon);
        for item in &self.items[..due] {
            let what = match item.what {
                What::Event { start, end } => Merged::Event(&self.bytes[start as usize..end as usize]),
                What::Lost(count) => Merged::Lost(count),
            };
            take(item.time, item.cpu, what);
        }
        self.items.drain(..due);
        self.compact();
    }

    /// Keeps only the bytes that are still needed.
    fn compact(&mut self) {
        let mut kept = Vec::new();
        for item in &mut self.items {
            if let What::Event { start, end } = &mut item.what {
                let place = kept.len() as u32;
                kept.extend_from_slice(&self.bytes[*start as usize..*end as usize]);
                (*start, *end) = (place, kept.len() as u32);
            }
        }
        if self.items.is_empty() {
            self.bytes.clear();
        } else {
            self.bytes = kept;
        }
    }

    /// Pages that could not be read to their end.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }
}

#[cfg(test)]
mod tests;
