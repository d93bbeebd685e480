//! Arguments of events: what a macro accepts as a value, and how a list of them is measured and written.

use crate::buffer::record_writer::RecordWriter;
use crate::record::privacy;
use crate::site::ArgName;
use trace_format::argument::{self, Argument, ArgumentType, ArgumentValue};
use trace_format::refs::{StringRef, inline_string_ref, truncate};
use trace_format::units::{Koid, ProcessKoid, StringIndex, ThreadKoid};

/// Longest string value, in bytes; longer ones are cut at a character boundary.
pub const MAX_STRING_BYTES: usize = 32_000;

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// A value as it stands in a record. Sealed: the sizes are trusted.
pub trait Value: sealed::Sealed {
    /// The argument's type in the format.
    fn argument_type(&self) -> ArgumentType;
    /// Words behind the argument's header and name.
    fn words(&self) -> usize;
    /// Upper half of the argument's header.
    fn upper(&self) -> u32;
    /// Stores the words.
    fn write(&self, record: &mut RecordWriter);
    /// Whether it is a text or bytes of the program's run.
    #[inline]
    fn is_private(&self) -> bool {
        false
    }
}

/// The value of an argument at a call site, which is written there as a literal or not.
#[derive(Clone, Copy, Debug)]
pub struct Written<V, const IS_LITERAL: bool>(pub V);

impl<V, const IS_LITERAL: bool> sealed::Sealed for Written<V, IS_LITERAL> {}

impl<V: Value, const IS_LITERAL: bool> Value for Written<V, IS_LITERAL> {
    #[inline(always)]
    fn argument_type(&self) -> ArgumentType {
        self.0.argument_type()
    }
    #[inline(always)]
    fn words(&self) -> usize {
        self.0.words()
    }
    #[inline(always)]
    fn upper(&self) -> u32 {
        self.0.upper()
    }
    #[inline(always)]
    fn write(&self, record: &mut RecordWriter) {
        self.0.write(record);
    }
    #[inline]
    fn is_private(&self) -> bool {
        !IS_LITERAL && self.0.is_private()
    }
}

/// A text that is a constant of the program, although it does not stand at the call site as a literal: a
/// [private recording](crate::literal) has it.
#[derive(Clone, Copy, Debug)]
pub struct Literal(pub(crate) &'static str);

impl IntoValue for Literal {
    type Value = Written<Text<&'static str>, true>;
    #[inline(always)]
    fn into_value(self) -> Self::Value {
        Written(Text(self.0))
    }
}

/// What may stand behind `=>` in a macro.
///
/// | Rust | in the trace |
/// |---|---|
/// | `()` | null |
/// | `bool` | boolean |
/// | `i8`, `i16`, `i32` / `u8`, `u16`, `u32` | int32 / uint32 |
/// | `i64`, `isize` / `u64`, `usize` | int64 / uint64 |
/// | `f32`, `f64` | double |
/// | `&str`, `&String`, `String`, `Cow<str>`, `&Cow<str>` | string, inline, at most 32 000 bytes |
/// | `char` | string |
/// | `&Path`, `&PathBuf`, `&OsStr` | string; what is no UTF-8 is replaced |
/// | `Duration` | uint64, in nanoseconds |
/// | `Option<T>`, `&Option<T>` | null, or as `T`, `&T` |
/// | `*const T`, `*mut T` | pointer |
/// | [`Koid`], [`ProcessKoid`], [`ThreadKoid`] | koid |
/// | `&[u8]`, `&Vec<u8>` | blob, at most 32 000 bytes |
/// | `u128`, `i128`, IP and socket addresses | string, as `{}` shows it |
/// | `&dyn Error`, `&io::Error` | string, as `{}` shows it, 256 bytes |
/// | slices of other numbers, of `bool`, `&str` and `String` | string, as `{:?}` shows it, 256 bytes |
/// | [`display(&x)`](crate::display), [`debug(&x)`](crate::debug) | string: `{}` or `{:?}`, 256 bytes |
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an event",
    label = "not a type of arguments",
    note = "record what it shows: `display(&value)` or `debug(&value)`"
)]
pub trait IntoValue {
    /// The value in the record.
    type Value: Value;
    /// Converts it.
    fn into_value(self) -> Self::Value;
}

