//! The stacks of a thread as a tree: each has a frame and the stack that it was called from.

use crate::export::threads::Names;
use crate::json::Json;
use std::collections::BTreeMap;
use std::io::{self, Write};
use trace_reader::Numbered;

/// Different stacks of a thread; of further ones, the part that is known is shown.
const MAX_STACKS: usize = 1 << 20;
/// A resource of this type is a library.
const LIBRARY: u32 = 1;

/// The stacks of a thread.
#[derive(Default)]
pub struct Stacks {
    /// Frame and caller of each.
    stacks: Numbered<(u32, Option<u32>)>,
    /// Names of the frames.
    frames: Numbered<u32>,
    /// Stacks that there was no room for.
    pub dropped: u64,
}

impl Stacks {
    /// The stack of a name called from another stack.
    pub fn number(&mut self, caller: Option<u32>, what: u32) -> Option<u32> {
        let frame = self.frames.number(what, usize::MAX)?;
        let number = self.stacks.number((frame, caller), MAX_STACKS);
        self.dropped += u64::from(number.is_none());
        number.or(caller)
    }

    /// Writes the tables, as members of the thread. Names of samples have a module, those of slices a
    /// category.
    pub fn write<W: Write>(
        &self,
        names: &Names,
        category: impl Fn(&str) -> Option<u32>,
        strings: &mut Names,
        json: &mut Json<W>,
    ) -> io::Result<()> {
        let (stacks, frames) = (self.stacks.list(), self.frames.list());
        let all = |value: Option<i64>| std::iter::repeat_n(value, frames.len());
        let mut resources: BTreeMap<&str, i64> = BTreeMap::new();
        let mut modules = Vec::new();
        let pairs: Vec<(&str, &str)> = frames.iter().map(|what| names.get(*what)).collect();
        let of_frames: Vec<Option<i64>> = pairs
            .iter()
            .map(|(group, _)| match category(group) {
                Some(_) => Some(-1),
                None if group.is_empty() => Some(-1),
                None => {
                    let next = modules.len() as i64;
                    Some(*resources.entry(group).or_insert_with(|| {
                        modules.push(i64::from(strings.text(group)));
                        next
                    }))
                }
            })
            .collect();
        let texts: Vec<Option<i64>> =
            pairs.iter().map(|(_, name)| Some(i64::from(strings.text(name)))).collect();
        let categories: Vec<Option<i64>> =
            pairs.iter().map(|(group, _)| Some(category(group).unwrap_or_default().into())).collect();
        let mut tables = Tables { json };
        tables.begin("stackTable", stacks.len());
        tables.column("frame", stacks.iter().map(|(frame, _)| Some(i64::from(*frame))))?;
        tables.column("prefix", stacks.iter().map(|(_, caller)| caller.map(i64::from)))?;
        tables.end();
        tables.begin("frameTable", frames.len());
        tables.column("address", all(Some(-1)))?;
        tables.column("inlineDepth", all(Some(0)))?;
        tables.column("category", categories.into_iter())?;
        tables.column("subcategory", all(Some(0)))?;
        tables.column("func", (0..frames.len() as i64).map(Some))?;
        for name in ["nativeSymbol", "innerWindowID", "line", "column"] {
            tables.column(name, all(None))?;
        }
        tables.end();
        tables.begin("funcTable", frames.len());
        tables.column("name", texts.into_iter())?;
        tables.flags("isJS", frames.len())?;
        tables.flags("relevantForJS", frames.len())?;
        tables.column("resource", of_frames.into_iter())?;
        for name in ["fileName", "lineNumber", "columnNumber"] {
            tables.column(name, all(None))?;
        }
        tables.end();
        tables.begin("resourceTable", modules.len());
        tables.column("lib", modules.iter().map(|_| None))?;
        tables.column("name", modules.iter().copied().map(Some))?;
        tables.column("host", modules.iter().map(|_| None))?;
        tables.column("type", modules.iter().map(|_| Some(LIBRARY.into())))?;
        tables.end();
        tables.begin("nativeSymbols", 0);
        for name in ["libIndex", "address", "name", "functionSize"] {
            tables.column(name, std::iter::empty())?;
        }
        tables.end();
        Ok(())
    }
}

/// Tables, as members of an object.
struct Tables<'a, W> {
    json: &'a mut Json<W>,
}

impl<W: Write> Tables<'_, W> {
    fn begin(&mut self, name: &str, length: usize) {
        self.json.raw(",\"");
        self.json.raw(name);
        self.json.integer_behind("\":{\"length\":", length);
    }

    fn end(&mut self) {
        self.json.raw("}");
    }

    fn column(&mut self, name: &str, values: impl Iterator<Item = Option<i64>>) -> io::Result<()> {
        self.json.raw(",\"");
        self.json.raw(name);
        self.json.raw("\":[");
        self.json.list(values, |json, value| match value {
            Some(value) => json.integer(value),
            None => json.raw("null"),
        })?;
        self.json.raw("]");
        Ok(())
    }

    /// A column in which nothing is set.
    fn flags(&mut self, name: &str, length: usize) -> io::Result<()> {
        self.json.raw(",\"");
        self.json.raw(name);
        self.json.raw("\":[");
        self.json.list(0..length, |json, _| json.raw("false"))?;
        self.json.raw("]");
        Ok(())
    }
}
