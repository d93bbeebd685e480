//! Functions with the attribute `#[trace]`.
//!
//! `attributes functions|blocks|texts|futures|dropped`: the calls of one kind, each a few times.

use std::borrow::Cow;
use std::fmt::{Debug, Display};
use std::num::ParseIntError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use trace_provider::{TraceProvider, trace};

fn main() {
    let mode = std::env::args().nth(1).expect("a mode");
    let _provider = TraceProvider::new("attributes");
    match mode.as_str() {
        "functions" => functions(),
        "blocks" => blocks(),
        "texts" => texts(),
        "futures" => futures(),
        "dropped" => dropped(),
        mode => panic!("no mode {mode}"),
    }
}

const CATEGORY: &str = "named";

fn functions() {
    assert_eq!(outer(2), 2);
    assert_eq!(early(-1), Ok(0));
    assert_eq!(early(7), Ok(7));
    early(100).unwrap_err();
    let panicked = catch_unwind(AssertUnwindSafe(|| panicking("always")));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"as expected"));
    renamed();
    assert_eq!(generic(&[3, 5], "two"), 5);
    assert_eq!(longest("ab", "c"), "ab");
    assert_eq!(iterator(3).sum::<u32>(), 3);
    // SAFETY: the function needs nothing.
    assert_eq!(unsafe { without_checks(4) }, 4);
    assert_eq!(owned("owned".to_owned(), vec![1, 2], PathBuf::from("/tmp")), 11);
    assert_eq!(consumed("consumed".to_owned()), "consumed");
    assert_eq!((pattern((1, 2)), r#type(3)), (3, 3));
    items_first();
    many(1, 2);
    assert_eq!(local_names(1), 3);
}

#[trace]
fn outer(depth: u32) -> u32 {
    if depth == 0 { 0 } else { 1 + inner(depth) }
}

#[trace(args(depth))]
fn inner(depth: u32) -> u32 {
    outer(depth - 1)
}

/// Leaves by a `return`, by its end and by `?`.
#[trace(args(number))]
fn early(number: i8) -> Result<i8, ParseIntError> {
    if number < 0 {
        return Ok(0);
    }
    let parsed = format!("{number}{}", if number < 100 { "" } else { "0" }).parse()?;
    Ok(parsed)
}

#[trace(args(why))]
fn panicking(why: &str) {
    assert!(why.is_empty(), "as expected");
}

#[trace(category = CATEGORY, name = "the name")]
fn renamed() {}

#[trace(args(count = items.len(), debug(items), display(label), last = debug(items.last())))]
fn generic<T: Debug + Copy, const N: usize>(items: &[T; N], label: impl Display) -> T {
    let _label = label.to_string();
    items[N - 1]
}

#[trace(args(one, other))]
fn longest<'a>(one: &'a str, other: &'a str) -> &'a str {
    if one.len() < other.len() { other } else { one }
}

/// The duration ends when the iterator is there.
#[trace(args(end))]
fn iterator(end: u32) -> impl Iterator<Item = u32> {
    0..end
}

/// # Safety
/// None is needed.
#[trace(args(number))]
unsafe fn without_checks(number: u64) -> u64 {
    number
}

#[trace(args(text, bytes, path))]
fn owned(text: String, bytes: Vec<u8>, path: PathBuf) -> usize {
    text.len() + bytes.len() + path.as_os_str().len()
}

/// The body moves what is recorded.
#[trace(args(display(text)))]
fn consumed(text: String) -> String {
    text
}

#[trace(args(a, sum = a + b))]
fn pattern((a, b): (u8, u8)) -> u8 {
    a + b
}

#[trace(args(r#type))]
fn r#type(r#type: u16) -> u16 {
    r#type
}

#[trace(args(value = value()))]
fn items_first() {
    fn value() -> bool {
        true
    }
}

