//! The functions of stacks. Addresses in the text are often relative to a module, so each module gets
//! addresses of its own here.
//= docs/import.md#perf

use foldhash::HashMap;
use std::collections::BTreeMap;
use trace_format::function::MAX_FUNCTION_BYTES;
use trace_linux::KERNEL_START;

/// Each part of a module has its addresses in a region of its own.
pub(super) const REGION_BYTES: u64 = 1 << 40;
/// The maximum number of regions: all of them are below the addresses of the kernel.
const MAX_REGIONS: usize = 1 << 20;
/// Inlined functions have addresses from here on, and no module.
const INLINED: u64 = 1 << 62;
const INLINED_BYTES: u64 = 16;
/// How often different functions may be at one address of a module.
const MAX_VARIANTS: u8 = 64;
/// Maximum memory of functions and regions; further functions have no names.
const MAX_BYTES: usize = 256 << 20;
const ENTRY_BYTES: usize = 64;
/// What perf calls modules of inlined functions, and unknown ones.
const INLINED_MODULE: &[u8] = b"inlined";
const UNKNOWN: &[u8] = b"[unknown]";

/// A line of a stack.
pub(super) struct Frame<'a> {
    pub address: u64,
    pub name: &'a [u8],
    /// From the beginning of the function.
    pub offset: Option<u64>,
    pub module: &'a [u8],
}

pub(super) struct Region {
    pub module: Box<[u8]>,
    pub base: u64,
    /// The address that the text has for the base.
    pub linked_at: u64,
    /// By their beginning: name and length.
    functions: BTreeMap<u64, (Box<[u8]>, u64)>,
}

impl Region {
    /// Whether a function is known here, or overlaps no other one.
    fn fits(&self, start: u64, length: u64, name: &[u8]) -> bool {
        let end = start.saturating_add(length);
        let is_free = |(at, (known, length)): (&u64, &(Box<[u8]>, u64))| {
            at.saturating_add(*length) <= start || *at == start && **known == *name
        };
        self.functions.range(..end).next_back().is_none_or(is_free)
    }
}

#[derive(Default)]
pub(super) struct Functions {
    regions: Vec<Region>,
    /// By module, the upper bits of the address, and the number of the variant.
    numbers: HashMap<(Box<[u8]>, u64, u8), u32>,
    inlined: HashMap<Box<[u8]>, u64>,
    bytes: usize,
    lost: u64,
}

impl Functions {
    /// An address for a frame, and the region that it is in. That of a caller is behind its instruction.
    pub fn address(&mut self, frame: &Frame<'_>, is_caller: bool) -> (u64, Option<u32>) {
        let name = &frame.name[..frame.name.len().min(MAX_FUNCTION_BYTES)];
        if frame.module == INLINED_MODULE {
            return (self.inlined(name, is_caller), None);
        }
        let offset = frame.offset.filter(|offset| *offset <= frame.address).unwrap_or(0);
        let (start, length) = (frame.address - offset, offset + 1);
        for variant in 0..MAX_VARIANTS {
            let high = start / REGION_BYTES;
            let Some(number) = self.number(frame.module, high, variant) else { break };
            let region = &mut self.regions[number as usize];
            if !region.fits(start, length, name) {
                continue;
            }
            if let Some((_, longest)) = region.functions.get_mut(&start) {
                *longest = length.max(*longest);
            } else {
                let bytes = name.len() + ENTRY_BYTES;
                if self.bytes + bytes > MAX_BYTES {
                    break;
                }
                self.bytes += bytes;
                region.functions.insert(start, (name.into(), length));
            }
            let address = region.base.wrapping_add(frame.address.wrapping_sub(region.linked_at));
            let is_first = is_caller && offset == 0;
            let region = (frame.module != UNKNOWN).then_some(number);
            return (address.wrapping_add(u64::from(is_first)), region);
        }
        self.lost += 1;
        (frame.address, None)
    }

    fn inlined(&mut self, name: &[u8], is_caller: bool) -> u64 {
        let next = INLINED + self.inlined.len() as u64 * INLINED_BYTES;
        let known = self.inlined.get(name).copied();
        let start = known.unwrap_or_else(|| {
            let bytes = name.len() + ENTRY_BYTES;
            if self.bytes + bytes > MAX_BYTES {
                self.lost += 1;
                return next;
            }
            self.bytes += bytes;
            self.inlined.insert(name.into(), next);
            next
        });
        start + u64::from(is_caller)
    }

    /// The number of a region, which is a new one if there is none yet.
    fn number(&mut self, module: &[u8], high: u64, variant: u8) -> Option<u32> {
        let key = (Box::from(module), high, variant);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let bytes = 2 * module.len() + 4 * ENTRY_BYTES;
        if self.regions.len() >= MAX_REGIONS || self.bytes + bytes > MAX_BYTES {
            return None;
        }
        self.bytes += bytes;
        let number = self.regions.len() as u32;
        let linked_at = high * REGION_BYTES;
        // The kernel's functions stay where they are.
        let is_kernel = linked_at >= KERNEL_START && variant == 0;
        let base = if is_kernel { linked_at } else { (u64::from(number) + 1) * REGION_BYTES };
        self.regions.push(Region { module: module.into(), base, linked_at, functions: BTreeMap::new() });
        self.numbers.insert(key, number);
        Some(number)
    }

    pub fn region(&self, number: u32) -> &Region {
        &self.regions[number as usize]
    }

    /// All of them: begin, length, name.
    pub fn all(&self) -> impl Iterator<Item = (u64, u64, &[u8])> {
        let regular = self.regions.iter().flat_map(|region| {
            region.functions.iter().map(|(start, (name, length))| {
                (region.base.wrapping_add(start.wrapping_sub(region.linked_at)), *length, &**name)
            })
        });
        regular.chain(self.inlined.iter().map(|(name, start)| (*start, INLINED_BYTES, &**name)))
    }

    /// How many frames have no room for their function.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}
