//! The meaning of the kernel's events, for those with a meaning of their own; and the positions of their
//! fields.

use crate::format::{FieldLocation, Format};

/// The common beginning of all events.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    kind: FieldLocation,
    flags: FieldLocation,
    tid: FieldLocation,
}

/// In a hard interrupt, in a soft one.
const IN_INTERRUPT: u64 = 0x08 | 0x10;

impl Head {
    /// None if the event lacks one of them.
    pub fn of(format: &Format) -> Option<Self> {
        Some(Self {
            kind: format.place("common_type")?,
            flags: format.place("common_flags")?,
            tid: format.place("common_pid")?,
        })
    }

    /// The number of the event.
    #[inline]
    pub fn id(&self, payload: &[u8]) -> usize {
        self.kind.unsigned(payload) as usize
    }

    /// The thread that ran.
    #[inline]
    pub fn tid(&self, payload: &[u8]) -> u32 {
        self.tid.unsigned(payload) as u32
    }

    /// An interrupt caused it, and the thread only happened to run.
    #[inline]
    pub fn is_interrupt(&self, payload: &[u8]) -> bool {
        self.flags.unsigned(payload) & IN_INTERRUPT != 0
    }
}

/// A thread in an event.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub name: FieldLocation,
    pub tid: FieldLocation,
    pub prio: FieldLocation,
}

/// An interrupt's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    Hard,
    Soft,
}

/// The meaning of an event.
#[derive(Clone, Debug)]
pub enum Semantics {
    Switch {
        outgoing: Task,
        state: FieldLocation,
        incoming: Task,
    },
    Waking {
        woken: Task,
        cpu: FieldLocation,
    },
    NewTask {
        tid: FieldLocation,
        name: FieldLocation,
        flags: FieldLocation,
    },
    Rename {
        tid: FieldLocation,
        name: FieldLocation,
    },
    Exec {
        tid: FieldLocation,
        old: FieldLocation,
        file: FieldLocation,
    },
    Exit,
    Free {
        tid: FieldLocation,
    },
    InterruptBegin {
        kind: Interrupt,
        number: FieldLocation,
        name: Option<FieldLocation>,
    },
    InterruptEnd {
        kind: Interrupt,
        result: Option<FieldLocation>,
    },
    CallBegin {
        number: FieldLocation,
    },
    CallEnd,
    PageFault {
        address: FieldLocation,
        ip: FieldLocation,
        code: FieldLocation,
    },
    Power {
        cpu: FieldLocation,
        state: FieldLocation,
    },
    WorkBegin {
        function: FieldLocation,
    },
    WorkEnd,
    ContentionBegin {
        lock: FieldLocation,
        flags: FieldLocation,
    },
    ContentionEnd,
    Resident {
        is_current: FieldLocation,
        member: FieldLocation,
        bytes: FieldLocation,
    },
    Marker {
        text: FieldLocation,
    },
    /// No meaning of its own: an instant with the fields.
    Other,
}

impl Semantics {
    /// The meaning of an event with this format.
    pub fn of(format: &Format) -> Self {
        Self::known(format).unwrap_or(Self::Other)
    }

    fn known(format: &Format) -> Option<Self> {
        let place = |name: &str| format.place(name);
        let task = |prefix: &str| {
            Some(Task {
                name: place(&format!("{prefix}comm"))?,
                tid: place(&format!("{prefix}pid"))?,
                prio: place(&format!("{prefix}prio"))?,
            })
        };
        Some(match format.name.as_str() {
            "sched_switch" => Self::Switch {
                outgoing: task("prev_")?,
                state: place("prev_state")?,
                incoming: task("next_")?,
            },
            "sched_waking" | "sched_wakeup_new" => {
                Self::Waking { woken: task("")?, cpu: place("target_cpu")? }
            }
            "task_newtask" => {
                Self::NewTask { tid: place("pid")?, name: place("comm")?, flags: place("clone_flags")? }
            }
            "task_rename" => Self::Rename { tid: place("pid")?, name: place("newcomm")? },
            "sched_process_exec" => {
                Self::Exec { tid: place("pid")?, old: place("old_pid")?, file: place("filename")? }
            }
            "sched_process_exit" => Self::Exit,
            "sched_process_free" => Self::Free { tid: place("pid")? },
            "irq_handler_entry" => Self::InterruptBegin {
                kind: Interrupt::Hard,
                number: place("irq")?,
                name: Some(place("name")?),
            },
            "irq_handler_exit" => Self::InterruptEnd { kind: Interrupt::Hard, result: Some(place("ret")?) },
            "softirq_entry" => {
                Self::InterruptBegin { kind: Interrupt::Soft, number: place("vec")?, name: None }
            }
            "softirq_exit" => Self::InterruptEnd { kind: Interrupt::Soft, result: None },
            "sys_enter" => Self::CallBegin { number: place("id")? },
            "sys_exit" => Self::CallEnd,
            "page_fault_user" | "page_fault_kernel" => {
                Self::PageFault { address: place("address")?, ip: place("ip")?, code: place("error_code")? }
            }
            "cpu_frequency" | "cpu_idle" => Self::Power { cpu: place("cpu_id")?, state: place("state")? },
            "workqueue_execute_start" => Self::WorkBegin { function: place("function")? },
            "workqueue_execute_end" => Self::WorkEnd,
            "contention_begin" => Self::ContentionBegin { lock: place("lock_addr")?, flags: place("flags")? },
            "contention_end" => Self::ContentionEnd,
            "rss_stat" => {
                Self::Resident { is_current: place("curr")?, member: place("member")?, bytes: place("size")? }
            }
            "print" => Self::Marker { text: place("buf")? },
            _ => return None,
        })
    }
}
