//! Pictures: drawn instead of stored, and honestly made smaller.

/// A picture of greys, row by row.
pub struct Picture {
    /// Which of all pictures.
    pub number: u32,
    width: usize,
    height: usize,
}

/// A thumbnail's width and height.
const SIDE: usize = 16;

impl Picture {
    /// Four in a hundred have 225 times as many pixels as the others.
    pub fn new(number: u32) -> Self {
        let scale = if (40..44).contains(&(number % 100)) { 15 } else { 1 };
        Self { number, width: 128 * scale, height: 96 * scale }
    }

    /// How many pixels it has.
    pub fn pixels(&self) -> usize {
        self.width * self.height
    }

    fn grey(&self, x: usize, y: usize) -> u8 {
        let seed = self.number.wrapping_mul(2_654_435_761) | 1;
        ((y * self.width + x) as u32).wrapping_mul(seed).to_be_bytes()[0]
    }

    /// The mean of each part, of light rather than of bytes.
    pub fn thumbnail(&self) -> Vec<u8> {
        let mut sums = [0.0; SIDE * SIDE];
        for y in 0..self.height {
            for x in 0..self.width {
                let part = y * SIDE / self.height * SIDE + x * SIDE / self.width;
                sums[part] += f64::from(self.grey(x, y)).powf(2.2);
            }
        }
        let each = (self.pixels() / sums.len()) as f64;
        sums.iter().map(|sum| (sum / each).powf(1.0 / 2.2) as u8).collect()
    }
}
