//! What pages get of a recording: the last minute of updates, from which each connection takes the next one
//! when it has room for it.
//!
//! No connection has a queue, and the thread that reads the recording waits for none: a page that is slow
//! goes on with the newest update, and gets to know how many are missing.
//= docs/live.md#in-a-browser

use hyper::body::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use trace_report::live::Message;

/// Updates that are kept: of a minute.
const KEPT: usize = 600;
/// Bytes of them.
const KEPT_BYTES: usize = 32 << 20;
/// Bytes of names that a connection gets at a time: a page that does not read has no copy of all of them.
const NAMES_BYTES: usize = 64 << 10;
/// A page that has had everything may be so many updates behind.
const MAX_BEHIND: u64 = 16;

/// The updates, for all connections.
#[derive(Debug, Default)]
pub struct Hub(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Names and numbers, of the whole recording.
    names: Vec<Bytes>,
    /// The slices that have not ended.
    open: Bytes,
    updates: VecDeque<Bytes>,
    bytes: usize,
    /// The number of the first update that is kept.
    first: u64,
    /// The event with how it has ended.
    end: Option<Bytes>,
    /// Connections close after the end.
    is_closed: bool,
    waiting: Vec<Waker>,
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.updates.len() as u64
    }
}

/// An event of a stream. The data is a line.
fn event(name: &str, data: &str) -> Bytes {
    let name = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
    format!("{name}data: {data}\n\n").into()
}

impl Hub {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Adds what is new.
    pub fn push(&self, message: &Message) {
        let names = (!message.names.is_empty()).then(|| event("names", &message.names));
        let open = message.open.as_ref().map(|open| event("unfinished", open));
        let update = event("", &message.update);
        self.change(|state| {
            state.names.extend(names);
            if let Some(open) = open {
                state.open = open;
            }
            state.bytes += update.len();
            state.updates.push_back(update);
            while state.updates.len() > KEPT || state.bytes > KEPT_BYTES {
                let Some(old) = state.updates.pop_front() else { break };
                state.bytes -= old.len();
                state.first += 1;
            }
        });
    }

    /// Says how it has ended, in a text that pages show.
    pub fn end(&self, how: &str) {
        let end = event("end", &serde_json::json!({ "how": how }).to_string());
        self.change(|state| state.end = Some(end));
    }

    /// Closes connections that have come to the end.
    pub fn close(&self) {
        self.change(|state| state.is_closed = true);
    }
}

/// The stream of one connection.
#[derive(Debug)]
pub struct Events {
    hub: Arc<Hub>,
    names: usize,
    next: u64,
    /// Whether it has had the slices that were open when it came.
    has_open: bool,
    /// Whether it has had everything once.
    has_caught_up: bool,
    has_ended: bool,
}

impl Events {
    /// A stream of everything that is kept, and what follows.
    pub fn new(hub: Arc<Hub>) -> Self {
        let next = hub.state().first;
        Self { hub, names: 0, next, has_open: false, has_caught_up: false, has_ended: false }
    }

