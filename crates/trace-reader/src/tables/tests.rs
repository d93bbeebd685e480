use super::*;
use proptest::prelude::*;
use trace_format::units::Koid;

fn index(index: u16) -> StringIndex {
    StringIndex::new(index).unwrap()
}

#[test]
fn a_large_index_takes_no_room_for_those_below_it() {
    let mut table = Table::new();
    table.insert(0x7fff, 1);
    table.insert(1000, 2);
    assert_eq!((table.list.len(), table.map.len()), (0, 2));
    assert_eq!((table.find(0x7fff), table.find(1000), table.find(0)), (Some(&1), Some(&2), None));
    // The list grows, and takes over what it now covers.
    for place in 0..=600 {
        table.insert(place, place);
    }
    table.insert(1100, 3);
    assert_eq!((table.list.len(), table.map.len()), (1101, 1));
    assert_eq!((table.find(1000), table.find(1001), table.find(0x7fff)), (Some(&2), None, Some(&1)));
}

#[test]
fn a_definition_says_what_it_did() {
    let mut budget = Budget::new(3 * ENTRY_BYTES + 10);
    let mut provider = Provider::new(ProviderId(1), b"p");
    assert_eq!(provider.define_string(0, b"x", &mut budget), Defined::Nothing);
    assert_eq!(provider.define_string(1, b"abcdef", &mut budget), Defined::New);
    assert_eq!(provider.define_string(1, b"abcdef", &mut budget), Defined::Same);
    assert_eq!(provider.define_string(1, b"ab", &mut budget), Defined::Changed);
    assert_eq!(provider.define_string(2, b"abcdefgh", &mut budget), Defined::New);
    // What does not fit is unknown from then on, and not what it was.
    assert_eq!(provider.define_string(1, &[b'x'; 100], &mut budget), Defined::Full);
    assert_eq!(provider.string(index(1)), Some(&b"<unknown>"[..]));
    let thread = Thread { process: Koid(1), thread: Koid(2) };
    assert_eq!(provider.define_thread(1, thread, &mut budget), Defined::New);
    assert_eq!(provider.define_thread(1, thread, &mut budget), Defined::Same);
    assert_eq!(provider.define_thread(1, Thread::default(), &mut budget), Defined::Changed);
    assert_eq!(provider.define_thread(2, thread, &mut budget), Defined::Full);
    provider.forget(&mut budget);
    assert_eq!(provider.string(index(2)), None);
    assert_eq!(provider.define_thread(2, thread, &mut budget), Defined::New);
}

#[test]
fn a_provider_that_comes_again_gives_its_room_back() {
    let mut providers = Providers::new(PROVIDER_BYTES + 150);
    for _ in 0..100 {
        assert!(providers.introduce(ProviderId(1), b"one"));
        let (provider, budget) = providers.current_mut();
        assert_eq!(provider.define_string(1, b"text", budget), Defined::New);
        assert!(providers.introduce(ProviderId(2), b"two"));
        assert_eq!(providers.select(ProviderId(1)), (true, true));
        assert_eq!(providers.current().string(index(1)), Some(&b"text"[..]));
    }
    assert_eq!(providers.select(ProviderId(3)), (false, false));
    assert_eq!(providers.select(ProviderId(3)), (true, true));
}

#[test]
//= docs/format.md#time
fn the_last_time_is_exact() {
    for rate in [1, 2, 999, 24_000_000, 1_000_000_000, 3_000_000_001, u64::MAX] {
        let rate = TicksPerSecond::new(rate).unwrap();
        let last = last_time(rate);
        let nanos = |ticks: u64| u128::from(ticks) * 1_000_000_000 / u128::from(rate.0.get());
        assert!(nanos(last.0) < 1 << 63, "{rate}");
        assert!(last.0 == u64::MAX || nanos(last.0 + 1) >= 1 << 63, "{rate}");
    }
}

proptest! {
    /// The table is a map, whatever the order.
    #[test]
    fn a_table_is_a_map(entries in proptest::collection::vec((0_u16..3000, any::<u32>()), 0..300)) {
        let (mut table, mut model) = (Table::new(), HashMap::new());
        for (index, value) in entries {
            table.insert(index, value);
            model.insert(index, value);
            prop_assert!(table.list.len() <= 3 * model.len() + 3000);
        }
        for index in 0..3100 {
            prop_assert_eq!(table.find(index), model.get(&index));
        }
    }
}
