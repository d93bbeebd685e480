//! What the compiler says: of attributes that are wrong, and of functions that are wrong and have one.

use serde_json::Value;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use trace_tests::Sandbox;
use trace_tests::build::libraries;

const IMPORT: &str = "use trace_provider::trace;\n";

/// A message of the compiler, and the bytes of the source that it shows first.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    at: Range<usize>,
    text: String,
}

/// All that the compiler says of a library with this source, and whether it compiles.
fn said(sandbox: &Sandbox, source: &str) -> (Vec<Value>, bool) {
    let files = libraries();
    let is_provider = |file: &&PathBuf| file.ends_with("libtrace_provider.rlib");
    let provider = files.iter().find(is_provider).expect("the provider is built");
    let dependencies = provider.parent().unwrap().join("deps");
    fs::write(sandbox.file("lib.rs"), source).unwrap();
    let output = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"))
        .env_remove(trace_tests::build::FOR_HARNESS)
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--error-format", "json"])
        .arg("--extern")
        .arg(format!("trace_provider={}", provider.display()))
        .arg("-L")
        .arg(format!("dependency={}", dependencies.display()))
        .args(["-o", "lib.rmeta", "lib.rs"])
        .env("CARGO_PKG_NAME", "misuse")
        .current_dir(sandbox.work_dir())
        .output()
        .expect("the compiler runs");
    let text = String::from_utf8(output.stderr).unwrap();
    let messages = text.lines().map(|line| serde_json::from_str(line).expect("a message"));
    (messages.collect(), output.status.success())
}

/// The messages of a library with this source, in the order of their places.
fn compile(sandbox: &Sandbox, source: &str) -> Vec<Message> {
    let (said, is_right) = said(sandbox, source);
    let mut messages = Vec::new();
    for found in said {
        let spans = found["spans"].as_array().into_iter().flatten();
        // The last message only counts the others.
        if let Some(span) = spans.clone().find(|span| span["is_primary"] == true) {
            let byte = |end: &str| span[end].as_u64().unwrap() as usize;
            let text = found["message"].as_str().unwrap().to_owned();
            messages.push(Message { at: byte("byte_start")..byte("byte_end"), text });
        }
    }
    assert!(is_right || !messages.is_empty(), "{source}");
    messages.sort_by_key(|message| (message.at.start, message.at.end));
    messages
}

/// The source without the marks, and the places between them.
fn unmarked(source: &str) -> (String, Vec<Range<usize>>) {
    let mut text = IMPORT.to_owned();
    let mut places = Vec::new();
    for (number, part) in source.split(['«', '»']).enumerate() {
        let start = text.len();
        text += part;
        if number % 2 == 1 {
            places.push(start..text.len());
        }
    }
    (text, places)
}

/// A duration that a task holds across an `.await`: the type that cannot be sent says what to use.
//= docs/rust.md#futures
#[test]
fn a_duration_across_an_await_is_named() {
    let sandbox = Sandbox::new();
    let source = |body: &str| {
        format!(
            "pub fn spawn(_: impl Future<Output = ()> + Send) {{}}\n\
             pub fn f() {{ spawn(async {{ {body} std::future::ready(()).await; }}) }}"
        )
    };
    let (messages, is_right) = said(&sandbox, &source("{ trace_provider::duration!(\"a\", \"b\"); }"));
    assert!(is_right, "{messages:?}");
    let (messages, is_right) = said(&sandbox, &source("trace_provider::duration!(\"a\", \"b\");"));
    let shown: String = messages.iter().filter_map(|message| message["rendered"].as_str()).collect();
    assert!(!is_right && shown.contains("`dyn UseTraceFutureAcrossAwait + "), "{shown}");
    assert!(!shown.contains("*const ()"), "{shown}");
}

