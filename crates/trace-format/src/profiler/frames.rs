//! The frames of one backtrace: given by a writer, or still encoded as a reader found them.

use core::fmt;

/// Program counters, innermost first.
#[derive(Clone, Copy)]
pub struct Frames<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Given(&'a [u64]),
    /// Bytes, eight for each frame.
    Encoded(&'a [u8]),
}

impl<'a> Frames<'a> {
    /// Frames to be written; encoding refuses more than [`super::MAX_FRAMES`].
    #[inline]
    #[must_use]
    pub const fn new(frames: &'a [u64]) -> Self {
        Self(Source::Given(frames))
    }

    pub(super) const fn encoded(words: &'a [u8]) -> Self {
        Self(Source::Encoded(words))
    }

    /// The number of frames.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.0 {
            Source::Given(frames) => frames.len(),
            Source::Encoded(bytes) => bytes.len() / 8,
        }
    }

    /// Whether there are no frames.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frames one after the other.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> FramesIter<'a> {
        FramesIter(self.0)
    }
}

impl PartialEq for Frames<'_> {
    fn eq(&self, other: &Frames<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Frames<'_> {}

impl fmt::Debug for Frames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &Frames<'a> {
    type Item = u64;
    type IntoIter = FramesIter<'a>;

    #[inline]
    fn into_iter(self) -> FramesIter<'a> {
        self.iter()
    }
}

/// Iterates over [`Frames`].
#[derive(Clone)]
pub struct FramesIter<'a>(Source<'a>);

impl fmt::Debug for FramesIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl Iterator for FramesIter<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match &mut self.0 {
            Source::Given(frames) => {
                let (frame, rest) = frames.split_first()?;
                *frames = rest;
                Some(*frame)
            }
            Source::Encoded(bytes) => {
                let (word, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(u64::from_le_bytes(*word))
            }
        }
    }
}
