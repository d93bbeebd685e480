//! The engine with a buffer and a handler of the program's own.

use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::process::{Command, Output};
use trace_format::argument::ArgumentValue;
use trace_format::buffer::BufferMode;
use trace_format::record::{Record, RecordHeader};
use trace_format::refs::StringRef;
use trace_format::units::TicksPerSecond;
use trace_reader::buffer::{Activity, BufferPart, BufferReader, Source};
use trace_tests::{Requirement, Sandbox, native};

const BYTES: u64 = 64 << 10;

/// A buffer that a program has written to a file.
struct Written(Vec<u8>);

impl Source for &Written {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let offset = offset as usize;
        bytes.copy_from_slice(&self.0[offset..offset + bytes.len()]);
        Ok(bytes.len())
    }
}

/// Values of the events' first argument, how many events have none, and of how many it is a text.
fn numbers(buffer: &Written, rate: u64, mode: BufferMode) -> (Vec<u32>, usize, usize) {
    let rate = TicksPerSecond(NonZeroU64::new(rate).expect("not 0"));
    let part = BufferPart::Rest(Activity::Quiet);
    let mut reader = BufferReader::open(buffer, BYTES, mode, rate, part).expect("a buffer");
    let mut out = Vec::new();
    while reader.read_batch(&mut out).expect("a buffer") {}
    assert_eq!(reader.findings().bad_records, 0);
    let (mut numbers, mut others, mut alerts) = (Vec::new(), 0, 0);
    let mut rest = out.as_slice();
    while let Some(header) = rest.first_chunk::<8>() {
        let (record, behind) = rest.split_at(RecordHeader(u64::from_le_bytes(*header)).size().bytes());
        rest = behind;
        if let Record::Event(event) = Record::decode(record).expect("a record") {
            match event.arguments.iter().next() {
                Some(argument) => match argument.expect("an argument").value {
                    ArgumentValue::Uint32(number) => numbers.push(number),
                    ArgumentValue::String(StringRef::Inline(b"name of an ale")) => alerts += 1,
                    _ => panic!("another argument in {record:x?}"),
                },
                None => others += 1,
            }
        }
    }
    (numbers, others, alerts)
}

/// What is left of a run, beside what was printed.
const BUFFER: &str = "buffer";

/// Runs `host.c` with a mode's number, where no process has found out the rate of the clock, except in an
/// earlier run.
pub fn host(program: &mut Command, mode: usize, sandbox: &Sandbox) -> Output {
    program
        .arg(mode.to_string())
        .arg(sandbox.file(BUFFER))
        .env("TRACE_RUNTIME_DIR", sandbox.runtime_dir())
        .output()
        .expect("it runs")
}

#[test]
fn a_program_hosts_the_engine_itself() {
    if !Requirement::Compilers.is_met("a_program_hosts_the_engine_itself") {
        return;
    }
    let sandbox = Sandbox::new();
    let modes = [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming];
    for compiler in native::C {
        let program = sandbox.file("host");
        let flags = [&native::STRICT[..], &["-D_GNU_SOURCE", "-O2"]].concat();
        native::program(compiler, &["host.c"], &flags, &program);
        for (number, mode) in modes.into_iter().enumerate() {
            let output = host(&mut Command::new(&program), number, &sandbox);
            native::check(&format!("host {number}"), &output);
            let buffer = Written(fs::read(sandbox.file(BUFFER)).expect("the buffer"));
            let rate = String::from_utf8_lossy(&output.stdout).trim().parse().expect("the rate of its clock");
            let (numbers, others, alerts) = numbers(&buffer, rate, mode);
            assert_eq!(numbers, (0..100).collect::<Vec<_>>(), "{compiler} {mode:?}");
            assert_eq!((others, alerts), (1, 1), "{compiler} {mode:?}: the event while stopping, the alert");
        }
    }
}

/// What `fields.cc` prints of the buffer it has recorded into.
const FIELDS: &str = "\
header 1 1 mode 0 wrapped 0 size 65536 dropped 0
header 1 1 mode 0 wrapped 0 size 65536 dropped 0
initialization 2
object type 1 args 0
object type 2 args 1
thread 3 1
string 2 1 fields
string 2 2 first
string 2 3 int
string 2 4 uint
string 2 5 yes
string 2 6 text
string 2 7 second
string 2 8 large
string 2 9 blob
event 7 type 0 args 4 thread 1 1/2
  arg 1 1 name 3 -7
  arg 2 1 name 4 8
  arg 9 1 name 5 1
  arg 6 2 name 6 32773
event 5 type 1 args 1 thread 1 1/7
  arg 3 2 name 8 -9
blob 3 type 1 size 10
large 5 type 0 format 1 name 8
log 4 thread 1 length 9
switch 0 cpu 3 state 3 priorities 20 21
";

//= docs/buffer.md#header
#[test]
fn the_headers_name_the_fields_of_what_is_written() {
    if !Requirement::Compilers.is_met("the_headers_name_the_fields_of_what_is_written") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("fields");
    for compiler in native::CXX {
        for optimization in ["-O0", "-O2"] {
            let flags = [&native::STRICT[..], &["-std=c++17", optimization, "-pthread"]].concat();
            native::program(compiler, &["fields.cc"], &flags, &program);
            let mut command = Command::new(&program);
            let output =
                command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).output().expect("the program runs");
            native::check(compiler, &output);
            assert_eq!(String::from_utf8_lossy(&output.stdout), FIELDS, "{compiler} {optimization}");
        }
    }
}
