//! Cargo asks for a build script of whoever names what it links to: a program has one engine.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
