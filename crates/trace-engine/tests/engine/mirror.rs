//! Marks of events for another trace.

use crate::support::{Trace, alone};
use std::sync::Mutex;
use trace_engine::{
    Config, EventType, Id, Mark, Scope, async_begin, async_end, async_instant, begin_scope, counter,
    duration, duration_begin, duration_complete, duration_end, ffi, flow_begin, instant, now,
    vthread_counter, write_event,
};
use trace_format::argument::ArgumentValue;
use trace_format::event::Event;
use trace_format::refs::StringRef;

static MARKS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn keep(mark: &Mark<'_>) {
    let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
    let line = match *mark {
        Mark::Begin(name) => format!("begin {}", text(name)),
        Mark::End => "end".into(),
        Mark::AsyncBegin(name, id) => format!("async begin {} {id}", text(name)),
        Mark::AsyncEnd(name, id) => format!("async end {} {id}", text(name)),
        Mark::Instant(name) => format!("instant {}", text(name)),
        Mark::Counter(name, series, value) => {
            format!(
                "counter {}{} {value}",
                text(name),
                series.map_or(String::new(), |series| format!(" {}", text(series)))
            )
        }
    };
    MARKS.lock().unwrap().push(line);
}

fn mirrored(config: &mut Config) {
    MARKS.lock().unwrap().clear();
    config.mirror = Some(keep);
}

fn marks() -> Vec<String> {
    std::mem::take(&mut MARKS.lock().unwrap())
}

fn is_no_secret(event: &Event<'_>) -> bool {
    event.name != StringRef::Inline(b"secret")
}

//= docs/kernel.md#mirrored-events
#[test]
fn each_kind_of_event_has_its_mark() {
    for thread_time in [false, true] {
        let trace = Trace::start_with(|config| {
            mirrored(config);
            config.thread_time = thread_time;
        });
        {
            duration!("app", "outer");
            {
                duration!("app", "inner", "n" => 1_u32);
                instant!("app", "moment", Scope::Thread);
            }
            counter!("app", "one", 0, "value" => 2.6);
            counter!("app", "two", 0, "read" => -1_i64, "text" => "no number", "written" => u64::MAX);
        }
        duration_begin!("app", "begun");
        duration_end!("app", "begun");
        let start = now();
        duration_complete!("app", "complete", start);
        let id = Id::from(7);
        async_begin!(id, "app", "async");
        async_instant!(id, "app", "step");
        async_end!(id, "app", "async");
        // What has no mark.
        flow_begin!("app", "flow", 9);
        vthread_counter!("app", "load", "queue 7", 7, 3, "busy" => 1_u64);
        let expected = [
            "begin outer",
            "begin inner",
            "instant moment",
            "end",
            "counter one 3",
            "counter two read -1",
            "counter two written 9223372036854775807",
            "end",
            "begin begun",
            "end",
            "instant complete",
            "async begin async 7",
            "instant step",
            "async end async 7",
        ];
        assert_eq!(marks(), expected);
        let read = trace.stop();
        assert_eq!(read.events.len(), 13, "{:?}", read.lines());
        let timed = read.lines().iter().filter(|line| line.contains("thread_ts=")).count();
        assert_eq!(timed, if thread_time { 6 } else { 0 }, "{:?}", read.lines());
    }
}

/// A scope that begins is marked; what a hook keeps out of the recording is not marked otherwise.
#[test]
fn what_a_hook_keeps_out_has_no_mark_but_the_scope_that_had_begun() {
    let trace = Trace::start_with(mirrored);
    let hooked = trace.hook(is_no_secret);
    {
        duration!("app", "secret");
        instant!("app", "secret", Scope::Thread);
        instant!("app", "open", Scope::Thread);
    }
    drop(hooked);
    assert_eq!(marks(), ["begin secret", "instant open", "end"]);
    assert_eq!(trace.stop().lines(), ["instant t app/open"]);
}

/// What a scope in another language is called may be a text of the program's run.
//= docs/recording.md#private-recordings
#[test]
fn marks_of_a_private_recording_have_no_texts_of_the_run() {
    let trace = Trace::start_with(|config| {
        mirrored(config);
        config.privacy = true;
    });
    let _ = begin_scope(b"secret");
    duration_begin!("app", "begun");
    duration_end!("app", "begun");
    let secret = ffi::SiteText { category: b"app", name: b"secret" };
    ffi::with_unlisted(secret, &[b"secret a", b"secret b"], |site| {
        let values = [ArgumentValue::Int32(1), ArgumentValue::Int32(2)];
        let values = ffi::GivenValues { values: &values, literals: 0 };
        let event = trace_engine::Event { event_type: EventType::Counter, start: None, extra: Some(0) };
        write_event(site, event, &values);
    });
    let redacted = "(redacted)";
    let expected = [
        format!("begin {redacted}"),
        "begin begun".to_owned(),
        "end".to_owned(),
        format!("counter {redacted} 1"),
        format!("counter {redacted} 2"),
    ];
    assert_eq!(marks(), expected);
    drop(trace.stop());
}

#[test]
fn scopes_that_were_open_or_whose_category_is_off_are_not_marked() {
    let alone = alone();
    MARKS.lock().unwrap().clear();
    let open = || {
        duration!("app", "before");
        let trace = Trace::start_after(&alone, |config| {
            mirrored(config);
            config.categories = trace_engine::Categories::Listed(vec!["app".into()]);
        });
        instant!("app", "on", Scope::Thread);
        duration!("other", "off");
        trace
    };
    let trace = open();
    assert_eq!(marks(), ["instant on"]);
    assert_eq!(trace.stop().events.len(), 1);
    // The next recording has none.
    let trace = Trace::start_after(&alone, |_| ());
    instant!("app", "on", Scope::Thread);
    drop(trace.stop());
    assert_eq!(marks(), Vec::<String>::new());
}
