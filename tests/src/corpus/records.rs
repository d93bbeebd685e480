//! Records other than events.

use super::{Corpus, Trace};
use trace_format::argument::Arguments;
use trace_format::blob::{Blob, TYPE_DATA};
use trace_format::function::{FunctionRecord, KERNEL};
use trace_format::further;
use trace_format::kernel_object::{KernelObject, TYPE_PROCESS};
use trace_format::large::LargeBlob;
use trace_format::log::Log;
use trace_format::loss::{LedgerRecord, LossCode, LossRecord};
use trace_format::metadata::Metadata;
use trace_format::profiler::{Frames, Profiler, ProfilerKind};
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::string::StringRecord;
use trace_format::units::{Koid, ProviderId, StringIndex, ThreadIndex, Ticks};

/// The one that the prelude introduces.
const PROVIDER: ProviderId = ProviderId(1);

pub(super) fn add(corpus: &mut Corpus) {
    metadata(corpus);
    definitions(corpus);
    blobs(corpus);
    objects(corpus);
    scheduling(corpus);
    logs(corpus);
    profiler(corpus);
    large(corpus);
}

fn metadata(corpus: &mut Corpus) {
    corpus.add("metadata-magic", "the magic number, and nothing else", &Trace::magic());
    let info = [0x00da_abbc_cdd1_0030, 0x6f72_705f_7473_6574, 0x0000_0072_6564_6976];
    corpus.add("metadata-provider-info", "a worked example", &Trace::magic().words(&info));
    let info = |id, name| Record::Metadata(Metadata::ProviderInfo { id: ProviderId(id), name });
    let trace = Trace::magic().record(&info(0, b"")).record(&info(u32::MAX, &[b'n'; 255]));
    corpus.add("metadata-provider-info-limits", "no name and id 0; 255 bytes and the largest id", &trace);
    let reserved = Trace::magic().words(&[0xf000_0000_0011_0010]);
    corpus.add("metadata-provider-info-reserved", "reserved bits are set", &reserved);
    corpus.add_words("metadata-provider-section", "a worked example", &[0x0000_0000_0012_0010]);
    let unknown = Trace::magic().words(&[0x0000_0000_0092_0010]);
    corpus.add("metadata-provider-section-unknown", "of a provider that was not introduced", &unknown);
    corpus.add_words("metadata-provider-event", "a worked example: the buffer was full", &[0x0013_0010]);
    corpus.add_words("metadata-provider-event-15", "the largest event", &[0x00f0_0000_0013_0010]);
    corpus.add_words("metadata-unknown", "types that are not assigned", &[0x0010, 0x5_0020, 7, 0x14_0010]);
    corpus.add_words("metadata-magic-again", "in the middle, where it means nothing", &[Trace::MAGIC]);
}

fn definitions(corpus: &mut Corpus) {
    let event = [0x0002_0001_0100_0024, 24_000_000];
    corpus.add_words("initialization", "a worked example", &[0x21, 0x3b9a_ca00]);
    let rate = |rate| [0x21, rate, event[0], event[1]];
    corpus.add_words("initialization-24-mhz", "a tick is 41 2/3 ns", &rate(24_000_000));
    corpus.add_words("initialization-1-hz", "a tick is a second", &rate(1));
    corpus.add_words("initialization-max", "the largest rate", &rate(u64::MAX));
    corpus.add_words("initialization-twice", "the rate changes", &[&rate(1)[..], &rate(24)].concat());
    let extended = [0x41, 0x8f0d_1800, 5, 6, event[0], event[1]];
    corpus.add_words("initialization-extended", "a worked example of 4 words, of which 2 count", &extended);
    corpus.add_words("initialization-zero", "malformed: the rate before stays", &rate(0));

    let use_string = |index: u64| [0x0000_0001_0100_0024 | index << 48, 1000];
    let string = |index, value| Record::String(StringRecord { index, value });
    corpus.add_words("string-7-bytes", "a worked example", &[0x0007_0005_0022, 0x0073_7365_636f_7270]);
    corpus.add_words(
        "string-8-bytes",
        "a worked example without padding",
        &[0x8_0006_0022, 0x4141_4141_5f54_4143],
    );
    corpus.add_record("string-empty", "an index for the empty string", &string(5, b""));
    corpus.add_record("string-32000-bytes", "the longest that is written", &string(5, &[b's'; 32_000]));
    let longest = [&[0x0000_7ff0_0005_fff2][..], &[0x7373_7373_7373_7373; 4094]].concat();
    corpus.add_words("string-32752-bytes", "the longest that is read", &longest);
    let trace = Trace::prelude().record(&string(0x7fff, b"last")).words(&use_string(0x7fff));
    corpus.add("string-index-32767", "the largest index", &trace);
    let trace = Trace::prelude().record(&string(0, b"none")).words(&use_string(0));
    corpus.add("string-index-0", "defines nothing; a reference to 0 is the empty string", &trace);
    let trace = Trace::prelude().words(&use_string(2)).record(&string(2, b"other")).words(&use_string(2));
    corpus.add("string-redefined", "the last definition holds", &trace);
    let trace = Trace::prelude().record(&string(5, b"a\xffb")).words(&use_string(5));
    corpus.add("string-not-utf8", "bytes pass through", &trace);
    corpus.add_words("string-undefined", "an index that was not defined", &use_string(9));
    corpus.add_words("string-length-lies", "malformed: longer than its record", &[0x9_0005_0022, 0x61]);

    let use_thread = |index: u64| [0x0002_0001_0000_0024 | index << 24, 1000];
    corpus.add_words("thread", "a worked example", &[0x0001_0033, 0x4d2, 0x162e]);
    let last = [&[0x00ff_0033, 7, 8][..], &use_thread(255)].concat();
    corpus.add_words("thread-index-255", "the largest index", &last);
    corpus.add_words("thread-index-0", "defines nothing", &[0x33, 7, 8]);
    let redefined = [&use_thread(1)[..], &[0x0001_0033, 7, 8], &use_thread(1)].concat();
    corpus.add_words("thread-redefined", "the last definition holds", &redefined);
    let virtual_thread = [&[0x0002_0033, 7, 1 << 63 | 9][..], &use_thread(2)].concat();
    corpus.add_words("thread-virtual", "bit 63 of a koid is set", &virtual_thread);
    corpus.add_words("thread-undefined", "an index that was not defined", &use_thread(9));
    corpus.add_words("thread-short", "malformed: one koid", &[0x0002_0023, 7]);
}

