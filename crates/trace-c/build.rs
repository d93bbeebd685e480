//! Compiles the one thing that has to be C: a thread-local at a fixed distance from the thread pointer.

fn main() {
    println!("cargo:rerun-if-changed=src/thread.c");
    // Changes when a program that was linked before cannot be run any more.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtrace.so.0");
    // The linker's own symbols stay the linker's.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,start-stop-visibility=hidden");
    let build = || cc::Build::new().file("src/thread.c").warnings_into_errors(true).clone();
    build().compile("trace_thread");
    for object in build().define("TRACE_THREAD_FIXED", None).compile_intermediates() {
        println!("cargo:rustc-cdylib-link-arg={}", object.display());
    }
}