/// Sources whose errors are shown between the marks, and what they say.
const MISUSES: &[(&str, &[&str])] = &[
    (
        "«#[trace]» pub struct S;",
        &[
            "`#[trace]` can stand on functions, `impl` blocks, traits and modules with a body, `mod name { … }`",
        ],
    ),
    (
        "#[trace(«levle» = 1)] pub fn f() {}",
        &["`#[trace]` has no option `levle`: it takes `category`, `name`, `args`, `crate` and `skip`"],
    ),
    (
        "#[trace(«\"net\"»)] pub fn f() {}",
        &["this is no option of `#[trace]`: it takes `category`, `name`, `args`, `crate` and `skip`"],
    ),
    (
        "#[trace(name = \"a\" «category» = \"b\")] pub fn f() {}",
        &["a comma has to stand behind the option `name`"],
    ),
    ("#[trace(name = \"a\", «name» = \"b\")] pub fn f() {}", &["the option `name` is there twice"]),
    ("#[trace(name = «5»)] pub fn f() {}", &["`name` needs a text, as in `name = \"net\"`"]),
    ("#[trace(«category»)] pub fn f() {}", &["`category` needs a text, as in `category = \"net\"`"]),
    (
        "#[trace(name = «text()»)] pub fn f() {} fn text() -> &'static str { \"\" }",
        &["cannot call non-const function `text` in statics"],
    ),
    (
        "#[trace(«crate» = \"trace_provider\")] pub fn f() {}",
        &["`crate` needs a path, as in `crate = my::trace_provider`"],
    ),
    ("#[trace(crate = «nowhere»)] pub fn f() {}", &["cannot find module or crate `nowhere` in this scope"]),
    (
        "#[trace(«args» = 5)] pub fn f() {}",
        &["`args` needs parentheses, as in `args(url, size = body.len())`"],
    ),
    ("#[trace(args(«absent»))] pub fn f() {}", &["cannot find value `absent` in this scope"]),
    ("#[trace(args(text, «text» = 5))] pub fn f(_text: u8) {}", &["the argument `text` is there twice"]),
    (
        "#[trace(args(«text».len()))] pub fn f(_text: &str) {}",
        &["this argument needs a name, as in `size = self.size()`"],
    ),
    (
        "#[trace(args(«text».len = 5))] pub fn f(_text: &str) {}",
        &["the name of an argument has to be one word, as in `size = self.size()`"],
    ),
    (
        "#[trace(args(a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,«p»=1))] pub fn f() {}",
        &["an event has at most 15 arguments"],
    ),
    (
        "#[trace(args(text))] pub fn f(text: String) -> String { «text» }",
        &["cannot move out of `text` because it is borrowed"],
    ),
    (
        "#[trace] pub «const» fn f() {}",
        &["`#[trace]` cannot record a `const fn`, which the compiler may evaluate"],
    ),
    (
        "pub trait T { «#[trace]» fn f(&self); }",
        &["this function has no body: use `#[trace]` on the functions that implement it"],
    ),
    ("#[trace] «#[trace]» pub fn f() {}", &["a function has the attribute `#[trace]` once"]),
    (
        "#[trace(«skip»)] pub fn f() {}",
        &["`skip` is for functions in a block that has the attribute `#[trace]`"],
    ),
    (
        "pub struct S; #[trace(name = «\"x\"», «args»(a))] impl S {}",
        &[
            "a name belongs to a single function, not to a block of them",
            "`args` belong to a single function, not to a block of them",
        ],
    ),
    (
        "#[trace] pub mod m {
            #[trace(«skip», name = \"y\")] pub fn f() {}
            #[trace] pub «const» fn g() {}
            #[trace «=» \"x\"] pub fn h() {}
            #[trace] «#[trace(skip)]» pub fn i() {}
        }",
        &[
            "`skip` excludes all other options",
            "`#[trace]` cannot record a `const fn`, which the compiler may evaluate",
            "write the options of `#[trace]` in parentheses",
            "a function has the attribute `#[trace]` once",
        ],
    ),
];

/// One sentence, at the place that is wrong, and nothing else.
#[test]
fn misuses_are_shown_where_they_are() {
    let sandbox = Sandbox::new();
    for (source, expected) in MISUSES {
        let (text, places) = unmarked(source);
        let expected = places.into_iter().zip(*expected);
        let expected: Vec<_> = expected.map(|(at, text)| Message { at, text: (*text).to_owned() }).collect();
        assert_eq!(compile(&sandbox, &text), expected, "{text}");
    }
}