    /// The next events; none at the end.
    pub fn poll(&mut self, context: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.hub.state();
        // Updates use only names that came before.
        if self.names < state.names.len() {
            let mut new = state.names[self.names].clone();
            self.names += 1;
            if new.len() < NAMES_BYTES {
                let mut several = Vec::from(new);
                while let Some(next) = state.names.get(self.names)
                    && several.len() + next.len() <= NAMES_BYTES
                {
                    several.extend_from_slice(next);
                    self.names += 1;
                }
                new = several.into();
            }
            return Poll::Ready(Some(new));
        }
        if !self.has_open {
            self.has_open = true;
            if !state.open.is_empty() {
                return Poll::Ready(Some(state.open.clone()));
            }
        }
        let next = state.next();
        let is_late = self.next < state.first || self.has_caught_up && next - self.next > MAX_BEHIND;
        if is_late && next > self.next {
            let missed = next - 1 - self.next;
            self.next = next - 1;
            // What has ended meanwhile is not among those that are open.
            self.has_open = false;
            return Poll::Ready(Some(event("missed", &missed.to_string())));
        }
        let place = usize::try_from(self.next - state.first).unwrap_or(usize::MAX);
        if let Some(update) = state.updates.get(place) {
            let update = update.clone();
            self.next += 1;
            self.has_caught_up |= self.next == next;
            return Poll::Ready(Some(update));
        }
        if let Some(end) = &state.end {
            if !self.has_ended {
                self.has_ended = true;
                return Poll::Ready(Some(end.clone()));
            }
            if state.is_closed {
                return Poll::Ready(None);
            }
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(update: &str, names: &str) -> Message {
        Message { names: names.to_owned(), open: None, update: update.to_owned() }
    }

    /// Everything that a stream has now.
    fn rest(events: &mut Events) -> Vec<String> {
        let context = Context::from_waker(Waker::noop());
        let mut all = Vec::new();
        while let Poll::Ready(Some(bytes)) = events.poll(&context) {
            all.push(String::from_utf8(bytes.to_vec()).unwrap());
        }
        all
    }

    #[test]
    fn a_page_that_comes_later_gets_what_is_kept() {
        let hub = Arc::new(Hub::default());
        hub.push(&message("1", "a"));
        hub.push(&Message { open: Some("o".to_owned()), ..message("2", "b") });
        let mut events = Events::new(hub.clone());
        let names = "event: names\ndata: a\n\nevent: names\ndata: b\n\n";
        assert_eq!(
            rest(&mut events),
            [names, "event: unfinished\ndata: o\n\n", "data: 1\n\n", "data: 2\n\n"]
        );
        assert_eq!(rest(&mut events), [""; 0]);
        hub.push(&message("3", "c"));
        assert_eq!(rest(&mut events), ["event: names\ndata: c\n\n", "data: 3\n\n"]);
        hub.end("it has ended");
        assert_eq!(rest(&mut events), ["event: end\ndata: {\"how\":\"it has ended\"}\n\n"]);
        let context = Context::from_waker(Waker::noop());
        assert!(events.poll(&context).is_pending());
        hub.close();
        assert_eq!(events.poll(&context), Poll::Ready(None));
    }

    #[test]
    fn a_slow_page_goes_on_with_the_newest_and_gets_to_know_what_it_missed() {
        let hub = Arc::new(Hub::default());
        let mut events = Events::new(hub.clone());
        hub.push(&Message { open: Some("o".to_owned()), ..message("0", "") });
        assert_eq!(rest(&mut events).len(), 2);
        for update in 1..=MAX_BEHIND {
            hub.push(&message(&update.to_string(), ""));
        }
        assert_eq!(rest(&mut events).len() as u64, MAX_BEHIND);
        for update in 0..=MAX_BEHIND {
            hub.push(&message(&format!("later {update}"), ""));
        }
        let last = format!("data: later {MAX_BEHIND}\n\n");
        assert_eq!(
            rest(&mut events),
            ["event: missed\ndata: 16\n\n", "event: unfinished\ndata: o\n\n", &last]
        );
        // Memory is bounded, also for a page that has had nothing yet.
        let mut late = Events::new(hub.clone());
        for _ in 0..KEPT {
            hub.push(&message("x", ""));
        }
        let large = "y".repeat(KEPT_BYTES / 4);
        (0..5).for_each(|_| hub.push(&message(&large, "")));
        let state = hub.state();
        assert!(state.bytes <= KEPT_BYTES && state.updates.len() <= 4, "{}", state.bytes);
        drop(state);
        let all = rest(&mut late);
        assert_eq!(all[1], format!("event: missed\ndata: {}\n\n", 2 * MAX_BEHIND as usize + 2 + KEPT + 4));
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn names_come_in_pieces_however_many_there_are() {
        let hub = Arc::new(Hub::default());
        let names = "n".repeat(NAMES_BYTES / 10);
        (0..100).for_each(|_| hub.push(&message("1", &names)));
        let large = "l".repeat(3 * NAMES_BYTES);
        hub.push(&message("2", &large));
        let all = rest(&mut Events::new(hub));
        let pieces: Vec<&String> = all.iter().take_while(|event| event.starts_with("event: names")).collect();
        // Nine are in each, and the large one is not copied.
        assert_eq!(pieces.len(), 13);
        assert!(pieces[..12].iter().all(|piece| piece.len() <= NAMES_BYTES));
        let all_names: usize = pieces.iter().map(|piece| piece.matches(['n', 'l']).count()).sum();
        assert_eq!(all_names, 100 * names.len() + large.len() + 101 * "event: names".matches('n').count());
        assert_eq!(all.len(), 13 + 101);
    }

    #[test]
    fn a_waiting_stream_is_woken() {
        let hub = Arc::new(Hub::default());
        let mut events = Events::new(hub.clone());
        struct Count(std::sync::atomic::AtomicUsize);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let count = Arc::new(Count(0.into()));
        let waker = Waker::from(count.clone());
        let context = Context::from_waker(&waker);
        assert!(events.poll(&context).is_pending() && events.poll(&context).is_pending());
        hub.push(&message("1", ""));
        assert_eq!(count.0.load(std::sync::atomic::Ordering::Relaxed), 1);
    }
}
