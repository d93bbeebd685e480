//! Parses one line of ftrace's text, and the events in it.
//= docs/import.md#ftrace

use regex::bytes::{Captures, Regex};
use trace_linux::{CLONE_THREAD, Side};

/// A line's head, and the rest of the line.
#[derive(Debug, PartialEq)]
pub(super) struct Line<'a> {
    pub task: &'a [u8],
    pub tid: u32,
    pub tgid: Option<u32>,
    pub cpu: u16,
    /// Nanoseconds.
    pub at: u64,
    /// The CPU was in an interrupt's handler: the thread only happened to run.
    pub is_interrupt: bool,
    pub name: &'a [u8],
    pub text: &'a [u8],
}

pub(super) enum Event<'a> {
    Switch { outgoing: Side<'a>, state: u8, incoming: Side<'a> },
    Waking { woken: Side<'a>, cpu: u16, is_again: bool },
    Marker(&'a [u8]),
    Renamed { tid: u32, name: &'a [u8] },
    NewTask { tid: u32, name: &'a [u8], is_thread: bool },
    Interrupt { name: &'a [u8], number: u32 },
    SoftInterrupt { name: &'a [u8], number: u32 },
    InterruptEnd,
    SystemCall { name: Vec<u8> },
    SystemCallEnd,
    Power { cpu: u16, state: i64 },
    FrequencyLimits { cpu: u16, min: i64, max: i64 },
    Other { fields: Vec<(&'a [u8], &'a [u8])> },
}

pub(super) struct Parser {
    line: Regex,
    lost: Regex,
    head: Regex,
    switch: Regex,
    short_switch: Regex,
    waking: Regex,
    short_waking: Regex,
    new_task: Regex,
    rename: Regex,
    number: Regex,
    call: Regex,
}

fn number<T: std::str::FromStr>(captures: &Captures<'_>, group: usize) -> Option<T> {
    std::str::from_utf8(captures.get(group)?.as_bytes()).ok()?.parse().ok()
}

fn bytes<'a>(captures: &Captures<'a>, group: usize) -> &'a [u8] {
    captures.get(group).map_or(b"", |found| found.as_bytes())
}

impl Parser {
    pub fn new() -> Self {
        let regex = |pattern: &str| Regex::new(&format!("(?s-u){pattern}")).expect("a pattern of this file");
        Self {
            line: regex(concat!(
                r"^\s*(.+?)-(\d+)\s+(?:\(\s*(\d+|-+)\s*\)\s+)?\[(\d+)\]\s+(?:([^\s:]{3,8})\s+)?",
                r"(\d+)\.(\d{1,9}):\s+(.*)$"
            )),
            lost: regex(r"^\s*(?:CPU:(\d+) )?\[(?:LOST (?:(\d+) )?EVENTS|(?:(\d+) )?EVENTS DROPPED)\]$"),
            head: regex(r"^(?:cpus=\d+|version = \d+|CPU \d+ is empty|TRACE:.*)$"),
            switch: regex(concat!(
                r"^prev_comm=(.*) prev_pid=(\d+) prev_prio=(-?\d+) prev_state=(\S)\S* ==> ",
                r"next_comm=(.*) next_pid=(\d+) next_prio=(-?\d+)"
            )),
            short_switch: regex(r"^(.*):(\d+) \[(-?\d+)\] (\S)\S* ==> (.*):(\d+) \[(-?\d+)\]$"),
            waking: regex(r"^comm=(.*) pid=(\d+) prio=(-?\d+)(?: success=\d)? target_cpu=(\d+)"),
            short_waking: regex(r"^(.*):(\d+) \[(-?\d+)\](?: success=\d)? CPU:(\d+)$"),
            new_task: regex(r"^pid=(\d+) comm=(.*) clone_flags=([0-9a-f]+) "),
            rename: regex(r"^pid=(\d+) oldcomm=.* newcomm=(.*) oom_score_adj="),
            number: regex(r"^(?:irq|vec)=(\d+) (?:name=(.*)|\[action=(.*)\])$"),
            call: regex(r"^(sys_[a-z0-9_]+)(\(| -> )"),
        }
    }

    /// A CPU that lost events, and how many if that is known.
    pub fn lost(&self, line: &[u8]) -> Option<(u16, Option<u64>)> {
        let found = self.lost.captures(line)?;
        Some((number(&found, 1).unwrap_or(0), number(&found, 2).or_else(|| number(&found, 3))))
    }

    /// What tools write before the first event.
    pub fn is_head(&self, line: &[u8]) -> bool {
        self.head.is_match(line.trim_ascii())
    }

    /// None if it is something else.
    pub fn line<'a>(&self, line: &'a [u8]) -> Option<Line<'a>> {
        let found = self.line.captures(line)?;
        let fraction = bytes(&found, 7);
        let scale = 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
        let seconds: u64 = number(&found, 6)?;
        let nanos = number::<u64>(&found, 7)? * scale;
        let behind = found.get(8)?.as_bytes();
        let end = behind.iter().position(|byte| *byte == b':').unwrap_or(behind.len());
        let (name, text) = match self.call.captures(behind) {
            Some(call) => (call.get(1)?.as_bytes(), behind),
            None => (&behind[..end], behind.get(end + 1..).unwrap_or_default().trim_ascii_start()),
        };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        if name.is_empty() || !name.iter().all(is_name) {
            return None;
        }
        Some(Line {
            task: bytes(&found, 1),
            tid: number(&found, 2)?,
            tgid: number(&found, 3),
            cpu: number(&found, 4)?,
            at: seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?,
            // The third flag: in a hard or soft interrupt, or both.
            is_interrupt: matches!(bytes(&found, 5).get(2), Some(b'h' | b's' | b'H' | b'z' | b'Z')),
            name,
            text,
        })
    }

    /// Parses an event.
    pub fn event<'a>(&self, name: &'a [u8], text: &'a [u8]) -> Event<'a> {
        self.known(name, text).unwrap_or_else(|| Event::Other { fields: fields(text) })
    }

    /// None for an event without a meaning of its own, or whose text has another form.
    fn known<'a>(&self, name: &'a [u8], text: &'a [u8]) -> Option<Event<'a>> {
        let side = |found: &Captures<'a>, group: usize| {
            Some(Side {
                name: Some(bytes(found, group)),
                tid: number(found, group + 1)?,
                prio: number(found, group + 2)?,
            })
        };
        Some(match name {
            b"sched_switch" => {
                let found = self.switch.captures(text).or_else(|| self.short_switch.captures(text))?;
                let state = *bytes(&found, 4).first()?;
                Event::Switch { outgoing: side(&found, 1)?, state, incoming: side(&found, 5)? }
            }
            b"sched_waking" | b"sched_wakeup" | b"sched_wakeup_new" => {
                let found = self.waking.captures(text).or_else(|| self.short_waking.captures(text))?;
                let is_again = name == b"sched_wakeup";
                Event::Waking { woken: side(&found, 1)?, cpu: number(&found, 4)?, is_again }
            }
            b"0" | b"print" => Event::Marker(marker(text)),
            _ if name.starts_with(b"tracing_mark_write") => Event::Marker(text),
            b"task_newtask" => {
                let found = self.new_task.captures(text)?;
                let flags = std::str::from_utf8(bytes(&found, 3)).ok()?;
                let is_thread = u64::from_str_radix(flags, 16).ok()? & CLONE_THREAD != 0;
                Event::NewTask { tid: number(&found, 1)?, name: bytes(&found, 2), is_thread }
            }
            b"task_rename" => {
                let found = self.rename.captures(text)?;
                Event::Renamed { tid: number(&found, 1)?, name: bytes(&found, 2) }
            }
            b"irq_handler_entry" => {
                let found = self.number.captures(text)?;
                Event::Interrupt { number: number(&found, 1)?, name: bytes(&found, 2) }
            }
            b"softirq_entry" => {
                let found = self.number.captures(text)?;
                Event::SoftInterrupt { number: number(&found, 1)?, name: bytes(&found, 3) }
            }
            b"irq_handler_exit" | b"softirq_exit" => Event::InterruptEnd,
            b"sys_enter" => {
                let number = text.strip_prefix(b"NR ")?.split(|byte| *byte == b' ').next()?;
                Event::SystemCall { name: [b"sys_", number].concat() }
            }
            b"sys_exit" if text.starts_with(b"NR ") => Event::SystemCallEnd,
            _ if name.starts_with(b"sys_enter_") => {
                Event::SystemCall { name: [b"sys_", &name[b"sys_enter_".len()..]].concat() }
            }
            _ if name.starts_with(b"sys_exit_") => Event::SystemCallEnd,
            _ if name.starts_with(b"sys_") => {
                let found = self.call.captures(text)?;
                match bytes(&found, 2) {
                    b"(" => Event::SystemCall { name: bytes(&found, 1).to_vec() },
                    _ => Event::SystemCallEnd,
                }
            }
            b"cpu_frequency" | b"cpu_idle" => {
                let fields = fields(text);
                let state: u32 = whole(&fields, b"state")?;
                // Leaving the idle state is all bits set.
                Event::Power { cpu: whole(&fields, b"cpu_id")?, state: i64::from(state as i32) }
            }
            b"cpu_frequency_limits" => {
                let fields = fields(text);
                let limit = |old: &[u8], new: &[u8]| whole(&fields, old).or_else(|| whole(&fields, new));
                Event::FrequencyLimits {
                    cpu: whole(&fields, b"cpu_id")?,
                    min: limit(b"min", b"min_freq")?,
                    max: limit(b"max", b"max_freq")?,
                }
            }
            _ => return None,
        })
    }
}

