//! The guard behind `duration!`.

use crate::record::arguments::Values;
use crate::record::event::Event;
use crate::record::hot_path::write_event;
use crate::record::processor_time;
use crate::site::{Site, SiteState};
use crate::thread::registry;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};
use trace_format::event::EventType;

/// What the compiler says that a task lacks where it holds a duration across an `.await`: the duration would
/// end on another thread, or enclose what other tasks do meanwhile. The name says what to use.
pub trait UseTraceFutureAcrossAwait {}

/// Marks what belongs to its thread. The compiler names the type that cannot be sent: this one has a name.
type OfThisThread = PhantomData<dyn UseTraceFutureAcrossAwait + Unpin + UnwindSafe + RefUnwindSafe>;

/// Writes a complete duration when it is dropped, if the site is still on. It stays on its thread:
///
/// ```compile_fail,E0277
/// # use trace_engine as trace_provider;
/// fn spawn(_task: impl Future + Send) {}
/// spawn(async {
///     trace_provider::duration!("app", "request");
///     std::future::ready(()).await;
/// });
/// ```
#[derive(Debug)]
#[must_use = "the duration ends when this is dropped"]
pub struct DurationScope<V: Values>(Option<Begun<V>>, OfThisThread);

/// A duration of a site that was on.
#[derive(Debug)]
struct Begun<V> {
    site: &'static Site,
    start: u64,
    values: V,
}

impl<V: Values> DurationScope<V> {
    /// Begins now, at a site that was found on, like this.
    #[inline(always)]
    pub fn begin(site: &'static Site, state: SiteState, values: V) -> Self {
        let start = match state.is_fast() {
            true => registry::current().stamp(),
            false => processor_time::begin_scope(site),
        };
        Self(Some(Begun { site, start, values }), PhantomData)
    }

    /// Of a site that is off.
    #[inline(always)]
    pub const fn off() -> Self {
        Self(None, PhantomData)
    }
}

impl<V: Values> Drop for DurationScope<V> {
    #[inline(always)]
    fn drop(&mut self) {
        match &self.0 {
            Some(Begun { site, start, values }) if site.is_on() => {
                let event =
                    Event { event_type: EventType::DurationComplete, start: Some(*start), extra: None };
                write_event(site, event, values);
            }
            _ => {}
        }
    }
}
