//! Writes what remains of each record.

use super::archive::{Archive, Piece};
use super::arguments::{Holder, List, WrittenArguments, text_of};
use super::selection::Selection;
use super::survey::{Survey, process_of};
use super::texts::Texts;
use super::{Filtered, Options};
use std::collections::BTreeMap;
use std::io::{self, Write};
use trace_format::blob::Blob;
use trace_format::event::{self, EventKind};
use trace_format::function::FunctionRecord;
use trace_format::kernel_object::{KernelObject, TYPE_PROCESS, TYPE_THREAD};
use trace_format::large::{LargeBlob, LargeBlobEvent};
use trace_format::log::Log;
use trace_format::profiler::{Profiler, ProfilerKind};
use trace_format::record::Record;
use trace_format::scheduling;
use trace_format::units::ThreadKoid;
use trace_format::userspace_object::{ProcessRef, UserspaceObject};
use trace_reader::item::Scheduling;
use trace_reader::{Arguments, Balance, Event, Item, Mark, Resolved, Text, TextKey, Thread, Time};

/// Why a record is not in the output although it was not to be removed.
const TOO_LARGE: &str = "records that are too large";
const LATER_EVENTS: &str = "events of later versions";
const LATER_RECORDS: &str = "records of later versions";
const MALFORMED: &str = "malformed records";
const FIBERS: &str = "switches of fibers";
const OBJECTS: &str = "objects of processes";
const PROVIDERS: &str = "records of too many providers";

/// The pass that writes.
pub(super) struct Rewriter<'a, W> {
    archive: Archive<W>,
    options: &'a Options,
    survey: &'a Survey,
    selection: Selection<'a>,
    texts: Texts,
    filtered: Filtered,
    skipped: BTreeMap<&'static str, u64>,
}

impl<'a, W: Write> Rewriter<'a, W> {
    pub fn new(output: W, options: &'a Options, survey: &'a Survey) -> Self {
        Self {
            archive: Archive::new(output),
            options,
            survey,
            selection: Selection::new(options, &survey.processes),
            texts: Texts::new(),
            filtered: Filtered::default(),
            skipped: BTreeMap::new(),
        }
    }

    /// The results.
    pub fn finish(mut self) -> io::Result<Filtered> {
        self.archive.finish()?;
        let skipped = self.skipped.into_iter().map(|(kind, count)| (kind.to_owned(), count));
        self.filtered.summary.skipped = skipped.collect();
        self.filtered.replaced_texts = self.texts.replaced;
        Ok(self.filtered)
    }

    /// Takes a record of the input.
    pub fn record(&mut self, record: &Resolved<'_>) -> io::Result<()> {
        self.archive.check()?;
        let id = record.provider;
        if !self.archive.has_room(id) {
            self.skip(PROVIDERS);
            return Ok(());
        }
        if Balance::counts(&record.item) {
            self.archive.count(id);
        }
        let is_kept = self.selection.keeps(record) && self.is_shown(record);
        match &record.item {
            Item::Magic => self.archive.part(),
            Item::ProviderInfo { name } => {
                let piece = self.name(*name);
                match &piece {
                    Some(placeholder) => self.archive.introduce(id, placeholder.as_bytes()),
                    None => self.archive.introduce(id, name.as_bytes()),
                }
                self.show_provider(record);
            }
            Item::ProviderSection => self.show_provider(record),
            Item::ProviderEvent { about, event } => self.archive.remark(*about, *event),
            Item::Initialization { rate } => self.archive.set_rate(id, *rate),
            Item::Loss(loss) => {
                let is_own = self.options.processes.is_empty() || self.selection.is_at_home(id);
                if is_own || self.archive.is_shown(id) {
                    self.archive.loss(loss);
                }
            }
            Item::Ledger(ledger) => self.archive.ledger(ledger),
            Item::LargeBlobPart { payload } => self.archive.payload(payload),
            // They are defined where they are used.
            Item::String { .. } | Item::Thread { .. } | Item::FurtherArguments(_) | Item::Damage { .. } => {}
            Item::Unknown { .. } => self.skip(LATER_RECORDS),
            Item::Malformed { .. } => self.skip(MALFORMED),
            Item::Event(event) => self.event(record, event, is_kept),
            _ => self.other(record, is_kept),
        }
        Ok(())
    }

