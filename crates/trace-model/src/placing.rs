//! Slices of tracks in the order of their begins, each with the one that it is in.

use crate::around::{Open, Placed};
use crate::interval::{Around, Interval};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::io;

/// Slices of all tracks that have begun and not ended. Beyond that, nothing is found to be in a slice.
pub const MAX_PLACED: usize = if cfg!(test) { 2000 } else { 500_000 };
/// Of slices that begin together, so many bytes are put into an order at a time.
const TOGETHER_BYTES: usize = if cfg!(test) { 1 << 20 } else { 48 << 20 };
/// So many tracks are looked at for ended slices for each slice that has come since.
const SWEPT: usize = 64;

/// What is done with slices.
pub trait Place {
    /// What comes with a slice.
    type Item;
    /// What is kept of it until it ends.
    type Kept;
    /// What is kept of a track while slices of it are open.
    type Track: Default;

    /// Memory of an item on the heap, in bytes.
    fn heap_bytes(_item: &Self::Item) -> usize {
        0
    }

    /// Whether a slice is left out if there is no room to find what is in it.
    fn leaves_out(&mut self) -> bool {
        false
    }

    /// A slice of a track begins, directly in a parent. None leaves it out: nothing is in it, and it does not
    /// end.
    ///
    /// # Errors
    /// The caller's.
    fn begin(
        &mut self,
        track: (u64, &mut Self::Track),
        slice: &Interval,
        item: Self::Item,
        parent: Option<(&Interval, &Self::Kept)>,
    ) -> io::Result<Option<Self::Kept>>;

    /// A slice has ended, after all that are in it. Its own time is the time in which none of those directly
    /// in it lasted, in nanoseconds; none if it did not end.
    ///
    /// # Errors
    /// The caller's.
    fn end(
        &mut self,
        _track: (u64, &mut Self::Track),
        _slice: &Interval,
        _kept: Self::Kept,
        _own: Option<u64>,
    ) -> io::Result<()> {
        Ok(())
    }
}

/// Finds what each slice is directly in, and has a [`Place`] do something with it.
///
/// Memory holds 500 000 open slices of all tracks, and 48 MiB of those that begin together.
pub struct Placing<P: Place> {
    place: P,
    tracks: Vec<(u64, Track<P>)>,
    /// Their places by their numbers.
    places: HashMap<u64, usize, RandomState>,
    /// The place of the last one.
    last: usize,
    /// Slices that begin at one time.
    together: Vec<Waiting<P::Item>>,
    heap_bytes: usize,
    max_bytes: usize,
    intervals: Vec<Interval>,
    /// How many slices are open.
    open: usize,
    /// Slices that came since all tracks were looked at for ended ones.
    since: usize,
}

/// A slice that waits for those that begin at the same time.
type Waiting<T> = (u64, Interval, Option<T>);

struct Track<P: Place> {
    open: Open<Timed<P::Kept>>,
    kept: P::Track,
}

/// What is kept of an open slice, with the time so far in which others directly in it lasted.
#[derive(Debug)]
struct Timed<T> {
    kept: T,
    inner: u64,
    /// The end of the slices in it so far.
    covered: u64,
}

impl<T> Timed<T> {
    /// Begins a slice, which takes time from its parent.
    #[inline]
    fn begin<P: Place<Kept = T>>(
        place: &mut P,
        track: (u64, &mut P::Track),
        slice: &Interval,
        item: P::Item,
        parent: Option<&mut (Interval, Self)>,
    ) -> io::Result<Option<Self>> {
        let parent = parent.map(|(interval, timed)| {
            let from = slice.begin.max(timed.covered);
            timed.inner = timed.inner.saturating_add(slice.end.saturating_sub(from));
            timed.covered = timed.covered.max(slice.end);
            (&*interval, &timed.kept)
        });
        let kept = place.begin(track, slice, item, parent)?;
        Ok(kept.map(|kept| Self { kept, inner: 0, covered: 0 }))
    }
}

