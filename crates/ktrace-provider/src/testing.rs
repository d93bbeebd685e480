//! Helpers of tests: two pages that were read from a kernel, and the formats of their events.

use crate::format::Format;
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::EventKind;
use trace_format::kernel_object::{TYPE_PROCESS, TYPE_THREAD};
use trace_format::record::Record;
use trace_format::refs::StringRef;
use trace_format::scheduling::Scheduling;
use trace_format::units::{Koid, Thread};
use trace_linux::{Records, inline};

/// Bytes as they stand in a page.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A whole page that begins with these bytes.
pub fn page(hex: &str) -> Vec<u8> {
    let mut page = bytes(hex);
    page.resize(4096, 0);
    page
}

/// Three writes to `trace_marker`, with the processor's counter as clock.
pub fn markers() -> Vec<u8> {
    page(
        "d84446 9aca040000 7c00000000000000
         0a000000 05000001bf690000 da884981ffffffff
         427c32373037317c737065635f6578616d706c650a000000
         894f7700 05000001bf690000 da884981ffffffff
         437c32373037317c71756575657c370a00617368
         5e822fdf03000000
         07000000 05000001bf690000 da884981ffffffff
         457c32373037310a00776170",
    )
}

/// A new process, the switch to it, an interrupt followed by a soft one that wakes it.
pub fn scheduler() -> Vec<u8> {
    let python = "707974686f6e3300 0000000000000000";
    page(&format!(
        "202603854a030000 f800000000000000
         0c000000 cd000000f1160000 1a170000 {python} 00000000 0041000000000000 0000000000000000
         30d10600 74010102f1160000 {python} f116000078000000 0200000000000000 {python} 1a17000078000000
         88bed000 e100090100000000 24000000 10000e00 76697274696f312d7265712e30000000
         c40d0200 e000090100000000 24000000 01000000
         83ab0000 df00100100000000 04000000
         c9690100 7701110400000000 {python} 1a170000 78000000 01000000
         e3e30200 de00340100000000 04000000"
    ))
}

fn format(name: &str, id: u16, fields: &str) -> Format {
    let common = "field:unsigned short common_type; offset:0; size:2; signed:0;
        field:unsigned char common_flags; offset:2; size:1; signed:0;
        field:unsigned char common_preempt_count; offset:3; size:1; signed:0;
        field:int common_pid; offset:4; size:4; signed:1;";
    Format::parse(&format!("name: {name}\nID: {id}\nformat:\n{common}\n{fields}\n")).unwrap()
}

/// The formats of everything in the pages.
pub fn formats() -> Vec<Format> {
    vec![
        format(
            "print",
            5,
            "field:unsigned long ip; offset:8; size:8; signed:0;\nfield:char buf[]; offset:16; size:0; signed:0;",
        ),
        format(
            "task_newtask",
            205,
            "field:pid_t pid; offset:8; size:4; signed:1;\nfield:char comm[16]; offset:12; size:16; signed:0;\n\
             field:u64 clone_flags; offset:32; size:8; signed:0;",
        ),
        format(
            "sched_switch",
            372,
            "field:char prev_comm[16]; offset:8; size:16; signed:0;\nfield:pid_t prev_pid; offset:24; size:4; signed:1;\n\
             field:int prev_prio; offset:28; size:4; signed:1;\nfield:long prev_state; offset:32; size:8; signed:1;\n\
             field:char next_comm[16]; offset:40; size:16; signed:0;\nfield:pid_t next_pid; offset:56; size:4; signed:1;\n\
             field:int next_prio; offset:60; size:4; signed:1;",
        ),
        format(
            "irq_handler_entry",
            225,
            "field:int irq; offset:8; size:4; signed:1;\nfield:__data_loc char[] name; offset:12; size:4; signed:0;",
        ),
        format(
            "irq_handler_exit",
            224,
            "field:int irq; offset:8; size:4; signed:1;\nfield:int ret; offset:12; size:4; signed:1;",
        ),
        format("softirq_entry", 223, "field:unsigned int vec; offset:8; size:4; signed:0;"),
        format("softirq_exit", 222, "field:unsigned int vec; offset:8; size:4; signed:0;"),
        format(
            "sched_waking",
            375,
            "field:char comm[16]; offset:8; size:16; signed:0;\nfield:pid_t pid; offset:24; size:4; signed:1;\n\
             field:int prio; offset:28; size:4; signed:1;\nfield:int target_cpu; offset:32; size:4; signed:1;",
        ),
        format(
            "cpu_idle",
            601,
            "field:u32 state; offset:8; size:4; signed:0;\nfield:u32 cpu_id; offset:12; size:4; signed:0;",
        ),
        format("workqueue_execute_start", 602, "field:void * function; offset:8; size:8; signed:0;"),
        format("workqueue_execute_end", 603, "field:void * work; offset:8; size:8; signed:0;"),
        format(
            "contention_begin",
            604,
            "field:void * lock_addr; offset:8; size:8; signed:0;\nfield:unsigned int flags; offset:16; size:4; signed:0;",
        ),
        format("contention_end", 605, "field:void * lock_addr; offset:8; size:8; signed:0;"),
        format(
            "rss_stat",
            606,
            "field:unsigned int curr; offset:8; size:4; signed:0;\nfield:int member; offset:12; size:4; signed:1;\n\
             field:long size; offset:16; size:8; signed:1;",
        ),
        format("sched_process_exit", 607, "field:pid_t pid; offset:8; size:4; signed:1;"),
        format(
            "sched_process_exec",
            608,
            "field:__data_loc char[] filename; offset:8; size:4; signed:0;\nfield:pid_t pid; offset:12; size:4; signed:1;\n\
             field:pid_t old_pid; offset:16; size:4; signed:1;",
        ),
        format(
            "task_rename",
            609,
            "field:pid_t pid; offset:8; size:4; signed:1;\nfield:char newcomm[16]; offset:12; size:16; signed:0;",
        ),
        format("sys_enter", 443, "field:long id; offset:8; size:8; signed:1;"),
        format("sys_exit", 442, "field:long id; offset:8; size:8; signed:1;"),
        format(
            "block_rq_issue",
            600,
            "field:dev_t dev; offset:8; size:4; signed:0;\nfield:sector_t sector; offset:16; size:8; signed:0;\n\
             field:char comm[16]; offset:24; size:16; signed:0;\nfield:bool sync; offset:40; size:1; signed:0;",
        ),
    ]
}

