//! Recording from a program's first line on, into a buffer of the program's own: until a manager's recording
//! goes on with it, or until the program ends.
//!
//! A program asks for it before it makes its provider. Its user can ask for it, too: with the variable
//! `TRACE_STARTUP`, which every provider looks at when it is made, and programs in C and C++ look at when the
//! library is loaded.
//!
//! ```no_run
//! use trace_provider::{TraceProvider, startup};
//!
//! startup::begin_by_arguments()?; // --trace-startup=app,db*
//! let _provider = TraceProvider::new("my-app");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! When a recording of a manager begins, or is running already, the program goes on in the manager's buffer,
//! and hands its own one over. If that never happens, `trace recover` writes an archive of it, however the
//! program has ended.
//= docs/recording.md#from-the-first-line

pub(crate) mod directory;
mod room;

use crate::linux::lock::Mutex;
use crate::linux::provider::has_one_thread;
use crate::linux::unrecorded::Unrecorded;
use crate::linux::{atrace, buffer, config, errand, fork};
pub use crate::startup_options::Options;
pub(crate) use directory::Directory;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
pub use trace_engine::BufferMode;
use trace_engine::engine::{self, Engine};
use trace_engine::{Categories, Disposition};
use trace_format::scopes::SCOPES_BYTES;
use trace_format::shown::Shown;
use zx_sim::environment::variable;
use zx_sim::{Vmo, debuglog, liveness};

/// Categories to record from the start, separated by commas.
const CATEGORIES_VARIABLE: &str = "TRACE_STARTUP";
/// `oneshot` or `circular`.
const MODE_VARIABLE: &str = "TRACE_STARTUP_MODE";
/// The file for a program's end; `%p` in it is the number of the process.
const FILE_VARIABLE: &str = "TRACE_STARTUP_FILE";
/// Size of the buffer, in MiB.
const SIZE_VARIABLE: &str = "TRACE_STARTUP_BUFFER_SIZE";
/// The flag of programs that call [`begin_by_arguments`].
const FLAG: &str = "--trace-startup";

/// Bytes of a mebibyte.
const MEBIBYTE: u64 = 1 << 20;
/// The largest buffer: a manager may have to copy it.
const MAX_MEBIBYTES: u64 = 64;
/// How long the end of a recording waits for threads that are inside an event.
const STOP_WAIT: Duration = Duration::from_secs(1);
/// How often a recording tries to go over to the manager's buffer, while a thread does not leave its event.
const ATTEMPTS: u32 = 5;

/// Without it, what follows is left out of the program.
const IS_THERE: bool = cfg!(feature = "startup");

/// A recording that no manager has.
struct Recording {
    /// A forked child has none of its parent's.
    process: u32,
    engine: Engine,
    directory: Directory,
    mode: BufferMode,
    ticks_per_second: u64,
    purpose: Purpose,
    /// It has the name of the program's provider.
    is_named: bool,
    /// The working directory when it began; empty if it has none.
    begun_in: PathBuf,
}

/// What a recording is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For a manager's recording, or for `trace recover`.
    Archive,
    /// For the program, whatever else has it.
    Program,
    /// To be printed: it is deleted in the end.
    Print,
}

static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);
/// There has been one: a library that is unloaded before may leave nothing behind, such as handlers of forks.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
/// The process that has looked at its environment: its [generation](engine::generation).
static LOOKED: Mutex<u32> = Mutex::new(0);

/// Begins to record. Events on all threads are recorded from when this returns.
///
/// # Errors
/// The program is being recorded already; the options make no sense; or there is no directory, or no memory,
/// for the buffer.
pub fn begin(options: &Options) -> io::Result<()> {
    begin_as(None, options, Purpose::Archive).map_err(io::Error::other)
}

/// Begins to record, if an argument of this program is `--trace-startup=CATEGORIES`, or `--trace-startup` for
/// all categories. Returns whether one is.
///
/// # Errors
/// As [`begin`].
pub fn begin_by_arguments() -> io::Result<bool> {
    let arguments = std::env::args_os();
    let asked = arguments.filter_map(|argument| categories_of(argument.to_str()?).map(str::to_owned)).next();
    match asked {
        Some(categories) => begin(&Options::of(&categories)).map(|()| true),
        None => Ok(false),
    }
}

/// The categories of the flag, if an argument is that: for programs that read their arguments themselves.
#[must_use]
pub fn categories_of(argument: &str) -> Option<&str> {
    match argument.strip_prefix(FLAG)? {
        "" => Some(""),
        rest => rest.strip_prefix('='),
    }
}

