//! Records that the kernel writes for a profile.

use super::modules::Mapping;
use crate::perf::{COMM, FORK, IS_EXEC, LOST, Synchronized, TRAILER_BYTES};

/// Kinds of records, as the kernel numbers them.
const EXIT: u32 = 4;
pub(super) const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
/// Values from here on are no addresses, but mark the context of the following frames.
const FIRST_MARK: u64 = u64::MAX - 4094;
/// The following frames are those of the program.
const USER_MARK: u64 = u64::MAX - 511;
/// The code of programs is below: of all page tables, those of five levels have the most for them. A word
/// of a stack from here on was taken for a return address, and is none.
pub const END_OF_PROGRAMS: u64 = 1 << 56;
/// Registers of a program with 64 bits.
const ABI_64: u64 = 2;

/// The registers of a sample, as the kernel numbers them: frame pointer, stack pointer, program counter.
#[cfg(target_arch = "x86_64")]
pub const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// The registers of a sample, as the kernel numbers them: frame pointer, link register, stack pointer,
/// program counter.
#[cfg(target_arch = "aarch64")]
pub const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
/// No registers: this architecture's stacks are not unwound.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const REGISTERS: u64 = 0;

/// An event of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its time, in ticks.
    pub at: u64,
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The event.
    pub what: What,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The thread was running.
    Sample(Sample),
    /// Code was mapped.
    Map(Mapping),
    /// The thread has a new name.
    Name {
        /// The name.
        name: Vec<u8>,
        /// It comes from the start of a program.
        is_program: bool,
    },
    /// There is a new thread.
    Thread {
        /// Its process.
        process: u32,
        /// Its number.
        thread: u32,
        /// The process that made it.
        parent: u32,
    },
    /// A thread has ended.
    Exit,
    /// The given number of records had no room.
    Lost(u64),
}

/// The stack of a thread. Addresses are innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// In the kernel.
    pub kernel: Vec<u64>,
    /// In the program, found by the kernel along the frame pointers; up to the first word that is no address.
    pub user: Vec<u64>,
    /// The program's registers, if they are known.
    pub registers: Option<Registers>,
    /// The memory from the stack pointer on, as far as it was copied.
    pub stack: Vec<u8>,
}

/// The registers that unwinding begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Program counter.
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Link register; 0 if there is none.
    pub lr: u64,
}

/// Reads a record from its beginning.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    fn words(&mut self, count: u64) -> Option<impl Iterator<Item = u64>> {
        let bytes = self.bytes(count.checked_mul(8)?)?;
        Some(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)))
    }
}

impl Sample {
    /// The part after process, thread, time and CPU.
    fn parse(words: &mut Words<'_>) -> Option<Self> {
        let mut sample = Self::default();
        let count = words.word()?;
        let mut is_user = true;
        let mut is_lost = false;
        for frame in words.words(count)? {
            match frame {
                FIRST_MARK.. => is_user = frame == USER_MARK,
                _ if !is_user => sample.kernel.push(frame),
                _ => {
                    is_lost |= frame >= END_OF_PROGRAMS;
                    if !is_lost {
                        sample.user.push(frame);
                    }
                }
            }
        }
        // If no registers were requested, nothing more comes.
        let Some(abi) = words.word() else {
            return Some(sample);
        };
        if abi != 0 {
            let registers = Registers::parse(words)?;
            sample.registers = (abi == ABI_64).then_some(registers);
        }
        let size = words.word()?;
        if size > 0 {
            let copied = words.bytes(size)?;
            let used = usize::try_from(words.word()?).ok()?.min(copied.len());
            sample.stack = copied.get(..used)?.to_vec();
        }
        Some(sample)
    }
}

impl Registers {
    /// In the order of the kernel's numbers.
    fn parse(words: &mut Words<'_>) -> Option<Self> {
        let mut registers = words.words(REGISTERS.count_ones().into())?;
        let fp = registers.next()?;
        let lr = if cfg!(target_arch = "aarch64") { registers.next()? } else { 0 };
        Some(Self { fp, lr, sp: registers.next()?, pc: registers.next()? })
    }
}

