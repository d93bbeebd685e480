//! What is fuzzed: plain functions of bytes, which `cargo fuzz` feeds and a test replays over the corpus.
#![allow(dead_code, reason = "each program uses one of them")]

use arbitrary::{Result, Unstructured};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::blob::Blob;
use trace_format::event::{Event, EventKind, Scope};
use trace_format::further;
use trace_format::initialization::Initialization;
use trace_format::kernel_object::KernelObject;
use trace_format::large::{LargeBlob, LargeBlobEvent};
use trace_format::log::Log;
use trace_format::metadata::{MAGIC_WORD, Metadata};
use trace_format::profiler::{Frames, Profiler, ProfilerKind};
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::scheduling::{Scheduling, ThreadState};
use trace_format::sink::Sink;
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{
    Koid, ProcessKoid, ProviderId, StringIndex, ThreadIndex, ThreadKoid, Ticks, TicksPerSecond,
};
use trace_format::userspace_object::{ProcessRef, UserspaceObject};
use trace_reader::dump::{Line, RawLine};
use trace_reader::item::FurtherArguments;
use trace_reader::{Item, Reader, Records};

/// Splits: every byte is in a record, zero, damaged or left over; slices and streams agree.
pub fn records(data: &[u8]) {
    let mut slice = Records::of_slice(data);
    let mut stream = Records::of_stream(data);
    let mut position = 0;
    loop {
        match (slice.next_record(), stream.next_record()) {
            (Ok(Some(a)), Ok(Some(b))) => {
                assert_eq!(a, b);
                let place = a.offset.0 + a.earlier;
                assert!(place >= position && !a.bytes.is_empty());
                position = place + a.bytes.len() as u64;
                let _ = Record::decode(a.bytes);
            }
            (Ok(None), Ok(None)) | (Err(_), Err(_)) => break,
            (a, b) => panic!("{a:?} {b:?}"),
        }
    }
    assert_eq!(slice.leftover(), stream.leftover());
    assert_eq!(slice.zero_words(), stream.zero_words());
    assert_eq!(slice.position().0, data.len() as u64);
    assert!(position <= data.len() as u64);
}

/// Resolves and prints, with small pieces and small tables too.
pub fn resolved(data: &[u8]) {
    let trace = [&MAGIC_WORD.to_le_bytes(), data].concat();
    for (piece_bytes, table_bytes) in [(1 << 20, 1 << 20), (0, 200)] {
        let reader = Reader::of_slice(&trace).expect("it has the magic number");
        let mut reader = reader.with_max_piece_bytes(piece_bytes).with_table_bytes(table_bytes);
        let mut last = None;
        while let Ok(Some(record)) = reader.next_item() {
            assert!(last < Some(record.offset));
            last = Some(record.offset);
            // Events and log records are the same away from the reader.
            let is_shared = matches!(record.item, Item::Event(_) | Item::Log { .. });
            let definitions = record.definitions();
            assert!(definitions.are_of(&record));
            let further = match &record.item {
                Item::Event(event) => event.arguments.further(),
                _ => FurtherArguments::default(),
            };
            let again = definitions.item(record.bytes, further);
            assert_eq!(format!("{again:?}"), format!("{:?}", is_shared.then_some(record.item)));
            for line in [Line(&record).to_string(), RawLine(&record).to_string()] {
                assert!(!line.contains('\n'));
            }
        }
    }
}

/// Makes a sound trace of the data and reads it back whole; then damages it, and reads it again.
pub fn structured(data: &[u8]) {
    let trace = damaged(data);
    resolved(&trace[8..]);
    records(&trace);
}

/// The damaged trace.
pub fn damaged(data: &[u8]) -> Vec<u8> {
    let mut input = Unstructured::new(data);
    let mut words = Words(vec![MAGIC_WORD]);
    let (mut count, mut unknown) = (1, 0_u64);
    while !input.is_empty() && count < 200 {
        let written = match input.ratio(1_u8, 16).unwrap_or(false) {
            true => write_unknown(&mut input, &mut words).inspect(|()| unknown += 1).map(|()| true),
            false => write_record(&mut input, &mut words),
        };
        match written {
            Ok(true) => count += 1,
            Ok(false) => {}
            Err(_) => break,
        }
    }
    let mut trace: Vec<u8> = words.0.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut reader = Reader::of_slice(&trace).expect("it has the magic number");
    let (mut found, mut found_unknown) = (0, 0);
    while let Some(record) = reader.next_item().expect("it is sound") {
        assert!(!matches!(record.item, Item::Malformed { .. } | Item::Damage { .. }));
        found += 1;
        if matches!(record.item, Item::Unknown { .. }) || is_unknown_event(&record.item) {
            found_unknown += 1;
            continue;
        }
        let decoded = Record::decode(record.bytes).expect("it is sound");
        let mut again = Words(Vec::new());
        decoded.encode(&mut again).expect("it was encoded before");
        assert!(again.0.iter().flat_map(|word| word.to_le_bytes()).eq(record.bytes.iter().copied()));
    }
    assert_eq!((found, found_unknown), (count, unknown));
    let counted: u64 = reader.unknown().skipped().map(|(_, of_kind)| of_kind.count()).sum();
    assert_eq!(counted, unknown);
    // The damage comes from the same data, read once more.
    let mut input = Unstructured::new(data);
    for _ in 0..3 {
        let (Ok(place), Ok(bit)) = (input.choose_index(trace.len() - 8), input.int_in_range(0..=7)) else {
            break;
        };
        trace[8 + place] ^= 1 << bit;
    }
    trace
}

