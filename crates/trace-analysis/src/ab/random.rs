//! Random numbers that follow from a seed, and the order of runs.

/// A generator whose numbers are the same everywhere: Steele, Lea and Flood's SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed. Different streams of one seed have nothing to do with each other.
    #[must_use]
    pub const fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = Self(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        let state = mixed.number();
        Self(state)
    }

    /// Any number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below another, which is far below 2^32.
    pub const fn below(&mut self, limit: usize) -> usize {
        (((self.number() >> 32) * limit as u64) >> 32) as usize
    }
}

/// The stream that draws the order of runs.
const ORDER: u64 = u64::MAX;

/// Whether each of so many runs is one of the new command: blocks of four, each old-new-new-old or its mirror
/// image.
//= docs/ab.md#order-of-runs
#[must_use]
pub fn order(seed: u64, runs: usize) -> Vec<bool> {
    let mut random = Random::new(seed, ORDER);
    let mut order = Vec::with_capacity(runs.next_multiple_of(4));
    while order.len() < runs {
        let is_mirrored = random.below(2) == 1;
        order.extend([false, true, true, false].map(|is_new| is_new != is_mirrored));
    }
    order.truncate(runs);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/ab.md#order-of-runs
    #[test]
    fn runs_come_in_blocks_and_their_mirror_images() {
        let order = order(7, 4000);
        let blocks = order.as_chunks::<4>().0;
        assert!(blocks.iter().all(|[a, b, c, d]| a != b && b == c && a == d));
        let mirrored = blocks.iter().filter(|block| block[0]).count();
        assert!((450..550).contains(&mirrored), "{mirrored} of 1000");
        assert_eq!(super::order(7, 6), order[..6]);
        assert_ne!(super::order(8, 64), order[..64]);
    }
}