/// Records as lines of text.
#[derive(Default)]
pub struct Lines(pub Vec<String>);

fn arguments(arguments: &[Argument<'_>]) -> String {
    let one = |argument: &Argument<'_>| {
        let value = match argument.value {
            ArgumentValue::String(text) => format!("{:?}", shown(text)),
            ArgumentValue::Koid(koid) => format!("#{}", koid.0),
            value => format!("{value:?}"),
        };
        format!(" {}={value}", shown(argument.name))
    };
    arguments.iter().map(one).collect()
}

fn shown(text: StringRef<'_>) -> String {
    match text {
        StringRef::Inline(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}

impl Records for Lines {
    fn string<'a>(&mut self, text: &'a [u8]) -> StringRef<'a> {
        inline(text)
    }

    fn at(&mut self, at: u64, record: &Record<'_>) -> bool {
        let Record::Scheduling(record) = record else { panic!("{record:?}") };
        let list: Vec<Argument<'_>> = record.arguments().iter().map(Result::unwrap).collect();
        self.0.push(match record {
            Scheduling::ContextSwitch { cpu, outgoing_state, outgoing, incoming, .. } => format!(
                "{at} cpu {cpu}: {} {} -> {}{}",
                outgoing.0.0,
                outgoing_state.text().unwrap(),
                incoming.0.0,
                arguments(&list)
            ),
            Scheduling::ThreadWakeup { cpu, thread, .. } => {
                format!("{at} cpu {cpu}: wakes {}{}", thread.0.0, arguments(&list))
            }
            other => panic!("{other:?}"),
        });
        true
    }

    fn event(
        &mut self,
        at: u64,
        thread: Thread,
        category: &[u8],
        name: &[u8],
        kind: EventKind,
        list: &[Argument<'_>],
    ) {
        let text = String::from_utf8_lossy;
        let kind = match kind {
            EventKind::DurationComplete { end } => format!("until {}", end.0),
            EventKind::DurationBegin => "begin".to_owned(),
            EventKind::DurationEnd => "end".to_owned(),
            EventKind::Instant { .. } => "instant".to_owned(),
            EventKind::Counter { id } => format!("counter {id}"),
            other => format!("{other:?}"),
        };
        let thread = format!("{}/{}", thread.process.0, thread.thread.0);
        let list = arguments(list);
        self.0.push(format!("{at} {thread} {kind} {} {}{list}", text(category), text(name)));
    }

    fn object(&mut self, object_type: u8, koid: Koid, name: &[u8], list: &[Argument<'_>]) {
        let name = String::from_utf8_lossy(name);
        self.0.push(match (object_type, list) {
            (TYPE_PROCESS, []) => format!("process {}: {name}", koid.0),
            (TYPE_THREAD, [Argument { value: ArgumentValue::Koid(process), .. }]) => {
                format!("thread {}/{}: {name}", process.0, koid.0)
            }
            other => panic!("{other:?}"),
        });
    }

    fn warn(&mut self, what: String) {
        self.0.push(format!("warning: {what}"));
    }
}
