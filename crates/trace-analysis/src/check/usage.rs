//! Where the bytes of a trace go: records and bytes of events, by category and name.

use std::collections::HashMap;
use trace_reader::item::{Item, Resolved};

/// What the events of one category and name take.
//= docs/check.md#json
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The category.
    pub category: String,
    /// The name.
    pub name: String,
    /// Their records.
    pub records: u64,
    /// Bytes of these.
    pub bytes: u64,
}

/// Memory of a pair besides its texts.
const PAIR_BYTES: usize = 96;
/// Name and category of events that there is no room for.
const OTHERS: &str = "(other names)";

/// By category, by name: records and bytes.
type Names = HashMap<Box<[u8]>, (u64, u64)>;

/// The usage so far.
#[derive(Debug)]
pub(super) struct Usages {
    limit_bytes: usize,
    bytes: usize,
    categories: HashMap<Box<[u8]>, Names>,
    others: (u64, u64),
}

impl Usages {
    /// Uses up to this many bytes of memory; 0 counts nothing.
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, bytes: 0, categories: HashMap::default(), others: (0, 0) }
    }

    pub fn record(&mut self, record: &Resolved<'_>) {
        let Item::Event(event) = &record.item else { return };
        if self.limit_bytes == 0 {
            return;
        }
        let (category, name) = (event.category.as_bytes(), event.name.as_bytes());
        let known = self.categories.get_mut(category).and_then(|names| names.get_mut(name));
        let sums = match known {
            Some(sums) => sums,
            None => {
                let needed = category.len() + name.len() + PAIR_BYTES;
                if self.bytes + needed > self.limit_bytes {
                    &mut self.others
                } else {
                    self.bytes += needed;
                    let names = self.categories.entry(category.into()).or_default();
                    names.entry(name.into()).or_default()
                }
            }
        };
        sums.0 += 1;
        sums.1 += record.bytes.len() as u64;
    }

    /// Those with the most bytes first.
    pub fn finish(self) -> Vec<Usage> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut all: Vec<Usage> = Vec::new();
        for (category, names) in &self.categories {
            all.extend(names.iter().map(|(name, &(records, bytes))| Usage {
                category: text(category),
                name: text(name),
                records,
                bytes,
            }));
        }
        let (records, bytes) = self.others;
        if records > 0 {
            all.push(Usage { category: OTHERS.to_owned(), name: OTHERS.to_owned(), records, bytes });
        }
        all.sort_by(|a, b| {
            b.bytes.cmp(&a.bytes).then_with(|| (&a.category, &a.name).cmp(&(&b.category, &b.name)))
        });
        all
    }
}