macro_rules! plain_value {
    ($(#[$doc:meta])* $name:ident($inner:ty): $type:ident, $words:literal, $upper:expr, $write:expr; $($from:ty => $convert:expr),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub(super) $inner);
        impl sealed::Sealed for $name {}
        impl Value for $name {
            #[inline(always)]
            fn argument_type(&self) -> ArgumentType {
                ArgumentType::$type
            }
            #[inline(always)]
            fn words(&self) -> usize {
                $words
            }
            #[inline(always)]
            fn upper(&self) -> u32 {
                ($upper)(self.0)
            }
            #[inline(always)]
            fn write(&self, record: &mut RecordWriter) {
                ($write)(self.0, record);
            }
        }
        $(impl IntoValue for $from {
            type Value = $name;
            #[inline(always)]
            fn into_value(self) -> $name {
                $name(($convert)(self))
            }
        })+
    };
}

fn none<T>(_: T) -> u32 {
    0
}

fn nothing<T>(_: T, _: &mut RecordWriter) {}

plain_value!(
    /// A null argument.
    Null(()): Null, 0, none, nothing; () => |()| ());
plain_value!(
    /// A boolean argument.
    Bool(bool): Bool, 0, u32::from, nothing; bool => |value| value);
plain_value!(
    /// A signed argument of up to 32 bits.
    Int32(i32): Int32, 0, |value| value as u32, nothing; i8 => i32::from, i16 => i32::from, i32 => |value| value);
plain_value!(
    /// An unsigned argument of up to 32 bits.
    Uint32(u32): Uint32, 0, |value| value, nothing; u8 => u32::from, u16 => u32::from, u32 => |value| value);
plain_value!(
    /// A signed 64-bit argument.
    Int64(i64): Int64, 1, none, |value, record: &mut RecordWriter| record.word(value as u64);
    i64 => |value| value, isize => |value| value as i64);
plain_value!(
    /// An unsigned 64-bit argument.
    Uint64(u64): Uint64, 1, none, |value, record: &mut RecordWriter| record.word(value);
    u64 => |value| value, usize => |value| value as u64);
plain_value!(
    /// A floating point argument.
    Double(f64): Double, 1, none, |value: f64, record: &mut RecordWriter| record.word(value.to_bits());
    f32 => f64::from, f64 => |value| value);
plain_value!(
    /// A kernel object id.
    KoidValue(Koid): Koid, 1, none, |value: Koid, record: &mut RecordWriter| record.word(value.0);
    Koid => |value| value, ProcessKoid => |value: ProcessKoid| value.0, ThreadKoid => |value: ThreadKoid| value.0);

/// An address.
#[derive(Clone, Copy, Debug)]
pub struct Pointer(u64);

impl sealed::Sealed for Pointer {}

impl Value for Pointer {
    #[inline(always)]
    fn argument_type(&self) -> ArgumentType {
        ArgumentType::Pointer
    }
    #[inline(always)]
    fn words(&self) -> usize {
        1
    }
    #[inline(always)]
    fn upper(&self) -> u32 {
        0
    }
    #[inline(always)]
    fn write(&self, record: &mut RecordWriter) {
        record.word(self.0);
    }
}

impl<T> IntoValue for *const T {
    type Value = Pointer;
    #[inline(always)]
    fn into_value(self) -> Pointer {
        Pointer(self.addr() as u64)
    }
}

impl<T> IntoValue for *mut T {
    type Value = Pointer;
    #[inline(always)]
    fn into_value(self) -> Pointer {
        Pointer(self.addr() as u64)
    }
}

/// A string, written inline.
#[derive(Clone, Debug)]
pub struct Text<S>(pub(super) S);

impl<S: AsRef<str>> Text<S> {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        let text = self.0.as_ref();
        if text.len() <= MAX_STRING_BYTES {
            text.as_bytes()
        } else {
            truncate(text, MAX_STRING_BYTES).as_bytes()
        }
    }
}

impl<S> sealed::Sealed for Text<S> {}

impl<S: AsRef<str>> Value for Text<S> {
    #[inline(always)]
    fn argument_type(&self) -> ArgumentType {
        ArgumentType::String
    }
    #[inline(always)]
    fn words(&self) -> usize {
        self.bytes().len().div_ceil(8)
    }
    #[inline(always)]
    fn upper(&self) -> u32 {
        u32::from(inline_string_ref(self.bytes().len()))
    }
    #[inline(always)]
    fn write(&self, record: &mut RecordWriter) {
        record.bytes(self.bytes());
    }
    #[inline]
    fn is_private(&self) -> bool {
        true
    }
}

