//! A file's tables for finding the callers of functions. The files may be hostile: no expression in them may
//! loop, for nothing would end it.

use framehop::ExplicitModuleSectionInfo;
use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CieOrFde, CommonInformationEntry,
    DebugFrame, EhFrame, EhFrameHdr, Encoding, EndianSlice, LittleEndian, Operation, UnwindExpression,
    UnwindOffset, UnwindSection,
};
use std::fmt::{self, Formatter};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a section.
pub type Bytes = Arc<[u8]>;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Addresses above would overflow in the sums of unwinding.
pub const MAX_ADDRESS: u64 = 1 << 62;

/// The tables of a file, which all processes share.
#[derive(Clone)]
pub struct Tables {
    /// The linked address of the file.
    pub base: u64,
    /// The sections that hold them.
    pub sections: ExplicitModuleSectionInfo<Bytes>,
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").field("base", &self.base).field("len", &self.len()).finish()
    }
}

impl Tables {
    /// Takes the sections of a file, with their positions and contents; none if it has no tables, or ones
    /// that might not terminate.
    pub fn new(
        base: u64,
        place: impl Fn(&str) -> Option<Range<u64>>,
        data: impl Fn(&str) -> Option<Bytes>,
    ) -> Option<Self> {
        let mut sections = ExplicitModuleSectionInfo { base_svma: base, ..Default::default() };
        (sections.text_svma, sections.got_svma) = (place(".text"), place(".got"));
        if let (Some(range), Some(bytes)) = (place(".eh_frame"), data(".eh_frame")) {
            let mut eh_frame = EhFrame::new(&bytes, LittleEndian);
            eh_frame.set_address_size(8);
            let bases = BaseAddresses::default().set_eh_frame(range.start);
            let entries = finite_entries(&eh_frame, &bases)?;
            if let (Some(range), Some(bytes)) = (place(".eh_frame_hdr"), data(".eh_frame_hdr"))
                && is_index_of(&bytes, &entries, &bases.set_eh_frame_hdr(range.start)).is_some()
            {
                (sections.eh_frame_hdr_svma, sections.eh_frame_hdr) = (Some(range), Some(bytes));
            }
            (sections.eh_frame_svma, sections.eh_frame) = (Some(range), Some(bytes));
        } else {
            let bytes = data(".debug_frame")?;
            let mut debug_frame = DebugFrame::new(&bytes, LittleEndian);
            debug_frame.set_address_size(8);
            finite_entries(&debug_frame, &BaseAddresses::default())?;
            sections.debug_frame = Some(bytes);
        }
        (base < MAX_ADDRESS).then_some(Self { base, sections })
    }

    /// Its bytes.
    pub fn len(&self) -> u64 {
        let Self { sections, .. } = self;
        let all = [&sections.eh_frame, &sections.eh_frame_hdr, &sections.debug_frame];
        all.into_iter().flatten().map(|bytes| bytes.len() as u64).sum()
    }
}

/// The offsets of the functions' entries, in order; none if one of their expressions jumps back, for it may
/// loop.
fn finite_entries<'a, S>(section: &S, bases: &BaseAddresses) -> Option<Vec<usize>>
where
    S: UnwindSection<Slice<'a>>,
{
    let mut offsets = Vec::new();
    let mut entries = section.entries(bases);
    // Most functions share the common entry of the previous one.
    let mut common: Option<CommonInformationEntry<Slice<'a>>> = None;
    // After a malformed entry there are none.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let mut is_new = false;
        let fde = partial.parse(|section, bases, offset| match &common {
            Some(known) if known.offset() == UnwindOffset::into(offset) => Ok(known.clone()),
            _ => {
                is_new = true;
                section.cie_from_offset(bases, offset)
            }
        });
        let Ok(fde) = fde else {
            continue;
        };
        let encoding = fde.cie().encoding();
        if is_new && !are_finite(section, fde.cie().instructions(section, bases), encoding)
            || !are_finite(section, fde.instructions(section, bases), encoding)
        {
            return None;
        }
        if is_new {
            common = Some(fde.cie().clone());
        }
        offsets.push(fde.offset());
    }
    Some(offsets)
}

fn are_finite<'a, S>(
    section: &S,
    mut instructions: CallFrameInstructionIter<'_, Slice<'a>>,
    encoding: Encoding,
) -> bool
where
    S: UnwindSection<Slice<'a>>,
{
    while let Ok(Some(instruction)) = instructions.next() {
        let expression = match instruction {
            CallFrameInstruction::DefCfaExpression { expression }
            | CallFrameInstruction::Expression { expression, .. }
            | CallFrameInstruction::ValExpression { expression, .. } => expression,
            _ => continue,
        };
        if !is_finite(section, &expression, encoding) {
            return false;
        }
    }
    true
}

