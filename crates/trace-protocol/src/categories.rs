//! Known categories: the answers of providers and managers to `GetKnownCategories`.

use crate::error::{ProtocolError, check_limit};
use crate::limits::{
    MAX_CATEGORY_DESCRIPTION_BYTES, MAX_CATEGORY_NAME_BYTES, MAX_KNOWN_CATEGORIES, MAX_SILENT_PROVIDERS,
    MAX_UNLISTED_NAMES, cut,
};
use crate::table::{Field, ListLimits, Table, TableWriter};

const LISTED: Field = Field::new(1, "known categories");
const BEYOND_COUNT: Field = Field::new(2, "categories beyond the limit");
const BEYOND_NAMES: Field = Field::new(3, "names beyond the limit");
const TOO_LONG_COUNT: Field = Field::new(4, "categories with too long names");
const TOO_LONG_NAMES: Field = Field::new(5, "too long names");
const SILENT: Field = Field::new(6, "silent providers");
const SILENT_BEYOND: Field = Field::new(7, "silent providers beyond the limit");

/// A category that a program may record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KnownCategory {
    /// At most 100 bytes.
    pub name: String,
    /// At most 400 bytes.
    pub description: String,
}

/// The categories of one program, or of several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownCategories {
    /// In alphabetical order, at most 5000.
    pub listed: Vec<KnownCategory>,
    /// Categories that the list has no room for.
    pub beyond_limit: Unlisted,
    /// Categories whose names are longer than 100 bytes. They are recorded with all categories, and by a
    /// `prefix*`.
    pub too_long: Unlisted,
    /// Programs that have not answered the manager in time.
    pub silent: Silent,
}

/// Programs whose categories are missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Silent {
    /// The ids of their providers, at most 1000.
    pub providers: Vec<u32>,
    /// How many more there are.
    pub beyond_limit: u64,
}

impl Silent {
    /// Counts those that a list has no room for.
    #[must_use]
    pub fn of(mut providers: Vec<u32>) -> Self {
        let beyond_limit = providers.len().saturating_sub(MAX_SILENT_PROVIDERS) as u64;
        providers.truncate(MAX_SILENT_PROVIDERS);
        Self { providers, beyond_limit }
    }
}

/// Categories that are not in the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unlisted {
    /// How many.
    pub count: u64,
    /// Some of their names, cut at 100 bytes; at most 10.
    pub names: Vec<String>,
}

impl Unlisted {
    fn add(&mut self, name: &str) {
        self.count = self.count.saturating_add(1);
        self.add_name(name);
    }

    fn add_name(&mut self, name: &str) {
        let name = cut(name, MAX_CATEGORY_NAME_BYTES);
        if self.names.len() < MAX_UNLISTED_NAMES && !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }

    fn merge(&mut self, other: &Unlisted) {
        self.count = self.count.saturating_add(other.count);
        other.names.iter().for_each(|name| self.add_name(name));
    }

    fn put(&self, count: Field, names: Field, table: &mut TableWriter) -> Result<(), ProtocolError> {
        table.put_some(count, Some(&self.count).filter(|count| **count > 0));
        table.put_strings(names, &self.names, ListLimits::UNLISTED)
    }

    fn find(count: Field, names: Field, table: &Table<'_>) -> Result<Self, ProtocolError> {
        Ok(Self {
            count: table.find(count)?.unwrap_or(0),
            names: table.strings(names, ListLimits::UNLISTED)?,
        })
    }
}

impl KnownCategories {
    /// Sorts categories, drops empty names and duplicates, cuts descriptions at their limit, and counts
    /// categories that do not fit into a list.
    #[must_use]
    pub fn of(categories: impl IntoIterator<Item = KnownCategory>) -> Self {
        let mut all: Vec<KnownCategory> = categories.into_iter().collect();
        all.retain(|category| !category.name.is_empty());
        // Two that differ in their descriptions are both kept.
        all.sort_unstable();
        all.dedup();
        let mut known = Self::default();
        for KnownCategory { name, description } in all {
            if name.len() > MAX_CATEGORY_NAME_BYTES {
                known.too_long.add(&name);
            } else if known.listed.len() == MAX_KNOWN_CATEGORIES {
                known.beyond_limit.add(&name);
            } else {
                let description = cut(&description, MAX_CATEGORY_DESCRIPTION_BYTES).to_owned();
                known.listed.push(KnownCategory { name, description });
            }
        }
        known
    }

    /// The categories of several programs. The counts of unlisted ones are added up, even if two programs
    /// have some in common. What a program says of others that are silent is dropped.
    #[must_use]
    pub fn merged(all: impl IntoIterator<Item = KnownCategories>) -> Self {
        let (mut listed, mut beyond_limit, mut too_long) = <(Vec<_>, Unlisted, Unlisted)>::default();
        for known in all {
            listed.extend(known.listed);
            beyond_limit.merge(&known.beyond_limit);
            too_long.merge(&known.too_long);
        }
        let mut merged = Self::of(listed);
        beyond_limit.merge(&merged.beyond_limit);
        (merged.beyond_limit, merged.too_long) = (beyond_limit, too_long);
        merged
    }