impl<'a> IntoValue for &'a str {
    type Value = Text<&'a str>;
    #[inline(always)]
    fn into_value(self) -> Self::Value {
        Text(self)
    }
}

impl<'a> IntoValue for &'a String {
    type Value = Text<&'a str>;
    #[inline(always)]
    fn into_value(self) -> Self::Value {
        Text(self)
    }
}

impl IntoValue for String {
    type Value = Text<String>;
    #[inline(always)]
    fn into_value(self) -> Self::Value {
        Text(self)
    }
}

/// Raw bytes.
#[derive(Clone, Copy, Debug)]
pub struct Blob<'a>(&'a [u8]);

impl sealed::Sealed for Blob<'_> {}

impl Value for Blob<'_> {
    #[inline(always)]
    fn argument_type(&self) -> ArgumentType {
        ArgumentType::Blob
    }
    #[inline(always)]
    fn words(&self) -> usize {
        self.0.len().div_ceil(8)
    }
    #[inline(always)]
    fn upper(&self) -> u32 {
        self.0.len() as u32
    }
    #[inline(always)]
    fn write(&self, record: &mut RecordWriter) {
        record.bytes(self.0);
    }
    #[inline]
    fn is_private(&self) -> bool {
        true
    }
}

impl<'a> IntoValue for &'a [u8] {
    type Value = Blob<'a>;
    #[inline(always)]
    fn into_value(self) -> Self::Value {
        Blob(&self[..self.len().min(MAX_STRING_BYTES)])
    }
}

/// How the names of a list of arguments stand in a record.
pub trait Names {
    /// Reference of a name, and its text if that is written inline.
    fn name(&self, index: usize) -> (u16, &[u8]);
    /// Number of names.
    fn count(&self) -> usize;
}

/// All names have an index.
pub struct Interned<'a>(pub &'a [ArgName]);

impl Names for Interned<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn name(&self, index: usize) -> (u16, &[u8]) {
        (self.0[index].reference(), &[])
    }
}

/// All names are written inline.
pub struct Inline<'a>(pub &'a [ArgName]);

impl Names for Inline<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, index: usize) -> (u16, &[u8]) {
        let text = self.0[index].text();
        (inline_string_ref(text.len()), text)
    }
}

/// A list of values, as nested pairs ending in `()`. Sealed: the sizes are trusted.
pub trait Values: sealed::Sealed {
    /// Number of values.
    fn count(&self) -> usize;
    /// Words of all arguments, without inline names.
    fn words(&self) -> usize;
    /// Words of their names, if these are inline. A site may have names for more arguments than an event has.
    fn name_words(&self, names: &[ArgName]) -> usize {
        names.iter().take(self.count()).map(|name| name.text().len().div_ceil(8)).sum()
    }
    /// Stores all arguments; the first one has the name numbered `first`.
    fn write(&self, first: usize, names: &impl Names, record: &mut RecordWriter);
    /// As [`Values::words`], for a private recording.
    fn redacted_words(&self) -> usize;
    /// As [`Values::write`], for a private recording.
    fn write_redacted(&self, first: usize, names: &impl Names, record: &mut RecordWriter);
}

/// A name as it stands in a record.
fn name_ref<'a>((reference, text): (u16, &'a [u8])) -> StringRef<'a> {
    match text {
        [] => StringIndex::new(reference).map_or(StringRef::Empty, StringRef::Index),
        text => StringRef::Inline(text),
    }
}

impl sealed::Sealed for &[ArgumentValue<'_>] {}

/// Values whose types are known only when they are written: those that come from C. Texts and blobs have at
/// most [`MAX_STRING_BYTES`].
impl Values for &[ArgumentValue<'_>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn words(&self) -> usize {
        self.iter().map(|value| Argument { name: StringRef::Empty, value: *value }.words().0).sum()
    }

    fn write(&self, first: usize, names: &impl Names, record: &mut RecordWriter) {
        for (index, value) in self.iter().enumerate() {
            Argument { name: name_ref(names.name(first + index)), value: *value }.write(record);
        }
    }

    fn redacted_words(&self) -> usize {
        let words = |value: &ArgumentValue<'_>| {
            Argument { name: StringRef::Empty, value: privacy::redacted(*value) }.words().0
        };
        self.iter().map(words).sum()
    }

    fn write_redacted(&self, first: usize, names: &impl Names, record: &mut RecordWriter) {
        for (index, value) in self.iter().enumerate() {
            let name = name_ref(names.name(first + index));
            Argument { name, value: privacy::redacted(*value) }.write(record);
        }
    }
}

