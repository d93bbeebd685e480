//! Traces that are not random: small files with known answers, and those of the conformance corpus that say
//! nothing for which the model has no rule.

use super::Trace;
use super::model::Meaning;
use super::records::{Record, Thread, parse, read};
use super::rows::Class;
use trace_tests::build::workspace;
use trace_tests::corpus;

/// A file in another format, and what it says, in the words in which records are printed.
struct Case {
    file: &'static str,
    records: &'static [&'static str],
    /// Names of threads.
    names: &'static [(Thread, &'static str)],
    /// Options of `trace filter`, whose result the doors get.
    filter: &'static [&'static str],
    /// Options of `trace convert`. If there are any, only converted files are looked at.
    convert: &'static [&'static str],
}

/// `tests/data/cases/README.md` says what each of them shows.
const CASES: [Case; 14] = [
    case(
        "A1_end_without_name.json",
        &["10000 1/1 begin :load", "12000 1/1 begin :parse", "15000 1/1 end :", "20000 1/1 end :"],
    ),
    Case {
        filter: &["--category", "net"],
        ..case("A4_filter_end_without_name.json", &["10000 1/1 begin net:load", "20000 1/1 end :"])
    },
    Case {
        convert: &["--category", "net"],
        ..case("A4_filter_end_without_name.json", &["10000 1/1 begin net:load", "20000 1/1 end :"])
    },
    Case {
        convert: &["--pattern", "load"],
        ..case("A4_filter_end_without_name.json", &["10000 1/1 begin net:load", "20000 1/1 end :"])
    },
    case(
        "B1_same_start_us.json",
        &[
            "100000 1/1 complete :inner to 150000",
            "100000 1/1 complete :outer to 300000",
            "400000 1/1 complete :next to 410000",
        ],
    ),
    Case {
        names: &[
            (Thread { process: 1, thread: 7 }, "stream A"),
            (Thread { process: 2, thread: 7 }, "stream B"),
        ],
        ..case("E1_same_tid.json", &["10000 1/7 complete :k1 to 15000", "10000 2/7 complete :k2 to 15000"])
    },
    case(
        "G1_tid64.json",
        &[
            "50000 1/140589156634432 complete :W1 to 3050000",
            "55000 1/140588800255680 complete :W2 to 2055000",
        ],
    ),
    case("H1_decimal_tid.json", &["1000 1/2 complete :a to 2000", "5000 1/2 complete :b to 6000"]),
    Case {
        names: &[(Thread { process: 47, thread: 47 }, "main")],
        ..case(
            "I1_no_tid.json",
            &["10000 47/47 begin :f", "20000 47/47 end :f", "12000 47/49 complete :g to 15000"],
        )
    },
    case("L1_viewer_page.html", &["1000 1/1 complete :a to 3000"]),
    case(
        "P1_lines.json",
        &["1000 1/1 complete :a to 3000", "4000 1/1 complete :b to 6000", "7000 1/1 complete :c to 9000"],
    ),
    case(
        "S1_async_file_order.json",
        &[
            "0 1/1 operation-begin :parse id 1",
            "4000000 1/1 operation-end :parse id 1",
            "2000000 1/1 operation-begin :parse id 1",
            "5000000 1/1 operation-end :parse id 1",
        ],
    ),
    Case {
        names: &[(Thread { process: 0, thread: 0 }, "Main")],
        ..case("U1_thread0.json", &["28000 0/0 complete :Open to 40000"])
    },
    Case {
        filter: &["--category", "toplevel"],
        ..case(
            "Z1_category_list.json",
            &["1000 1/1 complete toplevel:a to 3000", "5000 1/1 complete toplevel,mojom:b to 7000"],
        )
    },
];

/// Archives among the cases.
const ARCHIVES: [&str; 10] = [
    "C1_async_two_processes.fxt",
    "D1_async_overlap_one_id.fxt",
    "T1_log.fxt",
    "X_asyncname.fxt",
    "X_cross.fxt",
    "X_open.fxt",
    "X_overlap.fxt",
    "X_overlap_us.fxt",
    "X_wrongend.fxt",
    "Y1_zero_length.fxt",
];

/// Traces without a file: the shortest of random ones to which a door once gave another answer.
const SHORTEST: [(&str, &[&str]); 5] = [
    (
        "a step of a flow on a lane",
        &[
            "5 1/2 complete c:from to 38",
            "10 1/1 complete c:beside to 30",
            "20 1/1 complete c:step to 50",
            "45 1/2 complete c:to to 70",
            "6 1/2 flow-begin c:f id 7",
            "40 1/1 flow-step c:f id 7",
            "60 1/2 flow-end c:f id 7",
        ],
    ),
    (
        "slices without length on a lane",
        &[
            "10 1/1 complete c:a to 30",
            "40 1/1 begin c:b",
            "40 1/1 end c:b",
            "40 1/1 begin c:d",
            "40 1/1 end c:d",
            "20 1/1 open c:o",
        ],
    ),
    (
        "a part of a flow behind later slices",
        &[
            "1000 1/1 begin c:a",
            "2000 1/1 complete c:b to 3000",
            "5000 1/1 complete c:d to 6000",
            "9000 1/1 end c:a",
            "2500 1/1 flow-begin c:f id 7",
            "4000 1/1 flow-end c:f id 7",
        ],
    ),
    (
        "an instant behind a later part of a flow",
        &[
            "1000 1/1 complete c:a to 9000",
            "2000 1/1 flow-begin c:f id 7",
            "1000 1/2 complete c:b to 9500",
            "6000 1/2 flow-end c:f id 7",
            "4000 1/2 instant c:i",
        ],
    ),
    (
        "an end before the begin of another name",
        &[
            "30 1/1 operation-begin c:p id 1",
            "10 2/1 operation-begin c:q id 1",
            "10 1/1 operation-end c:q id 1",
        ],
    ),
];

