use super::writer::GROWTH_BYTES;
use super::*;

fn info() -> SessionInfo {
    let info = SessionInfo::new(BufferMode::Streaming, 1_000_000, 77, vec!["trace".into(), "record".into()]);
    SessionInfo { boot_clock_ns: 5, ..info }
}

fn provider(id: u32) -> BufferInfo {
    let (name, pid) = (format!("app {id}"), 40 + u64::from(id));
    let (parent, command_line, registered) = (None, None, None);
    let (origin, mode) = (None, None);
    BufferInfo { id, name, pid, bytes: 1 << 20, parent, command_line, registered, origin, mode }
}

fn part(half: Option<u32>, begin: u64) -> PartInfo {
    PartInfo { half, begin, left: vec![begin] }
}

/// A distinct value for each number.
fn so_far(number: u64) -> SoFar {
    let mut value = serde_json::to_value(SoFar::default()).unwrap();
    value["dropped"] = number.into();
    serde_json::from_value(value).unwrap()
}

fn lines(entries: &[Entry]) -> Vec<u8> {
    entries.iter().flat_map(|entry| [serde_json::to_vec(entry).unwrap(), vec![b'\n']].concat()).collect()
}

//= docs/recovery.md#manifest
#[test]
fn a_program_that_records_itself_is_named_when_it_has_a_provider() {
    let named = Entry::Named { provider: 1, name: "service".to_owned() };
    let started = Entry::Started { provider: 1, retains: false };
    let text = lines(&[Entry::Session(info()), Entry::Provider(provider(1)), started, named]);
    assert!(text.ends_with(b"{\"named\":{\"provider\":1,\"name\":\"service\"}}\n"));
    let manifest = Manifest::parse(&text).unwrap();
    let buffer = &manifest.buffers[&1];
    assert_eq!((buffer.provider.name.as_str(), buffer.is_started), ("service", true));
}

//= docs/recovery.md#manifest
#[test]
fn what_was_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(directory.path()).unwrap();
    let (first, second) = (Entry::Provider(provider(1)), Entry::Provider(provider(2)));
    for entry in [
        Entry::Session(info()),
        first,
        Entry::Started { provider: 1, retains: false },
        Entry::Part { provider: 1, part: part(Some(0), 40) },
        Entry::End { provider: 1, end: 420, so_far: so_far(9) },
        Entry::Saved { provider: 1, half: 0 },
    ] {
        writer.append(&entry).unwrap();
    }
    drop(writer);
    let mut writer = Writer::open(directory.path()).unwrap();
    for entry in [
        Entry::Part { provider: 1, part: part(Some(1), 420) },
        second,
        Entry::Started { provider: 2, retains: false },
        Entry::Part { provider: 2, part: part(None, 500) },
        Entry::End { provider: 2, end: 580, so_far: so_far(3) },
        Entry::Archived { provider: 2 },
        Entry::Ended,
    ] {
        writer.append(&entry).unwrap();
    }
    let manifest = Manifest::read(directory.path()).unwrap();
    assert_eq!(manifest.session, info());
    assert!(manifest.is_ended && manifest.recovered.is_empty());
    assert_eq!(manifest.session.mode(), Some(BufferMode::Streaming));
    let unfinished = Part { info: part(Some(1), 420), end: None };
    let saved = Part { info: part(Some(0), 40), end: Some((420, so_far(9))) };
    let one = Buffer {
        is_started: true,
        saved: Some(0),
        parts: vec![saved, unfinished],
        ..Buffer::new(provider(1))
    };
    let rest = Part { info: part(None, 500), end: Some((580, so_far(3))) };
    let two = Buffer { is_archived: true, is_started: true, parts: vec![rest], ..Buffer::new(provider(2)) };
    assert_eq!(manifest.buffers, BTreeMap::from([(1, one), (2, two)]));
}

#[test]
fn a_new_manifest_is_empty_and_one_of_a_user_names_the_user() {
    let directory = tempfile::tempdir().unwrap();
    drop(Writer::open(directory.path()).unwrap());
    assert_eq!(std::fs::read(directory.path().join(FILE)).unwrap(), b"");
    assert_eq!((info().uid, info().of_user(7).uid), (None, Some(7)));
}

#[test]
fn a_manifest_is_rewritten_at_its_limit_and_is_no_link() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(directory.path()).unwrap();
    writer.append(&Entry::Session(info())).unwrap();
    writer.limit = writer.bytes;
    writer.shorten(directory.path()).unwrap();
    assert!(writer.limit > GROWTH_BYTES);
    let (path, elsewhere) = (directory.path().join(FILE), directory.path().join("elsewhere"));
    std::fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(Writer::open(directory.path()).is_err());
}

