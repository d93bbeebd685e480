//! The parts of Fuchsia's document after the events: names, and the scheduler's events.
//= docs/catapult.md#names

use crate::json::Json;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, Write};
use tempfile::SpooledTempFile;
use trace_format::scheduling::WEIGHT_ARGUMENT;
use trace_format::units::Koid;
use trace_reader::item::Scheduling;
use trace_reader::{Arguments, Switch, Switched, Time};

/// How much of the scheduler's events waits in memory; more goes into an unlinked file.
const SPILL_BYTES: usize = 4 << 20;
const COPY_BYTES: usize = 64 << 10;

pub(super) struct System {
    pub processes: BTreeMap<Koid, Vec<u8>>,
    pub threads: BTreeMap<(Koid, Koid), Vec<u8>>,
    /// Scheduling events, each followed by a line feed; none contains one.
    scheduling: Json<SpooledTempFile>,
}

impl System {
    pub fn new() -> Self {
        let scheduling = Json::new(SpooledTempFile::new(SPILL_BYTES));
        Self { processes: BTreeMap::new(), threads: BTreeMap::new(), scheduling }
    }

    pub fn name_process(&mut self, process: Koid, name: &[u8]) {
        keep_longer(&mut self.processes, process, name);
    }

    pub fn name_thread(&mut self, process: Koid, thread: Koid, name: &[u8]) {
        keep_longer(&mut self.threads, (process, thread), name);
    }

    pub fn spill_if_full(&mut self) -> io::Result<()> {
        self.scheduling.flush_if_full()
    }

    /// Adds a scheduling record; false if it cannot be expressed.
    //= docs/catapult.md#scheduling
    pub fn scheduling(&mut self, time: Time, kind: &Scheduling, arguments: &Arguments<'_>) -> bool {
        let json = &mut self.scheduling;
        let begin = |json: &mut Json<SpooledTempFile>, phase: &str, cpu: u64| {
            json.raw("{\"ph\":\"");
            json.raw(phase);
            json.raw("\",\"ts\":");
            super::event::micros(json, time);
            json.integer_behind(",\"cpu\":", cpu);
        };
        let prio = |json: &mut Json<SpooledTempFile>, prio: Option<i64>| {
            if let Some(prio) = prio {
                json.integer_behind(",\"prio\":", prio);
            }
        };
        let thread = |json: &mut Json<SpooledTempFile>, of: &Switched| {
            if let Some(process) = of.process {
                json.integer_behind("\"pid\":", process.0);
                json.raw(",");
            }
            json.integer_behind("\"tid\":", of.thread.0);
        };
        if let Some(Switch { cpu, state, outgoing, incoming }) = kind.switch(arguments) {
            begin(json, "k", u64::from(cpu));
            json.raw(",\"out\":{");
            thread(json, &outgoing);
            json.integer_behind(",\"state\":", state.0);
            prio(json, outgoing.priority);
            json.raw("},\"in\":{");
            thread(json, &incoming);
            prio(json, incoming.priority);
            json.raw("}}\n");
            return true;
        }
        match kind {
            Scheduling::ThreadWakeup { cpu, thread } => {
                begin(json, "w", u64::from(*cpu));
                json.integer_behind(",\"tid\":", thread.0);
                prio(json, arguments.integer(WEIGHT_ARGUMENT));
                json.raw("}\n");
            }
            _ => return false,
        }
        true
    }

    /// Writes names and then the scheduler's records, with a separator between two, or after each.
    pub fn write(self, output: &mut dyn Write, separator: &str, is_behind: bool) -> io::Result<()> {
        let mut names = Json::new(Vec::new());
        let mut is_first = true;
        let mut separate = |json: &mut Json<Vec<u8>>| {
            if !std::mem::take(&mut is_first) {
                json.raw(separator);
            }
        };
        for (pid, name) in &self.processes {
            separate(&mut names);
            names.integer_behind("{\"ph\":\"p\",\"pid\":", pid.0);
            names.string_behind(",\"name\":", name);
            names.raw(if pid.0 == 0 { ",\"sort_index\":-1}" } else { "}" });
        }
        for ((pid, tid), name) in &self.threads {
            separate(&mut names);
            names.integer_behind("{\"ph\":\"t\",\"pid\":", pid.0);
            names.integer_behind(",\"tid\":", tid.0);
            names.string_behind(",\"name\":", name);
            names.raw("}");
        }
        output.write_all(names.bytes())?;
        let mut spooled = self.scheduling.into_output()?;
        spooled.rewind()?;
        let mut chunk = vec![0; COPY_BYTES];
        // A line feed ends an event; it becomes a separator when another event follows.
        let mut is_pending = !is_first;
        loop {
            let length = spooled.read(&mut chunk)?;
            if length == 0 {
                break;
            }
            let mut rest = &chunk[..length];
            while !rest.is_empty() {
                if std::mem::take(&mut is_pending) {
                    output.write_all(separator.as_bytes())?;
                }
                let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                output.write_all(&rest[..end])?;
                is_pending = end < rest.len();
                rest = rest.get(end + 1..).unwrap_or_default();
            }
        }
        if is_behind && is_pending {
            output.write_all(separator.as_bytes())?;
        }
        Ok(())
    }
}

/// Of several names of one object the longest stays.
fn keep_longer<K: Ord>(names: &mut BTreeMap<K, Vec<u8>>, key: K, name: &[u8]) {
    let known = names.entry(key).or_insert_with(|| name.to_vec());
    if name.len() > known.len() {
        *known = name.to_vec();
    }
}
