//! Tables as Parquet files.

use super::*;
use ::parquet::basic::Encoding;
use ::parquet::file::properties::ReaderProperties;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::serialized_reader::ReadOptionsBuilder;
use ::parquet::record::Field;
use std::fs::File;
use tempfile::TempDir;

type Reader = SerializedFileReader<File>;

fn written(archive: Vec<u8>) -> (TempDir, Vec<Reader>) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_parquet(trace(archive), &Filter::default(), |name| File::create(path(name))).unwrap();
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
    for ((table, reader), expected) in TABLES.iter().zip(&readers).zip(&expected) {
        assert_eq!(&rows(reader), expected, "{}", table.name);
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
            let is_distinct = ["ts", "dur", "id", "parent_id", "self_dur"].contains(name);
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
