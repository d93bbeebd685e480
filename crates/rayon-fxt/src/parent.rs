//! The place from which work is handed to other threads.

use trace_engine::args::IntoValue;
use trace_engine::trace_format::operation::PARENT_OPERATION;
use trace_engine::{
    DurationScope, Event, EventType, Site, ThreadMoment, Within, current_operation, engine, ffi, is_enabled,
    nonce, stamp, write_event, write_event_of,
};

const CATEGORY: &str = "rayon";

/// The thread and the moment at which work was handed out, and its name. It may be sent to any thread.
#[derive(Clone, Copy, Debug)]
pub struct Parent(Option<CallerMoment>);

#[derive(Clone, Copy, Debug)]
struct CallerMoment {
    site: &'static Site,
    moment: ThreadMoment,
    /// The recording that runs.
    epoch: u32,
    /// The operation that the caller works on.
    of: Option<u64>,
    /// The caller is in its duration until what runs has ended.
    waits: bool,
}

impl Parent {
    /// This thread at this moment, which hands out work of this name.
    #[must_use]
    pub fn here(name: &str) -> Self {
        if !is_enabled() {
            return Self(None);
        }
        let site = Site::of_texts(CATEGORY, name, &[PARENT_OPERATION]).filter(|site| site.is_on());
        Self(site.map(|site| {
            let epoch = engine::epoch();
            if ThreadMoment::last().thread == 0 {
                // A thread without an event has no number yet.
                let _ = ffi::current_thread();
            }
            let _ = stamp();
            let of = current_operation();
            CallerMoment { site, moment: ThreadMoment::last(), epoch, of, waits: false }
        }))
    }

    /// For work whose end the caller waits for: on its own thread, that is inside of its duration.
    pub(crate) fn that_waits(self) -> Self {
        Self(self.0.map(|place| CallerMoment { waits: true, ..place }))
    }

    /// Runs a closure, on whatever thread this is: a duration, and an arrow to it.
    pub fn run<R>(&self, closure: impl FnOnce() -> R) -> R {
        let place = self.0.filter(|place| place.site.is_on() && place.epoch == engine::epoch());
        let Some(CallerMoment { site, moment, of, waits, .. }) = place else { return closure() };
        let _duration = of.is_none().then(|| DurationScope::begin(site, site.state(), ()));
        let _part = of.map(|of| DurationScope::begin(site, site.state(), (of.into_value(), ())));
        let _within = of.map(Within::new);
        if !waits || ThreadMoment::last().thread != moment.thread {
            let id = nonce();
            let flow = |event_type| Event { event_type, start: None, extra: Some(id) };
            write_event_of(site, moment, flow(EventType::FlowBegin), &());
            write_event(site, flow(EventType::FlowEnd), &());
        }
        closure()
    }
}

/// A function each of whose calls is recorded under this name, with this thread as its parent: for parallel
/// iterators.
///
/// ```
/// use rayon::prelude::*;
///
/// let square = rayon_fxt::in_parent("square", |x: u64| x * x);
/// let squares: Vec<u64> = (0..4).into_par_iter().map(square).collect();
/// assert_eq!(squares, [0, 1, 4, 9]);
/// ```
pub fn in_parent<T, R, F>(name: &str, function: F) -> impl Fn(T) -> R + Send + Sync + use<T, R, F>
where
    F: Fn(T) -> R + Send + Sync,
{
    let parent = Parent::here(name).that_waits();
    move |item| parent.run(|| function(item))
}