#[test]
fn a_program_is_described_by_its_parent_or_its_registration() {
    let described = |parent, registered| {
        let command_line = Some("app -v".to_owned());
        BufferInfo { parent, registered, command_line, ..provider(1) }.program_info()
    };
    assert_eq!(described(None, None), None);
    for (parent, registered) in [(Some(3), None), (None, Some(5))] {
        let info = described(parent, registered).unwrap();
        assert_eq!((info.process, info.command_line.as_deref()), (Koid(41), Some("app -v")));
        assert_eq!((info.parent, info.registered), (parent.map(Koid), registered.map(Ticks)));
    }
}

//= docs/recovery.md#manifest
#[test]
fn parts_before_the_last_that_is_written_are_forgotten() {
    let mut entries = vec![Entry::Session(info()), Entry::Provider(provider(1))];
    for half in 0..3 {
        entries.push(Entry::Part { provider: 1, part: part(Some(half), 100 * u64::from(half)) });
        entries.push(Entry::End { provider: 1, end: 100 * u64::from(half) + 99, so_far: so_far(1) });
    }
    entries.push(Entry::Part { provider: 1, part: part(None, 300) });
    let halves = |last: Entry| {
        let manifest = Manifest::parse(&lines(&[&entries[..], &[last]].concat())).unwrap();
        let parts = manifest.buffers[&1].parts.clone();
        parts.into_iter().map(|part| part.info.half).collect::<Vec<_>>()
    };
    assert_eq!(halves(Entry::Saved { provider: 1, half: 1 }), [Some(1), Some(2), None]);
    assert_eq!(halves(Entry::Saved { provider: 1, half: 2 }), [Some(2), None]);
    // The rest (`None`) has no `End` line, so it is not known to be written, and nothing before it goes.
    assert_eq!(halves(Entry::Archived { provider: 1 }), [Some(0), Some(1), Some(2), None]);
}

//= docs/recovery.md#what-is-recovered
#[test]
fn an_archive_has_parts_of_this_run_or_of_one_before() {
    let entries = [
        Entry::Session(info()),
        Entry::Provider(provider(1)),
        Entry::Part { provider: 1, part: part(None, 40) },
        Entry::End { provider: 1, end: 100, so_far: so_far(1) },
        Entry::Started { provider: 1, retains: false },
        Entry::Part { provider: 1, part: part(None, 120) },
        Entry::End { provider: 1, end: 150, so_far: so_far(1) },
    ];
    let facts = |count| {
        let manifest = Manifest::parse(&lines(&entries[..count])).unwrap();
        (manifest.has_parts(), manifest.needed_bytes())
    };
    // Before the next start, the buffer has it, too.
    assert_eq!([1, 2, 3, 4].map(facts), [(false, 0), (false, 0), (true, 0), (true, 0)]);
    assert_eq!([5, 6, 7].map(facts), [(true, 0), (true, 120), (true, 150)]);
}

#[test]
fn a_start_after_an_archive_counts_anew() {
    let bytes = lines(&[
        Entry::Session(info()),
        Entry::Provider(provider(1)),
        Entry::Started { provider: 1, retains: false },
        Entry::Saving { provider: 1, half: 4 },
        Entry::Saved { provider: 1, half: 4 },
        Entry::Archived { provider: 1 },
        Entry::Started { provider: 1, retains: false },
    ]);
    let manifest = Manifest::parse(&bytes).unwrap();
    let buffer = &manifest.buffers[&1];
    assert_eq!((buffer.is_archived, buffer.saved, buffer.saving), (false, None, None));
}

//= docs/recovery.md#what-is-recovered
#[test]
fn a_file_holds_the_parts_that_end_in_it() {
    let entries = [
        Entry::Session(info()),
        Entry::Provider(provider(1)),
        Entry::Provider(provider(2)),
        Entry::Part { provider: 1, part: part(Some(0), 40) },
        Entry::End { provider: 1, end: 100, so_far: so_far(1) },
        Entry::Part { provider: 2, part: part(Some(0), 100) },
        Entry::End { provider: 2, end: 200, so_far: so_far(2) },
        Entry::Saved { provider: 1, half: 0 },
        Entry::Part { provider: 1, part: part(Some(1), 200) },
        // Of an archive that has failed.
        Entry::Part { provider: 2, part: part(Some(1), 0) },
    ];
    let manifest = Manifest::parse(&lines(&entries)).unwrap();
    for (bytes, whole) in [(39, 39), (40, 40), (99, 40), (100, 100), (199, 100), (200, 200), (900, 200)] {
        assert_eq!(manifest.whole_parts(bytes), whole, "{bytes} bytes");
    }
    let last = |bytes| manifest.buffers.values().map(move |buffer| buffer.last_part(bytes).is_some());
    assert_eq!(last(100).collect::<Vec<_>>(), [true, false]);
    assert_eq!(manifest.written_bytes(), 200);
    // The first half of the first buffer may be written over.
    assert_eq!(manifest.needed_bytes(), 100);
}