    pub(crate) fn put(&self, table: &mut TableWriter) -> Result<(), ProtocolError> {
        if !self.listed.is_empty() {
            check_limit(LISTED.name, MAX_KNOWN_CATEGORIES, self.listed.len())?;
            let mut pairs = Vec::with_capacity(self.listed.len());
            for category in &self.listed {
                category.check()?;
                pairs.push((category.name.as_str(), category.description.as_str()));
            }
            table.put(LISTED, &pairs);
        }
        self.beyond_limit.put(BEYOND_COUNT, BEYOND_NAMES, table)?;
        self.too_long.put(TOO_LONG_COUNT, TOO_LONG_NAMES, table)?;
        check_limit(SILENT.name, MAX_SILENT_PROVIDERS, self.silent.providers.len())?;
        table.put_some(SILENT, Some(&self.silent.providers).filter(|silent| !silent.is_empty()));
        table.put_some(SILENT_BEYOND, Some(&self.silent.beyond_limit).filter(|count| **count > 0));
        Ok(())
    }

    pub(crate) fn find(table: &Table<'_>) -> Result<Self, ProtocolError> {
        let pairs: Vec<(&str, &str)> = table.find(LISTED)?.unwrap_or_default();
        check_limit(LISTED.name, MAX_KNOWN_CATEGORIES, pairs.len())?;
        let silent: Vec<u32> = table.find(SILENT)?.unwrap_or_default();
        check_limit(SILENT.name, MAX_SILENT_PROVIDERS, silent.len())?;
        let listed = pairs.into_iter().map(|(name, description)| {
            let category = KnownCategory { name: name.to_owned(), description: description.to_owned() };
            category.check().map(|()| category)
        });
        Ok(Self {
            listed: listed.collect::<Result<_, _>>()?,
            beyond_limit: Unlisted::find(BEYOND_COUNT, BEYOND_NAMES, table)?,
            too_long: Unlisted::find(TOO_LONG_COUNT, TOO_LONG_NAMES, table)?,
            silent: Silent { providers: silent, beyond_limit: table.find(SILENT_BEYOND)?.unwrap_or(0) },
        })
    }
}

impl KnownCategory {
    fn check(&self) -> Result<(), ProtocolError> {
        check_limit("category name bytes", MAX_CATEGORY_NAME_BYTES, self.name.len())?;
        check_limit("category description bytes", MAX_CATEGORY_DESCRIPTION_BYTES, self.description.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn category(name: impl Into<String>) -> KnownCategory {
        KnownCategory { name: name.into(), description: String::new() }
    }

    //= docs/protocol.md#known-categories
    #[test]
    fn what_a_list_has_no_room_for_is_counted_and_named() {
        let long = |length| "x".repeat(length);
        let many = (0..5003).map(|number| category(format!("n{number:04}")));
        let known = KnownCategories::of(many.chain([category(""), category(long(101)), category(long(100))]));
        assert_eq!(known.listed.len(), 5000);
        assert_eq!(known.listed[4999].name, "n4999");
        let beyond = ["n5000", "n5001", "n5002"].map(str::to_owned).into_iter().chain([long(100)]).collect();
        assert_eq!(known.beyond_limit, Unlisted { count: 4, names: beyond });
        assert_eq!(known.too_long, Unlisted { count: 1, names: vec![long(100)] });

        let other = KnownCategories::of([category("n0000"), category("o")]);
        let merged = KnownCategories::merged([known.clone(), other]);
        assert_eq!((merged.listed.len(), merged.beyond_limit.count, merged.too_long.count), (5000, 5, 1));
        let mut table = TableWriter::new("test");
        merged.put(&mut table).unwrap();
        let bytes = table.finish();
        assert_eq!(KnownCategories::find(&Table::decode("test", &bytes).unwrap()).unwrap(), merged);
    }

    //= docs/protocol.md#known-categories
    #[test]
    fn ten_that_are_not_listed_are_named_and_each_once() {
        let mut unlisted = Unlisted::default();
        (0..2).for_each(|_| unlisted.add("a"));
        assert_eq!(unlisted, Unlisted { count: 2, names: vec!["a".to_owned()] });
        (0..12).for_each(|number| unlisted.add(&number.to_string()));
        assert_eq!((unlisted.count, unlisted.names.len()), (14, 10));
    }

    //= docs/protocol.md#known-categories
    #[test]
    fn programs_that_do_not_answer_are_listed_up_to_a_limit() {
        let known = KnownCategories { silent: Silent::of((0..1003).collect()), ..KnownCategories::default() };
        assert_eq!((known.silent.providers.len(), known.silent.beyond_limit), (1000, 3));
        let mut table = TableWriter::new("test");
        known.put(&mut table).unwrap();
        let bytes = table.finish();
        assert_eq!(KnownCategories::find(&Table::decode("test", &bytes).unwrap()).unwrap(), known);
        assert_eq!(KnownCategories::merged([known]).silent, Silent::default());
        let silent = Silent { providers: vec![0; 1001], beyond_limit: 0 };
        let known = KnownCategories { silent, ..KnownCategories::default() };
        assert!(known.put(&mut TableWriter::new("test")).is_err());
    }

    #[test]
    fn a_description_is_cut_at_its_limit() {
        let described = KnownCategory { name: "a".to_owned(), description: "d".repeat(401) };
        let known = KnownCategories::of([described.clone(), described, category("b")]);
        assert_eq!(known.listed.iter().map(|known| known.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(known.listed[0].description, "d".repeat(400));
    }
}
