//! Where manager, providers and clients find each other.

/// Environment variable that names the runtime directory.
pub const RUNTIME_VARIABLE: &str = "TRACE_RUNTIME_DIR";
/// Last part of a runtime directory's path.
pub const RUNTIME_NAME: &str = "trace";
/// The name of the provider with the kernel's events.
pub const KERNEL_PROVIDER: &str = "ktrace_provider";
/// The manager's socket for providers, in the runtime directory.
pub const REGISTRY: &str = "registry";
/// The manager's socket for clients, in the runtime directory.
pub const PROVISIONER: &str = "provisioner";
/// Environment variable with the number of a descriptor: a shared connection with the manager's socket for
/// providers, for programs that can open none.
pub const MANAGER_FD_VARIABLE: &str = "TRACE_MANAGER_FD";
/// Environment variable that `trace record` sets to `1` for its command: a provider in it waits for its
/// start even where the manager announces no recording.
pub const RECORD_VARIABLE: &str = "TRACE_RECORD";
