//! Versions of the protocols and of the buffer header that a peer serves.
//!
//! An application links its provider statically and lives longer than the manager it met first, so each side
//! serves a range: its own version and the one before.

use crate::error::ProtocolError;
use std::fmt;

/// The version that this crate writes.
pub const PROTOCOL_VERSION: u16 = 1;
/// The oldest version that this crate reads.
pub const OLDEST_PROTOCOL_VERSION: u16 = 1;

/// An inclusive range of versions; `1 ≤ min ≤ max`, which is checked when it travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VersionRange {
    /// The oldest version.
    pub min: u16,
    /// The newest version.
    pub max: u16,
}

impl VersionRange {
    /// The versions of the protocols that this crate serves.
    pub const PROTOCOL: VersionRange = VersionRange { min: OLDEST_PROTOCOL_VERSION, max: PROTOCOL_VERSION };

    /// The versions `min` to `max`, both included.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::VersionRange`] if the range is empty or starts at zero.
    pub fn new(range: std::ops::RangeInclusive<u16>) -> Result<VersionRange, ProtocolError> {
        let (min, max) = range.into_inner();
        if min == 0 || min > max {
            return Err(ProtocolError::VersionRange { min, max });
        }
        Ok(VersionRange { min, max })
    }

    /// The single version `version`; zero is raised to one.
    #[must_use]
    pub const fn only(version: u16) -> VersionRange {
        let version = if version == 0 { 1 } else { version };
        VersionRange { min: version, max: version }
    }

    /// The newest version that both ranges hold.
    #[must_use]
    pub fn newest_common(self, other: VersionRange) -> Option<u16> {
        let newest = self.max.min(other.max);
        (newest >= self.min && newest >= other.min).then_some(newest)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(formatter, "{}", self.min)
        } else {
            write!(formatter, "{} to {}", self.min, self.max)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_version_is_chosen() {
        let range = |min, max| VersionRange::new(min..=max).unwrap();
        assert_eq!(range(1, 3).newest_common(range(2, 5)), Some(3));
        assert_eq!(range(2, 5).newest_common(range(1, 3)), Some(3));
        assert_eq!(range(1, 1).newest_common(range(1, 1)), Some(1));
        assert_eq!(range(1, 2).newest_common(range(3, 4)), None);
        assert_eq!(range(3, 4).newest_common(range(1, 2)), None);
    }

    #[test]
    fn an_empty_range_is_refused() {
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = 3..=2;
        assert_eq!(VersionRange::new(reversed), Err(ProtocolError::VersionRange { min: 3, max: 2 }));
        assert_eq!(VersionRange::new(0..=2), Err(ProtocolError::VersionRange { min: 0, max: 2 }));
        assert_eq!(VersionRange::only(0).to_string(), "1");
        assert_eq!(VersionRange::new(1..=2).unwrap().to_string(), "1 to 2");
    }
}