#[trace(args(
    a,
    b,
    c = 3,
    d = 4,
    e = 5,
    f = 6,
    g = 7,
    h = 8,
    i = 9,
    j = 10,
    k = 11,
    l = 12,
    m = 13,
    n = 14,
    o = 15
))]
fn many(a: i32, b: i32) -> i32 {
    a + b
}

/// The body's names are not those of the expansion.
#[trace(args(site, state = site + 1))]
fn local_names(site: u32) -> u32 {
    let _trace_duration = 1;
    let state = _trace_duration + 1;
    state + site
}

struct Machine {
    steps: u32,
}

#[trace(category = "machine")]
impl Machine {
    const NAME: &str = "machine";

    const fn new() -> Self {
        Self { steps: 0 }
    }

    fn step(&mut self) -> u32 {
        self.steps += 1;
        self.steps
    }

    #[trace(category = "other", args(steps = self.steps, debug(self)))]
    fn by_reference(&self) -> u32 {
        self.steps
    }

    #[trace_provider::trace(name = "finish")]
    fn by_value(self) -> u32 {
        self.steps
    }

    #[expect(clippy::boxed_local, reason = "each form of self")]
    fn boxed(self: Box<Self>) -> &'static str {
        Self::NAME
    }

    fn counted(self: &Rc<Self>) -> usize {
        Rc::strong_count(self)
    }

    #[trace(skip)]
    fn skipped(&self) -> u32 {
        self.steps
    }
}

impl Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Machine {}", self.skipped())
    }
}

#[trace]
impl<T> From<Vec<T>> for Machine {
    fn from(steps: Vec<T>) -> Self {
        Self { steps: steps.len() as u32 }
    }
}

impl Machine {
    #[trace(args(steps = self.steps))]
    fn alone(&self) {}
}

#[trace]
trait Shape {
    fn sides(&self) -> u32;

    fn is_closed(&self) -> bool {
        self.sides() > 2
    }
}

impl Shape for u32 {
    fn sides(&self) -> u32 {
        *self
    }
}

#[trace(category = "module")]
mod module {
    pub fn function() -> u32 {
        private() + nested::function() + nested::skipped() + CONSTANT
    }

    const CONSTANT: u32 = constant();

    const fn constant() -> u32 {
        1
    }

    #[trace_provider::trace(args(one = 1_u8))]
    fn private() -> u32 {
        Unit.method() + Unit.quiet()
    }

    struct Unit;

    impl Unit {
        fn method(&self) -> u32 {
            2
        }
    }

    #[trace(skip)]
    impl Unit {
        fn quiet(&self) -> u32 {
            3
        }
    }

    #[trace(category = "nested")]
    mod nested {
        pub fn function() -> u32 {
            4
        }

        #[trace(skip)]
        pub fn skipped() -> u32 {
            5
        }
    }
}

fn blocks() {
    let mut machine = Machine::new();
    assert_eq!((machine.step(), machine.step()), (1, 2));
    assert_eq!((machine.by_reference(), machine.skipped(), machine.by_value()), (2, 2, 2));
    assert_eq!(Box::new(Machine::new()).boxed(), "machine");
    assert_eq!(Rc::new(Machine::new()).counted(), 1);
    Machine::from(vec![(), (), ()]).alone();
    assert!(3.is_closed());
    assert_eq!(module::function(), 15);
}

/// Each kind of text; the body takes what it owns.
#[trace(args(a, b, c, d, e, f, g, h, i, display(j), display(k), l = display(c)))]
#[expect(clippy::too_many_arguments, clippy::ptr_arg, reason = "each kind of text")]
fn texts_of(
    a: &str,
    b: String,
    c: Cow<'_, str>,
    d: &String,
    e: Option<&str>,
    f: Option<String>,
    g: &Cow<'_, str>,
    h: Option<Cow<'_, str>>,
    i: &Option<String>,
    j: &str,
    k: String,
) -> usize {
    let h = h.as_ref().map_or(0, |text| text.len());
    let owned = b.len() + c.len() + f.as_ref().map_or(0, String::len) + h + k.len();
    owned + a.len() + d.len() + e.map_or(0, str::len) + g.len() + i.as_ref().map_or(0, String::len) + j.len()
}

