//! Values that know how to show themselves, as text arguments: rendered on the stack, before the event.

use crate::buffer::record_writer::RecordWriter;
use crate::record::arguments::{IntoValue, Value, sealed};
use crate::record::other_records::{write_literal_log, write_log};
use crate::site::Site;
use std::fmt::{self, Debug, Display, Write};
use trace_format::argument::ArgumentType;
use trace_format::refs::{inline_string_ref, truncate};

/// Longest rendering, in bytes; longer ones are cut where a character ends.
pub const MAX_RENDERED_BYTES: usize = 256;

/// Longest message that is formatted without an allocation, in bytes.
const MAX_STACK_MESSAGE_BYTES: usize = 1024;

/// A value's rendering.
#[derive(Clone)]
pub struct Rendered<const N: usize = MAX_RENDERED_BYTES> {
    bytes: [u8; N],
    length: usize,
    is_cut: bool,
}

/// What a value shows to users, as an argument.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Scope, display, instant};
/// let address = std::net::Ipv4Addr::LOCALHOST;
/// instant!("net", "connected", Scope::Thread, "to" => display(&address));
/// ```
pub fn display(value: &(impl Display + ?Sized)) -> Rendered {
    Rendered::of(format_args!("{value}"))
}

/// What a value shows to programmers, as an argument: enums, options, slices, structs.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Scope, debug, instant};
/// instant!("net", "retry", Scope::Thread, "after" => debug(&Some(5)), "delays" => debug(&[1, 2, 4]));
/// ```
pub fn debug(value: &(impl Debug + ?Sized)) -> Rendered {
    Rendered::of(format_args!("{value:?}"))
}

impl<const N: usize> Rendered<N> {
    fn of(value: fmt::Arguments<'_>) -> Self {
        let mut rendered = Self { bytes: [0; N], length: 0, is_cut: false };
        // An error says that it is full.
        let _ = rendered.write_fmt(value);
        rendered
    }

    fn as_bytes(&self) -> &[u8] {
        // `write_str` adds no more to the length than there is room for.
        &self.bytes[..self.length]
    }
}

impl<const N: usize> Write for Rendered<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.is_cut {
            return Err(fmt::Error);
        }
        let room = &mut self.bytes[self.length..];
        let fitting = truncate(text, room.len());
        room.iter_mut().zip(fitting.bytes()).for_each(|(to, from)| *to = from);
        self.length += fitting.len();
        self.is_cut = fitting.len() < text.len();
        if self.is_cut { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Formats a message, before its record, and records it. Only long messages need an allocation.
#[doc(hidden)]
pub fn write_formatted_log(site: &Site, message: fmt::Arguments<'_>) {
    if let Some(text) = message.as_str() {
        return write_literal_log(site, text);
    }
    let rendered = Rendered::<MAX_STACK_MESSAGE_BYTES>::of(message);
    match core::str::from_utf8(rendered.as_bytes()) {
        Ok(text) if !rendered.is_cut => write_log(site, text),
        _ => write_log(site, &message.to_string()),
    }
}

impl Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&String::from_utf8_lossy(self.as_bytes()), f)
    }
}

impl sealed::Sealed for Rendered {}

impl Value for Rendered {
    #[inline(always)]
    fn argument_type(&self) -> ArgumentType {
        ArgumentType::String
    }
    #[inline]
    fn words(&self) -> usize {
        self.length.div_ceil(8)
    }
    #[inline]
    fn upper(&self) -> u32 {
        u32::from(inline_string_ref(self.length))
    }
    #[inline]
    fn write(&self, record: &mut RecordWriter) {
        record.bytes(self.as_bytes());
    }
    #[inline]
    fn is_private(&self) -> bool {
        true
    }
}

impl IntoValue for Rendered {
    type Value = Self;
    #[inline(always)]
    fn into_value(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendering_is_cut_where_a_character_ends() {
        assert_eq!(display(&42).as_bytes(), b"42");
        assert_eq!(display("").as_bytes(), b"");
        assert_eq!(debug(&["a", "b"]).as_bytes(), b"[\"a\", \"b\"]");
        let long = "a€".repeat(100);
        let rendered = display(&long);
        assert_eq!(rendered.as_bytes(), &long.as_bytes()[..256]);
        let rendered = display(&format!("aa{long}"));
        assert_eq!(rendered.as_bytes().len(), 255);
        assert!(str::from_utf8(rendered.as_bytes()).is_ok());
        // What comes behind the cut does not fill the gap, even if the value writes on.
        struct Stubborn;
        impl Display for Stubborn {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let _ = f.write_str(&"x".repeat(254));
                let _ = f.write_str("€");
                f.write_str("b")
            }
        }
        assert_eq!(display(&Stubborn).as_bytes(), "x".repeat(254).as_bytes());
    }
}
