//! The attribute `#[trace]`, which records each call of a function.
//!
//! It is a crate of its own because it needs `syn`. Programs use it as `trace_provider::trace`, which
//! `trace-provider` has with its feature `attributes`; its documentation is there.
//!
//! A function becomes the same function with a `duration!` in front of its body; no closure is around the
//! body. The body of an `async fn` becomes a future that `TraceFutureExt::trace` records. The tokens of the
//! body are passed on as they are, so that messages of the compiler point at them.
#![forbid(unsafe_code)]

mod arguments;
mod container;
mod expansion;
mod function;
mod options;

/// Records each call of a function as a duration, and each call of an `async fn` as an operation with its
/// polls. On an `impl` block, a trait or a module `mod name { … }`: of every function in it.
#[proc_macro_attribute]
pub fn trace(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expansion::expand(options.into(), item.into()).into()
}
