//! Numbers for values, in the order in which they first occur.

use foldhash::HashMap;
use std::hash::Hash;

/// Different values so far, each with its number.
#[derive(Clone, Debug)]
pub struct Numbered<K> {
    numbers: HashMap<K, u32>,
    list: Vec<K>,
}

impl<K> Default for Numbered<K> {
    fn default() -> Self {
        Self { numbers: HashMap::default(), list: Vec::new() }
    }
}

impl<K: Clone + Eq + Hash> Numbered<K> {
    /// The number of a value. None for a new one where there are `limit` already.
    pub fn number(&mut self, value: K, limit: usize) -> Option<u32> {
        if let Some(number) = self.numbers.get(&value) {
            return Some(*number);
        }
        let number = u32::try_from(self.list.len()).ok().filter(|_| self.list.len() < limit)?;
        self.list.push(value.clone());
        self.numbers.insert(value, number);
        Some(number)
    }

    /// All values, by their numbers.
    #[must_use]
    pub fn list(&self) -> &[K] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_numbers() {
        let mut numbered = Numbered::default();
        let numbers = ["b", "a", "b", "c", "a"].map(|value| numbered.number(value, 2));
        assert_eq!(numbers, [Some(0), Some(1), Some(0), None, Some(1)]);
        assert_eq!(numbered.list(), ["b", "a"]);
    }
}