impl<P: Place> Default for Track<P> {
    fn default() -> Self {
        Self { open: Open::default(), kept: P::Track::default() }
    }
}

impl<P: Place> Track<P> {
    /// Ends slices that end before a time, and returns how many.
    fn end_before(&mut self, place: &mut P, track: u64, time: u64) -> io::Result<usize> {
        let mut count = 0;
        while let Some((slice, timed)) = self.open.pop_before(time) {
            count += 1;
            self.end(place, track, slice, timed)?;
        }
        Ok(count)
    }

    fn end(&mut self, place: &mut P, track: u64, slice: Interval, timed: Timed<P::Kept>) -> io::Result<()> {
        let own = (slice.end != u64::MAX).then(|| slice.duration().saturating_sub(timed.inner));
        place.end((track, &mut self.kept), &slice, timed.kept, own)
    }

    /// Begins a slice, and returns how many more are open then: one or none.
    fn begin(
        &mut self,
        place: &mut P,
        (track, slice, item): (u64, Interval, P::Item),
        parent: Option<Around>,
        has_room: bool,
    ) -> io::Result<usize> {
        let is_open = has_room && !is_over(&slice);
        if !has_room && !is_over(&slice) && place.leaves_out() {
            return Ok(0);
        }
        let parent = parent.and_then(|parent| self.open.of(&parent));
        let of = (track, &mut self.kept);
        let Some(timed) = Timed::begin(place, of, &slice, item, parent)? else { return Ok(0) };
        if is_open {
            self.open.insert(slice, timed);
            return Ok(1);
        }
        self.end(place, track, slice, timed)?;
        Ok(0)
    }

    /// The same for a slice that lasts, for which there is room, and that begins at a time of its own.
    #[inline]
    fn begin_alone(
        &mut self,
        place: &mut P,
        (track, slice, item): (u64, Interval, P::Item),
    ) -> io::Result<usize> {
        let is_inside = |outer: &&mut (Interval, _)| outer.0.around() > slice.around();
        if let Some(outer) = self.open.innermost().filter(is_inside) {
            let of = (track, &mut self.kept);
            let Some(timed) = Timed::begin(place, of, &slice, item, Some(outer))? else { return Ok(0) };
            self.open.push(slice, timed);
            return Ok(1);
        }
        let parent = self.open.behind(&slice.around());
        self.begin(place, (track, slice, item), parent, true)
    }
}

/// Whether nothing can be in a slice: it is a complete record of length 0.
const fn is_over(slice: &Interval) -> bool {
    slice.is_instant() && !slice.is_pair()
}

impl<P: Place> Placing<P> {
    /// One that has no slices yet.
    pub fn new(place: P) -> Self {
        Self {
            place,
            tracks: Vec::new(),
            places: HashMap::default(),
            last: 0,
            together: Vec::new(),
            heap_bytes: 0,
            max_bytes: TOGETHER_BYTES,
            intervals: Vec::new(),
            open: 0,
            since: 0,
        }
    }

    /// The same for so many bytes of slices that begin together.
    #[must_use]
    pub fn with_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// What is done with slices.
    pub const fn place(&mut self) -> &mut P {
        &mut self.place
    }

    /// The same, once all slices have [ended](Self::end).
    pub fn into_place(self) -> P {
        self.place
    }

    /// What is kept of a track; none if it has no slice.
    pub fn track(&self, track: u64) -> Option<&P::Track> {
        Some(&self.tracks[*self.places.get(&track)?].1.kept)
    }

    /// Adds a slice of a track, which begins at the time of the last one or behind.
    ///
    /// # Errors
    /// Of what is done with those before.
    #[inline]
    pub fn push(&mut self, track: u64, slice: &Interval, item: P::Item) -> io::Result<()> {
        if let Some((_, first, _)) = self.together.first()
            && (first.begin != slice.begin || self.together_bytes() > self.max_bytes)
        {
            self.flush()?;
        }
        self.heap_bytes += P::heap_bytes(&item);
        self.together.push((track, *slice, Some(item)));
        Ok(())
    }