fn blobs(corpus: &mut Corpus) {
    let named = [
        0x0001_0025_0002_0065,
        0x2073_6920_7369_6854,
        0x7461_6420_656d_6f73,
        0x7720_7461_6874_2061,
        0x7277_2065_7261_2065,
        0x0000_0067_6e69_7469,
    ];
    corpus.add_words("blob-data", "a worked example, with another name", &named);
    corpus.add_words("blob-perfetto", "a worked example", &[0x0003_0004_8002_0035, 0x6670, 0x0108_020a]);
    let types = [0x0001_0000_0000_0015, 0x0002_0000_0002_0015, 0x00ff_0000_0002_0015];
    corpus.add_words("blob-types", "unnamed and empty; last-branch; a later type", &types);
    let name = StringRef::Index(StringIndex::new(2).expect("not 0"));
    let largest = Record::Blob(Blob { blob_type: TYPE_DATA, name, payload: &[0xab; 32_752] });
    corpus.add_record("blob-32752-bytes", "the largest", &largest);
    corpus.add_words("blob-length-lies", "malformed: longer than its record", &[0x0001_0009_0002_0025, 0]);
    let loss = LossRecord {
        provider: PROVIDER,
        reason: LossCode(4),
        count: 1000,
        first: Ticks(0x1111_2222_3333),
        last: Ticks(0x4444_5555_6666),
    };
    let mut payload = loss.to_bytes();
    corpus.add_record(
        "loss",
        "what a provider lost: a blob of this project",
        &Record::Blob(LossRecord::blob(&payload)),
    );
    payload[0] = 2;
    corpus.add_record(
        "loss-version-2",
        "of a later version: a blob",
        &Record::Blob(LossRecord::blob(&payload)),
    );
    let foreign = LossRecord { provider: ProviderId(8), ..loss }.to_bytes();
    let foreign = Record::Blob(LossRecord::blob(&foreign));
    corpus.add_record("loss-of-another", "what a provider says of another: a blob", &foreign);
    let ledger =
        LedgerRecord { provider: PROVIDER, generated: 1000, archived: 900, records: 950, uncertain: 2 };
    let ledger = ledger.to_bytes();
    let ledger = Record::Blob(LedgerRecord::blob(&ledger));
    corpus.add_record("ledger", "how records add up: a blob of this project", &ledger);
    let argument = 0x0000_0009_0003_0011_u64.to_le_bytes();
    let waits = |total| {
        let payload = [&further::head(total, 0)[..], &argument].concat();
        Trace::prelude().record(&Record::Blob(further::blob(&payload)))
    };
    let event = [0x0002_0001_0100_0024, 1000];
    corpus.add("further-arguments", "of an event: a blob of this project", &waits(8).words(&event));
    corpus.add("further-arguments-lost", "the second blob is missing", &waits(16).words(&event));
}

