//! A thread that is held up between its ticket and the exchange on the slab's word, while others go round.

use crate::Memory;
use crate::claim::{Claim, Refusal, SlabAllocator, SlabWords};
use crate::sync::{AtomicU64, Ordering, thread};
use loom::sync::Arc;
use std::cell::RefCell;
use trace_format::buffer::BufferMode;
use trace_format::slab::{SlabState, SlabWord};

/// What happens while a thread is held up.
type Meanwhile<'a> = Box<dyn FnOnce() + 'a>;

/// The memory as a thread sees it that is held up when it first looks at a slab: it has its ticket by then.
struct HeldUp<'a> {
    memory: &'a Memory,
    meanwhile: RefCell<Option<Meanwhile<'a>>>,
}

impl SlabWords for HeldUp<'_> {
    fn slab_word(&self, slab: u32) -> &AtomicU64 {
        let meanwhile = self.meanwhile.borrow_mut().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        self.memory.slab_word(slab)
    }
}

/// SlabAllocator a single slab of a thread that is held up.
fn take_late<'a>(
    claims: &'a SlabAllocator,
    memory: &'a Memory,
    meanwhile: impl FnOnce() + 'a,
) -> Result<Claim, Refusal> {
    let held_up = HeldUp { memory, meanwhile: RefCell::new(Some(Box::new(meanwhile))) };
    claims.take(&held_up, 1, |slab, _| memory.write(slab, 0))
}

/// One slab, a record with the number of its sequence, and out again.
fn write(claims: &SlabAllocator, memory: &Memory) -> Result<u64, Refusal> {
    let claim = claims.take(memory, 1, |slab, _| memory.write(slab, 0))?;
    memory.open(claim.slab, claim.ticket + 1);
    memory.write(claim.slab, claim.ticket + 1);
    memory.close(claim.slab);
    Ok(claim.ticket + 1)
}

fn word(memory: &Memory, slab: u32) -> SlabWord {
    SlabWord(memory.words[slab as usize].load(Ordering::Relaxed))
}

/// A half was saved and filled anew meanwhile: what is in it stays until it is saved.
//= docs/buffer.md#late-threads
#[test]
fn a_late_thread_of_a_stream_takes_nothing_that_was_written_since() {
    loom::model(|| {
        let claims = SlabAllocator::new(BufferMode::Streaming, 1);
        let memory = Memory::new(2);
        let late = take_late(&claims, &memory, || {
            assert_eq!(write(&claims, &memory), Ok(2));
            claims.hand_over_half(0);
            claims.release_half(0);
            assert_eq!(write(&claims, &memory), Ok(3));
        });
        assert_eq!(late, Err(Refusal::NotRetired));
        assert_eq!(word(&memory, 0), SlabWord::new(3, SlabState::Closed, 1));
        assert_eq!(memory.read(0), 3);
    });
}

/// In a ring it takes the oldest slab there is, like all others, with a ticket that is as new.
//= docs/buffer.md#late-threads
#[test]
fn a_late_thread_of_a_ring_comes_behind_what_was_written_since() {
    loom::model(|| {
        let claims = SlabAllocator::new(BufferMode::Circular, 1);
        let memory = Memory::new(2);
        let late = take_late(&claims, &memory, || {
            for sequence in 2..=4 {
                assert_eq!(write(&claims, &memory), Ok(sequence));
            }
        });
        assert_eq!(late, Ok(Claim { slab: 0, ticket: 4 }));
        assert_eq!(memory.read(1), 4);
    });
}

/// What was given back of a run that was not whole is as new as the run: a late thread does not take it with
/// a ticket of the round before.
//= docs/buffer.md#late-threads
#[test]
fn a_late_thread_does_not_take_what_a_later_run_gave_back() {
    loom::model(|| {
        let claims = SlabAllocator::new(BufferMode::Circular, 2);
        let memory = Memory::new(4);
        let late = take_late(&claims, &memory, || {
            let held = claims.take(&memory, 1, |slab, _| memory.write(slab, 0)).unwrap();
            assert_eq!(held, Claim { slab: 1, ticket: 1 });
            let run = || claims.take(&memory, 2, |slab, _| memory.write(slab, 0));
            assert_eq!(run(), Ok(Claim { slab: 2, ticket: 2 }));
            for slab in [2, 3] {
                memory.open(slab, u64::from(slab) + 1);
                memory.close(slab);
            }
            // Slab 1 is in use: slab 0 is given back, and the run behind it is taken.
            assert_eq!(run(), Ok(Claim { slab: 2, ticket: 6 }));
            assert_eq!(word(&memory, 0), SlabWord::given_back(5));
        });
        assert_eq!(late, Ok(Claim { slab: 0, ticket: 8 }));
    });
}

/// Every interleaving of a thread that claims once with one that goes round: no claim gets what is newer.
//= docs/buffer.md#late-threads
#[test]
fn no_claim_takes_what_is_newer_than_its_ticket() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let claims = Arc::new(SlabAllocator::new(BufferMode::Streaming, 1));
        let memory = Arc::new(Memory::new(2));
        let (other_claims, other_memory) = (claims.clone(), memory.clone());
        let late = thread::spawn(move || write(&other_claims, &other_memory));
        let mut newest = write(&claims, &memory);
        // Nothing of the half is in use or unsaved: it comes back.
        if claims.claimed_in_half(0) == 1 && claims.in_use(&*memory, 0).is_empty() {
            claims.retire_half(0);
            claims.hand_over_half(0);
            claims.release_half(0);
            newest = write(&claims, &memory).or(newest);
        }
        let late = late.join().unwrap();
        for sequence in [newest, late].into_iter().flatten() {
            // The half of sequence 1 was saved.
            let slab = (sequence - 1) as u32 % 2;
            let found = word(&memory, slab).sequence();
            assert!(found == sequence || sequence == 1, "{sequence} has vanished under {found}");
        }
    });
}
