//! Sites that are made at run time, and arguments that are put together then.

use crate::own_process::is_own_process;
use crate::support::{Event, Trace};
use trace_engine::{
    ArgumentBuffer, BufferMode, Disposition, DynamicSite, Event as Written, EventType, Number, Scope, Site,
    ThreadMoment, duration, ffi, write_event, write_event_of,
};

const INSTANT: Written = Written { event_type: EventType::Instant, start: None, extra: None };

/// The third and the first of three arguments.
fn some_arguments(number: u64) -> ArgumentBuffer {
    let mut arguments = ArgumentBuffer::new();
    assert!(arguments.push_text(2, "text"));
    assert!(arguments.push(0, Number::Uint64(number)));
    arguments
}

fn arguments_of(event: &Event) -> Vec<(&str, &str)> {
    event.args.iter().map(|(name, value)| (&**name, &**value)).collect()
}

#[test]
fn a_site_is_on_while_its_category_is_recorded_whenever_it_was_made() {
    let mut trace = Trace::start(64 << 10, &["leaked"]);
    trace.pause();
    let before = Site::leaked("leaked", "before", &["first", "second", "third"]);
    let other = Site::leaked("other", "unwanted", &[]);
    assert!(!before.is_on() && !other.is_on());
    trace.resume(Disposition::Retain);
    let during = Site::leaked("leaked", "during", &["first", "second", "third"]);
    assert!(before.is_on() && during.is_on());
    assert!(!other.is_on() && !Site::leaked("other", "too", &[]).is_on());
    for site in [before, during, other] {
        write_event(site, INSTANT, &some_arguments(7));
    }
    trace.pause();
    assert!(!before.is_on() && !during.is_on());
    write_event(before, INSTANT, &some_arguments(8));
    trace.resume(Disposition::Retain);
    write_event(during, INSTANT, &some_arguments(9));
    let read = trace.stop();
    let found: Vec<_> = read.events.iter().map(|event| (&*event.name, arguments_of(event))).collect();
    let expected = |number| vec![("third", "\"text\""), ("first", number)];
    assert_eq!(
        found,
        [
            ("before", expected("Uint64(7)")),
            ("during", expected("Uint64(7)")),
            ("during", expected("Uint64(9)"))
        ]
    );
}

/// Names of arguments stand in the record where they have no index: those of the arguments that are there.
#[test]
fn names_without_an_index_stand_in_the_event() {
    let site = Site::leaked("leaked", "named", &["a long name of an argument", "another", "third"]);
    let trace = Trace::start_in(BufferMode::Oneshot, 64 << 10);
    ffi::current_thread().expect("a trace runs");
    for number in 0_u64.. {
        let length = ffi::durable_room().min(400) as usize;
        if length < 16 {
            break;
        }
        ffi::string_index(format!("{number:0width$}", width = length - 8).as_bytes()).expect("there is room");
    }
    write_event(site, INSTANT, &some_arguments(7));
    // There is no argument of this number.
    let mut wrong = some_arguments(8);
    assert!(wrong.push(9, Number::Bool(true)));
    write_event(site, INSTANT, &wrong);
    let read = trace.stop();
    assert_eq!(read.findings.bad_records, 0, "{:?}", read.findings.first_bad);
    let expected = [("third", "\"text\""), ("a long name of an argument", "Uint64(7)")];
    assert_eq!(arguments_of(&read.events[0]), expected);
    let expected = [("third", "\"text\""), ("a long name of an argument", "Uint64(8)"), ("", "Bool(true)")];
    assert_eq!(arguments_of(&read.events[1]), expected);
}

#[test]
fn a_site_is_found_by_its_texts() {
    if !is_own_process("leaked::a_site_is_found_by_its_texts") {
        return;
    }
    let of = |category: &str, name: &str, arguments: &[&'static str]| {
        Site::of_texts(category, name, arguments).map(std::ptr::from_ref)
    };
    let first = of("texts", "name", &["size"]).expect("there is room");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                let category = format!("{}s", "text");
                Site::of_texts(&category, "name", &["size"]).map(|site| std::ptr::from_ref(site).addr())
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), Some(first.addr()));
    }
    let others = [of("texts", "name", &[]), of("texts", "nam", &["size"]), of("text", "sname", &["size"])];
    for (number, other) in others.iter().enumerate() {
        assert!(other.is_some() && *other != Some(first) && !others[..number].contains(other), "{number}");
    }
    let long = "x".repeat(32_001);
    assert_eq!((of(&long, "name", &[]), of("texts", &long, &[])), (None, None));
    assert_eq!(of("texts", "name", &["argument"; 16]), None);
    // There is a bound; those that were made are still found.
    let many: Vec<_> = (0..6000).map(|number| of("many", &number.to_string(), &[])).collect();
    let made = many.iter().flatten().count();
    assert!((2000..4096).contains(&made), "{made}");
    assert_eq!(many, (0..6000).map(|number| of("many", &number.to_string(), &[])).collect::<Vec<_>>());
    assert_eq!(of("texts", "name", &["size"]), Some(first));
    // What has no room has a name that stands for it, in its own category.
    let trace = Trace::start(64 << 10, &["fresh"]);
    for number in 0..100_u64 {
        (0..20).for_each(|name| _ = Site::of_texts("fresh", &format!("{number}.{name}"), &["number"]));
        DynamicSite::new("fresh", &format!("name {number}"), ["number"]).instant(Scope::Thread, (number,));
    }
    let read = trace.stop();
    assert_eq!(read.events.len(), 100);
    assert!(read.events.iter().any(|event| event.name == "(too many names)"));
}