struct Words(Vec<u64>);

impl Sink for Words {
    fn word(&mut self, word: u64) {
        self.0.push(word);
    }
}

fn is_unknown_event(item: &Item<'_>) -> bool {
    matches!(item, Item::Event(event) if matches!(event.kind, EventKind::Unknown { .. }))
}

/// Writes a record of a kind that later versions may have.
fn write_unknown(input: &mut Unstructured<'_>, words: &mut Words) -> Result<()> {
    let (kind, contents): (u8, [u64; 3]) = (input.arbitrary()?, input.arbitrary()?);
    // None of the words looks like the beginning of a part.
    let contents = contents.map(|word| word | 0xfff << 52);
    let kind = u64::from(kind);
    let of_kind = |least: u64| least + (kind >> 3) % (16 - least);
    words.word(match kind & 7 {
        0 | 1 => of_kind(11).min(14) | 4 << 4,
        2 => 8 | 4 << 4 | of_kind(4) << 60,
        3 => 10 | 4 << 4 | of_kind(3) << 16,
        4 => 15 | 4 << 4 | of_kind(1) << 36,
        5 => 15 | 4 << 4 | of_kind(2) << 40,
        6 => 4 << 4 | of_kind(5) << 16,
        // With a thread in the record.
        _ => 4 | 4 << 4 | of_kind(11) << 16,
    });
    contents.iter().for_each(|word| words.word(*word));
    Ok(())
}

