//! The functions of `trace-json/c_api.h`.
//!
//! Invariants, which the header asks of callers: J1 of `abi`, and
//!
//! * **J2** Functions may be called with the contexts that they were given with, on the calling thread,
//!   until the call returns.
#![allow(unsafe_code)]

use crate::abi::{Deliver, Predicate, RawConfig, RawEvent};
use crate::config;
use crate::event;
use crate::pieces::Pieces;
use core::ffi::{c_char, c_void};
use core::slice;
use std::ffi::CString;
use std::sync::Arc;
use trace_config::chrome::Mode;
use trace_config::position;
use trace_convert::catapult::{self, Container, Dialect, Options, OwnRecording};
use trace_format::argument::Arguments;
use trace_format::event::Event;
use trace_format::shown::Shown;
use trace_format::units::TicksPerSecond;
use zx_sim::debuglog;

fn say(text: &str) {
    debuglog::write_for_process(&format!("trace: {}", Shown(text)));
}

/// A text that ends in a NUL, up to the first one in it.
fn c_string(text: &[u8]) -> CString {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// The program's function.
struct Given {
    keeps: Predicate,
    context: *mut c_void,
}

// SAFETY: an exporter of the program's own recording has no other thread (J2).
unsafe impl Send for Given {}
// SAFETY: as above.
unsafe impl Sync for Given {}

impl Given {
    fn keeps(&self, category: &[u8], name: &[u8], argument: Option<&[u8]>) -> bool {
        let (category, name, argument) = (c_string(category), c_string(name), argument.map(c_string));
        let argument = argument.as_ref().map_or(core::ptr::null(), |argument| argument.as_ptr());
        // SAFETY: J2
        unsafe { (self.keeps)(self.context, category.as_ptr(), name.as_ptr(), argument) }
    }
}

/// # Safety
/// J1, J2
unsafe fn write(
    archive: &[u8],
    predicate: (Option<Predicate>, *mut c_void),
    deliver: (Deliver, *mut c_void),
) -> bool {
    let mut pieces = Pieces::new(|piece: &[u8], is_last| {
        // SAFETY: J2; the text stays for the call.
        unsafe { (deliver.0)(deliver.1, piece.as_ptr().cast(), piece.len(), is_last) }
    });
    let predicate = predicate.0.map(|keeps| -> catapult::ArgumentPredicate {
        let given = Given { keeps, context: predicate.1 };
        Arc::new(move |category, name, argument| given.keeps(category, name, argument))
    });
    let options = Options {
        dialect: Dialect::Chrome(Container::Array),
        own: Some(OwnRecording { predicate }),
        ..Options::default()
    };
    let written = catapult::convert_in_memory(archive, &mut pieces, options);
    pieces.finish();
    written.inspect_err(|error| say(&format!("the recording cannot be written as JSON: {error}"))).is_ok()
}

/// # Safety
/// J1, J2
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trace_json_write(
    archive: *const u8,
    size: usize,
    predicate: Option<Predicate>,
    predicate_context: *mut c_void,
    deliver: Deliver,
    context: *mut c_void,
) -> bool {
    // SAFETY: J1
    let archive = if size == 0 { &[][..] } else { unsafe { slice::from_raw_parts(archive, size) } };
    // SAFETY: J1, J2
    unsafe { write(archive, (predicate, predicate_context), (deliver, context)) }
}

/// # Safety
/// J1, J2
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trace_json_write_event(
    event: &RawEvent,
    predicate: Option<Predicate>,
    predicate_context: *mut c_void,
    deliver: Deliver,
    context: *mut c_void,
) -> bool {
    // SAFETY: J1
    let (found, arguments) = unsafe { (event.get(), event.arguments()) };
    let rate = u64::try_from(event.ticks_per_second).ok().and_then(TicksPerSecond::new);
    let (Some(found), Some(rate)) = (found, rate) else {
        say("the event cannot be written as JSON: its type or its clock is unknown");
        return false;
    };
    match event::archive_of(Event { arguments: Arguments::from_slice(&arguments), ..found }, rate) {
        // SAFETY: J1, J2
        Ok(archive) => unsafe { write(&archive, (predicate, predicate_context), (deliver, context)) },
        Err(error) => {
            say(&format!("the event cannot be written as JSON: {error}"));
            false
        }
    }
}

/// # Safety
/// J1, J2
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trace_json_read_config(
    text: *const c_char,
    length: usize,
    take: unsafe extern "C" fn(context: *mut c_void, config: &RawConfig),
    context: *mut c_void,
) -> bool {
    // SAFETY: J1
    let text = if length == 0 { &[][..] } else { unsafe { slice::from_raw_parts(text.cast(), length) } };
    let text = String::from_utf8_lossy(text);
    let config = match config::read(&text) {
        Ok(config) => config,
        Err(wrong) => {
            let why = position::describe(&text, Some(wrong.at), &wrong.message);
            say(&format!("nothing is recorded: the TraceConfig of one argument is JSON: {why}"));
            return false;
        }
    };
    config.notes.iter().for_each(|note| say(&format!("TraceConfig: {note}")));
    let categories = c_string(config.categories.as_bytes());
    let mode = match config.mode {
        None | Some(Mode::UntilFull) => 0,
        Some(Mode::Continuously) => 1,
        Some(Mode::AsMuchAsPossible) => 2,
    };
    let raw = RawConfig {
        categories: categories.as_ptr(),
        mode,
        kibibytes: config.kibibytes,
        is_printed: config.is_printed,
    };
    // SAFETY: J2; the texts stay for the call.
    unsafe { take(context, &raw) };
    true
}
