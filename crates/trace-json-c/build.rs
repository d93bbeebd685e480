//! Names the shared library for loaders.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtracejson.so.0");
}
