//! All tasks of a runtime, by tokio's hooks.

use crate::operation::site;
use core::cell::Cell;
use core::hash::{Hash, Hasher};
use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering};
use tokio::runtime::{Builder, TaskMeta};
use trace_engine::args::IntoValue;
use trace_engine::{Event, EventType, Site, engine, now, stamp, write_event, write_event_at};

/// Places where tasks are spawned that a thread remembers the sites of.
const REMEMBERED: usize = 64;
/// Distinguishes bars from those of tasks with names, which have numbers of their own.
const BAR: u64 = 1 << 63;

type Remembered = Cell<Option<(&'static Location<'static>, &'static Site)>>;

/// Polls that a thread can be in, one inside of the other: a set of local tasks is itself polled by a task.
const NESTED: usize = 8;

/// A poll of the thread.
#[derive(Clone, Copy)]
struct Polling {
    site: &'static Site,
    epoch: u32,
    start: u64,
}

thread_local! {
    static SITES: [Remembered; REMEMBERED] = const { [const { Cell::new(None) }; REMEMBERED] };
    static POLLING: Polls = const { Polls { depth: Cell::new(0), polls: [const { Cell::new(None) }; NESTED] } };
}

/// The polls that a thread is in.
struct Polls {
    depth: Cell<usize>,
    polls: [Cell<Option<Polling>>; NESTED],
}

impl Polls {
    fn begin(&self, polling: Option<Polling>) {
        if let Some(poll) = self.polls.get(self.depth.get()) {
            poll.set(polling);
        }
        self.depth.set(self.depth.get() + 1);
    }

    fn end(&self) -> Option<Polling> {
        self.depth.set(self.depth.get().saturating_sub(1));
        self.polls.get(self.depth.get())?.take()
    }

    fn forget_innermost(&self) {
        if let Some(poll) = self.depth.get().checked_sub(1).and_then(|innermost| self.polls.get(innermost)) {
            poll.set(None);
        }
    }
}

/// In the upper half the epoch in which the last task was spawned that has a bar, in the lower one the
/// number of the first such task of that epoch.
static FIRST: AtomicU64 = AtomicU64::new(0);

/// Records all tasks of the runtime that is built: each poll, and the life of each task, under the place
/// where it was spawned. Takes the place of hooks that the builder had before. Needs `--cfg
/// tokio_unstable`, and may change with what tokio makes of it.
///
/// A task of [`spawn`](crate::spawn) and the like has its polls under its name alone, and two bars.
#[cfg_attr(docsrs, doc(cfg(tokio_unstable)))]
pub fn record_all_tasks(builder: &mut Builder) -> &mut Builder {
    builder
        .on_task_spawn(spawned)
        .on_before_task_poll(before_poll)
        .on_after_task_poll(after_poll)
        .on_task_terminate(terminated)
}

/// The poll that the thread is in is recorded under a name.
pub fn is_recorded_by_name() {
    let _ = POLLING.try_with(Polls::forget_innermost);
}

/// Takes the number out of a task's id, which shows it in no cheaper way than to a hasher.
struct Number(u64);

impl Hasher for Number {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |number, byte| number.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

fn number_of(task: &TaskMeta<'_>) -> u64 {
    let mut number = Number(0);
    task.id().hash(&mut number);
    number.finish()
}

/// The site of a place where tasks are spawned, which is named `file:line`.
fn site_of(task: &TaskMeta<'_>) -> &'static Site {
    let place = task.spawned_at();
    let remembered = |sites: &[Remembered; REMEMBERED]| {
        let remembered = &sites[core::ptr::from_ref(place).addr() / align_of::<Location<'_>>() % REMEMBERED];
        match remembered.get() {
            Some((known, site)) if core::ptr::eq(known, place) => site,
            _ => {
                let site = site(&name_of(place));
                remembered.set(Some((place, site)));
                site
            }
        }
    };
    SITES.try_with(remembered).unwrap_or_else(|_| site(&name_of(place)))
}

fn name_of(place: &Location<'_>) -> String {
    format!("{}:{}", place.file(), place.line())
}

fn bar(event_type: EventType, number: u64) -> Event {
    Event { event_type, start: None, extra: Some(BAR | number) }
}

fn spawned(task: &TaskMeta<'_>) {
    let site = site_of(task);
    if site.is_on() {
        let number = number_of(task);
        begin_bar(number);
        write_event(site, bar(EventType::AsyncBegin, number), &());
    }
}

/// Remembers the first task of a recording that has a bar. The lower halves of numbers are enough, as those
/// of one recording are close together.
fn begin_bar(number: u64) {
    let epoch = u64::from(engine::epoch()) << 32;
    let first = epoch | number & 0xffff_ffff;
    let earlier = |known: u64| (known & !0xffff_ffff != epoch || first < known).then_some(first);
    // Mostly a load.
    if earlier(FIRST.load(Ordering::Relaxed)).is_some() {
        let _ = FIRST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, earlier);
    }
}

/// Whether a task was spawned in the recording that runs.
fn has_bar(number: u64) -> bool {
    let first = FIRST.load(Ordering::Relaxed);
    first >> 32 == u64::from(engine::epoch()) && first as u32 <= number as u32
}

fn before_poll(task: &TaskMeta<'_>) {
    let site = site_of(task);
    let polling = site.is_on().then(|| Polling { site, epoch: engine::epoch(), start: now().0 });
    let _ = POLLING.try_with(|polls| polls.begin(polling));
}

fn after_poll(task: &TaskMeta<'_>) {
    let Some(polling) = POLLING.try_with(Polls::end).ok().flatten() else {
        return;
    };
    if polling.site.is_on() && polling.epoch == engine::epoch() {
        let event =
            Event { event_type: EventType::DurationComplete, start: Some(polling.start), extra: None };
        let of = BAR | number_of(task);
        write_event_at(polling.site, event, &(of.into_value(), ()), Some(stamp()));
    }
}

fn terminated(task: &TaskMeta<'_>) {
    let (site, number) = (site_of(task), number_of(task));
    if site.is_on() && has_bar(number) {
        write_event(site, bar(EventType::AsyncEnd, number), &());
    }
}
