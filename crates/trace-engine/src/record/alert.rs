//! Alerts: names that travel to the manager beside the buffer, which may stop the trace or take a snapshot.
//! Each is an event of the trace as well.

use crate::record::arguments::{IntoValue, Values, Written};
use crate::record::event::{Event, scope_word};
use crate::record::hot_path::write_event;
use crate::session::config::AlertHandler;
use crate::session::fork;
use crate::session::lease::Lease;
use crate::site::dynamic_sites::{SiteText, with_unlisted_constants};
use crate::site::{ON, Site};
use trace_format::event::{EventType, Scope};
use trace_format::refs::truncate;

/// Longest name of an alert, in bytes; longer ones are cut where a character ends.
pub const MAX_ALERT_BYTES: usize = 14;

/// What an alert is called in the trace.
//= docs/format.md#alerts
const EVENT: SiteText<'_> = SiteText { category: b"trace", name: b"alert" };
/// The argument of this event that has the alert's name.
const NAME_ARGUMENT: &[u8] = b"name";

/// Records an alert and calls the running trace's handler, if the site is on.
#[doc(hidden)]
pub fn send_alert(site: &Site, name: &str) {
    send(site, name, |name| write(&(name.into_value(), ())));
}

/// As [`send_alert`], with a name that is a constant of the program.
#[doc(hidden)]
pub fn send_literal_alert(site: &Site, name: &str) {
    send(site, name, |name| write(&(Written::<_, true>(name.into_value()), ())));
}

fn send(site: &Site, name: &str, write: impl FnOnce(&str)) {
    if fork::is_joining() && !fork::wait_for_first(site) {
        return;
    }
    let handler =
        handler_if_on(site).or_else(|| fork::is_first_of_child(site).then(|| handler_if_on(site)).flatten());
    let Some(handler) = handler else {
        return;
    };
    let name = truncate(name, MAX_ALERT_BYTES);
    // The event is written first, because the recording may end as soon as the manager gets the alert.
    write(name);
    handler.report(name);
}

/// The running trace's handler, which lives longer than the trace: it may take its time.
fn handler_if_on(site: &Site) -> Option<AlertHandler> {
    let lease = Lease::of_thread();
    let context = lease.context().filter(|_| site.load() & ON != 0);
    context.map(|context| context.config().alert.clone())
}

/// Records the alert on this thread, whether the trace wants the event's category or not.
fn write(values: &impl Values) {
    with_unlisted_constants(EVENT, &[NAME_ARGUMENT], |site| {
        let event = Event { event_type: EventType::Instant, start: None, extra: scope_word(Scope::Thread) };
        write_event(site, event, values);
    });
}
