use super::*;

fn selection(categories: &[&str], names: &[&str], processes: &[&str], threads: &[&str]) -> Selection {
    Selection {
        categories: Choice::of(categories),
        names: Choice::of(names),
        processes: Choice::of(processes),
        threads: Choice::of(threads),
        ..Selection::default()
    }
}

fn of(selection: &Selection) -> Chosen {
    selection.choose(Survey::default()).unwrap().unwrap()
}

//= docs/selecting.md#selecting
#[test]
fn entries_of_a_kind_add_up_and_hyphens_exclude() {
    let chosen = of(&selection(&["net*", "-net:noise", "io"], &["-idle*"], &[], &[]));
    for (category, expected) in [
        ("net", true),
        ("net:tcp", true),
        ("net:noise", false),
        ("io", true),
        ("ios", false),
        ("", false),
        // One of several is chosen, and none of them excluded.
        ("app,io", true),
        ("app,ios", false),
        ("io,net:noise", false),
    ] {
        assert_eq!(chosen.has_category(category), expected, "{category}");
    }
    assert_eq!(
        ["idle", "idler", "not idle", ""].map(|name| chosen.has_name(name)),
        [false, false, true, true]
    );
    // Of kinds without an entry, everything is chosen.
    assert!(chosen.has_thread(Thread::default()) && chosen.has_time(0) && chosen.has_time(u64::MAX));
    assert!(of(&selection(&["*", "-a"], &[], &[], &[])).has_category("b"));
}

//= docs/selecting.md#selecting
#[test]
fn objects_have_a_number_and_perhaps_a_name() {
    let chosen = of(&selection(&[], &[], &["ser*", "12"], &["-7", "-main"]));
    for (process, name, expected) in [
        (1, Some("server"), true),
        (1, Some("client"), false),
        (1, None, false),
        (12, None, true),
        (12, Some("client"), true),
        (123, None, false),
        (1, Some("12"), true),
    ] {
        assert_eq!(chosen.has_process(Koid(process), name), expected, "{process} {name:?}");
    }
    let threads = [(7, None), (7, Some("worker")), (8, Some("main")), (8, Some("worker")), (77, None)];
    let found = threads.map(|(thread, name)| chosen.has_thread_alone(Koid(thread), name));
    assert_eq!(found, [false, false, false, true, true]);
    // Both kinds have to agree. Without names there are the numbers.
    let of = |process, thread| chosen.has_thread(Thread { process: Koid(process), thread: Koid(thread) });
    assert_eq!([of(12, 7), of(12, 8), of(1, 8)], [false, true, false]);
    assert!(!chosen.has_thread_number(Koid(8)));
}

//= docs/selecting.md#times
#[test]
fn a_window_has_its_begin_and_not_its_end() {
    let survey = || Survey { times: Some((1000, 9000)), utc_offset: Some(500), ..Survey::default() };
    let window = |from, to, last| {
        let selection = Selection { from, to, last, ..Selection::default() };
        selection.choose(survey()).map(|chosen| chosen.map(|chosen| (chosen.from, chosen.to)))
    };
    assert_eq!(window(None, None, None), Ok(None));
    let (from, to) = (Some(Moment::FromBegin(100)), Some(Moment::At(1200)));
    assert_eq!(window(from, to, None), Ok(Some((1100, Some(1200)))));
    assert_eq!(window(from, None, None), Ok(Some((1100, None))));
    assert_eq!(window(None, to, None), Ok(Some((0, Some(1200)))));
    assert_eq!(window(Some(Moment::Utc(1700)), None, None), Ok(Some((1200, None))));
    assert_eq!(window(Some(Moment::Utc(-1)), None, None), Ok(Some((0, None))));
    assert_eq!(window(None, None, Some(2000)), Ok(Some((7000, None))));
    assert_eq!(window(None, None, Some(10_000)), Ok(Some((0, None))));
    assert_eq!(window(Some(Moment::At(u64::MAX)), None, None), Ok(Some((u64::MAX, None))));
    for (from, to) in [(Moment::At(5), Moment::At(5)), (Moment::FromBegin(0), Moment::At(999))] {
        assert_eq!(window(Some(from), Some(to), None), Err(NoWindow::Empty));
    }
    assert_eq!(window(None, Some(Moment::At(0)), None), Err(NoWindow::Empty));
    let utc = Selection { to: Some(Moment::Utc(7)), ..Selection::default() };
    assert_eq!(utc.choose(Survey::default()).unwrap_err(), NoWindow::NoWallClock);
    let chosen = Selection { from, to, ..Selection::default() }.choose(survey()).unwrap().unwrap();
    let times = [1099, 1100, 1199, 1200];
    assert_eq!(times.map(|at| chosen.has_time(at)), [false, true, true, false]);
    assert_eq!(
        [(0, 9000), (1150, 1160), (0, 50)].map(|span| chosen.within(span)),
        [(1100, 1200), (1150, 1160), (1100, 1100)]
    );
}

#[test]
fn only_what_is_relative_needs_an_earlier_pass() {
    let window = |from, last| Selection { from, last, ..Selection::default() };
    for (selection, expected) in [
        (Selection::default(), false),
        (selection(&["a"], &["b"], &[], &[]), false),
        (selection(&[], &[], &["1"], &[]), true),
        (selection(&[], &[], &[], &["1"]), true),
        (window(Some(Moment::At(1)), None), false),
        (window(Some(Moment::FromBegin(1)), None), true),
        (window(Some(Moment::Utc(1)), None), true),
        (window(None, Some(1)), true),
    ] {
        assert_eq!(selection.needs_survey(), expected, "{selection:?}");
        assert_eq!(selection.is_all(), selection == Selection::default());
    }
}
