//! Names of the kernel's functions.

use std::collections::HashMap;

/// What is at which address; read when it is first asked for.
#[derive(Debug, Default)]
pub struct Symbols {
    /// In the order of the addresses.
    table: Option<Vec<(u64, Box<str>)>>,
    names: HashMap<u64, Box<str>>,
}

impl Symbols {
    /// The function that holds an address, or the address itself where the kernel keeps its names to itself.
    pub fn name(&mut self, address: u64) -> &str {
        let table = self
            .table
            .get_or_insert_with(|| parse(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default()));
        self.names.entry(address).or_insert_with(|| {
            let above = table.partition_point(|(start, _)| *start <= address);
            match above.checked_sub(1).and_then(|index| table.get(index)) {
                Some((_, name)) => name.clone(),
                None => format!("{address:#x}").into(),
            }
        })
    }
}

/// `ffffffff81000000 T _text`, of which only functions count, and none at address 0.
fn parse(text: &str) -> Vec<(u64, Box<str>)> {
    let mut table: Vec<(u64, Box<str>)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
            let kind = words.next()?;
            let name = words.next()?;
            matches!(kind, "t" | "T" | "w" | "W").then(|| (address, name.into()))
        })
        .collect();
    table.sort();
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_below_it() {
        let text = "0000000000000000 A hidden\nffffffff81000020 t second\nffffffff81000000 T first\n\
                    ffffffff81000010 D data\nffffffffc0000000 t third\t[module]\n";
        let mut symbols = Symbols { table: Some(parse(text)), names: HashMap::new() };
        assert_eq!(symbols.name(0xffff_ffff_8100_0000), "first");
        assert_eq!(symbols.name(0xffff_ffff_8100_0018), "first");
        assert_eq!(symbols.name(0xffff_ffff_8100_0020), "second");
        assert_eq!(symbols.name(0xffff_ffff_c000_0001), "third");
        assert_eq!(symbols.name(0x10), "0x10");
    }
}
