//! The three modes, modelled in a few lines, against the engine: the same records kept, the same losses
//! counted.
//!
//! Threads of the engine's side do one step at a time, in the order of the model's.

use crate::support::Trace;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use trace_engine::engine::SaveRequest;
use trace_engine::{BufferMode, Disposition, Scope, instant};
use trace_format::buffer::Layout;
use trace_format::slab::LossReason;

const BUFFER_BYTES: usize = 64 << 10;
/// In a stream. Elsewhere there are two: which of several idle threads a slab is taken from is not modelled.
const THREADS: usize = 3;
/// A slab with less room stays with an idle thread.
const LEAST_ROOM: u64 = 64;

#[derive(Clone, Debug)]
enum Step {
    /// So many events of so many bytes of payload.
    Write {
        thread: usize,
        count: u16,
        payload: u16,
    },
    /// The thread ends, and another takes its place.
    EndThread(usize),
    Service,
    Saved,
    Flush,
    Restart(Disposition),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let payload = prop_oneof![4 => 0..40_u16, 2 => 200..600_u16, 1 => 600..20_000_u16];
    let write = (0..THREADS, 1..120_u16, payload).prop_map(|(thread, count, payload)| {
        // Large ones are few.
        Step::Write { thread, count: if payload > 600 { count % 4 + 1 } else { count }, payload }
    });
    let disposition = prop_oneof![
        Just(Disposition::ClearEntire),
        Just(Disposition::ClearNondurable),
        Just(Disposition::Retain)
    ];
    let step = prop_oneof![
        12 => write,
        1 => (0..THREADS).prop_map(Step::EndThread),
        3 => Just(Step::Service),
        3 => Just(Step::Saved),
        1 => Just(Step::Flush),
        1 => disposition.prop_map(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

/// What a slab holds; a thread may have it.
#[derive(Clone, Default)]
struct Slab {
    ticket: u64,
    events: Vec<u64>,
    used: u64,
    is_open: bool,
}

struct Model {
    layout: Layout,
    slabs: Vec<Slab>,
    ticket: u64,
    base: u64,
    is_full: bool,
    /// By thread: its slab, and whether it had one.
    threads: Vec<(Option<usize>, bool)>,
    leftovers: Vec<usize>,
    /// Streaming: the next half to go out, and whether it is out.
    next: u64,
    is_out: bool,
    wants_flush: bool,
    kept: Vec<u64>,
    late: Vec<u64>,
    lost: BTreeMap<LossReason, u64>,
}

impl Model {
    fn new(mode: BufferMode) -> Self {
        let layout = Layout::new(BUFFER_BYTES as u64, mode).unwrap();
        Self {
            slabs: vec![Slab::default(); layout.slab_count() as usize],
            layout,
            ticket: 0,
            base: 0,
            is_full: false,
            threads: vec![(None, false); THREADS],
            leftovers: Vec::new(),
            next: 0,
            is_out: false,
            wants_flush: false,
            kept: Vec::new(),
            late: Vec::new(),
            lost: BTreeMap::new(),
        }
    }

    fn lose(&mut self, reason: LossReason, count: usize) {
        *self.lost.entry(reason).or_default() += count as u64;
    }

    fn write(&mut self, thread: usize, id: u64, bytes: u64) {
        let slab_bytes = self.layout.slab_bytes;
        if bytes > self.layout.max_record_bytes() {
            return self.lose(LossReason::TooLarge, 1);
        }
        if bytes <= slab_bytes {
            let (own, had_slab) = self.threads[thread];
            if let Some(slab) = own.map(|slab| &mut self.slabs[slab])
                && slab.used + bytes <= slab_bytes
            {
                slab.used += bytes;
                slab.events.push(id);
                // Readers leave out what comes after the end of a oneshot buffer.
                return if self.is_full {
                    self.late.push(id)
                };
            }
            self.leave(thread);
            self.threads[thread].1 = true;
            if !had_slab && self.claim_rest(thread, bytes) {
                return self.write(thread, id, bytes);
            }
        }
        let run = bytes.div_ceil(slab_bytes);
        match self.claim(run) {
            Ok(slab) if run == 1 => {
                self.slabs[slab] = Slab { is_open: true, ..self.slabs[slab].clone() };
                self.threads[thread].0 = Some(slab);
                self.write(thread, id, bytes);
            }
            Ok(slab) => {
                self.slabs[slab].events.push(id);
                self.leave(thread);
            }
            Err(LossReason::Full) if run == 1 && !self.is_full && self.claim_recalled(thread, bytes) => {
                self.write(thread, id, bytes);
            }
            Err(reason) => {
                self.is_full |= self.layout.mode == BufferMode::Oneshot;
                self.lose(reason, 1);
            }
        }
    }

    /// Takes the newest leftover slab with room for so many bytes; others are closed.
    fn claim_rest(&mut self, thread: usize, bytes: u64) -> bool {
        while let Some(slab) = self.leftovers.pop() {
            if self.slabs[slab].used + bytes <= self.layout.slab_bytes {
                self.threads[thread].0 = Some(slab);
                return true;
            }
            self.slabs[slab].is_open = false;
        }
        false
    }

    /// Takes a leftover slab, or what the other thread has left of its slab.
    fn claim_recalled(&mut self, thread: usize, bytes: u64) -> bool {
        if self.claim_rest(thread, bytes) {
            return true;
        }
        for other in (0..THREADS).filter(|other| *other != thread) {
            if let Some(slab) = self.threads[other].0
                && self.slabs[slab].used + bytes.max(LEAST_ROOM) <= self.layout.slab_bytes
            {
                self.threads[other].0 = None;
                self.threads[thread].0 = Some(slab);
                return true;
            }
        }
        false
    }

    fn leave(&mut self, thread: usize) {
        if let Some(slab) = self.threads[thread].0.take() {
            self.slabs[slab].is_open = false;
        }
    }

    fn claim(&mut self, run: u64) -> Result<usize, LossReason> {
        let half = u64::from(self.layout.slabs_per_half);
        for _ in 0..=self.slabs.len() {
            let room = half - self.ticket % half;
            let ticket = if run <= room { self.ticket } else { self.ticket + room };
            let limit = match self.layout.mode {
                BufferMode::Oneshot => self.base + half,
                BufferMode::Circular => u64::MAX,
                BufferMode::Streaming => self.base + (self.next + 2) * half,
            };
            if self.is_full || ticket + run > limit {
                if self.layout.mode == BufferMode::Oneshot {
                    return Err(LossReason::Full);
                }
                return Err(if self.is_out { LossReason::NotSaved } else { LossReason::NotRetired });
            }
            self.ticket = ticket + run;
            let places = (ticket..ticket + run).map(|ticket| (ticket % self.slabs.len() as u64) as usize);
            let places: Vec<_> = places.collect();
            let mut is_taken = true;
            for (place, ticket) in places.iter().zip(ticket..) {
                if self.slabs[*place].is_open {
                    is_taken = false;
                    continue;
                }
                let before = std::mem::replace(&mut self.slabs[*place], Slab { ticket, ..Slab::default() });
                if self.layout.mode == BufferMode::Circular {
                    self.lose(LossReason::Overwritten, before.events.len());
                }
            }
            if is_taken {
                return Ok(places[0]);
            }
        }
        Err(LossReason::Full)
    }

    /// The half that goes out, if one does.
    fn service(&mut self) -> Option<u64> {
        let half = u64::from(self.layout.slabs_per_half);
        let (start, end) = (self.base + self.next * half, self.base + (self.next + 1) * half);
        let is_flushed = self.wants_flush && self.ticket > start;
        if self.is_out || (self.ticket < end && !is_flushed) {
            self.wants_flush &= self.is_out;
            return None;
        }
        self.wants_flush = false;
        self.ticket = self.ticket.max(end);
        self.is_out = true;
        let is_going = |slab: &Slab| (start..end).contains(&slab.ticket);
        for thread in 0..THREADS {
            if self.threads[thread].0.is_some_and(|slab| is_going(&self.slabs[slab])) {
                self.leave(thread);
            }
        }
        for slab in std::mem::take(&mut self.leftovers) {
            if is_going(&self.slabs[slab]) {
                self.slabs[slab].is_open = false;
            } else {
                self.leftovers.insert(0, slab);
            }
        }
        Some(self.next)
    }

    /// What is out has been saved.
    fn saved(&mut self) {
        let half = u64::from(self.layout.slabs_per_half);
        let start = self.base + self.next * half;
        for slab in &mut self.slabs {
            if (start..start + half).contains(&slab.ticket) {
                self.kept.append(&mut slab.events);
            }
        }
        (self.is_out, self.next) = (false, self.next + 1);
    }

    /// Everything is kept that is there.
    fn stop(&mut self) {
        (0..THREADS).for_each(|thread| self.leave(thread));
        for slab in std::mem::take(&mut self.leftovers) {
            self.slabs[slab].is_open = false;
        }
    }

    fn clear(&mut self) {
        let count = self.slabs.iter().map(|slab| slab.events.len()).sum();
        self.lose(LossReason::Cleared, count);
        self.slabs.fill(Slab::default());
        self.late.clear();
        self.base = self.ticket.next_multiple_of(self.slabs.len() as u64);
        self.ticket = self.base;
        (self.is_full, self.next, self.is_out, self.wants_flush) = (false, 0, false, false);
    }
}

/// A thread that runs the steps it is sent.
struct Worker {
    orders: Sender<(u64, u16, u16)>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn new(done: Sender<()>) -> Self {
        let (orders, received) = channel::<(u64, u16, u16)>();
        let thread = std::thread::spawn(move || {
            for (first, count, payload) in received {
                let pad = vec![0_u8; usize::from(payload)];
                for id in first..first + u64::from(count) {
                    instant!("cat", "e", Scope::Thread, "id" => id, "pad" => pad.as_slice());
                }
                done.send(()).unwrap();
            }
        });
        Self { orders, thread }
    }

    fn end(self) {
        drop(self.orders);
        self.thread.join().unwrap();
    }
}

fn compare(mode: BufferMode, steps: &[Step]) {
    let mut trace = Trace::start_in(mode, BUFFER_BYTES);
    let mut model = Model::new(mode);
    let (done, is_done) = channel();
    let mut workers: Vec<_> = (0..THREADS).map(|_| Worker::new(done.clone())).collect();
    let mut out: Option<SaveRequest> = None;
    let mut id = 0;
    let threads = if mode == BufferMode::Streaming { THREADS } else { 2 };
    for step in steps {
        match *step {
            Step::Write { thread, count, payload } => {
                let thread = thread % threads;
                workers[thread].orders.send((id, count, payload)).unwrap();
                is_done.recv().unwrap();
                let bytes = 16 + 16 + 8 + u64::from(payload).next_multiple_of(8);
                (id..id + u64::from(count)).for_each(|id| model.write(thread, id, bytes));
                id += u64::from(count);
            }
            Step::EndThread(thread) => {
                let thread = thread % threads;
                std::mem::replace(&mut workers[thread], Worker::new(done.clone())).end();
                if let Some(slab) = model.threads[thread].0.take() {
                    if model.slabs[slab].used + 16 > model.layout.slab_bytes {
                        model.slabs[slab].is_open = false;
                    } else {
                        model.leftovers.push(slab);
                    }
                }
                model.threads[thread].1 = false;
            }
            Step::Service if mode == BufferMode::Streaming => {
                let request = trace.engine.service().unwrap().save;
                let half = request.map(|request| u64::from(request.wrapped_count));
                assert_eq!(half, model.service());
                out = request.or(out);
            }
            Step::Saved => {
                if let Some(request) = out.take() {
                    trace.save(request);
                    model.saved();
                }
            }
            Step::Flush if mode == BufferMode::Streaming => {
                trace.engine.flush().unwrap();
                model.wants_flush = true;
            }
            Step::Service | Step::Flush => {}
            Step::Restart(disposition) => {
                trace.pause();
                model.stop();
                trace.resume(disposition);
                if disposition != Disposition::Retain {
                    model.clear();
                    out = None;
                }
                if disposition == Disposition::ClearEntire {
                    model.threads.iter_mut().for_each(|thread| thread.1 = false);
                    // What was saved belongs to definitions that are gone; the reader starts anew, and so do
                    // we.
                    model.kept.clear();
                }
            }
        }
    }
    trace.pause();
    model.stop();
    let is_in_time = |id: &&u64| !model.late.contains(id);
    model.kept.extend(model.slabs.iter().flat_map(|slab| &slab.events).filter(is_in_time));
    model.lose(LossReason::Full, model.late.len());
    let read = trace.end();
    workers.into_iter().for_each(Worker::end);
    let mut kept: Vec<_> = read.events.iter().map(|event| event.u64("id")).collect();
    kept.sort_unstable();
    model.kept.sort_unstable();
    let losses = LossReason::ALL.map(|reason| (reason, read.loss(reason)));
    let expected = LossReason::ALL.map(|reason| (reason, model.lost.get(&reason).copied().unwrap_or(0)));
    assert_eq!(losses, expected, "{mode:?}");
    assert_eq!(kept, model.kept, "{mode:?}");
    assert_eq!(read.findings.bad_records, 0);
}

/// Fewer cases than usual, as each has threads of its own, unless the environment sets a number.
fn config() -> ProptestConfig {
    let config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_some() { config } else { ProptestConfig { cases: 60, ..config } }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn oneshot_keeps_what_the_model_keeps(steps in steps()) {
        compare(BufferMode::Oneshot, &steps);
    }

    #[test]
    fn circular_keeps_what_the_model_keeps(steps in steps()) {
        compare(BufferMode::Circular, &steps);
    }

    #[test]
    fn streaming_keeps_what_the_model_keeps(steps in steps()) {
        compare(BufferMode::Streaming, &steps);
    }
}