fn is_finite<'a, S>(section: &S, expression: &UnwindExpression<usize>, encoding: Encoding) -> bool
where
    S: UnwindSection<Slice<'a>>,
{
    let Ok(expression) = expression.get(section) else {
        return true;
    };
    let mut operations = expression.operations(encoding);
    loop {
        match operations.next() {
            Ok(Some(Operation::Skip { target } | Operation::Bra { target })) if target < 0 => return false,
            Ok(Some(_)) => {}
            Ok(None) => return true,
            // The bytes after it could be jumped to.
            Err(_) => return false,
        }
    }
}

/// Whether an index leads only to these entries.
fn is_index_of(bytes: &[u8], entries: &[usize], bases: &BaseAddresses) -> Option<()> {
    let header = EhFrameHdr::new(bytes, LittleEndian).parse(bases, 8).ok()?;
    let table = header.table()?;
    let mut rows = table.iter(bases);
    while let Some((_, pointer)) = rows.next().ok()? {
        let offset = table.pointer_to_offset(pointer).ok()?;
        entries.binary_search(&UnwindOffset::into(offset)).ok()?;
    }
    Some(())
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// How a function at 0x1000, of 0x100 bytes, finds its caller.
    pub enum Rule<'a> {
        /// The given number of bytes above the stack pointer, below which the return address is.
        StackPointer(u8),
        /// At the value of an expression.
        Expression(&'a [u8]),
        /// It has none.
        NoCaller,
        /// By other instructions.
        Instructions(&'a [u8]),
    }

    /// A common entry, and one of that function at the offset 24.
    pub fn eh_frame(rule: &Rule<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut entry = |body: &[u8]| {
            let padding = (4 - body.len() % 4) % 4;
            bytes.extend(u32::try_from(body.len() + padding).unwrap().to_le_bytes());
            bytes.extend(body);
            bytes.extend(std::iter::repeat_n(0, padding));
        };
        // Version 1, no augmentation, factors 1 and -8, return address in register 16, which is 8 bytes below
        // the frame.
        entry(&[0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0]);
        let mut function = 28_u32.to_le_bytes().to_vec();
        function.extend([0x1000_u64, 0x100].map(u64::to_le_bytes).as_flattened());
        match rule {
            Rule::StackPointer(bytes) => function.extend([0x0e, *bytes]),
            Rule::Expression(expression) => {
                function.extend([0x0f, u8::try_from(expression.len()).unwrap()]);
                function.extend(*expression);
            }
            Rule::NoCaller => function.extend([0x07, 16]),
            Rule::Instructions(instructions) => function.extend(*instructions),
        }
        entry(&function);
        bytes.extend([0; 4]);
        bytes
    }

    pub fn tables(rule: &Rule<'_>) -> Option<Tables> {
        let bytes = Bytes::from(eh_frame(rule));
        let place = 0x2000..0x2000 + bytes.len() as u64;
        let is_it = |name: &str| name == ".eh_frame";
        let place = |name: &str| is_it(name).then(|| place.clone());
        Tables::new(0, place, |name| is_it(name).then(|| bytes.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{Rule, eh_frame, tables};
    use super::*;

    //= docs/kernel.md#profiles
    #[test]
    fn tables_with_expressions_that_go_back_are_refused() {
        let is_taken = |expression: &[u8]| tables(&Rule::Expression(expression)).is_some();
        // Stack pointer and 8; the same behind a step forward.
        assert!(is_taken(&[0x77, 8]));
        assert!(is_taken(&[0x77, 8, 0x2f, 0, 0]));
        // To itself, always and sometimes.
        assert!(!is_taken(&[0x2f, 0xfd, 0xff]));
        assert!(!is_taken(&[0x31, 0x28, 0xfc, 0xff]));
        // No operation.
        assert!(!is_taken(&[0x77, 8, 0x02]));
    }

    //= docs/kernel.md#profiles
    #[test]
    fn an_index_that_leads_elsewhere_is_not_used() {
        let bytes = Bytes::from(eh_frame(&Rule::StackPointer(8)));
        let with_index = |entry: u32| {
            // Version 1, all of 4 bytes: the tables, one row, which is function and entry.
            let mut index = vec![1, 0x03, 0x03, 0x03];
            index.extend([0x2000_u32, 1, 0x1000, 0x2000 + entry].map(u32::to_le_bytes).as_flattened());
            let index = Bytes::from(index);
            let place = |name: &str| match name {
                ".eh_frame" => Some(0x2000..0x3000),
                ".eh_frame_hdr" => Some(0x1f00..0x2000),
                _ => None,
            };
            let tables = Tables::new(0, place, |name| match name {
                ".eh_frame" => Some(bytes.clone()),
                ".eh_frame_hdr" => Some(index.clone()),
                _ => None,
            });
            tables.unwrap().sections.eh_frame_hdr.is_some()
        };
        assert!(with_index(24));
        assert!(!with_index(28));
    }
}