fn objects(corpus: &mut Corpus) {
    let object = [0x0000_0100_0201_0036, 0xdead_beef, 0x0000_0001_0003_0019];
    corpus.add_words("userspace-object-indexed", "a worked example, with other indices", &object);
    let object = [0x0000_0080_0300_0046, 0xdead_beef, 1234, 0x0067_6f64];
    corpus.add_words("userspace-object-inline", "the process is one word; this is not written", &object);
    corpus.add_words("kernel-object-process", "a worked example", &[0x0080_0401_0037, 0x4d2, 0x6f6d_6564]);
    let thread = [0x0000_0180_0402_0057, 0x162e, 0x6e69_616d, 0x0004_0028, 0x4d2];
    corpus.add_words("kernel-object-thread", "a worked example, with another index", &thread);
    let channel = [0x0000_0180_0404_0057, 0xdead_beef, 0x656d_616e, 0x8003_0029, 0x0067_7261];
    corpus.add_words("kernel-object-channel", "a worked example", &channel);
    let name = [0x0000_0080_0501_0037, 0x4d2, 0x0000_006f_6cff_6568];
    corpus.add_words("kernel-object-not-utf8", "a worked example: its name may be any bytes", &name);
    let object = |koid, name| KernelObject {
        object_type: TYPE_PROCESS,
        koid: Koid(koid),
        name: StringRef::Inline(name),
        arguments: Arguments::default(),
    };
    let trace = Trace::prelude()
        .record(&Record::KernelObject(object(7, b"first")))
        .record(&Record::KernelObject(object(7, b"second")));
    corpus.add("kernel-object-again", "the later name holds", &trace);
}

fn scheduling(corpus: &mut Corpus) {
    let switch = [0x1000_002b_bbb2_0068, 0xabb_ccdd_eeff, 1, 2, 0x3_0001_0011, 0x4_0002_0011];
    corpus.add_words("scheduling-context-switch", "a worked example, at another time", &switch);
    let idle = [
        0x1000_0030_0012_00a8,
        1000,
        0x162e,
        0x2334,
        0x0000_0400_800f_0031,
        0x676e_696f_6774_756f,
        0x0074_6867_6965_775f,
        0x8000_0000_800f_0031,
        0x676e_696d_6f63_6e69,
        0x0074_6867_6965_775f,
    ];
    corpus.add_words("scheduling-context-switch-idle", "a worked example: to the idle thread", &idle);
    let waker =
        [0x2000_0000_0011_0068, 1, 0x1aaa_aaaa_aaaa_aaaa, 0x8005_0038, 0x72_656b_6177, 0x2ccc_cccc_cccc_cccc];
    corpus.add_words("scheduling-wakeup-waker", "a worked example", &waker);
    corpus.add_words(
        "scheduling-wakeup",
        "a worked example, with another index",
        &[0x2000_0000_0031_0048, 77, 0x162e, 0x400_0003_0011],
    );
    let legacy = [0x0002_0033, 7, 8, 0x0040_3020_12bb_0028, 0xabb_ccdd_eeff];
    corpus.add_words("scheduling-legacy-indexed", "a worked example, at another time", &legacy);
    let legacy = [0x0010_1000_0201_0068, 2, 0x1a, 0x1b, 0x2c, 0x2d];
    corpus.add_words("scheduling-legacy-inline", "a worked example", &legacy);
    let mixed = [0x0010_1010_0201_0048, 2, 0x1a, 0x1b, 0x0010_1000_1201_0048, 2, 0x2c, 0x2d];
    corpus.add_words("scheduling-legacy-mixed", "one thread inline, then the other", &mixed);
    let fibers = [0x3000_0000_0001_0058, 5, 7, 8, 0x3_0003_0011];
    corpus.add_words("scheduling-fiber-switch", "of another writer: read, never written", &fibers);
    corpus.add_words(
        "scheduling-states",
        "all 16 states",
        &(0..16).flat_map(|state| [0x1000_0000_0000_0048 | state << 36, state, 1, 2]).collect::<Vec<_>>(),
    );
    corpus.add_words(
        "scheduling-unknown",
        "kinds that are not assigned",
        &(4..16).flat_map(|kind| [0x28 | kind << 60, 7]).collect::<Vec<_>>(),
    );
}

fn logs(corpus: &mut Corpus) {
    let log = [0x1_0015_0059, 0xabb_ccdd_eeff, 0x2073_6920_7369_6854, 0x656d_2067_6f6c_2061, 0x65_6761_7373];
    corpus.add_words("log-indexed", "a worked example, at another time", &log);
    corpus.add_words("log-inline", "a worked example", &[0x0002_0059, 0xfa0, 0x4d2, 0x162e, 0x6968]);
    let thread = ThreadRef::Index(ThreadIndex::new(1).expect("not 0"));
    let longest = Record::Log(Log { timestamp: Ticks(1), thread, message: &[b'm'; 32_000] });
    corpus.add_record("log-32000-bytes", "the longest that is written", &longest);
    corpus.add_words("log-length-lies", "malformed: longer than its record", &[0x1_0009_0039, 1, 0x61]);
}