/// The text of a marker, without the function that wrote it, by name or address, before it.
fn marker(text: &[u8]) -> &[u8] {
    let is_function = |head: &[u8]| {
        let is_address = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
        head.starts_with(b"tracing_mark_write") && !head.contains(&b' ')
            || head.strip_prefix(b"0x").is_some_and(is_address)
    };
    let end = memchr::memmem::find(text, b": ").filter(|end| is_function(&text[..*end]));
    end.map_or(text, |end| text[end + 2..].trim_ascii_start())
}

fn whole<T: std::str::FromStr>(fields: &[(&[u8], &[u8])], name: &[u8]) -> Option<T> {
    let (_, value) = fields.iter().find(|field| field.0 == name)?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Fields of the form `name=value`, where a value may have spaces; none if the text begins otherwise.
fn fields(text: &[u8]) -> Vec<(&[u8], &[u8])> {
    let is_name = |name: &[u8]| {
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let mut fields: Vec<(&[u8], usize, usize)> = Vec::new();
    let mut at = 0;
    for word in text.split(|byte| *byte == b' ') {
        let equals = word.iter().position(|byte| *byte == b'=');
        match equals.filter(|equals| is_name(&word[..*equals])) {
            Some(equals) => fields.push((&word[..equals], at + equals + 1, at + word.len())),
            None => match fields.last_mut() {
                Some(last) => last.2 = at + word.len(),
                None => return Vec::new(),
            },
        }
        at += word.len() + 1;
    }
    fields.into_iter().map(|(name, start, end)| (name, text[start..end].trim_ascii())).collect()
}
