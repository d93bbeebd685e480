//! Names of the kernel's functions, and of others that are not in any file.

use std::collections::HashMap;

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Where it begins.
    pub start: u64,
    /// Its bytes, including the gap before the next one.
    pub length: u64,
    /// Its name.
    pub name: &'a str,
}

/// Functions in the order of their addresses.
#[derive(Debug, Default)]
pub struct Functions {
    rows: Vec<(u64, Box<str>)>,
    end: u64,
}

impl Functions {
    /// Takes functions, the last of which ends at an address.
    pub fn new(mut rows: Vec<(u64, Box<str>)>, end: u64) -> Self {
        rows.sort();
        Self { rows, end }
    }

    /// The kernel's functions; none if it hides them.
    pub fn of_kernel() -> Self {
        parse(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    /// The function that holds an address.
    pub fn find(&self, address: u64) -> Option<Function<'_>> {
        let above = self.rows.partition_point(|(start, _)| *start <= address);
        let (start, name) = self.rows.get(above.checked_sub(1)?)?;
        let end = self.rows.get(above).map_or(self.end, |(next, _)| *next);
        (address < end).then(|| Function { start: *start, length: end - start, name })
    }
}

/// Names of the kernel's functions, read on first use.
#[derive(Debug, Default)]
pub struct Symbols {
    functions: Option<Functions>,
    names: HashMap<u64, Box<str>>,
}

impl Symbols {
    /// The function that holds an address, or the address itself if the kernel hides its names.
    pub fn name(&mut self, address: u64) -> &str {
        let functions = self.functions.get_or_insert_with(Functions::of_kernel);
        self.names.entry(address).or_insert_with(|| match functions.find(address) {
            Some(function) => function.name.into(),
            None => format!("{address:#x}").into(),
        })
    }
}

/// Parses `ffffffff81000000 T _text`; only functions count, and none at address 0.
fn parse(text: &str) -> Functions {
    let rows = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
        let kind = words.next()?;
        let name = words.next()?;
        matches!(kind, "t" | "T" | "w" | "W").then(|| (address, name.into()))
    });
    Functions::new(rows.collect(), u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_belongs_to_the_function_below_it() {
        let text = "0000000000000000 A hidden\nffffffff81000020 t second\nffffffff81000000 T first\n\
                    ffffffff81000010 D data\nffffffffc0000000 t third\t[module]\n";
        let mut symbols = Symbols { functions: Some(parse(text)), names: HashMap::new() };
        assert_eq!(symbols.name(0xffff_ffff_8100_0000), "first");
        assert_eq!(symbols.name(0xffff_ffff_8100_0018), "first");
        assert_eq!(symbols.name(0xffff_ffff_8100_0020), "second");
        assert_eq!(symbols.name(0xffff_ffff_c000_0001), "third");
        assert_eq!(symbols.name(0x10), "0x10");
    }

    #[test]
    fn a_function_ends_where_the_next_begins() {
        let functions =
            Functions::new(vec![(0x20, "b".into()), (0x10, "a".into()), (0x20, "c".into())], 0x30);
        let found = |address| functions.find(address).map(|found| (found.start, found.length, found.name));
        assert_eq!(found(0xf), None);
        assert_eq!(found(0x1f), Some((0x10, 0x10, "a")));
        assert_eq!(found(0x2f), Some((0x20, 0x10, "c")));
        assert_eq!(found(0x30), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_harm(text in "([0-9a-g]{0,17} ?[tTdW]? ?[a-z\\[\t]{0,8}\n?){0,20}", address: u64) {
            let functions = parse(&text);
            if let Some(found) = functions.find(address) {
                prop_assert!(found.start <= address && address - found.start < found.length);
            }
        }
    }
}