#[test]
fn a_site_with_texts_of_run_time_records_every_kind() {
    let trace = Trace::start(4 << 20, &["dynamic"]);
    for name in ["one", "two", "one"] {
        let name = format!("plugin {name}");
        let site = DynamicSite::new("dynamic", &name, ["text", "number"]);
        assert!(site.is_on());
        site.instant(Scope::Process, ("a", 1_u64));
        let duration = site.duration((name.as_str(), -1_i64));
        drop(duration);
    }
    let site = DynamicSite::new("dynamic", "others", ["value"]);
    site.counter(7, (2.5,));
    site.duration_begin((true,));
    site.duration_end((false,));
    DynamicSite::new("dynamic", &"€".repeat(20_000), []).instant(Scope::Thread, ());
    let unwanted = DynamicSite::new("unwanted", "other", ["value"]);
    assert!(!unwanted.is_on());
    unwanted.instant(Scope::Thread, (1_u64,));
    drop(unwanted.duration((1_u64,)));
    let read = trace.stop();
    let found: Vec<_> =
        read.events.iter().map(|event| (&*event.name, &*event.kind, arguments_of(event))).collect();
    let instant = vec![("text", "\"a\""), ("number", "Uint64(1)")];
    let of_plugin = |name, text| {
        let duration = vec![("text", text), ("number", "Int64(-1)")];
        [(name, "instant p", instant.clone()), (name, "complete", duration)]
    };
    let one = of_plugin("plugin one", "\"plugin one\"");
    let long = "€".repeat(10_666);
    let others = [
        ("others", "counter 7", vec![("value", "Double(2.5)")]),
        ("others", "begin", vec![("value", "Bool(true)")]),
        ("others", "end", vec![("value", "Bool(false)")]),
        (&*long, "instant t", vec![]),
    ];
    let expected = [&one[..], &of_plugin("plugin two", "\"plugin two\""), &one, &others].concat();
    assert_eq!(found, expected);
}

/// As many arguments as an event can have, of every number of them.
#[test]
fn a_site_with_texts_of_run_time_has_as_many_values_as_names() {
    let trace = Trace::start(1 << 20, &["dynamic"]);
    macro_rules! write {
        ($($name:literal $value:literal)*) => {
            DynamicSite::new("dynamic", "numbers", [$($name),*]).instant(Scope::Thread, ($($value,)*));
        };
    }
    write!("a" 1_u64 "b" 2_u64 "c" 3_u64 "d" 4_u64 "e" 5_u64 "f" 6_u64 "g" 7_u64 "h" 8_u64 "i" 9_u64);
    write!("a" 1_u64 "b" 2_u64 "c" 3_u64 "d" 4_u64 "e" 5_u64 "f" 6_u64 "g" 7_u64 "h" 8_u64 "i" 9_u64
           "j" 10_u64 "k" 11_u64 "l" 12_u64 "m" 13_u64 "n" "fourteen" "o" 15_u64);
    let read = trace.stop();
    let found: Vec<String> = read
        .events
        .iter()
        .map(|event| arguments_of(event).iter().map(|(name, value)| format!("{name}={value} ")).collect())
        .collect();
    let numbers = |last: u64| ('a'..).zip(1..=last).map(|(name, value)| format!("{name}=Uint64({value}) "));
    let most: String = numbers(13).chain(["n=\"fourteen\" o=Uint64(15) ".to_owned()]).collect();
    assert_eq!(found, [numbers(9).collect::<String>(), most]);
}

#[test]
fn an_event_may_be_of_another_thread() {
    let site = Site::leaked("leaked", "arrow", &[]);
    let trace = Trace::start(64 << 10, &[]);
    // It ends before the trace does: behind that it would be in another test's.
    let here = {
        duration!("leaked", "here");
        trace_engine::instant!("leaked", "first", trace_engine::Scope::Thread);
        let here = ThreadMoment::last();
        std::thread::spawn(move || {
            trace_engine::instant!("leaked", "there", trace_engine::Scope::Thread);
            assert_ne!(ThreadMoment::last().thread, here.thread);
            write_event_of(site, here, INSTANT, &());
        })
        .join()
        .expect("no panic");
        here
    };
    let read = trace.stop();
    let of = |name: &str| read.events.iter().find(|event| event.name == name).expect("it is there");
    assert_eq!((of("arrow").thread, of("arrow").timestamp), (of("first").thread, here.at));
    assert_ne!(of("there").thread, of("first").thread);
}

#[test]
fn arguments_that_do_not_fit_are_refused_and_long_texts_are_cut() {
    let mut arguments = ArgumentBuffer::new();
    for name in 0..15 {
        assert!(arguments.push(name, Number::Int64(-1)));
    }
    assert!(!arguments.push(0, Number::Bool(true)) && !arguments.push_text(0, ""));
    assert_eq!(arguments.count(), 15);
    let mut text = ArgumentBuffer::new();
    assert!(text.push_text(0, &"€".repeat(3000)));
    let bytes = |arguments: &ArgumentBuffer| arguments.each().flatten().copied().collect::<Vec<u8>>();
    assert_eq!(bytes(&text).len(), 4096);
    assert!(!text.push(1, Number::Double(0.5)), "it is full");
    // Whole arguments come back, and nothing else.
    let mut restored = ArgumentBuffer::new();
    assert!(restored.restore(&bytes(&arguments)) && !restored.restore(&bytes(&arguments)));
    assert_eq!((bytes(&restored), restored.count()), (bytes(&arguments), 15));
    restored.clear();
    assert!(!restored.restore(&bytes(&arguments)[..24]), "an argument is cut off");
    assert!(!restored.restore(&[0; 8]), "an argument has no size");
    assert!(!restored.restore(&[0xff; 64]), "no argument is of this type");
    assert_eq!(restored.count(), 0);
    assert_eq!(arguments.each().map(<[u8]>::len).collect::<Vec<_>>(), [16; 15]);
}
