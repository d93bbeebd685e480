//! Tables as Parquet files.

use super::*;
use ::parquet::basic::Encoding;
use ::parquet::file::properties::ReaderProperties;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::serialized_reader::ReadOptionsBuilder;
use ::parquet::record::Field;
use std::fs::File;
use tempfile::TempDir;
use trace_format::argument::Arguments;
use trace_format::large::{LargeBlob, LargeBlobEvent};
use trace_format::metadata::MAGIC_WORD;
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::SliceSink;
use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks};

type Reader = SerializedFileReader<File>;

fn written(archive: Vec<u8>) -> (TempDir, Vec<Reader>) {
    selected(archive, &Filter::default())
}

fn selected(archive: Vec<u8>, filter: &Filter) -> (TempDir, Vec<Reader>) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_parquet(trace(archive), filter, |name| File::create(path(name))).unwrap();
    let reader = |table: Table| {
        let properties = ReaderProperties::builder().set_read_bloom_filter(true).build();
        let options = ReadOptionsBuilder::new().with_reader_properties(properties).build();
        Reader::new_with_options(File::open(path(table.name)).unwrap(), options).unwrap()
    };
    let readers = TABLES.map(reader).into_iter().collect();
    (directory, readers)
}

fn text((_, field): (&String, &Field)) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Double(value) => format!("{value:?}"),
        other => other.to_string(),
    }
}

fn rows(reader: &Reader) -> Vec<Vec<String>> {
    let row = |row: ::parquet::record::Row| row.get_column_iter().map(text).collect();
    reader.get_row_iter(None).unwrap().map(|found| row(found.unwrap())).collect()
}

/// The rows of slices in a file.
pub(super) fn slices_written(archive: Vec<u8>) -> Vec<Vec<String>> {
    let (_directory, readers) = written(archive);
    rows(&readers[Kind::Slices as usize])
}

/// The rows of CSV, in the order of time.
fn expected(text: &str) -> Vec<Vec<Vec<String>>> {
    let rows = |(table, text): (&Table, Vec<u8>)| {
        let mut reader = ::csv::Reader::from_reader(&text[..]);
        let row = |row: ::csv::Result<::csv::StringRecord>| row.unwrap().iter().map(str::to_owned).collect();
        let mut rows: Vec<Vec<String>> = reader.records().map(row).collect();
        if let Some(ts) = table.place("ts") {
            // Rows without a time come first.
            rows.sort_by_key(|row| row[ts].parse::<i64>().unwrap_or(i64::MIN));
        }
        rows
    };
    TABLES.iter().zip(csv_of(text)).map(rows).collect()
}

//= docs/tables.md#parquet
#[test]
fn parquet_has_the_rows_of_csv_in_the_order_of_time() {
    let (_directory, readers) = written(archive(TRACE));
    for ((table, reader), expected) in TABLES.iter().zip(&readers).zip(expected(TRACE)) {
        assert_eq!(rows(reader), expected, "{}", table.name);
    }
}

/// Slices that last long, two threads one after the other, and a time from far ahead.
fn many() -> String {
    let mut events = Vec::new();
    for thread in 1..=2 {
        for number in 0..400 {
            let (ts, dur) = (10 * number + thread, 3);
            events.push(format!(
                r#"{{"ph":"X","ts":{ts},"dur":{dur},"pid":1,"tid":{thread},"cat":"c","name":"n{}","args":{{"i":{number}}}}}"#,
                number % 7
            ));
            if number % 100 == 99 {
                let ts = 10 * (number - 98);
                events.push(format!(
                    r#"{{"ph":"X","ts":{ts},"dur":1000,"pid":1,"tid":{thread},"name":"long"}}"#
                ));
                events.push(r#"{"ph":"i","ts":900000,"pid":1,"tid":1,"name":"ahead","s":"t"}"#.to_owned());
            }
            events.push(format!(
                r#"{{"ph":"C","ts":{ts},"pid":1,"tid":{thread},"name":"count","args":{{"n":{number}}}}}"#
            ));
        }
    }
    format!("[{}]", events.join(","))
}

//= docs/tables.md#parquet
#[test]
fn rows_that_come_late_are_in_the_order_of_time() {
    let text = many();
    let (_directory, readers) = written(archive(&text));
    let expected = expected(&text);
    let filter = crate::filter::testing::filter(&["n[1-4]", "long", "ahead"], &[]);
    let (_other_directory, selected) = selected(archive(&text), &filter);
    for (((table, reader), expected), selected) in TABLES.iter().zip(&readers).zip(&expected).zip(&selected) {
        assert_eq!(&rows(reader), expected, "{}", table.name);
        // The same rows, with their numbers, parents and own times.
        let is_selected = |row: &&Vec<String>| {
            let Some(name) = table.place("name").filter(|_| table.place("category").is_some()) else {
                return true;
            };
            ["n1", "n2", "n3", "n4", "long", "ahead"].contains(&&*row[name])
        };
        let of_whole: Vec<&Vec<String>> = expected.iter().filter(is_selected).collect();
        assert_eq!(rows(selected).iter().collect::<Vec<_>>(), of_whole, "{}", table.name);
    }
    let slices = readers[Kind::Slices as usize].metadata();
    let groups: Vec<i64> = slices.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [vec![50; 16], vec![8]].concat());
}

