//! Cargo asks a package that says what it links to for a build script: a program has one engine.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Set by the packages of the models and mixes alone.
    println!("cargo::rustc-check-cfg=cfg(modelled)");
    println!("cargo::rustc-check-cfg=cfg(shuttle)");
}
