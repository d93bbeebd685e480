//! The guard behind `duration!`.

use crate::record::arguments::Values;
use crate::record::hot_path::end_scope;
use crate::record::open_scope::ScopeBegun;
use crate::site::{Site, SiteState};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

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
    begun: ScopeBegun,
    values: V,
}

impl<V: Values> DurationScope<V> {
    /// Begins now, at a site that was found on, like this.
    #[inline(always)]
    pub fn begin(site: &'static Site, state: SiteState, values: V) -> Self {
        Self(Some(Begun { site, begun: ScopeBegun::now(site, state), values }), PhantomData)
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
            Some(Begun { site, begun, values }) if site.is_on() => end_scope(site, *begun, values),
            _ => {}
        }
    }
}