/// A function with the attribute has the messages that it has without.
#[test]
fn messages_about_bodies_are_those_without_the_attribute() {
    const BODIES: &[&str] = &[
        "fn f() -> u32 { \"text\" }",
        "fn f() -> u32 { let x: u32 = 5; }",
        "fn f() -> u32 { return; }",
        "fn f() { 5 }",
        "fn f(x: &str) -> String { x }",
        "fn f() { let v = Vec::new(); }",
        "fn f() { undefined(); }",
        "fn f<'a>(x: &'a str, y: &str) -> &'a str { y }",
        "fn f() -> impl Iterator<Item = u32> { 5 }",
        "fn f() -> Result<u8, std::fmt::Error> { Ok(\"y\".parse::<u8>()?) }",
        "fn f() -> u32 { loop {} ; 5 }",
        "fn f(text: String) -> String { drop(text); text }",
    ];
    let sandbox = Sandbox::new();
    for kind in ["pub", "pub async"] {
        for body in BODIES {
            let with = |attribute: &str| {
                let source = format!("#![allow(unused_imports)]\n{IMPORT}{attribute}\n{kind} {body}");
                compile(&sandbox, &source)
            };
            let expected = with("        ");
            let mut found = with("#[trace]");
            for (found, expected) in found.iter_mut().zip(&expected) {
                // The name of a parameter that the future has taken is left out.
                if expected.text.strip_prefix(&found.text) == Some(": `text`") {
                    found.text.push_str(": `text`");
                }
            }
            assert_eq!(found, expected, "{kind} {body}");
            assert!(!expected.is_empty(), "{kind} {body}");
        }
    }
}

