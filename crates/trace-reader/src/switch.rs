//! Context switches, of which the format has two records.

use crate::item::{Arguments, Scheduling, Thread, ThreadState};
use trace_format::scheduling::{IDLE_WEIGHT, INCOMING_WEIGHT_ARGUMENT, OUTGOING_WEIGHT_ARGUMENT};
use trace_format::units::Koid;

/// A context switch, however it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The CPU.
    pub cpu: u16,
    /// The state of the outgoing thread from here on.
    pub state: ThreadState,
    /// The thread that ran.
    pub outgoing: Switched,
    /// The thread that runs.
    pub incoming: Switched,
}

/// A thread of a context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switched {
    /// The thread.
    pub thread: Koid,
    /// Its process, which only older systems wrote.
    pub process: Option<Koid>,
    /// Its priority or weight.
    pub priority: Option<i64>,
    /// Whether it is the thread of a CPU that has nothing to do.
    pub is_idle: bool,
}

impl Scheduling {
    /// The context switch that it is, with the arguments of its record.
    #[must_use]
    pub fn switch(&self, arguments: &Arguments<'_>) -> Option<Switch> {
        let of_weight = |thread: Koid, argument: &str| {
            let priority = arguments.integer(argument);
            Switched { thread, process: None, priority, is_idle: priority == Some(IDLE_WEIGHT.into()) }
        };
        let of_priority = |Thread { process, thread }: Thread, priority: u8| {
            let is_idle = process == Koid(0) && priority == 0;
            Switched { thread, process: Some(process), priority: Some(priority.into()), is_idle }
        };
        match *self {
            Self::ContextSwitch { cpu, outgoing_state: state, outgoing, incoming } => {
                let outgoing = of_weight(outgoing, OUTGOING_WEIGHT_ARGUMENT);
                let incoming = of_weight(incoming, INCOMING_WEIGHT_ARGUMENT);
                Some(Switch { cpu, state, outgoing, incoming })
            }
            Self::LegacyContextSwitch {
                cpu,
                outgoing_state: state,
                outgoing,
                incoming,
                outgoing_priority,
                incoming_priority,
            } => {
                let outgoing = of_priority(outgoing, outgoing_priority);
                let incoming = of_priority(incoming, incoming_priority);
                Some(Switch { cpu: cpu.into(), state, outgoing, incoming })
            }
            Self::ThreadWakeup { .. } | Self::FiberSwitch { .. } => None,
        }
    }
}
