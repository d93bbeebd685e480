//! A layer for stacks of subscribers.

use crate::fields::count_dropped;
use crate::options::{Always, Options};
use crate::{callsites, open_spans, runs, writer};
use tracing_core::dispatcher::Dispatch;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Interest, LevelFilter, Metadata, Subscriber};
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::{Context, Filter, Layer};
use tracing_subscriber::registry::LookupSpan;

/// A layer with the default [`Options`], for `tracing_subscriber::registry().with(…)`. The provider is the
/// program's own: `trace_provider::TraceProvider::new`.
#[must_use]
pub fn layer<S>() -> Filtered<FxtLayer, Recorded, S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    Options::new().layer()
}

impl Options {
    /// A layer with these options: see [`layer`].
    #[must_use]
    pub fn layer<S>(self) -> Filtered<FxtLayer, Recorded, S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        runs::follow();
        FxtLayer { options: self.clone(), is_always_on: false }.with_filter(Recorded(self))
    }
}

impl Always {
    /// The layer.
    #[must_use]
    pub fn layer(self) -> FxtLayer {
        runs::follow();
        FxtLayer { options: self.0, is_always_on: true }
    }
}

/// Records what its filter lets through, or what its options want if it has none.
#[derive(Debug)]
pub struct FxtLayer {
    options: Options,
    /// There is no filter.
    is_always_on: bool,
}

impl FxtLayer {
    /// Whether a callsite is this layer's. A filter has answered that already.
    #[inline]
    fn is_for(&self, metadata: &Metadata<'_>) -> bool {
        !self.is_always_on || self.options.wants(metadata)
    }
}

/// Lets through what is being recorded. Other layers see all that they want: the filter is of this layer
/// alone.
#[derive(Debug)]
pub struct Recorded(Options);

impl<S> Filter<S> for Recorded {
    fn enabled(&self, metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
        // For callsites that another layer wants. The site's word is looked at when the event is recorded.
        self.0.wants(metadata) && runs::is_running()
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if !self.0.wants(metadata) {
            return Interest::never();
        }
        callsites::interest(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(if runs::is_running() || !runs::is_asking() { self.0.max_level() } else { LevelFilter::OFF })
    }
}

impl<S> Layer<S> for FxtLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_register_dispatch(&self, subscriber: &Dispatch) {
        runs::note(subscriber);
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.is_for(metadata) {
            callsites::add(metadata);
        }
        // What a layer without a filter does not want, no other layer would get.
        Interest::always()
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _context: Context<'_, S>) {
        let id = id.into_u64();
        let known = callsites::find_or_add(attributes.metadata()).filter(|callsite| callsite.is_on());
        let Some(callsite) = known.filter(|callsite| self.is_for(callsite.metadata)) else {
            return;
        };
        match open_spans::begin(id, callsite.number) {
            Some(data) => {
                writer::store_fields(callsite, data, attributes);
                if !attributes.is_root() {
                    let parent = attributes.parent().map(Id::into_u64);
                    writer::note_origin(data, parent.map(|id| (id, open_spans::find(id))));
                }
                if self.options.has_lifetimes {
                    writer::begin_life(id, callsite, data);
                }
            }
            None => count_dropped(attributes.values().len()),
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _context: Context<'_, S>) {
        let data = open_spans::find(id.into_u64());
        let callsite = data.and_then(|data| callsites::by_number(data.callsite()));
        if let (Some(data), Some(callsite)) = (data, callsite) {
            writer::store_late(callsite, data, values);
        }
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, _context: Context<'_, S>) {
        let data = open_spans::find(id.into_u64());
        let callsite = data.and_then(|data| callsites::by_number(data.callsite()));
        if let (Some(data), Some(callsite)) = (data, callsite) {
            writer::follow(data, callsite, follows.into_u64());
        }
    }

    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if !self.is_for(event.metadata()) {
            return;
        }
        if self.options.has_logs {
            writer::record_log(event);
        } else {
            writer::record_event(event);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let data = open_spans::find(id.into_u64());
        let known = data.and_then(|data| callsites::by_number(data.callsite()));
        // A span from before the recording, or one without a place.
        let callsite = known.or_else(|| {
            let metadata = context.metadata(id).filter(|metadata| self.is_for(metadata));
            metadata.and_then(callsites::find)
        });
        if let Some(callsite) = callsite {
            writer::enter(id.into_u64(), callsite, data);
        }
    }

    fn on_exit(&self, id: &Id, _context: Context<'_, S>) {
        writer::exit(id.into_u64(), open_spans::find);
    }

    fn on_close(&self, id: Id, _context: Context<'_, S>) {
        let id = id.into_u64();
        open_spans::end(id, |data| writer::close(id, data));
    }
}