/// Functions of other forms, without a warning.
#[test]
fn functions_of_other_forms_compile() {
    let source = r#"
        #![deny(warnings, missing_docs, rust_2018_idioms, unused_qualifications, single_use_lifetimes)]
        //! Functions.
        use std::error::Error;
        use std::pin::Pin;
        use std::sync::Arc;
        use trace_provider::trace;

        macro_rules! make {
            ($name:ident, $x:ident) => {
                /// Made by a macro.
                #[trace(args($x, y = $x + 1))]
                pub fn $name($x: u32) -> u32 { let site = 1; $x + site }
            };
        }
        make!(made, value);
        make!(made_with_a_name_of_the_expansion, site);
        /// A closure that is called by a value.
        #[trace(args(f = f(2)))]
        pub fn call<F: FnMut(u32) -> u32>(mut f: F) -> u32 { f(1) }
        /// Attributes, and an ABI.
        #[trace] #[inline(always)] #[must_use]
        pub extern "C" fn attributes(x: u8) -> u8 { #![allow(unused_variables)] let y = 5; x }
        /// Never returns.
        #[trace] pub fn never() -> ! { loop {} }
        /// A parameter that the body changes.
        #[trace(args(x, length = list.len()))]
        pub fn changing(mut x: u32, list: &mut Vec<u32>) { x += 1; list.push(x) }
        /// Values of the library.
        #[trace(args(a, b, c, debug(d)))]
        pub fn values(a: Option<&str>, b: std::time::Duration, c: &std::path::Path, d: Option<String>) {}
        /// A future in a box.
        #[trace(args(x))]
        pub fn boxed<'a>(x: &'a str) -> Pin<Box<dyn Future<Output = usize> + Send + 'a>> {
            Box::pin(async move { x.len() })
        }
        /// A closure that is returned.
        #[trace] pub async fn closure() -> impl Fn(u8) -> u8 { |x| x + 1 }
        /// A closure that returns a future.
        #[trace] pub async fn calls(closure: impl AsyncFn() -> u8) -> u8 { closure().await }
        /// Calls itself.
        #[trace(args(n))]
        pub async fn again(n: u32) -> u32 { if n == 0 { 0 } else { Box::pin(again(n - 1)).await } }
        /// What is returned is converted.
        #[trace]
        pub async fn unsized_values(x: u8) -> (impl Copy, Option<Box<dyn Fn()>>) {
            match x { 0 => (1, None), _ => (2, Some(Box::new(|| ()))) }
        }
        /// What is returned is borrowed.
        #[trace(args(debug(x)))]
        pub async fn part(x: &[u8]) -> &[u8] { if x.is_empty() { return &[]; } &x[1..] }
        /// What is returned is borrowed and can be changed.
        #[trace(args(y))]
        pub async fn parts<'a>(x: &'a mut Vec<u8>, y: &'a str) -> Option<(&'a mut u8, &'a str)> {
            x.iter_mut().next().map(|x| (x, y))
        }
        /// The value is evaluated from one that cannot be sent.
        #[trace(args(n = std::cell::RefCell::new(4_i32).borrow().abs(), m = std::rc::Rc::new(5_u8).pow(2)))]
        pub async fn values_of_a_moment() { std::future::ready(()).await }
        /// Patterns.
        #[trace(args(a))]
        pub async fn patterns(_: u8, (a, mut b): (u8, u8)) -> u8 { b += a; b }
        /// A trait.
        #[allow(async_fn_in_trait)]
        pub trait Asking {
            /// Asks.
            async fn ask(&self) -> Result<u8, Box<dyn Error>>;
        }
        #[trace]
        impl Asking for [u8] {
            async fn ask(&self) -> Result<u8, Box<dyn Error>> {
                let parsed: u8 = "5".parse()?;
                Ok(parsed + self.first().ok_or("empty")?)
            }
        }
        /// A type.
        #[derive(Debug)]
        pub struct Wrap<'a, T>(&'a T);
        #[trace]
        impl<'a, T: Clone + 'a> Iterator for Wrap<'a, T> where T: Send {
            type Item = T;
            fn next(&mut self) -> Option<T> { Some(self.0.clone()) }
        }
        #[trace]
        impl<T> Wrap<'_, T> {
            /// Takes itself in an `Arc`.
            pub async fn shared(self: Arc<Self>) -> Arc<Self> { self }
            /// Returns itself.
            pub async fn itself(&mut self) -> &mut Self { self }
            /// Is pinned.
            pub fn pinned(self: Pin<&mut Self>) -> Pin<&mut Self> { self }
        }
        #[trace] mod empty {}
        /// Another path.
        pub mod elsewhere {
            pub use trace_provider as renamed;
        }
        /// Recorded through it.
        #[elsewhere::renamed::trace(crate = elsewhere::renamed, category = CATEGORY, args(debug(x)))]
        pub async fn renamed(x: u32) -> u32 { x }
        const CATEGORY: &str = concat!("a", "b");
        /// Tasks of these futures can move between threads.
        pub fn are_sent() -> impl Send {
            (again(1), part(&[]), values_of_a_moment(), patterns(1, (2, 3)), renamed(1))
        }
    "#;
    // Inner attributes come first.
    assert_eq!(compile(&Sandbox::new(), source.trim_start()), []);
}

/// Calls of macros that are wrong, and how they are written.
const WRONG_CALLS: &[(&str, &str)] = &[
    ("instant!(\"a\", \"b\")", "instant!(category, name, scope, \"key\" => value, …)"),
    ("instant!(\"a\", \"b\", \"k\" => 1)", "instant!(category, name, scope, \"key\" => value, …)"),
    (
        "instant!(\"a\", \"b\", Scope::Thread, \"k\" = 1)",
        "instant!(category, name, scope, \"key\" => value, …)",
    ),
    ("counter!(\"a\", \"b\", \"k\" => 1)", "counter!(category, name, id, \"key\" => value, …)"),
    ("counter!(\"a\", \"b\", 0)", "counter!(category, name, id, \"key\" => value, …)"),
    ("duration!(\"a\")", "duration!(category, name, \"key\" => value, …)"),
    ("duration!(\"a\", \"b\", k = 1)", "duration!(category, name, \"key\" => value, …)"),
    ("flow_begin!(\"a\", \"b\")", "flow_begin!(category, name, id, \"key\" => value, …)"),
    ("async_begin!(1, \"a\")", "async_begin!(id, category, name, \"key\" => value, …)"),
    ("track_duration!(\"a\", \"b\")", "track_duration!(category, track, name, \"key\" => value, …)"),
    ("trace_future_args!(\"a\")", "trace_future_args!(category, name, [flow], \"key\" => value, …)"),
    ("log!()", "log!(category, \"text {}\", value)"),
];

