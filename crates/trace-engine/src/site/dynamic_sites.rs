//! Call sites that are registered when they are first passed: those of C and C++, which no section holds.
//!
//! The memory of such a site is zero but for its word, which says that it is on and new, and for its marks,
//! which say which texts are constants of the program. The thread that passes it first says what it is and
//! puts it on the list of its module, which is the executable or a library; from there on it is like any
//! other. A library takes its sites away when it is unloaded: from then on, they stay on without being on a
//! list, and each of their events is judged by itself.
//!
//! Invariants:
//!
//! * **N1** A site that is not new has its texts, and stays where it is until its module leaves.
//! * **N2** A list is only walked and emptied by a thread that holds the lock; sites come at any time.
#![allow(unsafe_code)]

use crate::site::word::NEW;
use crate::site::{ArgName, MAX_ARGUMENTS, OfRun, Site, interned};
use crate::sync::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, SpinLock};
use core::ptr;

/// Modules that have sites on lists.
const MAX_MODULES: usize = 512;

/// An executable or a library.
struct Module {
    /// Identifies the module; 0 in a place that is free.
    handle: AtomicUsize,
    sites: AtomicPtr<Site>,
    /// Whether it will say when it leaves.
    is_watched: AtomicBool,
}

static MODULES: [Module; MAX_MODULES] = [const {
    Module {
        handle: AtomicUsize::new(0),
        sites: AtomicPtr::new(ptr::null_mut()),
        is_watched: AtomicBool::new(false),
    }
}; MAX_MODULES];

/// Behind the last site of a list: a site that is on one has a next.
const END: *mut Site = ptr::without_provenance_mut(64);

/// Held while lists are walked or emptied.
static LISTS: SpinLock = SpinLock::new();

/// What a site is, as the macro says it: texts of at most 32 000 bytes.
#[derive(Clone, Copy, Debug)]
pub struct SiteText<'a> {
    /// The category.
    pub category: &'a [u8],
    /// The event's name.
    pub name: &'a [u8],
}

/// What became of a new site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// It is on a list: as any other from now on.
    Listed {
        /// The caller has to call [`unregister_module`] with the module's handle when it is unloaded.
        watch_module: bool,
    },
    /// Another thread is about to do that, or there are too many modules, or the module has left: each event
    /// is judged by itself.
    Unlisted,
}

/// Whether a site is on no list yet.
///
/// # Safety
/// `site` is a site of this layout that stays where it is meanwhile.
pub(crate) unsafe fn is_new(site: *const Site) -> bool {
    // SAFETY: the word is an atomic that stays where it is.
    unsafe { &(*site).word }.load() & NEW != 0
}

/// Puts a site on the list of its module, if it is new. `handle` is a number of the module's own. `judge` is
/// called once for a new site, and returns a function that says whether the present run wants a category: as
/// long as that exists, a stop waits.
///
/// # Safety
/// `site` is a site of this layout that stays where it is until the module leaves, as do the texts, the names
/// and, at `storage`, memory for as many arguments.
pub(crate) unsafe fn register<W: Fn(&[u8]) -> bool>(
    site: *mut Site,
    text: SiteText<'_>,
    names: &[&[u8]],
    storage: *mut ArgName,
    handle: usize,
    judge: impl FnOnce() -> W,
) -> Registration {
    // SAFETY: the word is an atomic that stays where it is.
    let word = unsafe { &(*site).word };
    if !word.take_new() {
        return if word.load() & NEW == 0 {
            Registration::Listed { watch_module: false }
        } else {
            Registration::Unlisted
        };
    }
    let Some(module) = module(handle) else {
        return Registration::Unlisted;
    };
    // SAFETY: the word is this thread's to finish, so no other thread looks at the rest (N1); the storage is
    // the site's.
    unsafe {
        for (index, name) in names.iter().enumerate() {
            storage.add(index).write(ArgName::of_bytes(name));
        }
        let marks = Site::marks(site);
        let arguments = core::slice::from_raw_parts(storage, names.len());
        Site::describe(site, text.category, text.name, arguments, Some(marks));
    }
    // SAFETY: it is complete now, and only its word and its link change from here on.
    let site = unsafe { &*site };
    // A stop waits for this thread before it switches sites off for the last time.
    let wants = judge();
    let is_wanted = wants(text.category);
    site.word.finish_new(is_wanted);
    let link = ptr::from_ref(site).cast_mut();
    let mut head = module.sites.load(Ordering::Relaxed);
    loop {
        site.next.store(if head.is_null() { END } else { head }, Ordering::Relaxed);
        // SeqCst: one order with the beginning of a run and the walk that switches sites on.
        match module.sites.compare_exchange_weak(head, link, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => break,
            Err(now) => head = now,
        }
    }
    // A run that began or ended meanwhile may have missed the site.
    if wants(text.category) != is_wanted {
        site.word.correct(!is_wanted);
    }
    drop(wants);
    Registration::Listed { watch_module: !module.is_watched.swap(true, Ordering::Relaxed) }
}

