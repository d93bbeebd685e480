//! Cargo asks a package that says what it links to for a build script: a program has one engine.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Other systems than Linux; set by hand, it is as if this one were another.
    println!("cargo::rustc-check-cfg=cfg(elsewhere)");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system != "linux") {
        println!("cargo::rustc-cfg=elsewhere");
    }
    // Set by the packages of the models and mixes alone.
    println!("cargo::rustc-check-cfg=cfg(modelled)");
    println!("cargo::rustc-check-cfg=cfg(shuttle)");
}