#[test]
fn wrong_calls_of_macros_say_how_they_are_written() {
    let calls: Vec<_> = WRONG_CALLS.iter().map(|(call, _)| format!("{{ {call}; }}")).collect();
    let source = format!("use trace_provider::*;\npub fn f() {{ {} }}", calls.join("\n"));
    let texts = compile(&Sandbox::new(), &source).into_iter().map(|message| message.text);
    let mut errors: Vec<_> = texts.filter(|text| text.starts_with("expected")).collect();
    let mut expected: Vec<_> = WRONG_CALLS.iter().map(|(_, form)| format!("expected `{form}`")).collect();
    errors.sort();
    expected.sort();
    assert_eq!(errors, expected);
}

/// Calls whose arguments have another order.
const WRONG_ORDERS: &[(&str, &str)] = &[
    ("async_begin!(\"net\", \"request\", 7)", "async_begin!(id, category, name, \"key\" => value, …)"),
    ("async_instant!(\"net\", 7, \"request\")", "async_instant!(id, category, name, \"key\" => value, …)"),
    ("async_end!(\"net\", id, \"request\")", "async_end!(id, category, name, \"key\" => value, …)"),
    ("async_enter!(\"net\", \"request\", id)", "async_enter!(id, category, name, \"key\" => value, …)"),
    ("flow_begin!(7, \"net\", \"request\")", "flow_begin!(category, name, id, \"key\" => value, …)"),
    ("flow_step!(id, \"net\", \"request\")", "flow_step!(category, name, id, \"key\" => value, …)"),
    ("flow_end!(\"net\", 7, \"request\", \"k\" => 1)", "flow_end!(category, name, id, \"key\" => value, …)"),
    ("counter!(\"a\", 0, \"b\", \"k\" => 1)", "counter!(category, name, id, \"key\" => value, …)"),
    ("instant!(\"a\", Scope::Thread, \"b\")", "instant!(category, name, scope, \"key\" => value, …)"),
    (
        "duration_complete!(\"a\", start, \"b\")",
        "duration_complete!(category, name, start, \"key\" => value, …)",
    ),
    (
        "instaflow_begin!(\"a\", \"b\", 7, \"c\")",
        "instaflow_begin!(category, name, step, id, \"key\" => value, …)",
    ),
    ("track_instant!(\"a\", \"b\", TRACK)", "track_instant!(category, track, name, \"key\" => value, …)"),
    ("track_duration!(\"a\", \"b\", TRACK)", "track_duration!(category, track, name, \"key\" => value, …)"),
    (
        "vthread_counter!(\"a\", \"b\", 1, 2, \"c\", \"k\" => 1)",
        "vthread_counter!(category, name, thread, id, counter, \"key\" => value, …)",
    ),
    (
        "let _ = trace_future_args!(\"a\", 7, \"b\")",
        "trace_future_args!(category, name, [flow], \"key\" => value, …)",
    ),
];

/// Beside what the compiler says of the types, the form, once for each call.
#[test]
fn calls_in_another_order_say_how_they_are_written() {
    let calls: Vec<_> = WRONG_ORDERS.iter().map(|(call, _)| format!("{{ {call}; }}")).collect();
    let parameters = "id: Id, start: Ticks";
    let source = format!(
        "use trace_provider::*;\nstatic TRACK: Track = Track::new(\"t\");\npub fn f({parameters}) {{ {} }}",
        calls.join("\n")
    );
    let messages = compile(&Sandbox::new(), &source);
    let mut found: Vec<_> =
        messages.iter().filter_map(|message| Some(message.text.split_once("expected `")?.1)).collect();
    found.retain(|text| text.contains("!("));
    let mut expected: Vec<_> = WRONG_ORDERS.iter().map(|(_, form)| format!("{form}`")).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