fn profiler(corpus: &mut Corpus) {
    let module = [
        0x0140_babc_d010_007a,
        0x1234,
        0x6e5f_656c_7564_6f6d,
        0x0065_6d61,
        0x0c00_75c1_f089_3e33,
        0x6fcd_ed1f_207e_9bee,
        0xaea8_4b9b,
    ];
    corpus.add_words("profiler-module", "a worked example, of another thread and time", &module);
    corpus.add_words(
        "profiler-mmap",
        "as the worked example of a module",
        &[0x0000_5abc_d011_005a, 0x1234, 0x1000, 0x2000, 0x3000],
    );
    corpus.add_words("profiler-backtrace", "three frames", &[0x3012_005a, 0x1234, 0x10, 0x20, u64::MAX]);
    let thread = ThreadRef::Index(ThreadIndex::new(1).expect("not 0"));
    let frames: Vec<u64> = (1..=255).collect();
    let kind = ProfilerKind::Backtrace { frames: Frames::new(&frames) };
    let deepest = Record::Profiler(Profiler { timestamp: Ticks(1), thread, kind });
    corpus.add_record("profiler-backtrace-255", "as many frames as there can be", &deepest);
    let function = |process, start, name| FunctionRecord { process, start, length: 0x10, name }.to_bytes();
    let own = function(Koid(1234), 0x1000, b"compiled");
    let kernel = function(KERNEL, 0xffff_8000_0000_1000, b"vfs_read");
    let (own, kernel) = (Record::Blob(own.blob()), Record::Blob(kernel.blob()));
    corpus.add_record("function", "a function of a process that is in no file", &own);
    let frames = [0xffff_8000_0000_1008, 0x100f, 0x1011, 0x1010, 0x2000];
    let kind = ProfilerKind::Backtrace { frames: Frames::new(&frames) };
    let known = Record::Profiler(Profiler { timestamp: Ticks(1), thread, kind });
    let named = Trace::prelude().record(&kernel).record(&own).record(&known);
    corpus.add("profiler-backtrace-named", "functions of the kernel and of the process", &named);
    corpus.add_words(
        "profiler-unknown",
        "kinds that are not assigned",
        &(3..16).flat_map(|kind| [0x2a | kind << 16, 7]).collect::<Vec<_>>(),
    );
}

fn large(corpus: &mut Corpus) {
    let payload =
        [0x7461_6420_656d_6f53, 0x6972_7720_6f74_2061, 0x206f_746e_6920_6574, 0x6666_7562_2065_6874, 0x7265];
    let event = [&[0xaf, 0x0000_0011_0002_0001, 0xabb_ccdd_eeff, 0x1_0003_0019, 34][..], &payload].concat();
    corpus.add_words("large-event", "a worked example, of another thread, time and name", &event);
    let attachment = [&[0x0000_0100_0000_008f, 0x0002_0001, 34][..], &payload].concat();
    corpus.add_words("large-attachment", "a worked example, with another name", &attachment);
    corpus.add_words(
        "large-event-inline",
        "strings stand before the time",
        &[0x8f, 0x8001_8002, 0x6162, 0x63, 5, 7, 9, 0],
    );
    let name = StringRef::Index(StringIndex::new(2).expect("not 0"));
    for words in [4096_usize, 4099] {
        let payload = vec![7; (words - 3) * 8];
        let blob = LargeBlob { category: StringRef::Empty, name, event: None, payload: &payload };
        corpus.add_record(
            &format!("large-{words}-words"),
            "a size that needs more than 12 bits",
            &Record::Large(blob),
        );
    }
    let unknown: Vec<u64> = (1..16)
        .map(|kind| 0x2f | kind << 36)
        .chain((2..16).map(|format| 0x2f | format << 40))
        .flat_map(|header| [header, 7])
        .collect();
    corpus.add_words("large-unknown", "types and formats that are not assigned", &unknown);
    corpus.add_words(
        "large-length-lies",
        "malformed: longer than its record",
        &[0x0000_0100_0000_003f, 0, 1],
    );
    corpus.add_words(
        "large-32-gib",
        "cut off: a size of 2^32 - 1 words",
        &[0x0000_010f_ffff_ffff, 0, 0x7_ffff_ff00, 7],
    );
    corpus.add_words("unknown-types", "record types 11 to 14", &[0x2b, 1, 0x2c, 2, 0x2d, 3, 0x2e, 4]);
}
