//! Backtraces as Perfetto's samples, on a sequence of their own.
//= docs/perfetto.md#profiles

use super::messages::*;
use crate::export::numbers::{short, thread_number};
use crate::profile::{Profile, is_of_kernel};
use foldhash::HashMap;
use prost::Message;
use trace_format::profiler::ProfilerKind;
use trace_format::units::Koid;
use trace_reader::dump::called_at;
use trace_reader::{Names, Thread};

/// The sequence of samples.
const SEQUENCE: u32 = 2;
/// Maximum number of interned frames and stacks; beyond it, all are forgotten.
const MAX_INTERNED: usize = 50_000;

/// Samples, and their interned data.
#[derive(Default)]
pub struct Samples {
    profile: Profile,
    functions: HashMap<String, u64>,
    modules: HashMap<Option<usize>, u64>,
    frames: HashMap<(Option<usize>, u64, u64), u64>,
    stacks: HashMap<Vec<u64>, u64>,
    new: InternedData,
    /// The reader has the interned data.
    is_known: bool,
}

/// The number of a key, and whether it is new.
fn number<K: std::hash::Hash + Eq>(known: &mut HashMap<K, u64>, key: K) -> (u64, bool) {
    let next = known.len() as u64 + 1;
    let number = *known.entry(key).or_insert(next);
    (number, number == next)
}

impl Samples {
    /// Processes a record; a backtrace becomes a packet.
    pub fn record(
        &mut self,
        at: u64,
        thread: Thread,
        kind: &ProfilerKind<'_>,
        names: &Names,
    ) -> Option<TracePacket> {
        let ProfilerKind::Backtrace { frames } = kind else {
            self.profile.learn(thread.process, kind);
            return None;
        };
        if self.functions.len() + self.frames.len() + self.stacks.len() > MAX_INTERNED {
            let profile = std::mem::take(&mut self.profile);
            *self = Self { profile, ..Self::default() };
        }
        let mut stack = Vec::new();
        let mut is_in_kernel = false;
        for (depth, frame) in frames.iter().enumerate() {
            let address = called_at(depth, frame);
            is_in_kernel |= depth == 0 && is_of_kernel(address);
            self.frame(thread.process, address, names, &mut stack);
        }
        stack.reverse();
        let (callstack, is_new) = number(&mut self.stacks, stack.clone());
        if is_new {
            self.new.callstacks.push(Callstack { iid: Some(callstack), frame_ids: stack });
        }
        let mut flags = SEQ_NEEDS_INCREMENTAL_STATE;
        if !std::mem::replace(&mut self.is_known, true) {
            flags |= SEQ_INCREMENTAL_STATE_CLEARED;
        }
        let new = std::mem::take(&mut self.new);
        Some(TracePacket {
            timestamp: Some(at),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(flags),
            interned_data: (new.encoded_len() > 0).then(|| Box::new(new)),
            perf_sample: Some(Box::new(PerfSample {
                cpu: None,
                pid: Some(short(thread.process)),
                tid: Some(thread_number(thread)),
                callstack_iid: Some(callstack),
                cpu_mode: Some(if is_in_kernel { CPU_MODE_KERNEL } else { CPU_MODE_USER }),
            })),
            ..TracePacket::default()
        })
    }

    /// Adds the frames at an address: several, if functions were inlined.
    fn frame(&mut self, process: Koid, address: u64, names: &Names, stack: &mut Vec<u64>) {
        let place = self.profile.place(process, address);
        let names = self.profile.functions(process, address, names);
        let (module, rel_pc) = place.map_or((None, address), |place| (Some(place.module), place.address));
        let mapping_id = Some(self.mapping(module));
        for name in names {
            let (function, is_new) = number(&mut self.functions, name.clone());
            if is_new {
                let str = Some(name.into_bytes());
                self.new.function_names.push(InternedString { iid: Some(function), str });
            }
            let (frame, is_new) = number(&mut self.frames, (module, rel_pc, function));
            if is_new {
                let (iid, function_name_id) = (Some(frame), Some(function));
                self.new.frames.push(Frame { iid, function_name_id, mapping_id, rel_pc: Some(rel_pc) });
            }
            stack.push(frame);
        }
    }

    /// A module; readers require one even for addresses outside of all modules.
    fn mapping(&mut self, index: Option<usize>) -> u64 {
        let (mapping, is_new) = number(&mut self.modules, index);
        if is_new {
            let module = index.map(|index| self.profile.module(index));
            let string = |str: Option<&[u8]>| InternedString {
                iid: Some(mapping),
                str: Some(str.unwrap_or_default().to_vec()),
            };
            self.new.mapping_paths.push(string(module.map(|module| &*module.name)));
            self.new.build_ids.push(string(module.map(|module| &*module.build_id)));
            self.new.mappings.push(Mapping {
                iid: Some(mapping),
                build_id: Some(mapping),
                path_string_ids: vec![mapping],
                ..Mapping::default()
            });
        }
        mapping
    }
}
