//! Records texts of its run, which a private recording may not have, in all ways that there are.

#![forbid(unsafe_code)]

use log::LevelFilter;
use trace_provider::{
    DynamicSite, Koid, Scope, TraceProvider, Track, alert, blob, blob_attachment, blob_record, display,
    duration, instant, kernel_object, literal, track_duration, vthread_duration_begin, vthread_duration_end,
};
use tracing_subscriber::layer::SubscriberExt;

const CONSTANT: &str = "public constant";
static TRACK: Track = Track::new("public track");

fn main() {
    let (_provider, _) = TraceProvider::new_synchronously("secrets");
    log_fxt::Logger::new().level(LevelFilter::Trace).install().expect("no other logger");
    let subscriber = tracing_subscriber::registry().with(tracing_fxt::layer());
    tracing::subscriber::set_global_default(subscriber).expect("no other subscriber");
    let secret = std::env::args().nth(1).expect("a secret");
    duration!("app", "request", "user" => &secret, "state" => "public literal", "number" => 7);
    instant!("app", "moment", Scope::Thread, "path" => display(&secret), "kind" => literal(CONSTANT));
    DynamicSite::new("app", &secret, ["key"]).instant(Scope::Thread, (&secret,));
    trace_provider::log!("app", "public message");
    trace_provider::log!("app", "message of {secret}");
    blob!("app", "large", secret.as_bytes());
    blob_attachment!("app", "attached", secret.as_bytes());
    blob_record!("app", 1, "piece", secret.as_bytes());
    kernel_object!("app", 9, Koid(77), &secret);
    vthread_duration_begin!("app", "virtual", &secret, 7);
    vthread_duration_end!("app", "virtual", &secret, 7);
    track_duration!("app", TRACK, "on a track", "file" => &secret);
    alert!("app", &secret);
    log::info!(target: "app", "user {secret} has logged in");
    log::warn!("public warning");
    log::error!(target: &secret, "with a target of its own");
    tracing::info_span!(target: "app", "span", user = %secret, count = 3).in_scope(|| {
        tracing::info!(target: "app", user = &*secret, "hello {secret}");
    });
}