    /// Whether the name of an object is kept, or the other parts of what an event belongs to.
    fn is_shown(&self, record: &Resolved<'_>) -> bool {
        if !self.options.selects() {
            return true;
        }
        let survey = self.survey;
        match &record.item {
            Item::Event(event) => survey.is_whole(event, self.options),
            Item::KernelObject { object_type: TYPE_PROCESS, koid, .. } => {
                survey.shows_process(*koid, self.options)
            }
            Item::KernelObject { object_type: TYPE_THREAD, koid, arguments, .. } => {
                survey.shows_thread(*koid, process_of(arguments), self.options)
            }
            Item::KernelObject { arguments, .. } => {
                process_of(arguments).is_some_and(|process| survey.shows_process(process, self.options))
            }
            Item::UserspaceObject { process, .. } => survey.shows_process(*process, self.options),
            _ => true,
        }
    }

    /// Begins a section of a provider of the input. In a selection, it begins with its first record.
    fn show_provider(&mut self, record: &Resolved<'_>) {
        if !self.options.selects() {
            self.archive.begin(record.provider);
        }
    }

    /// The placeholder of a text, if it is replaced.
    fn name(&mut self, text: Text<'_>) -> Option<super::texts::Placeholder> {
        let is_replaced = self.options.redacts_texts && !text.as_bytes().is_empty();
        is_replaced.then(|| self.texts.placeholder(text.as_bytes()))
    }

    fn event(&mut self, record: &Resolved<'_>, event: &Event<'_>, is_kept: bool) {
        if !is_kept {
            self.filtered.removed_events += 1;
            return;
        }
        if let EventKind::Unknown { .. } = event.kind {
            self.skip(LATER_EVENTS);
            return;
        }
        let id = record.provider;
        let holder = match event.ending() {
            Some(_) => Holder::Open,
            None if Mark::of(id, event).is_some() => Holder::Mark,
            None => Holder::Event,
        };
        let is_counter = matches!(event.kind, EventKind::Counter { .. });
        if is_counter && holder.loses_samples(self.options, &event.arguments) {
            self.filtered.removed_events += 1;
            return;
        }
        let arguments = self.arguments(record, &event.arguments, holder);
        let thread = self.archive.thread(id, event.thread);
        let category = self.archive.text(id, event.category, event.keys.0);
        let name = self.archive.text(id, event.name, event.keys.1);
        let (timestamp, kind) = (event.time.ticks, event.kind);
        let none = trace_format::argument::Arguments::from_slice(&[]);
        let event = event::Event { timestamp, thread, category, name, kind, arguments: none };
        if self.archive.write_event(id, event, &arguments.all()) {
            self.filtered.summary.events += u64::from(holder != Holder::Mark);
        } else {
            self.skip(TOO_LARGE);
        }
    }

    /// A record that is no event.
    fn other(&mut self, record: &Resolved<'_>, is_kept: bool) {
        if !is_kept {
            self.filtered.removed_records += 1;
            return;
        }
        match self.rewrite(record) {
            Ok(()) => self.filtered.records += 1,
            Err(why) => self.skip(why),
        }
    }