//= docs/tables.md#parquet
#[test]
fn files_say_what_is_in_them() {
    let (_directory, readers) = written(archive(&many()));
    for (table, reader) in TABLES.iter().zip(&readers) {
        let entries = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let entry = |key: &str| entries.iter().find(|entry| entry.key == key).unwrap().value.as_deref();
        assert_eq!(entry("trace.schema_version"), Some("1"));
        assert_eq!(entry("trace.table"), Some(table.name));
    }
    let slices = &readers[Kind::Slices as usize];
    let name = Kind::Slices.table().place("name").unwrap();
    let mut absent = 0;
    for place in 0..slices.num_row_groups() {
        let group = slices.metadata().row_group(place);
        assert_eq!(group.sorting_columns().unwrap()[0].column_idx, slices::TS as i32);
        let filter = slices.get_row_group(place).unwrap();
        let filter = filter.get_column_bloom_filter(name).unwrap();
        // The last group has few rows; elsewhere a filter may be wrong in one direction.
        assert!(filter.check(&"n1") || place == 16);
        absent += u32::from(!filter.check(&"n8"));
        for (column, (name, of)) in group.columns().iter().zip(Kind::Slices.table().columns) {
            assert!(column.statistics().is_some(), "{name}");
            let is_delta = column.encodings().any(|encoding| encoding == Encoding::DELTA_BINARY_PACKED);
            let is_distinct = ["ts", "dur", "id", "parent_id", "self_dur", "ts_utc"].contains(name);
            assert_eq!(is_delta, is_distinct && *of == Type::Integer, "{name}");
        }
    }
    assert!(absent > 12, "{absent}");
}

/// What a statement of another thread would be: the first problem, not that the other thread ended.
#[test]
fn an_output_that_is_full_is_the_error() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let written = write_parquet(trace(archive(&many())), &Filter::default(), |_| {
        Ok(io::BufWriter::with_capacity(100, Full))
    });
    let Err(crate::ConvertError::Write(error)) = written else { panic!("{written:?}") };
    let text = format!("{error:?}");
    assert!(text.contains("StorageFull"), "{text}");
}

/// Large blobs with these times and contents, as an archive.
fn blobs<'a>(blobs: impl IntoIterator<Item = (Option<u64>, &'a [u8])>) -> Vec<u8> {
    let mut bytes = MAGIC_WORD.to_le_bytes().to_vec();
    for (at, payload) in blobs {
        let thread = ThreadRef::Inline { process: ProcessKoid(Koid(7)), thread: ThreadKoid(Koid(8)) };
        let arguments = Arguments::default();
        let event = at.map(|at| LargeBlobEvent { timestamp: Ticks(at), thread, arguments });
        let (category, name) = (StringRef::Inline(b"c"), StringRef::Inline(b"n"));
        let mut words = vec![0; payload.len() / 8 + 64];
        let mut sink = SliceSink::new(&mut words);
        Record::Large(LargeBlob { category, name, event, payload }).encode(&mut sink).unwrap();
        bytes.extend(sink.words().iter().flat_map(|word| word.to_le_bytes()));
    }
    bytes
}

/// Times and sizes of blobs, in the order of the file.
fn blobs_written(archive: Vec<u8>) -> Vec<(String, String)> {
    let (_directory, readers) = written(archive);
    let place = |name: &str| Kind::Blobs.table().place(name).unwrap();
    let (ts, size) = (place("ts"), place("size"));
    rows(&readers[Kind::Blobs as usize]).iter().map(|row| (row[ts].clone(), row[size].clone())).collect()
}

