//! Traces, read through the API for C.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use trace_reader::{Item, Reader, WarningKind};
use trace_tests::{Requirement, Sandbox, build, native};

/// What a program prints of a file, and what should be printed: the lines of `trace dump`.
fn check(name: &str, output: &Output, expected: &str) {
    native::check(name, output);
    let found = String::from_utf8_lossy(&output.stdout);
    let expected: Vec<&str> = expected.lines().filter(|line| line.starts_with("0x")).collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{name}");
}

/// The warnings and the error that the program prints, as this reader has them.
fn complaints(path: &Path) -> Vec<String> {
    let mut reader = Reader::new(File::open(path).expect("a file")).expect("a trace");
    let error = loop {
        match reader.next_item() {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    let warnings = reader.warnings().first().into_iter().map(|warning| {
        let kind = warning.kind;
        format!("{:#010x} {} {}: {kind}", warning.offset.0, warning.provider.0, kind.name())
    });
    let count = format!("warnings: {}", reader.warnings().count());
    warnings.chain([count]).chain(error).collect()
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let lines = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
    lines.into_iter().filter(|line| !line.starts_with("last event: ")).collect()
}

#[test]
fn c_reads_what_rust_reads() {
    let test = "c_reads_what_rust_reads";
    if !Requirement::Compilers.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let (program, checked) = (sandbox.file("read"), sandbox.file("checked"));
    let strict = [&native::STRICT[..], &["-std=c11"]].concat();
    native::static_reading_program("gcc", &["read.c"], &strict, &program);
    let is_sanitized = Requirement::Sanitizers("clang").is_met(test);
    let sanitizers = [if is_sanitized { &native::SANITIZED[..] } else { &["-O1"] }, &["-std=gnu17"]].concat();
    native::reading_program("clang", &["read.c"], &sanitizers, &checked);
    let corpus = build::workspace().join("tests/data/corpus");
    let mut files = 0;
    let mut kinds = BTreeSet::new();
    for entry in fs::read_dir(corpus).expect("the corpus").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "fxt") {
            continue;
        }
        let name = path.display().to_string();
        let expected = fs::read_to_string(path.with_extension("txt")).expect("a text");
        let output = Command::new(&program).arg(&path).output().expect("it runs");
        check(&name, &output, &expected);
        assert_eq!(lines(&output.stderr), complaints(&path), "{name}");
        let output = Command::new(&checked).arg(format!("={name}")).output().expect("it runs");
        check(&name, &output, &expected);
        let input = Stdio::from(File::open(&path).expect("a file"));
        let output = Command::new(&checked).arg("-").stdin(input).output().expect("it runs");
        check(&name, &output, &expected);
        files += 1;
        kinds.extend(expected.lines().filter_map(|line| line.split(' ').nth(3)).map(str::to_owned));
    }
    assert!(files > 130, "{files} files");
    // Each kind that the header has was among them.
    for kind in ["damage", "fiber-switch", "large-attachment", "ledger", "loss", "malformed", "unknown"] {
        assert!(kinds.contains(kind), "{kinds:?}");
    }
}

#[test]
fn c_reads_compressed_traces_as_far_as_they_go() {
    let test = "c_reads_compressed_traces_as_far_as_they_go";
    if !Requirement::Compilers.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("read");
    native::reading_program("gcc", &["read.c"], &[], &program);
    let read = |name: &str| Command::new(&program).arg(sandbox.file(name)).output().expect("it runs");
    let corpus = build::workspace().join("tests/data/corpus");
    let trace = fs::read(corpus.join("file-complete.fxt")).expect("a file");
    let expected = fs::read_to_string(corpus.join("file-complete.txt")).expect("a text");
    let compressed = zstd::encode_all(&trace[..], 3).expect("it is compressed");
    fs::write(sandbox.file("whole.zst"), &compressed).expect("a file");
    let output = read("whole.zst");
    check("whole.zst", &output, &expected);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "warnings: 0\nlast event: demo, main\n");
    // Blocks that zstd ends here can be read, the rest is missing.
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).expect("an encoder");
    std::io::Write::write_all(&mut encoder, &trace).expect("memory");
    std::io::Write::flush(&mut encoder).expect("memory");
    fs::write(sandbox.file("cut.zst"), encoder.get_ref()).expect("a file");
    let output = read("cut.zst");
    check("cut.zst", &output, &expected);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let cut = format!("cannot read at byte {}: the zstd data is cut off", trace.len());
    assert_eq!(stderr.lines().last(), Some(&*cut));

    fs::write(sandbox.file("other"), "PK\x03\x04").expect("a file");
    for (name, reason) in [
        ("other", "expected a Fuchsia trace, found a ZIP archive"),
        ("missing", "No such file or directory (os error 2)"),
    ] {
        let output = read(name);
        assert_eq!(output.status.code(), Some(2));
        let expected = format!("{}: {reason}\n", sandbox.file(name).display());
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    }
}

#[test]
fn the_reading_library_exports_what_its_header_declares() {
    let test = "the_reading_library_exports_what_its_header_declares";
    native::check_exports(test, "libtracereader", ("trace-reader/c_api.h", "trace_reader_", 11));
}