/// Writes some record; false if it is one that cannot be written.
fn write_record<'a>(input: &mut Unstructured<'a>, words: &mut Words) -> Result<bool> {
    let (kind, category, name): (u8, _, _) = (input.arbitrary()?, string(input)?, string(input)?);
    let thread = thread(input)?;
    let arguments = arguments(input)?;
    let arguments = Arguments::from_slice(&arguments);
    let [a, b, c]: [u64; 3] = input.arbitrary()?;
    let timestamp = Ticks(a);
    let id = ProviderId(a as u32 % 4);
    let payload = bytes(input)?;
    let frames: Vec<u64>;
    let record = match kind % 24 {
        0 => Record::Metadata(Metadata::ProviderInfo { id, name: payload }),
        1 => Record::Metadata(Metadata::ProviderSection { id }),
        2 => Record::Metadata(Metadata::ProviderEvent { id, event: b as u8 & 15 }),
        3 => Record::Initialization(Initialization {
            ticks_per_second: TicksPerSecond::new(a).unwrap_or(TicksPerSecond::NANOSECONDS),
        }),
        4 => Record::String(StringRecord { index: b as u16 & 0x7f, value: payload }),
        5 => Record::Thread(ThreadRecord {
            index: b as u8,
            process: ProcessKoid(Koid(a)),
            thread: ThreadKoid(Koid(c)),
        }),
        6..=13 => {
            let kind = match b % 11 {
                0 => EventKind::Instant { scope: Scope::from_raw(c % 3) },
                1 => EventKind::Counter { id: c },
                2 => EventKind::DurationBegin,
                3 => EventKind::DurationEnd,
                4 => EventKind::DurationComplete { end: Ticks(c) },
                5 => EventKind::AsyncBegin { id: c },
                6 => EventKind::AsyncInstant { id: c },
                7 => EventKind::AsyncEnd { id: c },
                8 => EventKind::FlowBegin { id: c },
                9 => EventKind::FlowStep { id: c },
                _ => EventKind::FlowEnd { id: c },
            };
            Record::Event(Event { timestamp, thread, category, name, kind, arguments })
        }
        14 if b % 4 == 3 => {
            let payload = [further::head(payload.len() as u64, b >> 8 & 1).as_slice(), payload].concat();
            return Ok(further::blob(&payload).encode(words).is_ok());
        }
        14 => Record::Blob(Blob { blob_type: b as u8, name, payload }),
        15 => Record::UserspaceObject(UserspaceObject {
            process: ProcessRef::Index(ThreadIndex::new(b as u8 | 1).expect("not 0")),
            address: c,
            name,
            arguments,
        }),
        16 => Record::KernelObject(KernelObject { object_type: b as u8 % 4, koid: Koid(c), name, arguments }),
        17 => Record::Scheduling(Scheduling::ContextSwitch {
            timestamp,
            cpu: b as u16,
            outgoing_state: ThreadState(b as u8 & 15),
            outgoing: ThreadKoid(Koid(b)),
            incoming: ThreadKoid(Koid(c)),
            arguments,
        }),
        18 => Record::Scheduling(Scheduling::ThreadWakeup {
            timestamp,
            cpu: b as u16,
            thread: ThreadKoid(Koid(c)),
            arguments,
        }),
        19 => Record::Scheduling(Scheduling::LegacyContextSwitch {
            timestamp,
            cpu: b as u8,
            outgoing_state: ThreadState(c as u8 & 15),
            outgoing: thread,
            incoming: ThreadRef::Inline { process: ProcessKoid(Koid(b)), thread: ThreadKoid(Koid(c)) },
            outgoing_priority: b as u8,
            incoming_priority: c as u8,
        }),
        20 => Record::Log(Log { timestamp, thread, message: payload }),
        21 => {
            let kind = match b % 3 {
                0 => ProfilerKind::Module { id: c as u16, name: payload, build_id: b"id" },
                1 => ProfilerKind::Mmap {
                    module: c as u16,
                    flags: c as u8 & 7,
                    start: a,
                    length: b,
                    linked_at: c,
                },
                _ => {
                    frames = payload.iter().map(|byte| u64::from(*byte)).collect();
                    ProfilerKind::Backtrace { frames: Frames::new(&frames) }
                }
            };
            Record::Profiler(Profiler { timestamp, thread, kind })
        }
        _ => {
            let event = (b % 2 == 0).then_some(LargeBlobEvent { timestamp, thread, arguments });
            Record::Large(LargeBlob { category, name, event, payload })
        }
    };
    Ok(record.encode(words).is_ok())
}

fn bytes<'a>(input: &mut Unstructured<'a>) -> Result<&'a [u8]> {
    let length = usize::from(input.arbitrary::<u8>()?).min(input.len());
    input.bytes(length)
}

fn string<'a>(input: &mut Unstructured<'a>) -> Result<StringRef<'a>> {
    Ok(match input.arbitrary::<u8>()? {
        index @ 1..=127 => StringRef::Index(StringIndex::new(index.into()).expect("not 0")),
        0 => StringRef::Empty,
        _ => match bytes(input)? {
            [] => StringRef::Empty,
            text => StringRef::Inline(text),
        },
    })
}

fn thread(input: &mut Unstructured<'_>) -> Result<ThreadRef> {
    Ok(match ThreadIndex::new(input.arbitrary::<u8>()? & 7) {
        Some(index) => ThreadRef::Index(index),
        None => ThreadRef::Inline {
            process: ProcessKoid(Koid(input.arbitrary::<u8>()?.into())),
            thread: ThreadKoid(Koid(input.arbitrary::<u8>()?.into())),
        },
    })
}

fn arguments<'a>(input: &mut Unstructured<'a>) -> Result<Vec<Argument<'a>>> {
    let count = input.arbitrary::<u8>()? & 15;
    (0..count)
        .map(|_| {
            let (kind, name) = (input.arbitrary::<u8>()?, string(input)?);
            let value = match kind % 11 {
                0 => ArgumentValue::Null,
                1 => ArgumentValue::Bool(input.arbitrary()?),
                2 => ArgumentValue::Int32(input.arbitrary()?),
                3 => ArgumentValue::Uint32(input.arbitrary()?),
                4 => ArgumentValue::Int64(input.arbitrary()?),
                5 => ArgumentValue::Uint64(input.arbitrary()?),
                6 => ArgumentValue::Double(f64::from_bits(input.arbitrary()?)),
                7 => ArgumentValue::String(string(input)?),
                8 => ArgumentValue::Pointer(input.arbitrary()?),
                9 => ArgumentValue::Koid(Koid(input.arbitrary()?)),
                _ => ArgumentValue::Blob(bytes(input)?),
            };
            Ok(Argument { name, value })
        })
        .collect()
}
