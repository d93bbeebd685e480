//! The attribute `#[trace]`.

/// Records each call of a function as a duration, as [`duration!`](crate::duration) in its first line would:
/// until the function is left, by whatever way, also by `?`, `return` or a panic. Needs the feature
/// `attributes`.
///
/// ```
/// use trace_provider::trace;
///
/// #[trace]
/// fn load(path: &str) -> std::io::Result<String> {
///     let text = std::fs::read_to_string(path)?;
///     Ok(text.trim().to_owned())
/// }
///
/// #[trace(category = "net", name = "send", args(to, bytes = body.len()))]
/// fn post(to: &str, body: &[u8]) {
///     // …
/// }
/// # load("/").unwrap_err();
/// # post("a", &[]);
/// ```
///
/// | option | meaning |
/// |---|---|
/// | `category = "net"` | category; otherwise the name of the package, `env!("CARGO_PKG_NAME")` |
/// | `name = "send"` | name; otherwise the function's, or `Type::method` in a block with the attribute |
/// | `args(…)` | arguments, at most 15, evaluated only if the call is recorded: see below |
/// | `crate = path` | path of this crate, where it is not `::trace_provider` |
/// | `skip` | leaves out one function of a block |
///
/// Category and name are constant text, or expressions that are constant.
///
/// # Arguments
///
/// | in `args` | argument |
/// |---|---|
/// | `size` | the parameter, by its name; a `String`, `PathBuf` or `Vec` is borrowed |
/// | `size = expression` | the value of an expression, in which the parameters and `self` can be used |
/// | `debug(state)`, `display(state)` | what `{:?}` or `{}` shows of a value, at most 256 bytes |
/// | `state = debug(self.state)` | the same of an expression |
///
/// `debug` and `display` are those of this crate, imported or not, and take the value without `&`.
///
/// The values are taken at the beginning and kept until the end, as those of [`duration!`](crate::duration):
/// the body cannot move or change what they borrow. Where it has to, write `display(url)` in place of `url`,
/// which renders the text at the beginning and borrows nothing.
///
/// # Blocks
///
/// On an `impl` block, a trait or a module `mod name { … }` the attribute records every function with a body
/// in it, and in a module also those of the `impl` blocks, traits and modules in it. Functions and blocks
/// inside may have an attribute of their own with more options. `const fn`s, naked functions and what macros
/// expand to are left alone; on a single `const fn` or naked function the attribute is an error.
///
/// ```
/// use trace_provider::trace;
///
/// struct Cache(Vec<u64>);
///
/// #[trace(category = "cache")]
/// impl Cache {
///     // Recorded as `Cache::insert`.
///     #[trace(args(key))]
///     fn insert(&mut self, key: u64) {
///         self.0.push(key);
///     }
///
///     #[trace(skip)]
///     fn len(&self) -> usize {
///         self.0.len()
///     }
/// }
/// # let mut cache = Cache(Vec::new());
/// # cache.insert(1);
/// # assert_eq!(cache.len(), 1);
/// ```
///
/// # Async functions
///
/// An `async fn` is recorded as [`TraceFutureExt::trace`](crate::TraceFutureExt::trace) records a future:
/// one bar from its first poll to its end, with its polls. A function that returns a future without being
/// `async` is recorded as other functions are: its duration ends when the future is made.
///
/// ```
/// use trace_provider::trace;
///
/// #[trace(args(url, length = body.len()))]
/// async fn send(url: &str, body: Vec<u8>) -> std::io::Result<()> {
///     std::future::ready(()).await;
///     Ok(())
/// }
/// # fn is_send(_: impl Send) {}
/// # is_send(send("/", vec![]));
/// ```
///
/// The values are kept beside the body, which owns the parameters: they are numbers, text that the caller
/// has lent, as `url` above, or rendered. A parameter of type `String` is recorded as `display` renders it.
/// Expressions, `display` and `debug` are evaluated if the category is recorded at the first poll; they are
/// null if the recording begins later.
pub use trace_macros::trace;
