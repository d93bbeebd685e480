//! The begin of a scope, which readers find as long as it has not ended.

use crate::record::event_writer::{VIRTUAL, join};
use crate::record::processor_time;
use crate::record::site_strings::SiteStrings;
use crate::session::context::Context;
use crate::session::lease::Lease;
use crate::session::{fork, hook};
use crate::site::{ON, Site, SiteState};
use crate::thread::block::ThreadBlock;
use crate::thread::registry::{self, Acquired};
use crate::thread::scope_pages::{self, ScopePages, TrackPlace};
use trace_format::scopes::thread_time_bits;

/// A scope that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScopeBegun {
    /// When, in ticks.
    pub start: u64,
    /// What its end passes on to the thread's open scopes.
    pub scope: u64,
}

impl ScopeBegun {
    /// Now, at a site that was found on, like this.
    #[inline(always)]
    pub fn now(site: &'static Site, state: SiteState) -> Self {
        if !state.is_fast() {
            return Self::slowly(site);
        }
        let block = registry::current();
        let start = block.stamp();
        let scope = block.scopes().begin(start, state.word());
        Self { start, scope: scope.unwrap_or_else(|| open(site, start)) }
    }

    #[cold]
    #[inline(never)]
    fn slowly(site: &'static Site) -> Self {
        let start = processor_time::begin_scope(site);
        Self { start, scope: open(site, start) }
    }
}

/// Whether a scope that begins now on this thread may get a place, for a first look.
pub(crate) fn may_open() -> bool {
    may_have_pages() && !scope_pages::is_full(registry::current().refused_in())
}

/// Whether a trace may have pages for a scope that begins now, for a first look.
fn may_have_pages() -> bool {
    // What a hook would say is not known yet.
    (scope_pages::are_there() || fork::is_undecided()) && !hook::is_wanted()
}

/// A scope of a site begins for which the hot path has no place: the first one of the
/// thread in this run, and those behind the last place. What its end passes on to the thread's open scopes.
#[cold]
#[inline(never)]
pub(crate) fn open(site: &Site, start: u64) -> u64 {
    if !may_open() {
        return 0;
    }
    fork::join_at_scope();
    match registry::acquire() {
        Some(Acquired::Own(block)) => open_inside(block, site, start),
        Some(Acquired::Borrowed(block)) => {
            block.free();
            0
        }
        None => 0,
    }
}

/// A scope of a site begins on a track. Returns its place in the pages; none if no reader can find it.
#[cold]
#[inline(never)]
pub(crate) fn open_on_track(site: &Site, start: u64, track: (&str, u64)) -> Option<TrackPlace> {
    if !may_have_pages() {
        return None;
    }
    fork::join_at_scope();
    inside(|context, pages| {
        if site.load() & ON == 0 {
            return None;
        }
        let (name, id) = track;
        // There may be no next event that names it.
        attempt(|| context.definitions().name_virtual_thread(context.buffer(), id | VIRTUAL, name));
        let references = references(context, site) | id & u64::from(u32::MAX);
        pages.begin_on_track(start, references)
    })
}

/// A scope of a track ends whose record is written.
#[cold]
#[inline(never)]
pub(crate) fn close_on_track(place: TrackPlace, start: u64) {
    let _ = inside(|_, pages| {
        pages.end_on_track(place, start);
        Some(())
    });
}

/// Calls a function inside of an event, if there are pages.
fn inside<T>(call: impl FnOnce(&Context, &ScopePages) -> Option<T>) -> Option<T> {
    let acquired = registry::acquire()?;
    let (Acquired::Own(block) | Acquired::Borrowed(block)) = acquired;
    let result = {
        let lease = Lease::inside(block);
        lease.context().and_then(|context| call(context, context.scopes()?))
    };
    if let Acquired::Borrowed(block) = acquired {
        block.free();
    }
    result
}

fn open_inside(block: &'static ThreadBlock, site: &Site, start: u64) -> u64 {
    let lease = Lease::inside(block);
    let Some((context, pages)) = lease.context().and_then(|context| Some((context, context.scopes()?)))
    else {
        return 0;
    };
    if site.load() & ON == 0 || join(context, block, true).is_err() {
        return 0;
    }
    if block.scopes_place().is_none() {
        let Some(scopes) = pages.take(block.koid()) else {
            block.set_refused(pages.run());
            return 0;
        };
        block.scopes_place().set(scopes);
    }
    let time = block.begins().time(start).map_or(0, thread_time_bits);
    block.scopes().begin_any(start, references(context, site) | time)
}

/// The references of a site's category and name, as an event's header has them.
fn references(context: &Context, site: &Site) -> u64 {
    let [category, name] = indices(context, site);
    u64::from(category) << 32 | u64::from(name) << 48
}

/// How often a thread looks again whether another one has left a table.
const ATTEMPTS: usize = 100;

/// Calls a function until it returns true: it returns false while another thread is busy with a table. That
/// thread may be one that a handler has interrupted, so there is an end to it.
fn attempt(mut call: impl FnMut() -> bool) {
    for attempt in 0..ATTEMPTS {
        if call() {
            return;
        }
        if attempt > ATTEMPTS / 2 {
            std::thread::yield_now();
        }
    }
}

/// The indices of a site's category and name; 0 where there will be none, and where the thread that a handler
/// has interrupted is about to give them one.
fn indices(context: &Context, site: &Site) -> [u16; 2] {
    let mut indices = [0; 2];
    attempt(|| {
        let strings = SiteStrings::of(context, site);
        indices = [strings.category.index(), strings.name.index()];
        !indices.contains(&0) || site.settled().is_some()
    });
    indices
}
