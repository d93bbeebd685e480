//! Compiles the tracepoints of LTTng-UST, which are C macros.

fn main() {
    println!("cargo::rerun-if-changed=src/lttng.c");
    println!("cargo::rerun-if-changed=src/lttng.h");
    if std::env::var_os("CARGO_FEATURE_LTTNG").is_some() {
        cc::Build::new().file("src/lttng.c").include("src").opt_level(2).compile("peer_lttng");
        println!("cargo::rustc-link-lib=lttng-ust");
    }
}
