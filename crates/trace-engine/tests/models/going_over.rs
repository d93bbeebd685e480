//! A recording that goes over to another buffer, in every interleaving.
#![allow(unsafe_code)]

use crate::buffer::record_writer::RecordWriter;
use crate::models::check::check;
use crate::models::world::{World, Written, header, never};
use crate::session::hold::Hold;
use crate::sync::{Arc, AtomicU32, Ordering, fence};
use trace_format::buffer::BufferMode;

const WORDS: usize = 2;

/// The buffer so far, and the one that is gone over to.
struct Buffers {
    worlds: [World; 2],
    /// Which of them threads find.
    current: AtomicU32,
    hold: Hold,
}

impl Buffers {
    fn new() -> Self {
        let first = World::new(BufferMode::Oneshot, 2, 4, 1);
        let second = World::beside(&first);
        Self { worlds: [first, second], current: AtomicU32::new(0), hold: Hold::new() }
    }

    /// The hot path, which finds no more than the space of the thread; false if that is too small.
    fn write_hot(&self, number: u64) -> bool {
        let block = self.worlds[0].blocks[0];
        let counter = block.enter_outermost().expect("outside of events");
        // In the place of the dispatcher's `membarrier`.
        fence(Ordering::SeqCst);
        let own = block.first_slab();
        let cursor = own.cursor();
        let next = cursor + WORDS * 8;
        let has_room = next <= own.end();
        if has_room {
            let header = header(0, number, WORDS);
            // SAFETY: below the end of the thread's slab.
            let mut record = unsafe { RecordWriter::new(cursor, WORDS) };
            record.word(header);
            own.count_event();
            record.commit(header);
            own.advance(next);
        }
        block.leave_outermost(counter);
        has_room
    }

    /// An event of the thread.
    fn write(&self, number: u64) -> Written {
        if !self.write_hot(number) {
            let block = self.worlds[0].blocks[0];
            self.hold.enter(block);
            let world = &self.worlds[self.current.load(Ordering::SeqCst) as usize];
            let written = world.write_in(block, 0, number, WORDS);
            block.leave();
            assert!(written.is_ok(), "an event is lost");
        }
        (0, number)
    }

    /// What the dispatcher does; what is in the buffer then.
    fn go_over(&self) -> Vec<Written> {
        let closed = self.hold.close_references(0);
        assert!(closed.wait_until_out(never()));
        assert_eq!(closed.stop(self.worlds[0].slabs(), never()), 0);
        let found = self.worlds[0].all_records();
        self.current.store(1, Ordering::SeqCst);
        drop(closed);
        found
    }
}

/// Nothing is lost, nothing is in both, and the buffer that was left stays as it is.
//= docs/buffer.md#another-buffer
#[test]
fn an_event_is_in_one_buffer_or_the_other() {
    check(3, |order| {
        let buffers = Arc::new(Buffers::new());
        // So that the thread has space that has to be taken away.
        let mut kept = vec![buffers.write(0)];
        let (found, more) = order.play(&buffers, Buffers::go_over, |buffers| {
            (1..3).map(|number| buffers.write(number)).collect::<Vec<_>>()
        });
        kept.extend(more);
        let [first, second] = &buffers.worlds;
        assert_eq!(first.all_records(), found, "it was written to behind its end");
        second.stop();
        let mut all = found;
        all.extend(second.all_records());
        assert_eq!(all, kept, "in order, each once");
    });
}
