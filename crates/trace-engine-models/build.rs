//! Has the engine compiled for models.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(loom)");
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"off\"))");
    println!("cargo::rustc-cfg=loom");
}
