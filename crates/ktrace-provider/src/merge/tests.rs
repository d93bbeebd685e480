use super::*;

fn layout() -> PageLayout {
    let text = "field: u64 timestamp; offset:0; size:8; signed:0;\nfield: local_t commit; offset:8; size:8; signed:1;\n\
                field: char data; offset:16; size:4080; signed:0;\n";
    PageLayout::parse(text).unwrap()
}

/// A page of events of one word each, at these times; their words are the times.
fn put(merge: &mut Merge, cpu: u16, lost: Option<u64>, times: &[u64]) -> Option<u64> {
    let layout = layout();
    let page = merge.page(&layout);
    page[..8].copy_from_slice(&times[0].to_le_bytes());
    let flags = lost.map_or(0, |_| 3 << 30);
    page[8..16].copy_from_slice(&(flags | (times.len() as u64 * 8)).to_le_bytes());
    let mut before = times[0];
    for (time, place) in times.iter().zip((16..).step_by(8)) {
        page[place..place + 4].copy_from_slice(&(1 | ((time - before) as u32) << 5).to_le_bytes());
        page[place + 4..place + 8].copy_from_slice(&(*time as u32).to_le_bytes());
        before = *time;
    }
    if let Some(count) = lost {
        let end = 16 + times.len() * 8;
        page[end..end + 8].copy_from_slice(&count.to_le_bytes());
    }
    merge.keep(&layout, cpu)
}

fn taken(merge: &mut Merge, horizon: u64) -> Vec<(u64, u16, Option<u64>)> {
    let mut taken = Vec::new();
    merge.take_until(horizon, |time, cpu, what| {
        taken.push((
            time,
            cpu,
            match what {
                Merged::Event(payload) => {
                    assert_eq!(payload, (time as u32).to_le_bytes());
                    None
                }
                Merged::Lost(count) => Some(count.unwrap_or(0)),
            },
        ));
    });
    taken
}

//= docs/kernel.md#records
#[test]
fn events_of_all_cpus_come_in_order_up_to_what_all_have_delivered() {
    let mut merge = Merge::default();
    assert_eq!(put(&mut merge, 0, None, &[10, 30, 50]), Some(50));
    assert_eq!(put(&mut merge, 1, None, &[20, 30, 40]), Some(40));
    assert_eq!(
        taken(&mut merge, 40),
        [(10, 0, None), (20, 1, None), (30, 0, None), (30, 1, None), (40, 1, None)]
    );
    // Waiting events come out with those that other sources have delivered meanwhile.
    put(&mut merge, 1, None, &[45, 60]);
    assert_eq!(taken(&mut merge, 55), [(45, 1, None), (50, 0, None)]);
    assert_eq!(taken(&mut merge, 55), []);
    assert_eq!(taken(&mut merge, u64::MAX), [(60, 1, None)]);
}

//= docs/kernel.md#losses
#[test]
fn a_loss_comes_before_the_first_event_behind_it() {
    let mut merge = Merge::default();
    put(&mut merge, 0, None, &[10]);
    put(&mut merge, 1, Some(1582), &[5, 20]);
    let expected = [(5, 1, Some(1582)), (5, 1, None), (10, 0, None), (20, 1, None)];
    assert_eq!(taken(&mut merge, u64::MAX), expected);
}

//= docs/kernel.md#pages
#[test]
fn a_page_that_makes_no_sense_is_counted() {
    let (mut merge, layout) = (Merge::default(), layout());
    merge.page(&layout)[8..16].copy_from_slice(&4090_u64.to_le_bytes());
    assert_eq!(merge.keep(&layout, 0), None);
    merge.page(&layout);
    merge.give_back(&layout);
    put(&mut merge, 0, None, &[10]);
    assert_eq!((taken(&mut merge, u64::MAX).len(), merge.damaged()), (1, 1));
}
