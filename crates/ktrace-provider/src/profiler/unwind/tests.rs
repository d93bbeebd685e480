use super::*;
use crate::profiler::sample::Registers;
use crate::profiler::tables::testing::{Rule, tables};
use proptest::prelude::*;

/// Where the code of the tests is, which was linked at 0x1000.
const CODE: u64 = 0x55_0000_1000;
const STACK: u64 = 0x7fff_0000_0000;

fn unwinder(rule: &Rule<'_>) -> (Unwinder, Cache) {
    let (mut unwinder, mut cache) = (Unwinder::default(), Cache::default());
    unwinder.add(CODE..CODE + 0x100, 0x1000, &tables(rule).unwrap(), &mut cache);
    (unwinder, cache)
}

fn sample(stack: &[u64]) -> Sample {
    let registers = Registers { pc: CODE + 0x10, sp: STACK, fp: 1, lr: CODE + 0x20 };
    let stack = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    Sample { registers: Some(registers), stack, ..Sample::default() }
}

//= docs/kernel.md#profiles
#[test]
#[cfg(target_arch = "x86_64")]
fn callers_are_found_without_frame_pointers() {
    // Each function has 24 bytes on the stack, the return address included.
    let (unwinder, mut cache) = unwinder(&Rule::StackPointer(24));
    let stack = [7, 7, CODE + 0x30, 7, 7, CODE + 0x50, 7, 7, 0];
    let unwound = unwinder.unwind(&sample(&stack), &mut cache).unwrap();
    assert_eq!(unwound.frames, [CODE + 0x10, CODE + 0x30, CODE + 0x50]);
    // More was called than was copied.
    let unwound = unwinder.unwind(&sample(&stack[..4]), &mut cache).unwrap();
    assert_eq!(unwound, Unwound { frames: vec![CODE + 0x10, CODE + 0x30], is_whole: false });
    // A word that is no address is where it ends.
    let unwound = unwinder.unwind(&sample(&[7, 7, END_OF_PROGRAMS, 7, 7, 0]), &mut cache).unwrap();
    assert_eq!(unwound, Unwound { frames: vec![CODE + 0x10], is_whole: false });
    assert_eq!(unwinder.unwind(&Sample { registers: None, ..sample(&stack) }, &mut cache), None);
}

//= docs/kernel.md#profiles
#[test]
#[cfg(target_arch = "x86_64")]
fn a_stack_ends_where_a_function_has_no_caller() {
    let (unwinder, mut cache) = unwinder(&Rule::NoCaller);
    let unwound = unwinder.unwind(&sample(&[1, 2, 3]), &mut cache).unwrap();
    assert_eq!(unwound, Unwound { frames: vec![CODE + 0x10], is_whole: true });
    // By expressions, which find the same as the plain rule.
    let (unwinder, mut cache) = self::unwinder(&Rule::Expression(&[0x77, 16]));
    let unwound = unwinder.unwind(&sample(&[7, CODE + 0x30, 7, 0]), &mut cache).unwrap();
    assert_eq!(unwound.frames, [CODE + 0x10, CODE + 0x30]);
}

//= docs/kernel.md#profiles
#[test]
#[cfg(target_arch = "x86_64")]
fn code_that_is_gone_is_not_unwound_by() {
    let (mut unwinder, mut cache) = unwinder(&Rule::StackPointer(8));
    let stack = [CODE + 0x30, CODE + 0x40, 0];
    assert_eq!(unwinder.unwind(&sample(&stack), &mut cache).unwrap().frames.len(), 3);
    unwinder.remove(CODE, &mut cache);
    assert_eq!(unwinder.unwind(&sample(&stack), &mut cache).unwrap().frames, [CODE + 0x10]);
}

//= docs/kernel.md#profiles
#[test]
fn a_stack_without_end_has_as_many_frames_as_a_record() {
    let (unwinder, mut cache) = unwinder(&Rule::StackPointer(8));
    let unwound = unwinder.unwind(&sample(&[CODE + 0x30; 4000]), &mut cache).unwrap();
    if cfg!(target_arch = "x86_64") {
        assert_eq!((unwound.frames.len(), unwound.is_whole), (MAX_FRAMES, false));
    }
}

proptest! {
    //= docs/kernel.md#profiles
    #[test]
    fn hostile_tables_and_stacks_do_no_harm(
        expression in proptest::collection::vec(any::<u8>(), 0..40),
        is_expression: bool,
        stack in proptest::collection::vec(prop_oneof![CODE..CODE + 0x100, any::<u64>()], 0..200),
        pc in prop_oneof![CODE..CODE + 0x100, any::<u64>()],
        sp in prop_oneof![0..64_u64, STACK - 64..STACK + 64, any::<u64>()],
        fp: u64,
        lr: u64,
    ) {
        let rule = if is_expression { Rule::Expression(&expression) } else { Rule::Instructions(&expression) };
        let (mut unwinder, mut cache) = (Unwinder::default(), Cache::default());
        if let Some(tables) = tables(&rule) {
            unwinder.add(CODE..CODE + 0x100, 0x1000, &tables, &mut cache);
        }
        let sample = Sample { registers: Some(Registers { pc, sp, fp, lr }), ..sample(&stack) };
        let unwound = unwinder.unwind(&sample, &mut cache).unwrap();
        prop_assert!(unwound.frames.len() <= MAX_FRAMES);
        prop_assert!(unwound.frames.iter().all(|frame| *frame < END_OF_PROGRAMS));
        // What was remembered leads to the same.
        prop_assert_eq!(unwinder.unwind(&sample, &mut cache), Some(unwound));
    }
}