/// What other programs, or people with a pencil, say about the cases: a check of the model itself.
pub const ANSWERS: [(&str, Class, &[&str]); 14] = [
    (
        "A1_end_without_name.json",
        Class::Parents,
        &["1/1 :load 10000 +10000 in nothing", "1/1 :parse 12000 +3000 in load"],
    ),
    (
        "B1_same_start_us.json",
        Class::Parents,
        &[
            "1/1 :inner 100000 +50000 in outer",
            "1/1 :next 400000 +10000 in nothing",
            "1/1 :outer 100000 +200000 in nothing",
        ],
    ),
    (
        "C1_async_two_processes.fxt",
        Class::Operations,
        &["1 net:request 1000 +2000", "2 net:request 2000 +7000"],
    ),
    (
        "D1_async_overlap_one_id.fxt",
        Class::Operations,
        &["1 net:parent 0 +100", "1 net:r1 10 +20", "1 net:r2 20 +70"],
    ),
    ("S1_async_file_order.json", Class::Operations, &["1 :parse 0 +5000000", "1 :parse 2000000 +2000000"]),
    ("T1_log.fxt", Class::Logs, &["1/2 \"again\" 2000", "1/2 \"hello\" 1000"]),
    ("X_asyncname.fxt", Class::Operations, &["100 cat:A 10 +10"]),
    ("X_cross.fxt", Class::Parents, &["100/101 cat:A 10 +30 in nothing", "100/101 cat:B 20 +10 in A"]),
    ("X_open.fxt", Class::Parents, &["100/101 cat:A 10 open in nothing", "100/101 cat:B 20 +10 in A"]),
    (
        "X_overlap.fxt",
        Class::Parents,
        &["100/101 cat:A 10 +20 in nothing", "100/101 cat:B 20 +30 in nothing"],
    ),
    ("X_overlap.fxt", Class::SelfTimes, &["100/101 cat:A 10 +20 self 20", "100/101 cat:B 20 +30 self 30"]),
    ("X_wrongend.fxt", Class::Slices, &["100/101 cat:A 10 +20"]),
    (
        "Y1_zero_length.fxt",
        Class::Parents,
        &[
            "1/1 c:step 1000 +0 in nothing",
            "1/1 c:step 9000 +0 in nothing",
            "1/1 c:work 5000 +1000 in nothing",
        ],
    ),
    ("an end before the begin of another name", Class::Operations, &["1 c:p 30 open", "2 c:q 10 +0"]),
];

const fn case(file: &'static str, records: &'static [&'static str]) -> Case {
    Case { file, records, names: &[], filter: &[], convert: &[] }
}

/// The files of `tests/data/cases`, and the shortest of random ones.
pub fn cases() -> Vec<Trace> {
    let directory = workspace().join("tests/data/cases");
    let bytes =
        |name: &str| std::fs::read(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let archives = ARCHIVES.into_iter().map(|name| {
        let bytes = bytes(name);
        let records = read(&bytes).unwrap_or_else(|| panic!("the model has no rule for {name}"));
        Trace { bytes, ..Trace::new(name.to_owned(), &records) }
    });
    let others = CASES.iter().map(|case| {
        let records = parsed(case.records);
        let Case { file, filter, convert, .. } = case;
        let label = [&[*file], *filter, *convert].concat().join(" ");
        let meaning = Meaning { names: case.names.iter().copied().collect(), ..Meaning::of(&records) };
        let suffix = if file.ends_with(".json") { "json" } else { "pftrace" };
        Trace { label, meaning, bytes: bytes(file), suffix, filter, convert }
    });
    let shortest = SHORTEST.iter().map(|(label, lines)| Trace::new((*label).to_owned(), &parsed(lines)));
    archives.chain(others).chain(shortest).collect()
}

fn parsed(lines: &[&str]) -> Vec<Record> {
    let parsed = |line: &&str| parse(line).unwrap_or_else(|| panic!("no record: {line}"));
    lines.iter().map(parsed).collect()
}

/// The files of the conformance corpus, as far as the model has rules for them.
pub fn corpus() -> Vec<Trace> {
    let files = corpus::files().into_iter().filter_map(|file| {
        let records = read(&file.bytes).filter(|records| !records.is_empty())?;
        // Readers in JavaScript have no number beyond these.
        let is_exact = |record: &Record| record.thread.process.max(record.thread.thread) < 1 << 53;
        let records = Some(records).filter(|records| records.iter().all(is_exact))?;
        let label = format!("{} of the corpus", file.name);
        Some(Trace {
            label,
            meaning: Meaning::of(&records),
            bytes: file.bytes,
            ..Trace::new(String::new(), &[])
        })
    });
    files.collect()
}