/// The same of a future.
#[trace(args(a, b, c, d, e, f, g, h, i, display(j), display(k), l = display(c)))]
#[expect(clippy::too_many_arguments, clippy::ptr_arg, reason = "each kind of text")]
async fn texts_later(
    a: &str,
    b: String,
    c: Cow<'_, str>,
    d: &String,
    e: Option<&str>,
    f: Option<String>,
    g: &Cow<'_, str>,
    h: Option<Cow<'_, str>>,
    i: &Option<String>,
    j: &str,
    k: String,
) -> usize {
    drop((b, c, f, h, k));
    a.len() + d.len() + e.map_or(0, str::len) + g.len() + i.as_ref().map_or(0, String::len) + j.len()
}

fn texts() {
    let (text, cow, some) = ("say \"d\"".to_owned(), Cow::from("g"), Some("i".to_owned()));
    macro_rules! call {
        ($function:ident, $option:expr) => {{
            let f = $option.map(str::to_owned);
            let h = $option.map(Cow::from);
            $function("a", "b".to_owned(), "c".into(), &text, $option, f, &cow, h, &some, "j", "k".to_owned())
        }};
    }
    assert_eq!((call!(texts_of, Some("o")), call!(texts_of, None::<&str>)), (17, 14));
    runtime().block_on(async {
        assert_eq!((call!(texts_later, Some("o")).await, call!(texts_later, None::<&str>).await), (12, 11));
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime")
}

fn futures() {
    runtime().block_on(async {
        // Tasks of this runtime can be moved between threads.
        assert_eq!(tokio::spawn(task(3)).await.expect("no panic"), 3);
        assert_eq!(tokio::spawn(Client { id: 7 }.run()).await.expect("no panic"), 7);
        let (text, mut list) = (String::from("/index"), vec![1]);
        assert_eq!(fetch(&text, text.clone(), &mut list).await.expect("no error").to_string(), "6");
        assert_eq!(list, [1, 6]);
        parse("x").await.unwrap_err();
        assert_eq!(plain(2).await, 2);
        assert_eq!(local(Rc::new(5)).await, 5);
    });
}

#[trace(args(yields))]
async fn task(yields: u32) -> u32 {
    for _ in 0..yields {
        tokio::task::yield_now().await;
    }
    yields
}

struct Client {
    id: u64,
}

#[trace]
impl Client {
    #[trace(args(id = self.id))]
    async fn run(mut self) -> u64 {
        self.ask().await;
        self.id
    }

    async fn ask(&mut self) {
        tokio::task::yield_now().await;
    }
}

/// Text of the caller and of its own; what is returned is converted, borrowed, and opaque.
#[trace(args(url, own, length = own.len(), debug(list)))]
async fn fetch<'a>(
    url: &str,
    own: String,
    list: &'a mut Vec<usize>,
) -> Result<impl Display + use<'a>, Box<dyn std::error::Error>> {
    drop(own);
    if url.is_empty() {
        return Err("no address".into());
    }
    list.push(url.len());
    let last: &'a usize = list.last().ok_or("no last one")?;
    Ok(last)
}

#[trace(args(text))]
async fn parse(text: &str) -> Result<i32, Box<dyn std::error::Error + Send + Sync>> {
    Ok(text.parse::<i32>()?)
}

/// Makes a future, and is recorded as long as that takes.
#[trace(args(number))]
fn plain(number: u32) -> impl Future<Output = u32> {
    std::future::ready(number)
}

/// Not for other threads.
#[trace]
async fn local(number: Rc<u32>) -> u32 {
    *number
}

fn dropped() {
    runtime().block_on(async {
        let waiting = tokio::spawn(forever());
        STARTED.acquire().await.expect("it is not closed").forget();
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
    });
}

static STARTED: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(0);

#[trace]
async fn forever() -> ! {
    STARTED.add_permits(1);
    loop {
        std::future::pending::<()>().await;
    }
}