/// Begins to record, if the environment has `TRACE_STARTUP`, and this process has not looked for it before;
/// returns whether the process is recorded then; false without the variable. From now on a forked child looks
/// at its first event. Every provider does this when it is made, and the library for C when it is loaded,
/// ahead of the program's own constructors.
//= docs/recording.md#from-the-first-line
pub fn begin_by_environment() -> bool {
    if !is_asked_for() {
        return false;
    }
    engine::join_if_new_child();
    fork::register_children();
    // A constructor of a library that is being loaded would wait for a thread in vain.
    errand::here(|| begin_by_environment_as(None));
    is_recording()
}

fn is_asked_for() -> bool {
    variable(CATEGORIES_VARIABLE).is_some_and(|categories| !categories.is_empty())
}

/// As [`begin_by_environment`], for a provider of this name. A second thread waits for the first.
pub(crate) fn begin_by_environment_as(name: Option<&str>) {
    if !IS_THERE {
        return;
    }
    let is_unnamed =
        || with_recording(|recording| recording.as_ref().is_some_and(|recording| !recording.is_named));
    if !is_asked_for() {
        engine::without_forks(|| *LOOKED.lock() = engine::generation());
        if name.is_none() || !is_unnamed() {
            return;
        }
    }
    prepare();
    let name = name.map(str::to_owned);
    let begun = errand::run(move || {
        // A child would find the lock taken.
        engine::without_forks(|| {
            let mut looked = LOOKED.lock();
            let is_new = *looked != engine::generation();
            *looked = engine::generation();
            let begun = if is_new { look(name.as_deref()) } else { Ok(()) };
            with_recording(|recording| {
                let unnamed = recording.as_mut().filter(|recording| !recording.is_named);
                if let (Some(recording), Some(name)) = (unnamed, name) {
                    recording.directory.name_provider(&name);
                    recording.is_named = true;
                }
            });
            begun
        })
    });
    if let Some(Err(reason)) = begun {
        debuglog::write_for_process(&format!("trace: not recorded from the start: {reason}"));
    }
}

/// What has to be done on the thread that asks for a recording.
fn prepare() {
    liveness::prepare();
    if has_one_thread() {
        engine::prepare();
    }
}

fn look(name: Option<&str>) -> Result<(), Unrecorded> {
    let text = |name| variable(name).map(|value| value.to_string_lossy().into_owned());
    let Some(categories) = text(CATEGORIES_VARIABLE).filter(|categories| !categories.is_empty()) else {
        return Ok(());
    };
    let options = options_of(&categories, text(MODE_VARIABLE), text(SIZE_VARIABLE))?;
    if is_recording() { Ok(()) } else { begin_as(name, &options, Purpose::Archive) }
}

fn wrong(name: &'static str, problem: String) -> Unrecorded {
    Unrecorded::Option { name, problem }
}

fn options_of(categories: &str, mode: Option<String>, size: Option<String>) -> Result<Options, Unrecorded> {
    let mut options = Options::of(categories);
    if let Some(problem) = options.problem() {
        return Err(wrong(CATEGORIES_VARIABLE, format!("has {problem}")));
    }
    if options.categories.is_empty() {
        return Err(wrong(CATEGORIES_VARIABLE, "has no category; * is all".to_owned()));
    }
    options.mode = match mode.as_deref() {
        None | Some("" | "oneshot") => BufferMode::Oneshot,
        Some("circular") => BufferMode::Circular,
        Some(other) => {
            return Err(wrong(MODE_VARIABLE, format!("is \"{other}\", expected oneshot or circular")));
        }
    };
    if let Some(size) = size.filter(|size| !size.is_empty()) {
        let mebibytes = size.parse().ok();
        options.buffer_mebibytes = mebibytes.ok_or_else(|| {
            wrong(SIZE_VARIABLE, format!("is \"{size}\", expected a number of MiB up to 64"))
        })?;
    }
    Ok(options)
}

/// Whether the program is recorded, and no manager has the recording.
pub(crate) fn is_recording() -> bool {
    IS_THERE && with_recording(|recording| recording.is_some())
}

/// Calls a function with this process's recording.
fn with_recording<R>(call: impl FnOnce(&mut Option<Recording>) -> R) -> R {
    // A child would find the lock taken.
    engine::without_forks(|| {
        let mut recording = RECORDING.lock();
        if recording.as_ref().is_some_and(|recording| recording.process != engine::generation()) {
            // Of a parent, which has the directory and the buffer.
            std::mem::forget(recording.take());
        }
        call(&mut recording)
    })
}