#[test]
fn a_manifest_that_grows_is_written_anew_and_says_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(directory.path()).unwrap();
    for entry in [
        Entry::Session(info()),
        Entry::Provider(provider(1)),
        Entry::Started { provider: 1, retains: false },
        Entry::Part { provider: 1, part: part(None, 8) },
        Entry::End { provider: 1, end: 16, so_far: so_far(7) },
        Entry::Started { provider: 1, retains: false },
    ] {
        writer.append(&entry).unwrap();
    }
    let path = directory.path().join(FILE);
    for half in 0.. {
        let before = Manifest::read(directory.path());
        let bytes = std::fs::metadata(&path).unwrap().len();
        writer.shorten(directory.path()).unwrap();
        let is_shorter = std::fs::metadata(&path).unwrap().len() < bytes;
        if is_shorter {
            assert_eq!(Manifest::read(directory.path()).unwrap(), before.unwrap());
            assert!(half > 5, "after {half} thousand halves");
            break;
        }
        assert!(half < 50, "it is never shorter");
        // Many at a time, so that it is rarely read.
        for half in 1000 * half..1000 * (half + 1) {
            let begin = 100 * u64::from(half);
            writer.append(&Entry::Part { provider: 1, part: part(Some(half), begin) }).unwrap();
            writer.append(&Entry::End { provider: 1, end: begin + 100, so_far: so_far(begin) }).unwrap();
            writer.append(&Entry::Saved { provider: 1, half }).unwrap();
        }
    }
    writer.append(&Entry::Archived { provider: 1 }).unwrap();
    assert!(Manifest::read(directory.path()).unwrap().buffers[&1].is_archived);
}

#[test]
fn an_unfinished_line_and_a_strange_one_are_skipped() {
    let entries = [
        Entry::Session(info()),
        Entry::Provider(provider(1)),
        Entry::Started { provider: 1, retains: false },
    ];
    let mut bytes = lines(&entries[..2]);
    bytes.extend_from_slice(b"{\"later\":{\"provider\":1}}\n\xff\xfe\n\n");
    bytes.extend(lines(&entries[2..]));
    bytes.extend_from_slice(b"{\"archived\":{\"provi");
    let manifest = Manifest::parse(&bytes).unwrap();
    assert_eq!(manifest.buffers.len(), 1);
    assert!(manifest.buffers[&1].is_started && !manifest.buffers[&1].is_archived);
    // Recovery continues behind the line that a kill left unfinished.
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(FILE), &bytes).unwrap();
    let mut writer = Writer::open(directory.path()).unwrap();
    writer.append(&Entry::Recovered { file: "a.fxt".into() }).unwrap();
    assert_eq!(Manifest::read(directory.path()).unwrap().recovered, ["a.fxt"]);
}

#[test]
fn nothing_and_another_version_are_said() {
    assert!(matches!(Manifest::parse(b""), Err(ManifestError::Empty)));
    assert!(matches!(
        Manifest::parse(&lines(&[Entry::Started { provider: 1, retains: false }])),
        Err(ManifestError::Empty)
    ));
    let later = lines(&[Entry::Session(SessionInfo { version: 2, ..info() })]);
    assert!(matches!(Manifest::parse(&later), Err(ManifestError::Version { found: 2 })));
}

//= docs/protocol.md#programs-of-which-something-is-missing
#[test]
fn what_an_archive_has_of_the_missing_programs_depends_on_its_size() {
    let missing = |id: u32| Missing {
        id,
        name: format!("app {id}"),
        pid: 7,
        reason: Some(36),
        at: 5,
        disposition: "refused".to_owned(),
        problem: "it is too old".to_owned(),
    };
    let entries = [
        Entry::Session(info()),
        Entry::Missing(missing(1)),
        Entry::Missing(missing(2)),
        Entry::MissingWritten { programs: 2, end: 400 },
        Entry::Missing(missing(3)),
        Entry::MissingWritten { programs: 3, end: 500 },
    ];
    let manifest = Manifest::parse(&lines(&entries)).unwrap();
    let after = |bytes| manifest.missing_after(bytes).iter().map(|missing| missing.id).collect::<Vec<_>>();
    assert_eq!(after(399), [1, 2, 3]);
    assert_eq!((after(400), after(499)), (vec![3], vec![3]));
    assert_eq!(after(500), [0; 0]);
    // Rewriting the manifest keeps its meaning.
    assert_eq!(Manifest::parse(&lines(&manifest.entries())).unwrap(), manifest);
}
