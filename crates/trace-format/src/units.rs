//! Types for the quantities of tracing.

use core::fmt;
use core::num::{NonZeroU8, NonZeroU16, NonZeroU64};

/// A moment or a span on a provider's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

/// Rate of a provider's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TicksPerSecond(pub NonZeroU64);

/// What turns ticks of a rate into nanoseconds without a division: 2⁶⁴ · 10⁹ / rate, rounded down; 0 for
/// rates up to 10⁹, where it has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(u64);

/// A moment or a span in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// Id of a kernel object; 0 is none. On Linux that of a process is its pid and that of a thread its tid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Koid(pub u64);

/// Koid of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessKoid(pub Koid);

/// Koid of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKoid(pub Koid);

/// A process and one of its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// The process.
    pub process: Koid,
    /// The thread.
    pub thread: Koid,
}

/// A size in words of 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Words(pub usize);

/// A place in a stream, in bytes from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub u64);

/// Number of a provider in an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderId(pub u32);

/// Index of a registered string, 1 to 32 767.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StringIndex(NonZeroU16);

/// Index of a registered thread, 1 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadIndex(NonZeroU8);

impl TicksPerSecond {
    /// A rate; none for 0.
    #[must_use]
    pub const fn new(ticks_per_second: u64) -> Option<Self> {
        match NonZeroU64::new(ticks_per_second) {
            Some(rate) => Some(Self(rate)),
            None => None,
        }
    }

    /// One tick is a nanosecond: the rate before a provider's first initialization record.
    pub const NANOSECONDS: Self = Self(NonZeroU64::new(1_000_000_000).expect("not zero"));
}

impl Ticks {
    /// In nanoseconds, rounded down; beyond 64 bits it stays at the largest value.
    //= docs/format.md#time
    #[inline]
    #[must_use]
    pub const fn to_nanos(self, rate: TicksPerSecond) -> Nanos {
        // Whole seconds are converted separately: then the remainder fits in 64 bits, and so does the
        // product, unless the rate is beyond 18 GHz. The result is the same.
        let (seconds, rest) = (self.0 / rate.0.get(), self.0 % rate.0.get());
        if let (Some(whole), Some(part)) = (seconds.checked_mul(NANOS), rest.checked_mul(NANOS)) {
            return Nanos(whole.saturating_add(part / rate.0.get()));
        }
        let nanos = self.0 as u128 * NANOS as u128 / rate.0.get() as u128;
        Nanos(if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 })
    }

    /// The same, with the scale of the rate, faster.
    #[inline]
    #[must_use]
    pub const fn to_nanos_scaled(self, rate: TicksPerSecond, Scale(multiplier): Scale) -> Nanos {
        if multiplier == 0 {
            return match rate.0.get() {
                NANOS => Nanos(self.0),
                _ => self.to_nanos(rate),
            };
        }
        // What was rounded down is less than 1 in 2⁶⁴, so that the result is less than 2 too small. The
        // remainder shows whether it is; it is less than twice the rate and thus has 64 bits.
        let nanos = ((self.0 as u128 * multiplier as u128) >> 64) as u64;
        let rest = self.0.wrapping_mul(NANOS).wrapping_sub(nanos.wrapping_mul(rate.0.get()));
        Nanos(nanos + (rest >= rate.0.get()) as u64)
    }
}

const NANOS: u64 = 1_000_000_000;

impl Scale {
    /// The scale of a rate.
    #[must_use]
    pub const fn of(rate: TicksPerSecond) -> Self {
        let rate = rate.0.get();
        if rate <= NANOS || rate >> 63 != 0 {
            return Self(0);
        }
        Self((((NANOS as u128) << 64) / rate as u128) as u64)
    }
}

impl Words {
    /// Words that a stream of bytes takes.
    #[must_use]
    pub const fn for_bytes(bytes: usize) -> Self {
        Self(bytes.div_ceil(8))
    }

    /// The sum; beyond the address space it saturates at the largest value, which no record has room for.
    #[inline]
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// In bytes; beyond the address space it saturates at the largest multiple of 8.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self.0.checked_mul(8) {
            Some(bytes) => bytes,
            None => usize::MAX & !7,
        }
    }
}

impl StringIndex {
    /// The last index, 32 767.
    pub const MAX: Self = Self(NonZeroU16::new(0x7fff).expect("not zero"));