fn take() -> Option<Recording> {
    with_recording(Option::take)
}

/// Begins to record as a provider of this name, or else of the process's until there is a provider.
pub(crate) fn begin_as(name: Option<&str>, options: &Options, purpose: Purpose) -> Result<(), Unrecorded> {
    // Its parent's provider is to be this child's, too, whatever it records first.
    engine::join_if_new_child();
    zx_sim::guest::loaded::stay();
    HAS_BEGUN.store(true, Ordering::Relaxed);
    prepare();
    let (name, options) = (name.map(str::to_owned), options.clone());
    // A child would have the lock's descriptor, or its page, or the buffer.
    let begin = move || engine::without_forks(|| begin_without_forks(name.as_deref(), &options, purpose));
    errand::run(begin).unwrap_or(Err(Unrecorded::NoDirectory))
}

fn begin_without_forks(name: Option<&str>, options: &Options, purpose: Purpose) -> Result<(), Unrecorded> {
    if options.mode == BufferMode::Streaming {
        return Err(Unrecorded::Streaming);
    }
    if !(1..=MAX_MEBIBYTES).contains(&options.buffer_mebibytes) {
        return Err(Unrecorded::Mebibytes { found: options.buffer_mebibytes, limit: MAX_MEBIBYTES });
    }
    if let Some(problem) = options.problem() {
        return Err(wrong("the list of categories", format!("has {problem}")));
    }
    if engine::state() != engine::State::Idle {
        return Err(Unrecorded::Already { by: "" });
    }
    let process_name = zx_sim::process_name();
    let of = name.unwrap_or(&process_name);
    let (directory, vmo) = Directory::create(of, options.mode, options.buffer_mebibytes * MEBIBYTE)?;
    let ticks_per_second = directory.ticks_per_second();
    let config = trace_engine::Config {
        categories: Categories::Listed(options.categories.clone()),
        thread_time: options.thread_time,
        ..trace_engine::Config::new(zx_sim::process_koid(), process_name, ticks_per_second)
    };
    let region = buffer::region(&vmo, SCOPES_BYTES).map_err(Unrecorded::from);
    let begun = region.and_then(|region| {
        let engine = engine::initialize(region, options.mode, config)?;
        engine.start(Disposition::ClearEntire, &[])?;
        Ok(engine)
    });
    let engine = match begun {
        Ok(engine) => engine,
        Err(reason) => {
            directory.delete();
            return Err(reason);
        }
    };
    config::set_config(Some(config::Config { mode: options.mode, categories: options.categories.clone() }));
    atrace::want(true);
    let process = engine::generation();
    // The program may go elsewhere before it ends.
    let begun_in = std::env::current_dir().unwrap_or_default();
    let mode = options.mode;
    let is_named = name.is_some() || purpose != Purpose::Archive;
    let recording =
        Recording { process, engine, directory, mode, ticks_per_second, purpose, is_named, begun_in };
    with_recording(|none| *none = Some(recording));
    Ok(())
}

/// The buffer, its size, the mode and the rate of a recording that goes on.
#[cfg(feature = "local")]
pub(crate) fn buffer() -> Option<(Vmo, u64, BufferMode, u64)> {
    let (file, mode, rate) = with_recording(|recording| {
        let recording = recording.as_ref()?;
        Some((recording.directory.buffer(), recording.mode, recording.ticks_per_second))
    })?;
    let vmo = Vmo::open(&file).ok()?;
    let size = vmo.size().ok()?.saturating_sub(SCOPES_BYTES);
    Some((vmo, size, mode, rate))
}

/// Calls a function with the directory of a recording of the program's own that goes on.
#[cfg(feature = "local")]
pub(crate) fn with_local<R>(call: impl FnOnce(Option<&std::path::Path>) -> R) -> R {
    with_recording(|recording| {
        let local = recording.as_ref().filter(|recording| recording.purpose == Purpose::Program);
        call(local.map(|local| local.directory.path()))
    })
}

/// Ends a recording of the program's own; none if there is none.
#[cfg(feature = "local")]
pub(crate) fn end_local() -> Option<Left> {
    let recording = with_recording(|recording| recording.take_if(|local| local.purpose == Purpose::Program))?;
    Some(stop(recording))
}

/// Ends a recording.
fn stop(recording: Recording) -> Left {
    let Recording { engine, directory, mode, ticks_per_second, purpose, .. } = recording;
    let deadline = Instant::now() + STOP_WAIT;
    let is_quiet = engine.stop(deadline).is_ok_and(|stopped| stopped.stragglers == 0);
    let _ = engine.terminate(deadline);
    config::set_config(None);
    atrace::want(false);
    Left { directory, mode, ticks_per_second, is_quiet, purpose }
}