/// The example of `docs/c.md`, as it stands there.
#[test]
fn the_example_of_the_page_reads() {
    let test = "the_example_of_the_page_reads";
    if !Requirement::Compilers.is_met(test) {
        return;
    }
    let page = fs::read_to_string(build::workspace().join("docs/c.md")).expect("the page");
    let (_, rest) = page.split_once("## Reading traces").expect("a section");
    let (_, rest) = rest.split_once("```c\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let sandbox = Sandbox::new();
    let (source, program) = (sandbox.file("list.c"), sandbox.file("list"));
    fs::write(&source, example).expect("a file");
    native::reading_program("gcc", &[source.to_str().expect("UTF-8")], &native::STRICT, &program);
    let trace = build::workspace().join("tests/data/corpus/event-times.fxt");
    let output = Command::new(&program).arg(&trace).output().expect("it runs");
    native::check("the example", &output);
    let mut reader = Reader::new(File::open(&trace).expect("a file")).expect("a trace");
    let mut expected = String::new();
    while let Some(record) = reader.next_item().expect("a record") {
        if let Item::Event(event) = record.item {
            expected += &format!("{} {}\n", event.time.nanos().0, event.name.to_str());
        }
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert!(expected.lines().count() > 2, "{expected}");
    let output = Command::new(&program).arg("missing.fxt").output().expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "missing.fxt: No such file or directory (os error 2)\n"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// The type of a record that the reader for C++ hands out, none for one that it leaves out, and whether that
/// is an error.
fn of_cxx(item: &Item<'_>) -> (Option<u8>, bool) {
    match item {
        Item::Magic | Item::ProviderInfo { .. } | Item::ProviderSection => (Some(0), false),
        Item::ProviderEvent { event, .. } => ((*event == 0).then_some(0), false),
        Item::Initialization { .. } => (Some(1), false),
        Item::String { index, .. } => ((*index != 0).then_some(2), false),
        Item::Thread { index, .. } => ((*index != 0).then_some(3), false),
        Item::Event(event) => (event.kind.event_type().map(|_| 4), false),
        Item::Blob { .. }
        | Item::Loss(_)
        | Item::Ledger(_)
        | Item::Function(_)
        | Item::FurtherArguments(_) => (Some(5), false),
        Item::KernelObject { .. } => (Some(7), false),
        // Fibers are of a newer version than that reader.
        Item::Scheduling { kind: trace_reader::item::Scheduling::FiberSwitch { .. }, .. } => (None, false),
        Item::Scheduling { .. } => (Some(8), false),
        Item::Log { .. } => (Some(9), false),
        Item::Profiler { .. } => (Some(10), false),
        Item::LargeBlob { .. } => (Some(15), false),
        Item::UserspaceObject { .. } | Item::LargeBlobPart { .. } => (None, false),
        Item::Unknown { header, .. } => (None, header.record_type_bits() == 10),
        Item::Malformed { .. } | Item::Damage { .. } => (None, true),
    }
}

//= docs/format.md#damage
#[test]
fn the_reader_for_cxx_hands_out_the_same_records() {
    let test = "the_reader_for_cxx_hands_out_the_same_records";
    if !Requirement::Compilers.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("dump");
    native::program("g++", &["dump.cc"], &["-std=c++17", "-O1"], &program);
    let mut files = 0;
    for file in trace_tests::corpus::files() {
        let mut reader = Reader::new(&file.bytes[..]).expect("a trace");
        let (mut types, mut errors) = (BTreeMap::new(), 0);
        while let Ok(Some(record)) = reader.next_item() {
            let (record_type, is_error) = of_cxx(&record.item);
            record_type.into_iter().for_each(|found| *types.entry(found).or_insert(0) += 1);
            errors += u64::from(is_error);
        }
        let warnings = reader.warnings().first();
        // What refers to something unknown is shown here, and left out there.
        let is_undefined =
            |kind| matches!(kind, WarningKind::UndefinedString(_) | WarningKind::UndefinedThread(_));
        if warnings.iter().any(|warning| is_undefined(warning.kind)) {
            continue;
        }
        let is_end = |kind| matches!(kind, WarningKind::Truncated(_) | WarningKind::Lost);
        errors += warnings.iter().filter(|warning| is_end(warning.kind)).count() as u64;
        let path = sandbox.file("trace.fxt");
        fs::write(&path, &file.bytes).expect("a file");
        let output = Command::new(&program).arg(&path).output().expect("it runs");
        native::check(&file.name, &output);
        let said = String::from_utf8_lossy(&output.stdout);
        let counts = said.lines().filter(|line| line.starts_with("type ") || line.starts_with("errors: "));
        let expected = types.iter().map(|(found, count)| format!("type {found}: {count}"));
        let expected: Vec<String> = expected.chain([format!("errors: {errors}")]).collect();
        assert_eq!(counts.collect::<Vec<_>>(), expected, "{}", file.name);
        files += 1;
    }
    assert!(files > 120, "{files} files");
}

/// What a reader hands out does not depend on how many words it gets at a time.
#[test]
fn the_reader_for_cxx_hands_out_the_same_records_of_any_chunks() {
    let test = "the_reader_for_cxx_hands_out_the_same_records_of_any_chunks";
    if !Requirement::Compilers.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("dump");
    native::program("g++", &["dump.cc"], &["-std=c++17", "-O1"], &program);
    let path = sandbox.file("trace.fxt");
    let dump = |words: &str| {
        let output = Command::new(&program).arg(&path).arg(words).output().expect("it runs");
        native::check(words, &output);
        output.stdout
    };
    for file in trace_tests::corpus::files() {
        fs::write(&path, &file.bytes).expect("a file");
        let whole = dump("1000000000");
        for words in ["1", "3", "100"] {
            let found = dump(words);
            let [found, whole] = [&found, &whole].map(|text| String::from_utf8_lossy(text));
            assert_eq!(found, whole, "{} by {words}", file.name);
        }
    }
}
