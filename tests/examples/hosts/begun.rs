//! The ways to be a guest in a process.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null;
use std::time::Duration;
use trace_client::{Alert, Client, Config, Pending, Recording, Tool};
use trace_provider::{PolledProvider, Scope, TraceProvider, instant, local, startup};

/// Events of each name.
pub const EVENTS: u64 = 10;

/// What a host has of its guest.
#[allow(clippy::large_enum_variant, reason = "there is one")]
pub enum Guest {
    Provider(TraceProvider),
    Polled(PolledProvider),
    Client(Client, Recording),
    Local,
    Startup,
}

pub struct Host {
    pub way: String,
    pub directory: PathBuf,
    pub guest: Option<Guest>,
    /// Events that a client has to find.
    expected: u64,
    program: String,
    /// What a client has asked for, and a child must not wait for.
    alert: Option<Pending<Alert>>,
}

/// Records its events.
pub fn record(name: &str) {
    for n in 0..EVENTS {
        match name {
            "before" => instant!("hosts", "before", Scope::Thread, "n" => n),
            "after" => instant!("hosts", "after", Scope::Thread, "n" => n),
            "child" => instant!("hosts", "child", Scope::Thread, "n" => n),
            _ => instant!("hosts", "end", Scope::Thread, "n" => n),
        }
    }
}

/// A program that a client records.
pub fn emit(name: &str) {
    let _provider = TraceProvider::new("hosts");
    record(name);
}

impl Host {
    pub fn new(way: &str, directory: PathBuf) -> Self {
        Self { way: way.to_owned(), directory, guest: None, expected: 0, program: own_path(), alert: None }
    }

    pub fn is_client(&self) -> bool {
        self.way == "client"
    }

    pub fn file(&self) -> PathBuf {
        self.directory.join("trace.fxt")
    }

    /// Begins, with a buffer of 64 MiB if that is the hostility.
    pub fn try_begin(&mut self, mebibytes: u64) -> Result<(), String> {
        let options = startup::Options { buffer_mebibytes: mebibytes, ..startup::Options::of("hosts") };
        let text = |error: std::io::Error| error.to_string();
        self.guest = Some(match &*self.way {
            "provider" => Guest::Provider(TraceProvider::new("hosts")),
            "polled" => Guest::Polled(PolledProvider::new("hosts").map_err(text)?),
            "client" => {
                let text = |error: trace_client::Error| trace_client::problem(&error);
                let runtime = std::env::var_os("TRACE_RUNTIME_DIR").expect("a directory");
                let tool = Tool::At(std::env::var_os("HOSTS_TOOL").expect("a tool").into());
                let client = Client::open_in(runtime, tool).wait().map_err(text)?;
                let config = Config::of("hosts").buffer_size_mib(u32::try_from(mebibytes).expect("a few"));
                let recording = client.record(config, self.file()).wait().map_err(text)?;
                self.alert = Some(recording.alert());
                Guest::Client(client, recording)
            }
            "local" => {
                local::start(&options).map_err(text)?;
                Guest::Local
            }
            "startup" => {
                startup::begin(&options).map_err(text)?;
                Guest::Startup
            }
            way => panic!("{way} is no way"),
        });
        Ok(())
    }

    pub fn begin(&mut self) {
        self.try_begin(1).expect("it begins");
    }

    /// Records ten events, and lets a loop take its turn.
    pub fn record(&mut self, name: &str) {
        match &mut self.guest {
            Some(Guest::Client(..)) => {
                self.expected += EVENTS;
                let child = spawn(&[&self.program, "emit", name]);
                wait(child, 0);
            }
            Some(Guest::Polled(provider)) => {
                provider.dispatch();
                record(name);
                provider.dispatch();
            }
            Some(Guest::Provider(_) | Guest::Local | Guest::Startup) => record(name),
            None => {}
        }
    }

    /// Ends, and says why that was not possible.
    pub fn try_end(&mut self) -> Result<(), String> {
        match self.guest.take() {
            Some(Guest::Client(client, recording)) => {
                let report = recording.stop().wait().map_err(|error| trace_client::problem(&error))?;
                drop(client);
                assert_eq!((report.events(), report.is_complete()), (self.expected, true), "{report:?}");
            }
            Some(Guest::Provider(provider)) => drop(provider),
            Some(Guest::Polled(provider)) => drop(provider),
            Some(Guest::Local) => {
                local::flush_to_file(&self.file()).map_err(|error| error.to_string())?;
            }
            Some(Guest::Startup) => startup::save(),
            None => {}
        }
        Ok(())
    }

    pub fn end(&mut self) {
        self.try_end().expect("it ends");
    }

    /// A forked child tries all that its parent could do: it has nothing, and waits for nothing.
    pub fn end_in_child(&mut self) {
        match self.guest.take() {
            Some(Guest::Client(client, recording)) => {
                assert!(self.alert.take().is_none_or(|alert| alert.wait().is_err()), "of the parent");
                assert!(recording.progress().wait().is_err(), "of the parent");
                assert!(client.providers().wait().is_err(), "of the parent");
                drop(client);
                assert!(recording.stop().wait().is_err(), "of the parent");
            }
            Some(Guest::Local) => assert!(local::flush(|_, _| {}).is_err(), "of the parent"),
            Some(guest) => drop(guest),
            None => {}
        }
    }
}

/// The path of this program.
fn own_path() -> String {
    std::env::current_exe().expect("a path").to_str().expect("UTF-8").to_owned()
}

/// Runs a program to its end, by its number: other children are none of this function's.
pub fn run(arguments: &[&str]) {
    let child = Command::new(arguments[0]).args(&arguments[1..]).stdin(std::process::Stdio::null()).spawn();
    wait(i32::try_from(child.expect("a child").id()).expect("a number"), 0);
}

/// Starts a program without descriptors of this process's, which the host may be closing.
fn spawn(arguments: &[&str]) -> i32 {
    let texts: Vec<_> = arguments.iter().map(|text| CString::new(*text).expect("no NUL")).collect();
    let mut pointers: Vec<_> = texts.iter().map(|text| text.as_ptr().cast_mut()).collect();
    pointers.push(std::ptr::null_mut());
    let mut child = 0;
    unsafe extern "C" {
        static environ: *const *mut libc::c_char;
    }
    // SAFETY: texts and lists that end as they have to; nothing changes the environment.
    let spawned = unsafe {
        let program = pointers[0];
        libc::posix_spawn(&raw mut child, program, null(), null(), pointers.as_ptr(), environ)
    };
    assert_eq!(spawned, 0);
    child
}

/// Waits for a child's status. Where the end of children is ignored there is none.
pub fn wait(child: i32, expected: i32) {
    let mut status = 0;
    // SAFETY: a child of this process, and a place for its status.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    let is_ignored = waited == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD);
    assert!(is_ignored || (waited, status) == (child, expected), "{waited} {status}");
}

/// The process of the manager.
pub fn manager() -> u32 {
    let directory = std::env::var_os("TRACE_RUNTIME_DIR").expect("a directory");
    let text = std::fs::read_to_string(Path::new(&directory).join("lock")).expect("its lock");
    text.trim().parse().expect("a number")
}

/// No process of this test takes longer.
pub const PATIENCE: Duration = Duration::from_secs(20);