/// The place of a module, which it takes if it has none yet.
fn module(handle: usize) -> Option<&'static Module> {
    MODULES.iter().find(|module| {
        let taken = module.handle.compare_exchange(0, handle, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok() || taken == Err(handle)
    })
}

/// Calls a function with each site from this one on. For a thread that holds the lock.
fn walk(first: *mut Site, call: &mut dyn FnMut(&Site)) {
    let mut next = first;
    while !next.is_null() && !ptr::eq(next, END) {
        // SAFETY: sites on a list are complete and stay until it is emptied, for which one must hold the lock
        // (N1, N2).
        let site = unsafe { &*next };
        next = site.next.load(Ordering::Relaxed);
        call(site);
    }
}

/// Calls a function with each site on a list, and with those that were made at run time.
pub(crate) fn for_each(call: &mut dyn FnMut(&Site)) {
    {
        let _lists = LISTS.lock();
        for module in MODULES.iter().take_while(|module| module.handle.load(Ordering::Acquire) != 0) {
            walk(module.sites.load(Ordering::SeqCst), call);
        }
    }
    interned::for_each(call);
}

/// A module is about to be unloaded: nothing refers to its sites any more. Those of its events that come yet
/// are judged one by one.
pub fn unregister_module(handle: usize) {
    let _lists = LISTS.lock();
    let Some(module) = MODULES.iter().find(|module| module.handle.load(Ordering::Acquire) == handle) else {
        return;
    };
    walk(module.sites.swap(ptr::null_mut(), Ordering::SeqCst), &mut |site: &Site| site.word.unlist());
    module.is_watched.store(false, Ordering::Relaxed);
}

/// In a forked child: the thread that held the lock does not exist here.
pub(crate) fn release_in_child() {
    LISTS.release_in_child();
}

/// Calls a function with a site that is on no list and always on, for one event that was judged already. The
/// site ends with the call:
///
/// ```compile_fail,E0521
/// # use trace_engine::{Site, ffi::{SiteText, with_unlisted}};
/// let mut kept: Option<&'static Site> = None;
/// with_unlisted(SiteText { category: b"c", name: b"n" }, &[], |site| kept = Some(site));
/// ```
///
/// and so do its texts:
///
/// ```compile_fail,E0521
/// # use trace_engine::ffi::{SiteText, with_unlisted};
/// let mut kept: &'static [u8] = b"";
/// with_unlisted(SiteText { category: b"c", name: b"n" }, &[], |site| kept = site.name());
/// ```
///
/// All of its texts count as those of the program's run.
pub fn with_unlisted(text: SiteText<'_>, names: &[&[u8]], call: impl FnOnce(&Site)) {
    with_site_of(text, names, |site| call(&site.with_of_run(OfRun::ALL)));
}

/// As [`with_unlisted`], for other texts of a listed site: what the program has marked as constant there is
/// constant here.
pub fn with_unlisted_of(listed: &Site, text: SiteText<'_>, names: &[&[u8]], call: impl FnOnce(&Site)) {
    with_site_of(text, names, |site| call(&site.with_of_run(listed.of_run_of_others())));
}

/// As [`with_unlisted`], with texts that are constants of the program.
pub fn with_unlisted_constants(text: SiteText<'_>, names: &[&[u8]], call: impl FnOnce(&Site)) {
    with_site_of(text, names, |site| call(&site));
}

fn with_site_of(text: SiteText<'_>, names: &[&[u8]], call: impl FnOnce(Site)) {
    let mut arguments = [const { ArgName::new("") }; MAX_ARGUMENTS];
    let arguments = &mut arguments[..names.len().min(MAX_ARGUMENTS)];
    for (argument, name) in arguments.iter_mut().zip(names) {
        // SAFETY: the names outlive the call, and the argument is not kept.
        *argument = unsafe { ArgName::of_bytes(name) };
    }
    let mut site = Site::always_on();
    // SAFETY: the site is this function's alone, and what describes it outlives the call.
    unsafe { Site::describe(&raw mut site, text.category, text.name, arguments, None) };
    call(site);
}

/// Whether a site was registered with just these strings: by where they are, or else by their bytes.
pub fn is_described_by(site: &Site, text: SiteText<'_>, names: &[&[u8]]) -> bool {
    let is_same = |known: &[u8], text: &[u8]| core::ptr::eq(known, text) || known == text;
    let arguments = site.arguments();
    is_same(site.category(), text.category)
        && is_same(site.name(), text.name)
        && arguments.len() == names.len()
        && arguments.iter().zip(names).all(|(argument, name)| is_same(argument.text(), name))
}
