//! Has the engine compiled for mixes.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(elsewhere)");
    println!("cargo::rustc-check-cfg=cfg(modelled)");
    println!("cargo::rustc-check-cfg=cfg(shuttle)");
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"off\"))");
    println!("cargo::rustc-cfg=modelled");
    println!("cargo::rustc-cfg=shuttle");
}
