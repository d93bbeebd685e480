//! The context: one trace of this process into one buffer, from initialize to terminate.

use crate::buffer::definitions::Definitions;
use crate::buffer::region::Region;
use crate::buffer::{Buffer, HeaderWords, definitions};
use crate::session::config::{Categories, Config, Disposition};
#[cfg(not(modelled))]
use crate::session::hook::HOOKS;
use crate::session::hook::Hooks;
use crate::session::run::Run;
use crate::slab::Slabs;
use crate::slab::ahead::Ahead;
use crate::slab::streaming::Streaming;
#[cfg(not(modelled))]
use crate::thread::scope_pages::ScopePages;
use trace_format::buffer::Layout;
use trace_format::categories::selects;

/// The state of one trace. Everything a writer touches is an atomic or behind a lock it only tries.
pub(crate) struct Context {
    config: Config,
    slabs: Slabs,
    definitions: Definitions,
    /// Only for the dispatcher.
    streaming: Streaming,
    /// Only for the dispatcher.
    ahead: Ahead,
    /// What is wanted beside what the configuration says.
    run: Run,
    /// While there is a hook, no site is published.
    hooks: &'static Hooks,
    /// The pages with the scopes that threads have open, if there was room for them.
    #[cfg(not(modelled))]
    scopes: Option<ScopePages>,
}

impl Context {
    /// Lays the buffer out: header, initialization record, name of the process.
    pub fn new(region: Region, layout: Layout, config: Config) -> Self {
        #[cfg(not(modelled))]
        let (region, scopes) = {
            let (region, map) = region.split_scopes();
            let is_sparse = region.backing().is_some();
            let scopes = match map {
                Some(map) => ScopePages::map(map, is_sparse, config.process),
                None => ScopePages::private(config.process),
            };
            (region, scopes)
        };
        let context = Self {
            #[cfg(not(modelled))]
            scopes,
            slabs: Slabs::new(region, layout, config.wake.clone()),
            definitions: Definitions::new(config.process),
            streaming: Streaming::default(),
            ahead: Ahead::default(),
            run: Run::default(),
            #[cfg(not(modelled))]
            hooks: &HOOKS,
            // A model has its own.
            #[cfg(modelled)]
            hooks: Box::leak(Box::new(Hooks::new())),
            config,
        };
        context.begin_definitions();
        context
    }

    /// What the trace was initialized with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The buffer that is written into.
    pub fn buffer(&self) -> &Buffer {
        self.slabs.buffer()
    }

    /// The buffer's slabs.
    pub fn slabs(&self) -> &Slabs {
        &self.slabs
    }

    /// The definitions of strings and threads.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// The stream of halves.
    pub fn streaming(&self) -> &Streaming {
        &self.streaming
    }

    /// Backs the buffer with memory.
    pub fn ahead(&self) -> &Ahead {
        &self.ahead
    }

    /// Which hook there is.
    pub fn hooks(&self) -> &Hooks {
        self.hooks
    }

    /// The pages with the scopes that threads have open, if there was room for them.
    #[cfg(not(modelled))]
    pub fn scopes(&self) -> Option<&ScopePages> {
        self.scopes.as_ref()
    }

    /// In a forked child, and where a thread is stuck in it: no later store goes to shared memory.
    #[cfg(not(modelled))]
    pub fn detach(&self) {
        self.buffer().detach();
        self.scopes.iter().for_each(ScopePages::detach);
    }

    /// What is wanted in the present run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Writes what comes first in a durable region.
    fn begin_definitions(&self) {
        definitions::write_initialization(self.buffer(), self.config.ticks_per_second);
        self.definitions.write_process(self.buffer(), &self.config.process_name);
    }

    /// Forgets what was recorded, and counts it as cleared unless it was saved. No thread may be inside an
    /// event.
    //= docs/buffer.md#dispositions
    pub fn clear(&self, disposition: Disposition) {
        self.streaming.clear(&self.slabs);
        self.slabs.clear();
        if disposition == Disposition::ClearEntire {
            self.definitions.clear();
            self.buffer().clear_durable();
            self.begin_definitions();
        } else {
            definitions::write_initialization(self.buffer(), self.config.ticks_per_second);
        }
    }

    /// Brings the header up to date after the last writer left.
    pub fn finalize(&self) {
        let (wrapped, halves) = self.streaming.unfinished_halves(&self.slabs);
        self.buffer().finalize(wrapped, halves.map(|half| self.slabs.usage_of(half)));
    }

    /// The words of the header as they would be if recording ended now.
    pub fn header_now(&self) -> HeaderWords {
        let (wrapped, halves) = self.streaming.unfinished_halves(&self.slabs);
        self.buffer().header_now(wrapped, halves.map(|half| self.slabs.usage_of(half)))
    }

    /// Recording begins: until it ends the header is not final.
    pub fn begin_run(&self, additional_categories: &[String]) {
        self.run.begin(additional_categories);
        #[cfg(not(modelled))]
        self.scopes.iter().for_each(ScopePages::begin_run);
        self.buffer().begin_run();
        self.ahead.begin();
        self.slabs.resume();
    }

    /// Whether events of a category are wanted, in a run that wants some more than the trace.
    pub fn wants(&self, category: &[u8], additional: &[String]) -> bool {
        if category.is_empty() {
            return false;
        }
        match &self.config.categories {
            Categories::Listed(listed) => selects(listed, additional, category),
            Categories::Filter(is_wanted) => is_wanted(category),
        }
    }
}