    /// None for 0 and above 32 767.
    #[must_use]
    pub const fn new(index: u16) -> Option<Self> {
        match NonZeroU16::new(index) {
            Some(index) if index.get() <= 0x7fff => Some(Self(index)),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl ThreadIndex {
    /// None for 0.
    #[must_use]
    pub const fn new(index: u8) -> Option<Self> {
        match NonZeroU8::new(index) {
            Some(index) => Some(Self(index)),
            None => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0.get()
    }
}

macro_rules! display {
    ($($type:ty: $value:expr, $suffix:literal;)*) => {
        $(impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let value: fn(&Self) -> u64 = $value;
                write!(f, concat!("{}", $suffix), value(self))
            }
        })*
    };
}

display! {
    TicksPerSecond: |rate| rate.0.get(), " ticks/s";
    Nanos: |nanos| nanos.0, " ns";
    Koid: |koid| koid.0, "";
    ProcessKoid: |koid| koid.0.0, "";
    ThreadKoid: |koid| koid.0.0, "";
    Offset: |offset| offset.0, "";
    ProviderId: |id| u64::from(id.0), "";
    StringIndex: |index| u64::from(index.get()), "";
    ThreadIndex: |index| u64::from(index.get()), "";
}

impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        counted(f, self.0, "tick")
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        counted(f, self.0 as u64, "word")
    }
}

fn counted(f: &mut fmt::Formatter<'_>, count: u64, unit: &str) -> fmt::Result {
    write!(f, "{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    //= docs/format.md#time
    fn nanoseconds_are_exact() {
        let rate = |rate| TicksPerSecond(NonZeroU64::new(rate).unwrap());
        assert_eq!(Ticks(40).to_nanos(rate(10)), Nanos(4_000_000_000));
        assert_eq!(Ticks(1).to_nanos(rate(24_000_000)), Nanos(41));
        assert_eq!(Ticks(62_208_000_000_007).to_nanos(rate(24_000_000)), Nanos(2_592_000_000_000_291));
        assert_eq!(Ticks(u64::MAX).to_nanos(rate(1)), Nanos(u64::MAX));
        assert_eq!(Ticks(u64::MAX).to_nanos(TicksPerSecond::NANOSECONDS), Nanos(u64::MAX));
    }

    proptest::proptest! {
        #[test]
        //= docs/format.md#time
        fn nanoseconds_are_those_of_128_bits(
            ticks in proptest::prelude::any::<u64>(),
            rate in proptest::prelude::any::<std::num::NonZeroU64>(),
            shifts in (0..64u32, 0..64u32),
        ) {
            let (ticks, rate) = (ticks >> shifts.0, TicksPerSecond::new(rate.get() >> shifts.1));
            let rate = rate.unwrap_or(TicksPerSecond::NANOSECONDS);
            let exact = u128::from(ticks) * 1_000_000_000 / u128::from(rate.0.get());
            let expected = Nanos(u64::try_from(exact).unwrap_or(u64::MAX));
            proptest::prop_assert_eq!(Ticks(ticks).to_nanos(rate), expected);
            proptest::prop_assert_eq!(Ticks(ticks).to_nanos_scaled(rate, Scale::of(rate)), expected);
            // Where a whole nanosecond ends.
            let edge = (u128::from(expected.0) * u128::from(rate.0.get())).div_ceil(1_000_000_000);
            for ticks in [edge.saturating_sub(1), edge, edge + 1].map(|ticks| Ticks(ticks as u64)) {
                proptest::prop_assert_eq!(ticks.to_nanos_scaled(rate, Scale::of(rate)), ticks.to_nanos(rate));
            }
        }
    }

    #[test]
    fn indices_have_their_ranges() {
        assert_eq!(StringIndex::new(0), None);
        assert_eq!(StringIndex::new(0x7fff).unwrap().get(), 0x7fff);
        assert_eq!(StringIndex::new(0x8000), None);
        assert_eq!(ThreadIndex::new(0), None);
        assert_eq!(ThreadIndex::new(255).unwrap().get(), 255);
    }

    #[test]
    fn words_round_up() {
        for (bytes, words) in [(0, 0), (1, 1), (7, 1), (8, 1), (9, 2), (32_000, 4000)] {
            assert_eq!(Words::for_bytes(bytes), Words(words));
        }
        assert_eq!(Words(4095).bytes(), 32_760);
    }
}