    fn rewrite(&mut self, record: &Resolved<'_>) -> Result<(), &'static str> {
        let id = record.provider;
        match record.item {
            Item::KernelObject { object_type, koid, name, ref arguments } => {
                let name = self.text(record, name);
                let arguments = self.arguments(record, arguments, Holder::Other);
                let name = name.reference();
                self.write_with(record, &[arguments.all(), arguments.numbers()], |arguments| {
                    Record::KernelObject(KernelObject { object_type, koid, name, arguments })
                })
            }
            Item::UserspaceObject { process, address, name, ref arguments } => {
                let name = self.text(record, name);
                let arguments = self.arguments(record, arguments, Holder::Other);
                let thread = self.archive.thread_of(id, process).ok_or(OBJECTS)?;
                let (process, name) = (ProcessRef::Index(thread), name.reference());
                self.write_with(record, &[arguments.all(), arguments.numbers()], |arguments| {
                    Record::UserspaceObject(UserspaceObject { process, address, name, arguments })
                })
            }
            Item::Scheduling { time, ref kind, ref arguments } => self.switch(record, time, kind, arguments),
            Item::Log { time, thread, message } => {
                let replaced = self.name(message);
                let thread = self.archive.thread(id, thread);
                let message = replaced.as_ref().map_or(message.as_bytes(), |replaced| replaced.as_bytes());
                self.write(record, &Record::Log(Log { timestamp: time.ticks, thread, message }))
            }
            Item::Profiler { time, thread, kind } => self.profiler(record, time, thread, kind),
            Item::Function(function) => {
                let replaced = self.name(Text(function.name));
                let name = replaced.as_ref().map_or(function.name, |replaced| replaced.as_bytes());
                let bytes = FunctionRecord { name, ..function }.to_bytes();
                self.write(record, &Record::Blob(bytes.blob()))
            }
            Item::Blob { name, blob_type, payload } => {
                let name = self.text(record, name);
                let payload = if self.keeps_payloads() { payload } else { b"" };
                self.write(record, &Record::Blob(Blob { blob_type, name: name.reference(), payload }))
            }
            Item::LargeBlob { category, name, ref event, payload, payload_bytes } => {
                self.large(record, (category, name), event.as_ref(), (payload, payload_bytes))
            }
            // All others are handled before.
            _ => Ok(()),
        }
    }

    fn switch(
        &mut self,
        record: &Resolved<'_>,
        time: Time,
        kind: &Scheduling,
        arguments: &Arguments<'_>,
    ) -> Result<(), &'static str> {
        let timestamp = time.ticks;
        let arguments = self.arguments(record, arguments, Holder::Other);
        let lists = [arguments.all(), arguments.numbers()];
        match *kind {
            Scheduling::ContextSwitch { cpu, outgoing_state, outgoing, incoming } => {
                let (outgoing, incoming) = (ThreadKoid(outgoing), ThreadKoid(incoming));
                self.write_with(record, &lists, |arguments| {
                    Record::Scheduling(scheduling::Scheduling::ContextSwitch {
                        timestamp,
                        cpu,
                        outgoing_state,
                        outgoing,
                        incoming,
                        arguments,
                    })
                })
            }
            Scheduling::ThreadWakeup { cpu, thread } => {
                let thread = ThreadKoid(thread);
                self.write_with(record, &lists, |arguments| {
                    Record::Scheduling(scheduling::Scheduling::ThreadWakeup {
                        timestamp,
                        cpu,
                        thread,
                        arguments,
                    })
                })
            }
            Scheduling::LegacyContextSwitch {
                cpu,
                outgoing_state,
                outgoing,
                incoming,
                outgoing_priority,
                incoming_priority,
            } => {
                let outgoing = self.archive.thread(record.provider, outgoing);
                let incoming = self.archive.thread(record.provider, incoming);
                let switch = scheduling::Scheduling::LegacyContextSwitch {
                    timestamp,
                    cpu,
                    outgoing_state,
                    outgoing,
                    incoming,
                    outgoing_priority,
                    incoming_priority,
                };
                self.write(record, &Record::Scheduling(switch))
            }
            Scheduling::FiberSwitch { .. } => Err(FIBERS),
        }
    }

