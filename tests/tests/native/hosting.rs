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
use trace_reader::buffer::{Activity, BufferReader, Part, Source};
use trace_tests::{Sandbox, native};

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
    let part = Part::Rest(Activity::Quiet);
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

/// Runs `host.c` with a mode's number, where nobody has found out the rate of the clock unless in a run
/// before.
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
    if !native::has_compilers("a_program_hosts_the_engine_itself") {
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
