//! Builds the tracepoints of LTTng, which are C.

fn main() {
    println!("cargo:rerun-if-changed=src/lttng");
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