    fn together_bytes(&self) -> usize {
        self.together.len() * size_of::<Waiting<P::Item>>() + self.heap_bytes
    }

    /// Places what has come so far: nothing else begins at that time.
    ///
    /// # Errors
    /// Of what is done with slices.
    #[inline]
    pub fn flush(&mut self) -> io::Result<()> {
        self.heap_bytes = 0;
        if self.together.len() == 1
            && let Some(waiting) = self.together.pop()
        {
            return self.place_together(&mut [waiting]);
        }
        self.flush_several()
    }

    fn flush_several(&mut self) -> io::Result<()> {
        let mut together = std::mem::take(&mut self.together);
        together.sort_by_key(|(track, ..)| *track);
        for of_track in together.chunk_by_mut(|a, b| a.0 == b.0) {
            self.place_together(of_track)?;
        }
        together.clear();
        self.together = together;
        Ok(())
    }

    /// Places slices of a track.
    #[inline]
    fn place_together(&mut self, together: &mut [Waiting<P::Item>]) -> io::Result<()> {
        let Some(&(number, Interval { begin: at, .. }, _)) = together.first() else { return Ok(()) };
        self.since += together.len();
        if self.open + together.len() > MAX_PLACED && self.since * SWEPT >= self.tracks.len() {
            self.sweep(at)?;
        }
        self.find(number);
        let Self { place, tracks, last, intervals, open, .. } = self;
        let (_, track) = &mut tracks[*last];
        if let [(_, slice, item)] = together
            && !slice.is_instant()
            && *open < MAX_PLACED
            && let Some(item) = item.take()
        {
            *open -= track.end_before(place, number, at.saturating_add(1))?;
            *open += track.begin_alone(place, (number, *slice, item))?;
            return Ok(());
        }
        // What ends now may be around a slice of length 0.
        *open -= track.end_before(place, number, at)?;
        intervals.clear();
        intervals.extend(together.iter().map(|(_, slice, _)| *slice));
        for Placed { index, parent } in track.open.parents(intervals) {
            let (_, slice, item) = &mut together[index];
            if let Some(item) = item.take() {
                *open += track.begin(place, (number, *slice, item), parent, *open < MAX_PLACED)?;
            }
        }
        Ok(())
    }

    /// Makes a track the last one.
    #[inline]
    fn find(&mut self, number: u64) {
        if self.tracks.get(self.last).is_none_or(|(last, _)| *last != number) {
            let tracks = &mut self.tracks;
            self.last = *self.places.entry(number).or_insert_with(|| {
                tracks.push((number, Track::default()));
                tracks.len() - 1
            });
        }
    }

    /// Ends what has ended on all tracks, and forgets those on which nothing is open.
    #[cold]
    fn sweep(&mut self, at: u64) -> io::Result<()> {
        self.since = 0;
        for (number, track) in &mut self.tracks {
            self.open -= track.end_before(&mut self.place, *number, at)?;
        }
        self.tracks.retain(|(_, track)| !track.open.is_empty());
        self.places = self.tracks.iter().map(|(number, _)| *number).zip(0..).collect();
        Ok(())
    }

    /// Ends all slices, track by track. Those that come then may begin at any time.
    ///
    /// # Errors
    /// Of what is done with slices.
    pub fn end(&mut self) -> io::Result<()> {
        self.flush()?;
        self.open = 0;
        self.places.clear();
        let mut tracks = std::mem::take(&mut self.tracks);
        tracks.sort_by_key(|(number, _)| *number);
        for (number, mut track) in tracks {
            while let Some((slice, timed)) = track.open.pop() {
                track.end(&mut self.place, number, slice, timed)?;
            }
        }
        Ok(())
    }
}
