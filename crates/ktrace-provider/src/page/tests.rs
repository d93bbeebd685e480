use super::*;
use crate::testing;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";

fn layout() -> PageLayout {
    PageLayout::parse(HEADER_PAGE).unwrap()
}

//= docs/kernel.md#pages
#[test]
fn the_kernel_says_how_pages_are_laid_out() {
    assert_eq!(layout(), PageLayout { size: 4096, time: 0, commit: 8, data: 16 });
    assert_eq!(PageLayout::parse("\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"), None);
}

/// All events of a page, and whether it could be read to its end.
fn read(bytes: &[u8]) -> (Vec<Entry>, bool) {
    let mut page = Page::new(&layout(), bytes).unwrap();
    let mut entries = Vec::new();
    loop {
        match page.next_entry() {
            Ok(Some(entry)) => entries.push(entry),
            Ok(None) => return (entries, true),
            Err(Damaged) => return (entries, false),
        }
    }
}

fn times(bytes: &[u8]) -> Vec<u64> {
    let (entries, is_whole) = read(bytes);
    assert!(is_whole);
    entries.into_iter().map(|entry| entry.time).collect()
}

/// A page at time 1000 with these words of data and a commit word.
fn page_of(commit: u64, words: &[u32]) -> Vec<u8> {
    let mut page = 1000_u64.to_le_bytes().to_vec();
    page.extend(commit.to_le_bytes());
    page.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    page.resize(4096, 0xee);
    page
}

fn of_words(words: &[u32]) -> Vec<u8> {
    page_of(words.len() as u64 * 4, words)
}

//= docs/kernel.md#pages
#[test]
fn pages_of_a_kernel_are_read_to_the_tick() {
    assert_eq!(times(&testing::markers()), [5_268_218_201_304, 5_268_218_445_652, 5_268_738_112_358]);
    assert_eq!(
        times(&testing::scheduler()),
        [
            3_618_594_039_328,
            3_618_594_053_289,
            3_618_594_480_797,
            3_618_594_485_003,
            3_618_594_486_375,
            3_618_594_489_269,
            3_618_594_495_188,
        ]
    );
    let (entries, _) = read(&testing::markers());
    assert_eq!(entries[1].payload, 0x40..0x64);
}

//= docs/kernel.md#pages
#[test]
fn every_kind_of_header_is_known() {
    // An event of two words, and one of its own length, which is no multiple of four.
    assert_eq!(read(&of_words(&[2 | 5 << 5, 7, 8])).0, [Entry { time: 1005, payload: 20..28 }]);
    let long = of_words(&[1 << 5, 4 + 6, 1, 2, 1 | 2 << 5, 9]);
    assert_eq!(read(&long).0, [Entry { time: 1001, payload: 24..30 }, Entry { time: 1003, payload: 36..40 }]);
    // Nothing, with a length; nothing, to the end.
    assert_eq!(times(&of_words(&[29 | 4 << 5, 8, 0, 1 | 1 << 5, 9])), [1005]);
    assert_eq!(times(&of_words(&[1 | 1 << 5, 9, 29, 0xffff_ffff, 1, 2])), [1001]);
    // Time that passes; a time of its own.
    assert_eq!(times(&of_words(&[30 | 3 << 5, 2, 1 | 1 << 5, 9])), [1000 + 3 + (2 << 27) + 1]);
    assert_eq!(times(&of_words(&[31 | 5 << 5, 1, 1, 9])), [5 + (1 << 27)]);
}

//= docs/kernel.md#pages
#[test]
fn the_upper_bits_of_an_absolute_time_are_the_pages() {
    let mut page = of_words(&[31 | 5 << 5, 1, 1, 9]);
    page[..8].copy_from_slice(&(3_u64 << 59 | 77).to_le_bytes());
    assert_eq!(times(&page), [(3 << 59) + 5 + (1 << 27)]);
}

//= docs/kernel.md#pages
#[test]
fn the_commit_word_says_what_was_lost() {
    let lost = |commit, words: &[u32]| Page::new(&layout(), &page_of(commit, words)).unwrap().lost;
    assert_eq!(lost(8, &[1, 9]), Lost::Nothing);
    assert_eq!(lost(1 << 31 | 8, &[1, 9]), Lost::Some);
    assert_eq!(lost(3 << 30 | 8, &[1, 9, 1582, 0]), Lost::Count(1582));
    // The sign of its lower half stands in the upper one as well.
    let extended = page_of(0xffff_ffff_c000_0008, &[1, 9, 1582, 0]);
    assert_eq!(Page::new(&layout(), &extended).unwrap().lost, Lost::Count(1582));
    assert_eq!(times(&extended), [1000]);
}

//= docs/kernel.md#pages
#[test]
fn the_rest_of_a_damaged_page_is_left_out() {
    // An event that reaches beyond the data.
    let (entries, is_whole) = read(&page_of(12, &[1 | 1 << 5, 9, 5, 0, 0, 0, 0, 0]));
    assert_eq!((entries.len(), is_whole), (1, false));
    // Half a header.
    let (entries, is_whole) = read(&page_of(10, &[1 | 1 << 5, 9, 5]));
    assert_eq!((entries.len(), is_whole), (1, false));
    // More data than the page can hold, and no page at all.
    assert_eq!(Page::new(&layout(), &page_of(4090, &[])).err(), Some(Damaged));
    assert_eq!(Page::new(&layout(), &[0; 12]).err(), Some(Damaged));
}

proptest::proptest! {
    /// Whatever stands there: no panic, no endless loop, nothing outside of the page.
    #[test]
    fn any_bytes_are_read(words in proptest::collection::vec(proptest::prelude::any::<u32>(), 4..64), length in 0_u64..5000) {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes[8..16].copy_from_slice(&length.to_le_bytes());
        if let Ok(mut page) = Page::new(&layout(), &bytes) {
            let mut count = 0;
            while let Ok(Some(entry)) = page.next_entry() {
                count += 1;
                proptest::prop_assert!(bytes.get(entry.payload.clone()).is_some());
                proptest::prop_assert!(count <= bytes.len());
            }
        }
    }
}