//= docs/tables.md#parquet
#[test]
fn rows_without_a_time_that_come_late_are_the_first() {
    let content = [0; 300];
    // Two batches wait for each other at most; the rows without a time come behind ten, and some between.
    let at = |number: usize| (number < 160 && number % 50 != 49).then_some(number as u64);
    let of = |number: usize| (at(number), &content[..number]);
    let found = blobs_written(blobs((0..200).map(of)));
    let time = |at: Option<u64>| at.map_or_else(String::new, |at| at.to_string());
    let without = (0..200).filter(|number| at(*number).is_none());
    let with = (0..200).filter(|number| at(*number).is_some());
    let expected: Vec<_> = without.chain(with).map(|number| (time(at(number)), number.to_string())).collect();
    assert_eq!(found, expected);
}

//= docs/tables.md#parquet
#[test]
fn rows_with_equal_times_keep_their_order() {
    let content = [0; 300];
    // All at one time but every third, which comes from before or behind it: some of those are late.
    let at = |number: usize| [500, 500, number as u64 * 5][number % 3];
    let found = blobs_written(blobs((0..250).map(|number| (Some(at(number)), &content[..number]))));
    let mut expected: Vec<usize> = (0..250).collect();
    expected.sort_by_key(|number| at(*number));
    let expected: Vec<_> =
        expected.into_iter().map(|number| (at(number).to_string(), number.to_string())).collect();
    assert_eq!(found, expected);
}

/// Longer than a batch's texts, a piece of the texts and what a page has; among short ones, and late.
//= docs/tables.md#parquet
#[test]
fn very_long_texts_are_whole() {
    let long: Vec<u8> = (0..7_000_000_u32).map(|number| (number.wrapping_mul(number) >> 5) as u8).collect();
    let late = [3, 200].map(|at| (Some(at), &long[at as usize..]));
    let all: Vec<(Option<u64>, &[u8])> = (10..120).map(|at| (Some(at), &long[..5])).chain(late).collect();
    let archive = blobs(all.iter().copied());
    let content = Kind::Blobs.table().place("content").unwrap();
    let (_directory, readers) = written(archive.clone());
    let found: Vec<String> =
        rows(&readers[Kind::Blobs as usize]).into_iter().map(|mut row| row.swap_remove(content)).collect();
    use base64::Engine as _;
    let text = |payload: &[u8]| base64::engine::general_purpose::STANDARD.encode(payload);
    let mut expected = all;
    expected.sort_by_key(|(at, _)| *at);
    let expected: Vec<String> = expected.into_iter().map(|(_, payload)| text(payload)).collect();
    assert!(found == expected, "{} texts", found.len());

    let csv = csv_on_two_threads(trace(archive)).unwrap();
    let lines = String::from_utf8(csv[Kind::Blobs as usize].clone()).unwrap();
    let lines = lines.lines().skip(1).map(|line| line.split(',').nth(content).unwrap().to_owned());
    let mut lines: Vec<String> = lines.collect();
    let mut expected = expected;
    lines.sort();
    expected.sort();
    assert!(lines == expected, "{} lines", lines.len());
}

/// Fails at the second opening, or at a byte of it.
fn failing(archive: Vec<u8>, after: usize) -> Trace {
    struct Ending<R>(R);
    impl<R: io::Read> io::Read for Ending<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::Error::other("the disk is gone")),
                length => Ok(length),
            }
        }
    }
    let mut times = 0;
    let all = trace(archive.clone());
    let open = move || -> io::Result<Box<dyn io::Read>> {
        times += 1;
        match (times, after) {
            (1, _) => Ok(Box::new(io::Cursor::new(archive.clone()))),
            (_, 0) => Err(io::Error::other("the disk is gone")),
            _ => Ok(Box::new(Ending(io::Cursor::new(archive[..after].to_vec())))),
        }
    };
    Trace { open: Box::new(open), ..all }
}