/// The buffer that a recording has left.
pub(crate) struct Left {
    /// Where it is.
    pub directory: Directory,
    pub mode: BufferMode,
    /// Rate of its timestamps.
    pub ticks_per_second: u64,
    /// No thread writes into it any more.
    pub is_quiet: bool,
    pub purpose: Purpose,
}

/// Goes on with the recording in a manager's buffer, from the first event on that is not in its own one. None
/// if there is no recording.
pub(crate) fn go_over(
    (buffer, scope_bytes): (&Vmo, u64),
    mode: BufferMode,
    config: &trace_engine::Config,
    additional_categories: &[String],
) -> Option<Result<(Engine, Left), Unrecorded>> {
    let recording = if IS_THERE { take()? } else { return None };
    let mut attempts = 0;
    loop {
        attempts += 1;
        let gone_over = engine::without_forks(|| {
            let region = buffer::region(buffer, scope_bytes)?;
            Ok::<_, Unrecorded>(recording.engine.go_over(
                region,
                mode,
                config.clone(),
                additional_categories,
            )?)
        });
        match gone_over {
            Ok(stopped) => {
                let is_quiet = stopped.stragglers == 0;
                let Recording { engine, directory, mode, ticks_per_second, purpose, .. } = recording;
                #[cfg(feature = "local")]
                if purpose == Purpose::Program {
                    crate::linux::local::keep(&directory, is_quiet);
                }
                let left = Left { directory, mode, ticks_per_second, is_quiet, purpose };
                return Some(Ok((engine, left)));
            }
            Err(reason) if attempts == ATTEMPTS => {
                with_recording(|none| *none = Some(recording));
                return Some(Err(reason));
            }
            Err(_) => {}
        }
    }
}

/// Takes the pages of open scopes away from a buffer that was left, for a manager that does not know them.
pub(crate) fn drop_scopes(buffer: &Vmo) -> bool {
    buffer.size().and_then(|size| buffer.shorten(size.saturating_sub(SCOPES_BYTES))).is_ok()
}

/// Ends a recording from the first line that no manager has, and writes it into the file that the environment
/// names in `TRACE_STARTUP_FILE`; without that variable, only deletes what was recorded to be printed, or has
/// no event. Each provider does this when it is dropped: it is for programs that never drop theirs. What
/// cannot be written stays for `trace recover`, and the reason is printed on stderr. Needs the feature
/// `local`.
pub fn save() {
    if !HAS_BEGUN.load(Ordering::Relaxed) {
        return;
    }
    end_if(|Recording { directory, mode, purpose, .. }| match purpose {
        Purpose::Print => true,
        Purpose::Archive => wanted_file().is_some() || directory.is_blank(*mode),
        Purpose::Program => false,
    });
}

/// The provider ends, and with it a recording that no manager has, unless it is the program's: its buffer
/// stays where it is, if no file is wanted.
pub(crate) fn end() {
    if is_recording() {
        end_if(|recording| recording.purpose != Purpose::Program);
    }
}

fn end_if(is_over: fn(&mut Recording) -> bool) {
    errand::run(move || {
        if let Some(recording) = with_recording(|recording| recording.take_if(is_over)) {
            finish(recording);
        }
    });
}

/// Ends a recording that no manager has.
fn finish(recording: Recording) {
    let begun_in = recording.begun_in.clone();
    let left = stop(recording);
    match (left.purpose, wanted_file()) {
        (Purpose::Print, _) => left.directory.delete(),
        _ if left.directory.is_blank(left.mode) => left.directory.delete(),
        (_, Some(path)) => {
            // A child would find the lock taken.
            let path = engine::without_forks(|| numbered(begun_in.join(path), &mut LAST_FILE.lock()));
            write_file(&left, &path);
        }
        (_, None) => {}
    }
}

/// The file that the environment names.
fn wanted_file() -> Option<PathBuf> {
    let name = variable(FILE_VARIABLE).filter(|name| !name.is_empty())?;
    Some(file_of(name.as_bytes(), std::process::id()))
}

/// The file that was named last, and how many recordings were to be written there: of this process, and of
/// those that it was forked from.
static LAST_FILE: Mutex<Option<(PathBuf, u32)>> = Mutex::new(None);

