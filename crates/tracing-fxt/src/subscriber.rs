//! A subscriber by itself, for programs that need no other layer: spans cost less without a registry.

use crate::fields::count_dropped;
use crate::options::Options;
use crate::thread_state::with_entered;
use crate::{callsites, pool, runs, writer};
use core::num::NonZeroU64;
use trace_provider::TraceProvider;
use tracing_core::dispatcher::{Dispatch, SetGlobalDefaultError, set_global_default};
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::{Event, Interest, LevelFilter, Metadata, Subscriber};

/// Makes the subscriber of the process, and a provider of this name: see [`TraceProvider::new`]. Keep what it
/// returns until the end of `main`.
///
/// # Panics
/// If the process has a subscriber already.
#[must_use = "the provider is unregistered when this is dropped"]
pub fn init(name: &str) -> TraceProvider {
    Options::new().init(name)
}

impl Options {
    /// A subscriber with these options: see [`FxtSubscriber`].
    #[must_use]
    pub fn subscriber(self) -> FxtSubscriber {
        runs::follow();
        FxtSubscriber(self)
    }

    /// As [`init`], with these options.
    ///
    /// # Panics
    /// If the process has a subscriber already.
    #[must_use = "the provider is unregistered when this is dropped"]
    pub fn init(self, name: &str) -> TraceProvider {
        self.try_init(name).expect("the process has no other subscriber")
    }

    /// As [`init`], with these options.
    ///
    /// # Errors
    /// The process has a subscriber already. Then nothing is registered.
    pub fn try_init(self, name: &str) -> Result<TraceProvider, SetGlobalDefaultError> {
        set_global_default(Dispatch::new(self.subscriber()))?;
        Ok(TraceProvider::new(name))
    }
}

/// Records spans and events, and needs no registry.
#[derive(Debug)]
pub struct FxtSubscriber(Options);

impl Subscriber for FxtSubscriber {
    fn on_register_dispatch(&self, subscriber: &Dispatch) {
        runs::note(subscriber);
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if !self.0.wants(metadata) {
            return Interest::never();
        }
        callsites::interest(metadata)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.wants(metadata) && runs::is_running()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(if runs::is_running() || !runs::is_asking() { self.0.max_level() } else { LevelFilter::OFF })
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let Some(callsite) = callsites::find_or_add(attributes.metadata()) else {
            return id_of(pool::without_slot(u32::MAX));
        };
        let Some((id, data)) = pool::begin(callsite.number) else {
            count_dropped(attributes.values().len());
            return id_of(pool::without_slot(callsite.number));
        };
        writer::store_fields(callsite, data, attributes);
        if !attributes.is_root() {
            let parent = attributes.parent().map(Id::into_u64);
            writer::note_origin(data, parent.map(|id| (id, pool::find(id))));
        }
        if self.0.has_lifetimes {
            writer::begin_life(id, callsite, data);
        }
        id_of(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let data = pool::find(span.into_u64());
        let callsite = data.and_then(|data| callsites::by_number(data.callsite()));
        if let (Some(data), Some(callsite)) = (data, callsite) {
            writer::store_late(callsite, data, values);
        }
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        let data = pool::find(span.into_u64());
        let callsite = data.and_then(|data| callsites::by_number(data.callsite()));
        if let (Some(data), Some(callsite)) = (data, callsite) {
            writer::follow(data, callsite, follows.into_u64());
        }
    }

    fn event(&self, event: &Event<'_>) {
        if self.0.has_logs {
            writer::record_log(event);
        } else {
            writer::record_event(event);
        }
    }

    fn enter(&self, span: &Id) {
        let id = span.into_u64();
        let Some((callsite, data)) = pool::look_up(id) else {
            return;
        };
        if let Some(callsite) = callsites::by_number(callsite) {
            writer::enter(id, callsite, data);
        }
    }

    fn exit(&self, span: &Id) {
        writer::exit(span.into_u64(), pool::find);
    }

    fn clone_span(&self, span: &Id) -> Id {
        pool::reference(span.into_u64());
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let id = span.into_u64();
        pool::release(id, |data| writer::close(id, data))
    }

    fn current_span(&self) -> Current {
        let innermost = with_entered(|entered| entered.last().copied()).flatten();
        innermost.map_or_else(Current::none, |span| Current::new(id_of(span.id), span.callsite.metadata))
    }
}

fn id_of(id: u64) -> Id {
    Id::from_non_zero_u64(NonZeroU64::new(id).unwrap_or(NonZeroU64::MAX))
}