impl Item {
    /// None for irrelevant records, and for incomplete ones.
    pub fn parse(kind: u32, flags: u16, bytes: &[u8], clock: &Synchronized) -> Option<Self> {
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        if kind == SAMPLE {
            let what = What::Sample(Sample::parse(&mut Words(bytes.get(24..)?))?);
            return Some(Self { process: u32_at(0)?, thread: u32_at(4)?, at: clock.ticks(u64_at(8)?), what });
        }
        let body = bytes.len().checked_sub(TRAILER_BYTES)?;
        let what = match kind {
            MMAP2 => What::Map(Mapping {
                start: u64_at(8)?,
                length: u64_at(16)?,
                offset: u64_at(24)?,
                inode: u64_at(40)?,
                file: crate::format::cut(bytes.get(64..body)?).to_vec(),
            }),
            COMM => What::Name {
                name: crate::format::cut(bytes.get(8..body)?).to_vec(),
                is_program: flags & IS_EXEC != 0,
            },
            FORK => What::Thread { process: u32_at(0)?, parent: u32_at(4)?, thread: u32_at(8)? },
            EXIT => What::Exit,
            LOST => What::Lost(u64_at(8)?),
            _ => return None,
        };
        let at = clock.ticks(u64_at(body + 8)?);
        Some(Self { process: u32_at(body)?, thread: u32_at(body + 4)?, at, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLOCK: Synchronized = Synchronized { nanos: 1000, ticks: 5000, rate: 2_000_000_000 };
    const OWN: u64 = 7 | 8 << 32;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn item(what: What) -> Item {
        Item { at: 5020, process: 7, thread: 8, what }
    }

    //= docs/kernel.md#profiles
    #[test]
    fn samples_have_frames_of_the_kernel_and_of_the_program() {
        const KERNEL_MARK: u64 = u64::MAX - 127;
        let record = [OWN, 1010, 1, 6, KERNEL_MARK, 0xffff_ffff_8000_0000, USER_MARK, 0x1000, 0x2000, 0x3000];
        let sample = Sample {
            kernel: vec![0xffff_ffff_8000_0000],
            user: vec![0x1000, 0x2000, 0x3000],
            ..Sample::default()
        };
        let parsed = Item::parse(SAMPLE, 0, &bytes(&record), &CLOCK);
        assert_eq!(parsed, Some(item(What::Sample(sample))));
        // More frames than there are.
        assert_eq!(Item::parse(SAMPLE, 0, &bytes(&[OWN, 1010, 1, 4, 1]), &CLOCK), None);
    }

    //= docs/kernel.md#profiles
    #[test]
    fn a_word_that_is_no_address_ends_the_programs_frames() {
        // Without frame pointers, the kernel takes whatever a register leads to.
        for word in [END_OF_PROGRAMS, 0xfaca_fd3b_0000_559c, 0xffff_ffff_8000_0000] {
            let record = [OWN, 1010, 1, 5, USER_MARK, 0x1000, END_OF_PROGRAMS - 1, word, 0x2000];
            let sample = Sample { user: vec![0x1000, END_OF_PROGRAMS - 1], ..Sample::default() };
            let parsed = Item::parse(SAMPLE, 0, &bytes(&record), &CLOCK);
            assert_eq!(parsed, Some(item(What::Sample(sample))));
        }
    }

    //= docs/kernel.md#profiles
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn samples_have_registers_and_the_used_part_of_the_stack() {
        let parse = |behind: &[u64]| {
            let record = [&[OWN, 1010, 1, 2, USER_MARK, 0x1000], behind].concat();
            match Item::parse(SAMPLE, 0, &bytes(&record), &CLOCK)?.what {
                What::Sample(sample) => Some(sample),
                other => panic!("{other:?}"),
            }
        };
        let registers = Registers { fp: 0xf, sp: 0x5, pc: 0x1000, lr: 0 };
        let sample = parse(&[ABI_64, 0xf, 0x5, 0x1000, 24, 1, 2, 3, 16]).unwrap();
        assert_eq!((sample.registers, sample.stack), (Some(registers), bytes(&[1, 2])));
        // A thread of the kernel has none of these, and those of a 32-bit program are of no use.
        let sample = parse(&[0, 0]).unwrap();
        assert_eq!((sample.registers, sample.stack.len()), (None, 0));
        assert_eq!(parse(&[1, 0xf, 0x5, 0x1000, 0]).unwrap().registers, None);
        // One claims that more is used than was copied; one that more was copied than there is.
        assert_eq!(parse(&[ABI_64, 0xf, 0x5, 0x1000, 8, 1, u64::MAX]).unwrap().stack, bytes(&[1]));
        assert_eq!(parse(&[ABI_64, 0xf, 0x5, 0x1000, 64, 1, 8]), None);
        assert_eq!(parse(&[ABI_64, 0xf]), None);
    }

    //= docs/kernel.md#profiles
    #[test]
    fn mappings_and_threads_are_read() {
        let name = u64::from_le_bytes(*b"/bin/ls\0");
        let mmap = bytes(&[OWN, 0x40_0000, 0x1000, 0x2000, 0xfd, 77, 0, 5, name, OWN, 1010, 1]);
        let file = b"/bin/ls".to_vec();
        let mapping = Mapping { start: 0x40_0000, length: 0x1000, offset: 0x2000, inode: 77, file };
        assert_eq!(Item::parse(MMAP2, 0, &mmap, &CLOCK), Some(item(What::Map(mapping))));
        let fork = bytes(&[9 | 7 << 32, 10 | 8 << 32, 0, OWN, 1010, 1]);
        let thread = What::Thread { process: 9, thread: 10, parent: 7 };
        assert_eq!(Item::parse(FORK, 0, &fork, &CLOCK), Some(item(thread)));
        let exit = bytes(&[OWN, OWN, 0, OWN, 1010, 1]);
        assert_eq!(Item::parse(EXIT, 0, &exit, &CLOCK), Some(item(What::Exit)));
    }

    proptest! {
        //= docs/kernel.md#profiles
        #[test]
        fn any_bytes_are_read_without_harm(
            kind in 0..20_u32,
            flags: u16,
            words in proptest::collection::vec(prop_oneof![0..64_u64, any::<u64>()], 0..64),
            cut in 0..8_usize,
        ) {
            let mut bytes = bytes(&words);
            bytes.truncate(bytes.len().saturating_sub(cut));
            let parsed = Item::parse(kind, flags, &bytes, &CLOCK);
            if let Some(Item { what: What::Sample(sample), .. }) = parsed {
                let taken = sample.kernel.len() * 8 + sample.user.len() * 8 + sample.stack.len();
                prop_assert!(taken <= bytes.len());
            }
        }
    }
}
