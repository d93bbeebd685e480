//! Names of processes and threads as Chrome has them.

use super::Exporter;
use crate::export::numbers::{short, thread_number};
use crate::json::Json;
use std::io::{Sink, Write};
use trace_format::units::Koid;
use trace_reader::Thread;

impl<W: Write> Exporter<W> {
    /// Writes them, after the events.
    //= docs/catapult.md#chromes-dialect
    pub(super) fn names_as_events(&mut self) {
        let json = &mut self.events.json;
        let begin = |json: &mut Json<Sink>, pid: u64, tid: Option<u64>, what: &str, name: &[u8]| {
            if name.is_empty() {
                return;
            }
            json.raw(",{\"name\":\"");
            json.raw(what);
            json.integer_behind("\",\"ph\":\"M\",\"pid\":", short(Koid(pid)));
            if let Some(tid) = tid {
                json.raw(",\"tid\":");
                let thread = Thread { process: Koid(pid), thread: Koid(tid) };
                json.integer(thread_number(thread));
            }
            json.string_behind(",\"args\":{\"name\":", name);
            json.raw("}}");
        };
        let sampled: Vec<_> = self.samples.iter().flat_map(|samples| samples.threads()).collect();
        for (pid, tid) in sampled {
            // Catapult drops the samples of threads that nothing else in the document mentions.
            if self.system.threads.get(&(pid, tid)).is_none_or(Vec::is_empty) {
                json.raw(",{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":");
                json.integer(short(pid));
                json.integer_behind(",\"tid\":", thread_number(Thread { process: pid, thread: tid }));
                json.raw(",\"args\":{\"sort_index\":0}}");
            }
        }
        for (pid, name) in std::mem::take(&mut self.system.processes) {
            begin(json, pid.0, None, "process_name", &name);
        }
        for ((pid, tid), name) in std::mem::take(&mut self.system.threads) {
            begin(json, pid.0, Some(tid.0), "thread_name", &name);
        }
    }
}
