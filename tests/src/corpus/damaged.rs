//! Files as a whole: several providers, and what can be wrong with a file.

use super::{Corpus, Trace};

/// The complete trace of the format's documentation: one duration.
const COMPLETE: [u64; 27] = [
    0x0016_5478_4604_0010,
    0x0040_0000_0011_0020,
    0x0000_0000_6f6d_6564,
    0x0000_0000_0000_0021,
    0x0000_0000_3b9a_ca00,
    0x0000_0003_0001_0022,
    0x0000_0000_0074_6163,
    0x0000_0004_0002_0022,
    0x0000_0000_6b72_6f77,
    0x0000_0007_0003_0022,
    0x0073_7365_636f_7270,
    0x0000_0000_0001_0033,
    0x0000_0000_0000_04d2,
    0x0000_0000_0000_162e,
    0x0000_0080_0401_0037,
    0x0000_0000_0000_04d2,
    0x0000_0000_6f6d_6564,
    0x0000_0180_0402_0057,
    0x0000_0000_0000_162e,
    0x0000_0000_6e69_616d,
    0x0000_0000_0003_0028,
    0x0000_0000_0000_04d2,
    0x0002_0001_0114_0054,
    0x0000_0000_0000_03e8,
    0x0000_0007_8001_0022,
    0x0000_0000_0000_006e,
    0x0000_0000_0000_1388,
];

pub(super) fn add(corpus: &mut Corpus) {
    let complete = Trace::empty().words(&COMPLETE);
    corpus.add("file-complete", "a worked example: a whole trace of one duration", &complete);
    corpus.add("file-twice", "two traces, one behind the other", &complete.clone().words(&COMPLETE));
    corpus.add("file-no-magic", "an old archive", &Trace::empty().words(&COMPLETE[1..]));
    corpus.add("file-truncated", "cut inside its last record", &Trace(complete.0[..200].to_vec()));
    corpus.add("file-truncated-word", "cut inside a word", &Trace(complete.0[..181].to_vec()));
    let zeros = Trace::empty().words(&COMPLETE[..5]).words(&[0, 0, 0]).words(&COMPLETE[5..]).words(&[0]);
    corpus.add("file-zero-words", "zeros between records, as in memory that was never written", &zeros);
    providers(corpus);

    // Damage.
    let lost = complete.clone().words(&[0x1_0004, 0x21, 7]);
    corpus.add("damage-size-0", "a header without size, and nowhere to resume", &lost);
    let resumed = lost.clone().words(&COMPLETE);
    corpus.add("damage-resumed", "a header without size, and a magic number behind it", &resumed);
    let shifted = lost.bytes(&[1, 2, 3]).words(&COMPLETE);
    corpus.add("damage-shifted", "the same, with three bytes too many", &shifted);
    // The size of the last record grows by the magic number and the provider info behind it.
    let mut swallowed = COMPLETE;
    swallowed[22] += 3 << 4;
    let swallowed = Trace::empty().words(&swallowed).words(&COMPLETE);
    corpus.add("damage-swallowed", "a size that reaches over the next magic number", &swallowed);
    // The same, where only records of the same provider follow.
    let mut words = COMPLETE.to_vec();
    words.extend(&COMPLETE[22..]);
    words[22] += 1 << 4;
    corpus.add(
        "damage-no-way-back",
        "a size that is too large by one, and nowhere to resume",
        &Trace::empty().words(&words),
    );
    let noise: Vec<u64> = (1_u64..200).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 0x10).collect();
    corpus.add("damage-noise", "a magic number, and noise behind it", &Trace::magic().words(&noise));
}

fn providers(corpus: &mut Corpus) {
    let info = |id: u64| [0x0010_0000_0001_0020 | id << 20, b'a' as u64 - 1 + id];
    let string = |text: u8| [0x1_0005_0022, u64::from(text)];
    let thread = |koid: u64| [0x0001_0033, koid, koid + 1];
    let instant = [0x0005_0005_0100_0024, 3_000];
    let section = |id: u64| [0x0000_0000_0002_0010 | id << 20];
    let trace = Trace::magic()
        .words(&info(1))
        .words(&[0x21, 1_000_000])
        .words(&string(b'x'))
        .words(&thread(10))
        .words(&info(2))
        .words(&[0x21, 1_000])
        .words(&string(b'y'))
        .words(&thread(20))
        .words(&instant)
        .words(&section(1))
        .words(&instant)
        .words(&section(2))
        .words(&instant);
    corpus.add("file-providers", "A, B, A, B with equal indices and other meanings", &trace);
    let again = Trace::magic()
        .words(&info(1))
        .words(&[0x21, 1_000])
        .words(&string(b'x'))
        .words(&thread(10))
        .words(&info(1))
        .words(&instant);
    corpus.add("file-provider-again", "introduced again: its tables are empty", &again);
    let implicit = Trace::magic().words(&string(b'x')).words(&thread(10)).words(&instant);
    corpus.add("file-no-provider", "records before any provider: nanoseconds of provider 0", &implicit);
    // Each record longer by a word.
    let extended = Trace::magic().words(&[
        0x0010_0000_0011_0030,
        0x61,
        0xffff_ffff_ffff_ffff,
        0x31,
        1_000_000_000,
        7,
        0x1_0005_0032,
        0x78,
        0xdead,
        0x0001_0043,
        10,
        11,
        0xbeef,
        0x0005_0005_0102_0034,
        1000,
        7,
        0x0005_0005_0103_0034,
        2000,
        8,
        0x0000_0080_0101_0047,
        10,
        0x70,
        9,
    ]);
    corpus.add("file-extended", "records with words that a later version appended", &extended);
}
