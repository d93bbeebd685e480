//! The strings of a call site in a record: by index, or inline.

use crate::buffer::definitions::{Text, is_inline};
use crate::buffer::record_writer::RecordWriter;
use crate::record::arguments::{Inline, Interned, Values};
use crate::record::event::Event;
use crate::session::context::Context;
use crate::site::{ArgName, Site};
use crate::sys;
use crate::thread::registry;
#[cfg(not(modelled))]
use crate::{
    record::privacy::REDACTED,
    site::{MAX_ARGUMENTS, OfRun},
};
use trace_format::event;
use zx_ticks::{self as ticks, Source};

/// How the strings of a site stand in a record.
pub(crate) struct SiteStrings<'a> {
    pub category: Text<'a>,
    pub name: Text<'a>,
    pub arguments_inline: bool,
    /// The names of arguments.
    names: &'a [ArgName],
    /// Texts of the program's run are replaced.
    pub is_private: bool,
    /// Words of category and name, as far as they are inline.
    pub inline_words: usize,
}

impl<'a> SiteStrings<'a> {
    /// The header of an event of so many words and arguments.
    pub(crate) fn event_header(&self, event: &Event, words: usize, arguments: usize, thread: u8) -> u64 {
        let (category, name) = (self.category.reference(), self.name.reference());
        event::header(event.event_type, words as u64, arguments as u64, thread, category, name)
    }

    /// Words of the arguments, with their names as far as they are inline.
    pub(crate) fn argument_words(&self, values: &impl Values) -> usize {
        let names = if self.arguments_inline { values.name_words(self.names) } else { 0 };
        names + if self.is_private { values.redacted_words() } else { values.words() }
    }

    /// Category and name, as far as they are inline.
    pub(crate) fn write(&self, record: &mut RecordWriter) {
        self.category.write(record);
        self.name.write(record);
    }

    /// The arguments, with their names as they stand in the record.
    pub(crate) fn write_arguments(&self, values: &impl Values, record: &mut RecordWriter) {
        match (self.is_private, self.arguments_inline) {
            (false, false) => values.write(0, &Interned(self.names), record),
            (false, true) => values.write(0, &Inline(self.names), record),
            (true, false) => values.write_redacted(0, &Interned(self.names), record),
            (true, true) => values.write_redacted(0, &Inline(self.names), record),
        }
    }

    /// Gives the site's strings indices where that is possible, and publishes them if it is for all. Where it
    /// never will be for all, the references are kept with the site, so that its next event neither tries the
    /// lock of the table nor looks anything up.
    //= docs/buffer.md#a-full-durable-region
    pub(crate) fn of(context: &Context, site: &'a Site) -> Self {
        if let Some((category, name)) = site.published() {
            return Self::new(site, Text::Index(category), Text::Index(name), false, false);
        }
        let is_private = context.config().privacy;
        #[cfg(not(modelled))]
        if is_private && site.of_run() != OfRun::NONE {
            return Self::redacted(context, site);
        }
        if let Some((category, name)) = site.settled() {
            let category = Text::of_reference(category, site.category());
            let name = Text::of_reference(name, site.name());
            let arguments_inline = site.arguments().iter().any(|argument| is_inline(argument.reference()));
            return Self::new(site, category, name, arguments_inline, is_private);
        }
        let (definitions, buffer) = (context.definitions(), context.buffer());
        let known_category = definitions.try_intern(buffer, site.category());
        let known_name = definitions.try_intern(buffer, site.name());
        // Whether all that was found out about the strings holds as long as the site is on.
        let mut is_settled = known_category.is_some() && known_name.is_some();
        let mut arguments_inline = false;
        for argument in site.arguments() {
            let text = definitions.try_intern(buffer, argument.text());
            arguments_inline |= !matches!(text, Some(Text::Index(_)));
            // Only what holds: another thread may be using it already.
            match text {
                Some(text) => argument.set_reference(text.reference()),
                None => is_settled = false,
            }
        }
        let category = known_category.unwrap_or(Text::Inline(site.category()));
        let name = known_name.unwrap_or(Text::Inline(site.name()));
        if let (Text::Index(category), Text::Index(name), false) = (category, name, arguments_inline) {
            if !context.config().thread_time
                && !is_private
                && context.config().mirror.is_none()
                && !context.hooks().is_set()
                && sys::register_membarrier()
                // Programs in other languages know no other clock, and find their blocks in one way.
                && (!site.is_dynamic() || registry::has_mirror() && ticks::source() != Source::Monotonic)
            {
                site.publish(category, name);
                if context.hooks().is_set() {
                    // It was set meanwhile, and does not wait longer than a second for this thread.
                    site.unpublish();
                }
            }
        } else if is_settled {
            site.settle(category.reference(), name.reference());
        }
        Self::new(site, category, name, arguments_inline, is_private)
    }

    fn new(
        site: &'a Site,
        category: Text<'a>,
        name: Text<'a>,
        arguments_inline: bool,
        is_private: bool,
    ) -> Self {
        let inline_words = category.words() + name.words();
        Self { category, name, arguments_inline, names: site.arguments(), is_private, inline_words }
    }

    /// The strings of a site in a private recording: what is no constant is redacted.
    #[cfg(not(modelled))]
    fn redacted(context: &Context, site: &'a Site) -> Self {
        static NAMES: [ArgName; MAX_ARGUMENTS] = [const { ArgName::new(REDACTED) }; MAX_ARGUMENTS];
        let of_run = site.of_run();
        let text = |is_of_run: bool, text: &'a [u8]| {
            context.definitions().intern(context.buffer(), if is_of_run { REDACTED.as_bytes() } else { text })
        };
        let (category, name) = (text(of_run.category, site.category()), text(of_run.name, site.name()));
        let mut strings = Self::new(site, category, name, true, true);
        if of_run.arguments {
            strings.names = &NAMES[..site.arguments().len()];
        }
        strings
    }
}
