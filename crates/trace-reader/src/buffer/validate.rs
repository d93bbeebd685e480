//! Checks the records of one provider before they are handed on.

use trace_format::argument::{ArgumentValue, Arguments};
use trace_format::error::DecodeError;
use trace_format::event::EventKind;
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::scheduling::Scheduling;
use trace_format::units::TicksPerSecond;
use trace_format::userspace_object::ProcessRef;

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The record does not end where its region does, or has no size.
    #[error("size of {words} words does not fit")]
    Size {
        /// Size in the header.
        words: u64,
    },
    /// The record's contents do not fit its kind.
    #[error(transparent)]
    Content(#[from] DecodeError),
    /// A kind of record that this place does not hold, such as metadata.
    #[error("record of type {record_type} is not allowed here")]
    Type {
        /// The type bits.
        record_type: u8,
    },
    /// A string index that was not defined before.
    #[error("string {index} is not defined")]
    String {
        /// The index.
        index: u16,
    },
    /// A thread index that was not defined before.
    #[error("thread {index} is not defined")]
    Thread {
        /// The index.
        index: u8,
    },
    /// A definition for an index that has one already.
    #[error("index {index} is defined twice")]
    Redefined {
        /// The index.
        index: u16,
    },
    /// Another clock rate than the one the provider was given.
    #[error("clock of {found} ticks per second, expected {expected}")]
    Rate {
        /// The record's rate.
        found: u64,
        /// The rate the provider was given.
        expected: u64,
    },
    /// A record before the first initialization record.
    #[error("record before initialization")]
    Uninitialized,
}

/// The definitions a provider has made so far.
pub(super) struct Validator {
    rate: TicksPerSecond,
    is_initialized: bool,
    strings: Vec<u64>,
    threads: [u64; 4],
}

impl Validator {
    pub fn new(rate: TicksPerSecond) -> Self {
        Self { rate, is_initialized: false, strings: vec![0; 0x8000 / 64], threads: [0; 4] }
    }

    /// Checks a record of the durable region and remembers what it defines.
    pub fn check_durable(&mut self, record: &[u8]) -> Result<(), Fault> {
        match Record::decode(record)? {
            Record::Initialization(initialization) => {
                let (found, expected) = (initialization.ticks_per_second.0.get(), self.rate.0.get());
                if found != expected {
                    return Err(Fault::Rate { found, expected });
                }
                self.is_initialized = true;
                Ok(())
            }
            Record::String(string) if string.index != 0 => define(&mut self.strings, string.index),
            Record::Thread(thread) if thread.index != 0 => define(&mut self.threads, thread.index.into()),
            Record::KernelObject(object) => self.check_named(&object.name, &object.arguments),
            _ => Err(not_allowed(record)),
        }
    }

    /// Checks a record of a rolling region. An event says when it was written: a complete duration at its
    /// end.
    pub fn check_rolling(&self, record: &[u8]) -> Result<Option<u64>, Fault> {
        let emitted_at = match Record::decode(record)? {
            Record::Event(event) => {
                if let EventKind::Unknown { .. } = event.kind {
                    return Err(not_allowed(record));
                }
                self.check_thread(event.thread)?;
                self.check_string(&event.category)?;
                self.check_named(&event.name, &event.arguments)?;
                Some(match event.kind {
                    EventKind::DurationComplete { end } => end.0,
                    _ => event.timestamp.0,
                })
            }
            Record::Blob(blob) => {
                self.check_string(&blob.name)?;
                None
            }
            Record::KernelObject(object) => {
                self.check_named(&object.name, &object.arguments)?;
                None
            }
            Record::Log(log) => {
                self.check_thread(log.thread)?;
                Some(log.timestamp.0)
            }
            Record::UserspaceObject(object) => {
                if let ProcessRef::Index(index) = object.process {
                    self.check_thread(ThreadRef::Index(index))?;
                }
                self.check_named(&object.name, &object.arguments)?;
                None
            }
            Record::Scheduling(scheduling) => {
                if let Scheduling::LegacyContextSwitch { outgoing, incoming, .. } = scheduling {
                    self.check_thread(outgoing)?;
                    self.check_thread(incoming)?;
                }
                self.check_named(&StringRef::Empty, &scheduling.arguments())?;
                Some(scheduling.timestamp().0)
            }
            Record::Profiler(profiler) => {
                self.check_thread(profiler.thread)?;
                Some(profiler.timestamp.0)
            }
            Record::Large(blob) => {
                self.check_string(&blob.category)?;
                self.check_string(&blob.name)?;
                match blob.event {
                    Some(event) => {
                        self.check_thread(event.thread)?;
                        self.check_named(&StringRef::Empty, &event.arguments)?;
                        Some(event.timestamp.0)
                    }
                    None => None,
                }
            }
            _ => return Err(not_allowed(record)),
        };
        if !self.is_initialized {
            return Err(Fault::Uninitialized);
        }
        Ok(emitted_at)
    }

    fn check_named(&self, name: &StringRef<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        self.check_string(name)?;
        for argument in arguments.iter() {
            let argument = argument?;
            self.check_string(&argument.name)?;
            if let ArgumentValue::String(value) = &argument.value {
                self.check_string(value)?;
            }
        }
        Ok(())
    }

    fn check_string(&self, string: &StringRef<'_>) -> Result<(), Fault> {
        match string {
            StringRef::Index(index) if !is_defined(&self.strings, index.get()) => {
                Err(Fault::String { index: index.get() })
            }
            _ => Ok(()),
        }
    }

    fn check_thread(&self, thread: ThreadRef) -> Result<(), Fault> {
        match thread {
            ThreadRef::Index(index) if !is_defined(&self.threads, index.get().into()) => {
                Err(Fault::Thread { index: index.get() })
            }
            _ => Ok(()),
        }
    }
}

fn not_allowed(record: &[u8]) -> Fault {
    Fault::Type { record_type: record.first().map_or(0, |byte| byte & 0xf) }
}

fn is_defined(bits: &[u64], index: u16) -> bool {
    bits.get(usize::from(index / 64)).is_some_and(|word| word & 1 << (index % 64) != 0)
}

fn define(bits: &mut [u64], index: u16) -> Result<(), Fault> {
    if is_defined(bits, index) {
        return Err(Fault::Redefined { index });
    }
    if let Some(word) = bits.get_mut(usize::from(index / 64)) {
        *word |= 1 << (index % 64);
    }
    Ok(())
}
