//! Builds what is C: events of our own, and the tracepoints of LTTng.

fn main() {
    println!("cargo:rerun-if-changed=src/lttng");
    println!("cargo:rerun-if-changed=src/ours");
    println!("cargo:rerun-if-changed=../../crates/trace-c/include");
    cc::Build::new()
        .file("src/ours/events.c")
        .include("../../crates/trace-c/include")
        .opt_level(2)
        .compile("ours");
    #[cfg(feature = "lttng")]
    {
        cc::Build::new()
            .file("src/lttng/tracepoints.c")
            .include("src/lttng")
            .opt_level(2)
            .compile("tracepoints");
        println!("cargo:rustc-link-lib=lttng-ust");
        // LTTng finds its tracepoints by the ends of a section to which nothing else refers.
        println!("cargo:rustc-link-arg=-Wl,--no-gc-sections");
    }
}
