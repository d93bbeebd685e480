//! Values that are numbers.

use crate::item::Value;

impl Value<'_> {
    /// Whether it is a number, and no address, koid or truth value.
    #[inline]
    #[must_use]
    pub const fn is_number(&self) -> bool {
        matches!(self, Self::Int32(_) | Self::Uint32(_) | Self::Int64(_) | Self::Uint64(_) | Self::Double(_))
    }

    /// A number as a double, which is the nearest one to a whole number of more than 53 bits.
    #[inline]
    #[must_use]
    pub const fn number(&self) -> Option<f64> {
        Some(match *self {
            Self::Int32(value) => value as f64,
            Self::Uint32(value) => value as f64,
            Self::Int64(value) => value as f64,
            Self::Uint64(value) => value as f64,
            Self::Double(value) => value,
            _ => return None,
        })
    }

    /// A whole number that has room in 64 bits with a sign.
    #[inline]
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        match *self {
            Self::Int32(value) => Some(value.into()),
            Self::Uint32(value) => Some(value.into()),
            Self::Int64(value) => Some(value),
            Self::Uint64(value) => i64::try_from(value).ok(),
            _ => None,
        }
    }
}