/// Whatever fails in the second pass: it is the error, and no thread waits for the other.
#[test]
fn an_error_in_the_second_pass_is_the_error() {
    let archive = archive(&many());
    let error = |result: Result<crate::Summary, crate::ConvertError>| match result {
        Err(error) => format!("{error:?}"),
        Ok(summary) => format!("{:?}", summary.stopped),
    };
    for after in [0, 16, archive.len() / 2 / 8 * 8] {
        let parquet = write_parquet(failing(archive.clone(), after), &Filter::default(), |_| Ok(io::sink()));
        let csv = write_csv(failing(archive.clone(), after), &Filter::default(), CsvTexts::Unchanged, |_| {
            Ok(io::sink())
        });
        for text in [error(parquet), error(csv)] {
            assert!(text.contains("the disk is gone"), "{after}: {text}");
        }
    }
}

/// The same with outputs that have no more room after some bytes.
#[test]
fn an_output_that_gets_full_is_the_error() {
    struct Room<'a>(&'a std::sync::atomic::AtomicUsize);
    impl io::Write for Room<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            use std::sync::atomic::Ordering::Relaxed;
            let take = |room: usize| room.checked_sub(bytes.len());
            self.0.fetch_update(Relaxed, Relaxed, take).map_err(|_| io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let archive = archive(&many());
    for room in [0, 100, 2000, 10_000, 20_000] {
        let left = std::sync::atomic::AtomicUsize::new(room);
        let csv =
            write_csv(trace(archive.clone()), &Filter::default(), CsvTexts::Unchanged, |_| Ok(Room(&left)));
        left.store(room, std::sync::atomic::Ordering::Relaxed);
        let parquet = write_parquet(trace(archive.clone()), &Filter::default(), |_| Ok(Room(&left)));
        for written in [csv, parquet] {
            let Err(crate::ConvertError::Write(error)) = written else { panic!("{room}: {written:?}") };
            assert!(format!("{error:?}").contains("StorageFull"), "{room}: {error:?}");
        }
    }
}

fn csv_on_two_threads(trace: Trace) -> Result<Vec<Vec<u8>>, crate::ConvertError> {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_csv(trace, &Filter::default(), CsvTexts::Unchanged, |name| File::create(path(name)))?;
    Ok(TABLES.map(|table| std::fs::read(path(table.name)).unwrap()).to_vec())
}

//= docs/tables.md#csv
#[test]
fn csv_is_the_same_on_two_threads() {
    for text in [TRACE, DISORDER, &many()] {
        assert_eq!(csv_on_two_threads(trace(archive(text))).unwrap(), csv_of(text));
    }
}

/// Slices in each other, many of which begin together, with what makes the columns differ: names, threads and
/// operations that repeat or do not, missing arguments.
fn nested_in_many_ways(seed: u64) -> String {
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut now, mut begins, mut events) = (0, Vec::new(), Vec::new());
    while events.len() < 900 {
        let thread = random(3);
        if random(2) == 0 && begins.len() < 12 {
            begins.push((thread, now));
        } else if let Some(place) = begins.iter().rposition(|(of, _)| *of == thread) {
            let (_, begin) = begins.remove(place);
            let args = if random(3) == 0 {
                String::new()
            } else {
                format!(r#","args":{{"i":{}}}"#, random(1 << 40))
            };
            let (dur, name) = (now - begin, random(if now < 300 { 3 } else { 400 }));
            events.push(format!(
                r#"{{"ph":"X","ts":{begin},"dur":{dur},"pid":1,"tid":{thread},"name":"n{name}"{args}}}"#
            ));
        }
        if random(9) == 0 {
            let id = random(1 << 50);
            for phase in ["b", "e"] {
                events.push(format!(
                    r#"{{"ph":"{phase}","ts":{now},"pid":1,"tid":{thread},"cat":"c","name":"job","id":"0x{id:x}"}}"#
                ));
            }
        }
        now += random(3);
    }
    events.push(format!(r#"{{"ph":"X","ts":0,"dur":{now},"pid":1,"tid":1,"name":"all"}}"#));
    events.push(r#"{"ph":"B","ts":5,"pid":1,"tid":2,"name":"does not end"}"#.to_owned());
    format!("[{}]", events.join(","))
}

//= docs/tables.md#parquet
#[test]
fn slices_in_each_other_are_those_of_csv() {
    for seed in 0..8 {
        let text = nested_in_many_ways(seed);
        let (_directory, readers) = written(archive(&text));
        for ((table, reader), expected) in TABLES.iter().zip(&readers).zip(expected(&text)) {
            assert_eq!(rows(reader), expected, "{} of {seed}", table.name);
        }
    }
}
