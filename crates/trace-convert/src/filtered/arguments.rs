//! Arguments of records, without those that are removed.

use super::Options;
use super::archive::{Archive, Piece};
use super::texts::Texts;
use smallvec::SmallVec;
use std::io::Write;
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::operation::{FIRST_POLL, PARENT_OPERATION, POLL_OF};
use trace_format::program_info::OPEN_ARGUMENT;
use trace_format::refs::{MAX_STRING_BYTES, StringRef};
use trace_format::scopes::{DEEPER_ARGUMENT, END_ARGUMENT, Ending, LASTED_ARGUMENT};
use trace_format::units::ProviderId;
use trace_linux::inline;
use trace_reader::{Text, TextKey, Value};

/// What arguments belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// An event.
    Event,
    /// An event of the manager that describes the recording.
    Mark,
    /// A begin that says why it has no end.
    Open,
    /// An object or an action of the scheduler: its numbers say which process it belongs to.
    Other,
}

/// Without these, polls would be durations, and operations have no parents.
const RELATIONS: [&str; 3] = [POLL_OF, FIRST_POLL, PARENT_OPERATION];

/// Without these, it is not known how long something was open.
const OPEN: [&str; 2] = [LASTED_ARGUMENT, DEEPER_ARGUMENT];

/// Arguments of the manager's events that may name what was removed.
const TELLTALE: [&str; 2] = ["categories", "command_line"];

impl Holder {
    /// Whether an argument is kept.
    //= docs/filter.md#arguments
    fn keeps(self, options: &Options, name: Text<'_>, value: &Value<'_>) -> bool {
        if options.kept_arguments.iter().any(|kept| name == kept.as_str()) {
            return true;
        }
        if self == Self::Mark && options.selects() && TELLTALE.iter().any(|telltale| name == *telltale) {
            return false;
        }
        let is_number = !matches!(value, Value::String(_) | Value::Blob(_));
        !options.strips_arguments
            || is_number && (self == Self::Other || RELATIONS.iter().any(|one| name == *one))
            || is_number && self == Self::Open && OPEN.iter().any(|one| name == *one)
    }

    /// Whether all samples of a counter are removed, without which it has no meaning.
    pub fn loses_samples(self, options: &Options, arguments: &trace_reader::Arguments<'_>) -> bool {
        let mut samples = arguments.iter().filter(|(_, value)| is_sample(value)).peekable();
        samples.peek().is_some() && !samples.any(|(name, value)| self.keeps(options, name, &value))
    }
}

/// An argument that is written.
struct Written<'a> {
    name: StringRef<'a>,
    value: WrittenValue<'a>,
}

enum WrittenValue<'a> {
    Plain(ArgumentValue<'a>),
    Text(Piece<'a>),
}

impl Written<'_> {
    fn argument(&self) -> Argument<'_> {
        let value = match &self.value {
            WrittenValue::Plain(value) => *value,
            WrittenValue::Text(piece) => ArgumentValue::String(piece.reference()),
        };
        Argument { name: self.name, value }
    }
}

/// Arguments as they are encoded.
pub(super) type List<'a> = SmallVec<[Argument<'a>; 15]>;

/// The arguments of a record that are written.
pub(super) struct WrittenArguments<'a> {
    list: SmallVec<[Written<'a>; 15]>,
    /// How many were removed.
    pub removed: u64,
}

impl<'a> WrittenArguments<'a> {
    pub fn new<W: Write>(
        found: &trace_reader::Arguments<'a>,
        holder: Holder,
        (options, id): (&Options, ProviderId),
        archive: &mut Archive<W>,
        texts: &mut Texts,
    ) -> Self {
        let mut list = SmallVec::new();
        let mut removed = 0;
        for (name, value, [name_key, value_key]) in found.keyed() {
            // A word of the format, without which a begin would have another end.
            let ending = [END_ARGUMENT, OPEN_ARGUMENT].iter().any(|why| name == *why).then_some(&value);
            if let Some(Value::String(text)) = ending
                && let Some(ending) = Ending::of(text.as_bytes())
            {
                let value = ArgumentValue::String(StringRef::Inline(ending.text().as_bytes()));
                let name = archive.text(id, name, name_key);
                list.push(Written { name, value: WrittenValue::Plain(value) });
                continue;
            }
            // What a later version has put there is not known.
            if value == Value::Unknown || !holder.keeps(options, name, &value) {
                removed += 1;
                continue;
            }
            let name = archive.text(id, name, name_key);
            let value = match value {
                // Blobs have room for what a record has not.
                Value::String(text) if holder != Holder::Other && is_long(text, options) => {
                    WrittenValue::Plain(ArgumentValue::String(StringRef::Inline(text.as_bytes())))
                }
                Value::String(text) => {
                    WrittenValue::Text(text_of(options, id, (text, value_key), archive, texts))
                }
                Value::Blob(_) if options.redacts_texts => WrittenValue::Plain(ArgumentValue::Blob(b"")),
                value => WrittenValue::Plain(plain(&value)),
            };
            list.push(Written { name, value });
        }
        Self { list, removed }
    }

    /// All of them.
    pub fn all(&self) -> List<'_> {
        self.list.iter().map(Written::argument).collect()
    }

    /// All of them, cut to what a record has room for.
    pub fn cut(&self) -> List<'_> {
        let cut = |written| match Written::argument(written) {
            Argument { name, value: ArgumentValue::String(StringRef::Inline(text)) } => {
                Argument { name, value: ArgumentValue::String(inline(text)) }
            }
            argument => argument,
        };
        self.list.iter().map(cut).collect()
    }

    /// Those that are no texts: a placeholder may be longer than what it stands for, and a record with it
    /// too large.
    pub fn numbers(&self) -> List<'_> {
        let numbers = self.list.iter().filter(|written| matches!(written.value, WrittenValue::Plain(_)));
        numbers.map(Written::argument).collect()
    }
}

fn is_long(text: Text<'_>, options: &Options) -> bool {
    text.as_bytes().len() > MAX_STRING_BYTES && !options.redacts_texts
}

/// A text, or the placeholder for it.
pub(super) fn text_of<'a, W: Write>(
    options: &Options,
    id: ProviderId,
    (text, key): (Text<'a>, TextKey),
    archive: &mut Archive<W>,
    texts: &mut Texts,
) -> Piece<'a> {
    if options.redacts_texts && !text.as_bytes().is_empty() {
        archive.placeholder(id, texts.placeholder(text.as_bytes()))
    } else {
        Piece::Text(archive.text(id, text, key))
    }
}

fn is_sample(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Int32(_) | Value::Uint32(_) | Value::Int64(_) | Value::Uint64(_) | Value::Double(_)
    )
}

fn plain<'a>(value: &Value<'a>) -> ArgumentValue<'a> {
    match *value {
        Value::Null | Value::Unknown | Value::String(_) => ArgumentValue::Null,
        Value::Bool(value) => ArgumentValue::Bool(value),
        Value::Int32(value) => ArgumentValue::Int32(value),
        Value::Uint32(value) => ArgumentValue::Uint32(value),
        Value::Int64(value) => ArgumentValue::Int64(value),
        Value::Uint64(value) => ArgumentValue::Uint64(value),
        Value::Double(value) => ArgumentValue::Double(value),
        Value::Pointer(value) => ArgumentValue::Pointer(value),
        Value::Koid(koid) => ArgumentValue::Koid(koid),
        Value::Blob(bytes) => ArgumentValue::Blob(bytes),
    }
}