    fn profiler(
        &mut self,
        record: &Resolved<'_>,
        time: Time,
        thread: Thread,
        kind: ProfilerKind<'_>,
    ) -> Result<(), &'static str> {
        let replaced = match kind {
            ProfilerKind::Module { name, .. } => self.name(Text(name)),
            _ => None,
        };
        let kind = match (kind, &replaced) {
            // A build id names the file as well.
            (ProfilerKind::Module { id, .. }, Some(replaced)) => {
                ProfilerKind::Module { id, name: replaced.as_bytes(), build_id: b"" }
            }
            (ProfilerKind::Module { id, name, .. }, None) if self.options.redacts_texts => {
                ProfilerKind::Module { id, name, build_id: b"" }
            }
            (kind, _) => kind,
        };
        let thread = self.archive.thread(record.provider, thread);
        self.write(record, &Record::Profiler(Profiler { timestamp: time.ticks, thread, kind }))
    }

    fn large(
        &mut self,
        record: &Resolved<'_>,
        (category, name): (Text<'_>, Text<'_>),
        event: Option<&(Time, Thread, Arguments<'_>)>,
        (payload, payload_bytes): (&[u8], u64),
    ) -> Result<(), &'static str> {
        let id = record.provider;
        let category = self.archive.text(id, category, TextKey::NONE);
        let name = self.archive.text(id, name, TextKey::NONE);
        let payload_bytes = if self.keeps_payloads() { payload_bytes } else { 0 };
        let is_begun = match event {
            Some((time, thread, arguments)) => {
                let arguments = self.arguments(record, arguments, Holder::Event);
                let thread = self.archive.thread(id, *thread);
                let list = arguments.cut();
                let arguments = trace_format::argument::Arguments::from_slice(&list);
                let event = Some(LargeBlobEvent { timestamp: time.ticks, thread, arguments });
                let blob = LargeBlob { category, name, event, payload: b"" };
                self.archive.begin_large(id, &blob, payload_bytes)
            }
            None => {
                let blob = LargeBlob { category, name, event: None, payload: b"" };
                self.archive.begin_large(id, &blob, payload_bytes)
            }
        };
        self.archive.payload(payload);
        if is_begun { Ok(()) } else { Err(TOO_LARGE) }
    }

    /// Whether blobs keep their contents.
    const fn keeps_payloads(&self) -> bool {
        !self.options.strips_arguments && !self.options.redacts_texts
    }

    fn arguments<'b>(
        &mut self,
        record: &Resolved<'_>,
        arguments: &Arguments<'b>,
        holder: Holder,
    ) -> WrittenArguments<'b> {
        let of = (self.options, record.provider);
        let written = WrittenArguments::new(arguments, holder, of, &mut self.archive, &mut self.texts);
        self.filtered.removed_arguments += written.removed;
        written
    }

    /// A name that stands in its record, or its placeholder.
    fn text<'b>(&mut self, record: &Resolved<'_>, text: Text<'b>) -> Piece<'b> {
        let text = (text, TextKey::NONE);
        text_of(self.options, record.provider, text, &mut self.archive, &mut self.texts)
    }

    fn write(&mut self, record: &Resolved<'_>, written: &Record<'_>) -> Result<(), &'static str> {
        if self.archive.write(record.provider, written) { Ok(()) } else { Err(TOO_LARGE) }
    }

    /// Writes a record with the first of these lists of arguments with which it is not too large.
    fn write_with<'b, 'c: 'b>(
        &mut self,
        record: &Resolved<'_>,
        lists: &'b [List<'c>; 2],
        of: impl Fn(trace_format::argument::Arguments<'b>) -> Record<'b>,
    ) -> Result<(), &'static str> {
        let mut written = lists.iter().map(|list| {
            self.archive.write(record.provider, &of(trace_format::argument::Arguments::from_slice(list)))
        });
        if written.any(|is_written| is_written) { Ok(()) } else { Err(TOO_LARGE) }
    }

    fn skip(&mut self, what: &'static str) {
        *self.skipped.entry(what).or_default() += 1;
    }
}