/// Values of another language, of which some texts are constants of the program.
#[derive(Clone, Copy, Debug)]
pub struct GivenValues<'a> {
    /// The values.
    pub values: &'a [ArgumentValue<'a>],
    /// A bit for each of them, from the lowest on: it is a constant.
    pub literals: u16,
}

impl GivenValues<'_> {
    fn redacted(&self) -> impl Iterator<Item = (usize, ArgumentValue<'_>)> {
        self.values.iter().enumerate().map(|(number, value)| {
            let is_literal = self.literals >> number & 1 != 0;
            (number, if is_literal { *value } else { privacy::redacted(*value) })
        })
    }
}

impl sealed::Sealed for GivenValues<'_> {}

impl Values for GivenValues<'_> {
    fn count(&self) -> usize {
        self.values.len()
    }

    fn words(&self) -> usize {
        self.values.words()
    }

    fn write(&self, first: usize, names: &impl Names, record: &mut RecordWriter) {
        self.values.write(first, names, record);
    }

    fn redacted_words(&self) -> usize {
        self.redacted().map(|(_, value)| Argument { name: StringRef::Empty, value }.words().0).sum()
    }

    fn write_redacted(&self, first: usize, names: &impl Names, record: &mut RecordWriter) {
        for (number, value) in self.redacted() {
            Argument { name: name_ref(names.name(first + number)), value }.write(record);
        }
    }
}

impl sealed::Sealed for () {}

impl Values for () {
    #[inline(always)]
    fn count(&self) -> usize {
        0
    }
    #[inline(always)]
    fn words(&self) -> usize {
        0
    }
    #[inline(always)]
    fn write(&self, _first: usize, _names: &impl Names, _record: &mut RecordWriter) {}
    fn redacted_words(&self) -> usize {
        0
    }
    fn write_redacted(&self, _first: usize, _names: &impl Names, _record: &mut RecordWriter) {}
}

impl<R: Values> sealed::Sealed for &R {}

impl<R: Values> Values for &R {
    #[inline(always)]
    fn count(&self) -> usize {
        R::count(self)
    }
    #[inline(always)]
    fn words(&self) -> usize {
        R::words(self)
    }
    #[inline(always)]
    fn write(&self, first: usize, names: &impl Names, record: &mut RecordWriter) {
        R::write(self, first, names, record);
    }
    fn redacted_words(&self) -> usize {
        R::redacted_words(self)
    }
    fn write_redacted(&self, first: usize, names: &impl Names, record: &mut RecordWriter) {
        R::write_redacted(self, first, names, record);
    }
}

impl<V: Value, R: Values> sealed::Sealed for (V, R) {}

impl<V: Value, R: Values> Values for (V, R) {
    #[inline(always)]
    fn count(&self) -> usize {
        1 + self.1.count()
    }
    #[inline(always)]
    fn words(&self) -> usize {
        1 + self.0.words() + self.1.words()
    }
    #[inline(always)]
    fn write(&self, first: usize, names: &impl Names, record: &mut RecordWriter) {
        write_one(&self.0, names.name(first), record);
        self.1.write(first + 1, names, record);
    }
    fn redacted_words(&self) -> usize {
        let own = match self.0.is_private() {
            true => privacy::replacement_words(self.0.argument_type()),
            false => self.0.words(),
        };
        1 + own + self.1.redacted_words()
    }
    fn write_redacted(&self, first: usize, names: &impl Names, record: &mut RecordWriter) {
        if self.0.is_private() {
            let value = privacy::replacement(self.0.argument_type());
            Argument { name: name_ref(names.name(first)), value }.write(record);
        } else {
            write_one(&self.0, names.name(first), record);
        }
        self.1.write_redacted(first + 1, names, record);
    }
}

/// Stores an argument whose name stands in the record like this.
#[inline(always)]
fn write_one(value: &impl Value, (reference, inline): (u16, &[u8]), record: &mut RecordWriter) {
    let words = 1 + inline.len().div_ceil(8) + value.words();
    record.word(argument::header(value.argument_type(), words as u64, reference, value.upper()));
    record.bytes(inline);
    value.write(record);
}
