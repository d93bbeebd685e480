//! Small traces.

use crate::import::json;
use crate::tables::Trace;
use std::io::{self, Cursor, Read};
use trace_format::loss::{LossCode, LossRecord};
use trace_format::sink::SliceSink;
use trace_format::units::{ProviderId, Ticks};

/// An archive that is read from memory.
pub(crate) fn archive(bytes: Vec<u8>) -> Trace {
    let open = move || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>);
    Trace { name: "a.fxt".to_owned(), open: Box::new(open), disorder: None, bytes: None }
}

/// An archive of events of Chrome's JSON.
pub(crate) fn of_json(events: &str) -> Trace {
    let mut bytes = Vec::new();
    json::import(format!("{{\"traceEvents\":[{events}]}}").as_bytes(), &mut bytes).expect("events");
    archive(bytes)
}

/// The same, from which 7 records are missing between 2 and 5 µs, and 9 at a time that is not known.
pub(crate) fn with_losses(events: &str) -> Trace {
    let mut bytes = Vec::new();
    json::import(format!("{{\"traceEvents\":[{events}]}}").as_bytes(), &mut bytes).expect("events");
    for (count, first, last) in [(7, 2000, 5000), (9, 0, 0)] {
        let (provider, reason) = (ProviderId(1), LossCode(0));
        let loss = LossRecord { provider, reason, count, first: Ticks(first), last: Ticks(last) };
        let mut words = [0; 32];
        let mut sink = SliceSink::new(&mut words);
        LossRecord::blob(&loss.to_bytes()).encode(&mut sink).expect("room");
        bytes.extend(sink.words().iter().flat_map(|word| word.to_le_bytes()));
    }
    archive(bytes)
}

/// An archive without records.
pub(crate) fn empty() -> Trace {
    archive(trace_format::metadata::MAGIC_WORD.to_le_bytes().to_vec())
}

/// An archive that cannot be read.
pub(crate) fn missing() -> Trace {
    let open = || Err(io::ErrorKind::NotFound.into());
    Trace { name: "a.fxt".to_owned(), open: Box::new(open), disorder: None, bytes: None }
}

/// Slices of two threads with names: nested, overlapping, open, and everything else that there is.
pub(crate) const EVENTS: &str = r##"
    {"ph":"M","pid":1,"name":"process_name","args":{"name":"app"}},
    {"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"main"}},
    {"ph":"B","ts":10,"pid":1,"tid":2,"cat":"c","name":"outer","args":{"a":1}},
    {"ph":"X","ts":12,"dur":3,"pid":1,"tid":2,"cat":"c","name":"inner"},
    {"ph":"X","ts":13,"dur":0.5,"pid":1,"tid":2,"cat":"d","name":"leaf"},
    {"ph":"E","ts":20,"pid":1,"tid":2,"args":{"b":"x"}},
    {"ph":"X","ts":30,"dur":10,"pid":1,"tid":2,"cat":"c","name":"first"},
    {"ph":"X","ts":35,"dur":10,"pid":1,"tid":2,"cat":"c","name":"second"},
    {"ph":"B","ts":50,"pid":1,"tid":2,"cat":"c","name":"open"},
    {"ph":"X","ts":51,"dur":1,"pid":1,"tid":2,"cat":"c","name":"inner"},
    {"ph":"X","ts":5,"dur":1,"pid":1,"tid":3,"cat":"c","name":"other"},
    {"ph":"b","ts":6,"pid":1,"tid":3,"cat":"c","name":"job","id":"0x7"},
    {"ph":"e","ts":9,"pid":1,"tid":3,"cat":"c","name":"job","id":"0x7"},
    {"ph":"i","ts":7,"pid":1,"tid":3,"cat":"c","name":"now","s":"p","args":{"n":1.5}},
    {"ph":"C","ts":7,"pid":1,"tid":3,"cat":"c","name":"count","args":{"n":3}},
    {"ph":"C","ts":8,"pid":1,"tid":3,"cat":"c","name":"count","args":{"n":1}},
    {"ph":"s","ts":14,"pid":1,"tid":2,"cat":"c","name":"go","id":"9"},
    {"ph":"f","bp":"e","ts":31,"pid":1,"tid":2,"cat":"c","name":"go","id":"9"},
    {"ph":"X","ts":60,"dur":4,"pid":9,"tid":9,"cat":"c","name":"a;b 7 "}"##;