/// A further recording of a process does not replace the first one: `app.fxt` is followed by `app-2.fxt`.
fn numbered(path: PathBuf, last: &mut Option<(PathBuf, u32)>) -> PathBuf {
    let count = match last {
        Some((last, count)) if *last == path => count.saturating_add(1),
        _ => 1,
    };
    *last = Some((path.clone(), count));
    let (Some(stem), true) = (path.file_stem(), count > 1) else {
        return path;
    };
    let mut name = stem.to_owned();
    name.push(format!("-{count}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

fn file_of(name: &[u8], pid: u32) -> PathBuf {
    let mut path = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, behind)) = rest.split_first() {
        rest = match rest.strip_prefix(b"%p") {
            Some(behind) => {
                path.extend_from_slice(pid.to_string().as_bytes());
                behind
            }
            None => {
                path.push(*first);
                behind
            }
        };
    }
    PathBuf::from(OsString::from_vec(path))
}

/// Writes what a recording has left into a file, and deletes its buffer. If that fails, the buffer stays.
#[cfg(feature = "local")]
fn write_file(left: &Left, path: &Path) {
    match crate::linux::local::save(left, path) {
        Ok(_) => left.directory.delete(),
        Err(error) => cannot_save(path, &error.to_string()),
    }
}

#[cfg(not(feature = "local"))]
fn write_file(_: &Left, path: &Path) {
    cannot_save(path, "the program was built without the feature local");
}

fn cannot_save(path: &Path, reason: &str) {
    let path = path.display().to_string();
    let text = format!("trace: nothing is written to {}: {reason}; trace recover does", Shown(&path));
    debuglog::write_for_process(&text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_may_have_categories() {
        assert_eq!(categories_of("--trace-startup=a,b*"), Some("a,b*"));
        assert_eq!(categories_of("--trace-startup"), Some(""));
        assert_eq!(categories_of("--trace-startups"), None);
        assert_eq!(categories_of("trace-startup=a"), None);
    }

    #[test]
    fn the_number_of_the_process_is_part_of_the_name() {
        let of = |name: &[u8]| file_of(name, 42).into_os_string().into_vec();
        assert_eq!(of(b"a-%p.fxt"), b"a-42.fxt");
        assert_eq!(of(b"%p/%%p/%"), b"42/%42/%");
        assert_eq!(of(b"\xff.fxt"), b"\xff.fxt");
    }

    #[test]
    fn a_further_recording_has_a_file_of_its_own() {
        let mut last = None;
        let mut of = |path: &str| numbered(PathBuf::from(path), &mut last).display().to_string();
        assert_eq!(["/d/a.fxt"; 3].map(&mut of), ["/d/a.fxt", "/d/a-2.fxt", "/d/a-3.fxt"]);
        // That of a child, by its number.
        assert_eq!(["/d/b", "/d/b"].map(of), ["/d/b", "/d/b-2"]);
    }

    #[test]
    fn what_the_environment_asks_for_is_checked() {
        let some = |text: &str| Some(text.to_owned());
        let options = options_of("a, b*,,-c", some("circular"), some("8")).unwrap();
        assert_eq!(options.categories, ["a", "b*", "-c"]);
        assert_eq!((options.mode, options.buffer_mebibytes), (BufferMode::Circular, 8));
        assert_eq!(options_of("a", None, some("")).unwrap(), Options::of("a"));
        assert!(options_of("kernel:uprobe:/bin/sh:main,a", None, None).is_ok());
        assert_eq!(
            options_of(", ,", None, None).unwrap_err().to_string(),
            "TRACE_STARTUP has no category; * is all"
        );
        assert_eq!(
            options_of("a,-#group", None, None).unwrap_err().to_string(),
            "TRACE_STARTUP has \"-#group\": groups are known to trace record alone"
        );
        for (list, wrong, why) in [
            ("a,seq/app", "seq/app", "single programs are named to trace record alone"),
            ("-", "-", "no blanks or quotes, and * only at the end"),
            ("a*b", "a*b", "no blanks or quotes, and * only at the end"),
            ("a,-b c", "-b c", "no blanks or quotes, and * only at the end"),
        ] {
            let error = format!("TRACE_STARTUP has {wrong:?}: {why}");
            assert_eq!(options_of(list, None, None).unwrap_err().to_string(), error);
        }
        assert_eq!(
            options_of("a", some("streaming"), None).unwrap_err().to_string(),
            "TRACE_STARTUP_MODE is \"streaming\", expected oneshot or circular"
        );
        assert_eq!(
            options_of("a", None, some("many")).unwrap_err().to_string(),
            "TRACE_STARTUP_BUFFER_SIZE is \"many\", expected a number of MiB up to 64"
        );
    }
}
