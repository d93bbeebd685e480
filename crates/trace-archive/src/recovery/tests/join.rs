//! Archives that are joined from a client's file and a buffer.

use super::*;
use std::time::SystemTime;
use trace_format::loss::LossCode;
use trace_format::slab::Loss;
use trace_protocol::registry::GAVE_UP_PREFIX;

/// The first records of a program's part.
fn info(out: &mut Vec<u8>) {
    framing::provider_info(ProviderId(1), "app", out);
}

fn ledger(events: u64, out: &mut Vec<u8>) {
    let records = events + 3;
    let provider = ProviderId(1);
    framing::ledger(
        LedgerRecord { provider, generated: events, archived: events, records, uncertain: 0 },
        out,
    );
}

fn lost(out: &mut Vec<u8>) {
    framing::rest_missing(ProviderId(1), "app", out);
}

type Write<'a> = &'a dyn Fn(&mut Vec<u8>);

/// What these append.
fn archive(parts: &[Write<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    parts.iter().for_each(|part| part(&mut out));
    out
}

fn records(words: &[u64]) -> impl Fn(&mut Vec<u8>) {
    move |out| out.extend(bytes(words))
}

fn oneshot() -> Image {
    Image::sized(64 << 10, BufferMode::Oneshot).closed(0, 1, &[5, 7])
}

fn events() -> Vec<u64> {
    [&DEFINITIONS[..], &event(5), &event(7)].concat()
}

//= docs/recovery.md#what-is-recovered
#[test]
fn a_buffer_alone_becomes_an_archive() {
    let mut provider = app();
    provider.registered = Some(3);
    let one = One::new(&oneshot().bytes, &[Entry::Provider(provider), STARTED]);
    let (out, client, recovered) = one.recover();
    let events = events();
    // Without a head, no provider of the manager's reports when it registered and how it ended.
    assert_eq!(out, archive(&[&framing::magic, &info, &records(&events), &|out| ledger(2, out)]));
    assert_eq!(
        (client, recovered.unread, recovered.halves_before),
        (ClientFile::Unknown, None, (None, None))
    );
    let stats = recovered.stats;
    assert_eq!((stats.id, stats.name.as_str(), stats.pid), (1, "app", NO_PID));
    assert_eq!((stats.events_archived, stats.disposition.as_str()), (Some(2), "ended"));
    // The session began before the machine was booted, so its ticks are those of another clock.
    assert_eq!(stats.recorded_ns, None);
}

#[test]
fn times_are_judged_if_the_session_began_since_the_machine_did() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let session = SessionInfo::new(BufferMode::Oneshot, RATE, u64::try_from(now).unwrap(), Vec::new());
    let one = One::with(session, &oneshot().bytes, &started());
    assert!(one.recover().2.stats.recorded_ns.is_some_and(|nanos| nanos > 0));
}

#[test]
fn a_program_has_ended_or_left_or_still_runs() {
    let recover = |pid: u64, is_live: bool| {
        let entries = [Entry::Provider(BufferInfo { pid, ..app() }), STARTED];
        let one = One::new(&oneshot().bytes, &entries);
        let _live = is_live.then(|| Vmo::open(&one.buffer()).unwrap().marked().unwrap());
        one.recover().2.stats.disposition
    };
    let own = u64::from(std::process::id());
    assert_eq!(recover(NO_PID, false), ProviderDisposition::Ended);
    assert_eq!(recover(1 << 40, false), ProviderDisposition::Ended);
    assert_eq!(recover(own, false), ProviderDisposition::Left);
    assert_eq!(recover(own, true), ProviderDisposition::StillRunning);
    // In another pid namespace the number is another process's.
    let entries = [Entry::Provider(BufferInfo { pid: own, ..app() }), STARTED];
    let mut info = SessionInfo::new(BufferMode::Oneshot, RATE, 1, Vec::new());
    info.pid_namespace += 1;
    let one = One::with(info, &oneshot().bytes, &entries);
    assert_eq!(one.recover().2.stats.disposition, ProviderDisposition::Ended);
}

#[test]
fn a_head_is_taken_if_it_is_a_whole_one() {
    let whole = archive(&[&|out| framing::provider_info(ProviderId(0), "trace_manager", out)]);
    let one = One::new(&oneshot().bytes, &started());
    let recover = |head: &[u8]| {
        std::fs::write(one.directory.join(HEAD_FILE), head).unwrap();
        one.recover().0
    };
    let events = events();
    let buffer = archive(&[&info, &records(&events), &|out| ledger(2, out)]);
    let end = ProviderEnd {
        id: ProviderId(1),
        process: Koid(NO_PID),
        at: None,
        how: ProviderDisposition::Ended.into(),
    };
    let ended = archive(&[&|out| program_info::ended(std::slice::from_ref(&end), out)]);
    let out = recover(&whole);
    let rest = out.strip_prefix(&[&whole[..], &buffer, &ended].concat()[..]).unwrap();
    assert!(rest.windows(9).any(|text| text == b"recovered"));
    // What still runs has not ended.
    let live = Vmo::open(&one.buffer()).unwrap().marked().unwrap();
    let running = recover(&whole);
    drop(live);
    let has = |out: &[u8], text: &[u8]| out.windows(text.len()).any(|found| found == text);
    assert!(has(&out, b"ended") && !has(&running, b"ended") && !has(&running, b"still running"));
    let bare = [archive(&[&framing::magic]), buffer].concat();
    for head in [&whole[8..], &whole[..whole.len() - 4], &whole[..8]] {
        assert_eq!(recover(head), bare);
    }
}

//= docs/recovery.md#what-is-recovered
#[test]
fn a_buffer_of_which_nothing_makes_sense_is_kept() {
    let later = 1 << 62;
    // A recording of this boot, in which nothing can have been recorded after its reading.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let info = SessionInfo::new(BufferMode::Oneshot, RATE, now, Vec::new());
    let image = |times: &[u64]| Image::sized(64 << 10, BufferMode::Oneshot).closed(0, 1, times).bytes;
    let unread = |times: &[u64]| One::with(info.clone(), &image(times), &started()).recover().2.unread;
    let why = "no event of it is valid: 2 records are malformed";
    assert_eq!(unread(&[later, later + 2]).as_deref(), Some(why));
    assert_eq!(unread(&[5, later]), None);
    assert_eq!(unread(&[]), None);
}

//= docs/recovery.md#what-is-recovered
#[test]
fn a_buffer_that_is_gone_or_damaged_is_reported() {
    let one = One::new(&oneshot().bytes, &started());
    std::fs::write(one.buffer(), &oneshot().bytes[..100]).unwrap();
    let (out, _, recovered) = one.recover();
    let rest_lost = |out: &mut Vec<u8>| {
        let lost = Loss { count: 1, ..Loss::default() };
        framing::loss(ProviderId(1), LossCode::REST_MISSING, lost, out);
    };
    assert_eq!(out, archive(&[&framing::magic, &info, &rest_lost]));
    assert!(recovered.unread.is_some_and(|why| why == recovered.stats.problem && !why.is_empty()));
    std::fs::remove_file(one.buffer()).unwrap();
    let (out, _, recovered) = one.recover();
    assert_eq!(out, archive(&[&framing::magic, &lost]));
    assert_eq!(recovered.stats.disposition, ProviderDisposition::Missing);
    assert!(recovered.unread.is_some_and(|why| why == recovered.stats.problem && !why.is_empty()));
    let one = One::new(&[], &[&started()[..], &[Entry::Archived { provider: 1 }]].concat());
    std::fs::remove_file(one.buffer()).unwrap();
    let (out, _, recovered) = one.recover();
    assert_eq!((out, recovered.unread), (archive(&[&framing::magic]), None));
    assert_eq!(recovered.stats.disposition, ProviderDisposition::Archived);
}

#[test]
fn records_of_the_clients_file_come_first() {
    let mut provider = app();
    provider.registered = Some(3);
    let mut one = One::new(&oneshot().bytes, &[Entry::Provider(provider.clone()), STARTED]);
    let path = one.note_output(b"");
    let recover = |contents: &[u8]| {
        std::fs::write(&path, contents).unwrap();
        one.recover()
    };
    let events = events();
    let buffer = archive(&[&info, &records(&events), &|out| ledger(2, out)]);
    let magic = archive(&[&framing::magic]);
    let found = |bytes, is_cut_off| ClientFile::Found { path: path.clone(), bytes, is_cut_off };
    let (out, client, _) = recover(b"");
    assert_eq!((out, client), ([&magic[..], &buffer].concat(), found(0, false)));
    // It may have the head that describes the program.
    let program = provider.program_info().unwrap();
    let joined = archive(&[&|out| program_info::joined(ProviderId(1), "app", &program, out)]);
    let all = [&magic[..], &joined, &buffer].concat();
    for end in [&b""[..], b"half a record"] {
        let (out, client, _) = recover(&[&magic[..], &bytes(&events[..2]), end].concat());
        let file = [&magic[..], &bytes(&events[..2])].concat();
        assert_eq!(client, found(file.len() as u64, false));
        assert_eq!(out, [&file[..], &joined, &buffer].concat());
    }
    // A zstd frame of one block, which is not compressed.
    let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 8, 0x41, 0, 0], &magic[..]].concat();
    let table = [0x5e, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 0xb1, 0xea, 0x92, 0x8f];
    for (contents, is_cut_off) in [([&frame[..], &table].concat(), false), (frame, true)] {
        let (out, client, _) = recover(&contents);
        assert_eq!((out, client), (all.clone(), found(8, is_cut_off)));
    }
}

/// The buffer of a stream with an event in each half, and its first half in an archive with the state after
/// it.
fn stream() -> (Image, Vec<u8>, SoFar) {
    let image = Image::sized(64 << 10, BufferMode::Streaming);
    let slabs = image.layout.slabs_per_half;
    let image = image.closed(0, 1, &[5]).closed(slabs, 1 + u64::from(slabs), &[7]);
    let buffer = ProviderBuffer {
        id: ProviderId(1),
        name: "app".to_owned(),
        size: image.layout.total_bytes,
        mode: BufferingMode::Streaming,
        rate: TicksPerSecond::new(RATE).unwrap(),
        is_accounted: true,
        period: None,
        may_be_blank: false,
        program: None,
        open_until: None,
        ending: None,
    };
    let progress = Progress::of(Vmo::of_bytes("buffer", &image.bytes).unwrap());
    let part = Part::Half { wrapped_count: 0, durable_data_end: 56 };
    let mut transfer = Transfer::new(buffer, progress, part);
    let mut out = archive(&[&framing::magic]);
    while !transfer.poll(&mut out) {}
    (image, out, transfer.into_stats().1.so_far())
}

//= docs/recovery.md#what-is-recovered
#[test]
fn a_stream_continues_behind_the_half_that_the_client_has() {
    let (image, first, so_far) = stream();
    let end = first.len() as u64;
    let mut entries = started().to_vec();
    entries.push(Entry::Part { provider: 1, part: PartInfo { half: Some(0), begin: 8, left: Vec::new() } });
    entries.push(Entry::End { provider: 1, end, so_far: so_far.clone() });
    entries.push(Entry::Saved { provider: 1, half: 0 });
    let session = || SessionInfo::new(BufferMode::Streaming, RATE, 1, Vec::new());
    let mut one = One::with(session(), &image.bytes, &entries);
    let path = one.note_output(&first);
    let (out, _, recovered) = one.recover();
    let section: Write<'_> = &|out| framing::provider_section(ProviderId(1), out);
    let second = archive(&[section, &records(&event(7)), &|out| ledger(2, out)]);
    assert_eq!(out, [&first[..], &second].concat());
    assert_eq!((recovered.unread, recovered.halves_before), (None, (None, None)));
    assert_eq!(recovered.stats.events_archived, Some(2));
    // The file has become shorter: of its events none is left, and their number is not known.
    std::fs::write(&path, &first[..8]).unwrap();
    let (out, _, recovered) = one.recover();
    let definitions_and_both = [&DEFINITIONS[..], &event(5), &event(7)].concat();
    let rest = archive(&[&info, &records(&definitions_and_both), &lost]);
    assert_eq!(out, [&first[..8], &rest].concat());
    assert!(recovered.unread.is_some_and(|why| why.starts_with("only 8 bytes of the recording's own file")));
    // It is gone.
    std::fs::remove_file(&path).unwrap();
    let (out, client, recovered) = one.recover();
    assert_eq!(out, [&first[..8], &rest].concat());
    assert!(matches!(client, ClientFile::Missing { bytes, .. } if bytes == end));
    assert_eq!((recovered.unread, recovered.halves_before), (None, (Some(0), Some(0))));
    // The archive went into a pipe.
    let one = One::with(session(), &image.bytes, &entries);
    let (out, client, recovered) = one.recover();
    assert_eq!(out, archive(&[&framing::magic, &info, &records(&definitions_and_both)]));
    assert_eq!((client, recovered.halves_before), (ClientFile::Unknown, (Some(0), Some(0))));
}

/// The session's archive is gone, so recovery has only the data of the buffer.
#[test]
fn without_an_archive_nothing_continues_it() {
    let (_, _, so_far) = stream();
    let part = PartInfo { half: None, begin: 0, left: Vec::new() };
    let [part, end] = [Entry::Part { provider: 1, part }, Entry::End { provider: 1, end: 0, so_far }];
    let [provider, start] = started();
    let events = events();
    for entries in [[&provider, &part, &end, &start], [&provider, &start, &part, &end]] {
        let one = One::new(&oneshot().bytes, &entries.map(Clone::clone));
        let (out, _, recovered) = one.recover();
        assert_eq!(out, archive(&[&framing::magic, &info, &records(&events), &|out| ledger(2, out)]));
        assert_eq!(recovered.stats.disposition, ProviderDisposition::Ended);
    }
}

#[test]
fn nothing_is_added_to_what_the_client_has_all_of() {
    let (image, first, so_far) = stream();
    let mut entries = started().to_vec();
    entries.push(Entry::Part { provider: 1, part: PartInfo { half: None, begin: 8, left: Vec::new() } });
    entries.push(Entry::End { provider: 1, end: first.len() as u64, so_far });
    let mut one = One::new(&image.bytes, &entries);
    one.note_output(&first);
    let (out, _, recovered) = one.recover();
    assert_eq!((out, recovered.unread), (first, None));
    assert_eq!(recovered.stats.disposition, ProviderDisposition::Archived);
    assert_eq!(recovered.stats.events_archived, Some(1));
}

//= docs/recording.md#from-the-first-line
#[test]
fn programs_that_recorded_themselves_are_numbered_from_1() {
    let sessions = [(); 2].map(|()| One::new(&oneshot().bytes, &started()));
    let leftovers = sessions.each_ref().map(One::leftover);
    let (mut out, mut ids) = (Vec::new(), Vec::new());
    recover_startups(&leftovers, &mut out, |recovered| ids.push(recovered.stats.id)).unwrap();
    assert_eq!(ids, [1, 2]);
    assert_eq!(out[..8], archive(&[&framing::magic]));
    let second = archive(&[&|out| framing::provider_info(ProviderId(2), "app", out)]);
    assert!(out.windows(second.len()).any(|found| found == second));
    assert!(out.windows(9).any(|text| text == b"recovered"));
}

//= docs/protocol.md#programs-of-which-something-is-missing
#[test]
fn notes_belong_to_the_last_session_that_had_begun() {
    let one = One::new(&oneshot().bytes, &started());
    let note = |pid: u64| one.runtime.path().join(format!("{GAVE_UP_PREFIX}{pid}"));
    std::fs::write(note(7), "shy").unwrap();
    std::fs::write(note(NO_PID), "app").unwrap();
    let gave_up = |session: &Session| {
        let mut found: Vec<_> =
            session.gave_up().into_iter().map(|one| (one.pid, one.reason, one.disposition)).collect();
        found.sort();
        found
    };
    // The program with a buffer was recorded in the end.
    let expected = [(7, Some(36), "gave up".to_owned()), (NO_PID, Some(37), String::new())];
    assert_eq!(gave_up(&one.session()), expected);
    assert!(one.session().is_recoverable());
    // Of one of them the manager has known.
    let mut known = one.session();
    known.manifest.missing.push(Missing { pid: 7, ..missing() });
    assert_eq!(gave_up(&known), [(NO_PID, Some(37), String::new())]);
    // No program waits for one that records itself, nor for a manager in another directory.
    begin(one.runtime.path(), "session-own", true);
    let mut info = SessionInfo::new(BufferMode::Oneshot, RATE, 2, Vec::new());
    let elsewhere = one.runtime.path().join("own-7-1");
    info.runtime = Some(elsewhere.display().to_string());
    info.programs = vec!["mine".to_owned()];
    let (other, _) = begin_with(one.runtime.path(), "session-other", info);
    assert_eq!(gave_up(&one.session()), expected);
    // That one asks for a program by its name.
    std::fs::create_dir(&elsewhere).unwrap();
    for (pid, name) in [(8, "mine"), (9, "another")] {
        std::fs::write(elsewhere.join(format!("{GAVE_UP_PREFIX}{pid}")), name).unwrap();
    }
    let found = gave_up(&Session::read(&other).unwrap());
    assert_eq!(found, [(8, Some(36), "gave up".to_owned())]);
    let (later, _) = begin_with(
        one.runtime.path(),
        "session-2",
        SessionInfo::new(BufferMode::Oneshot, RATE, 2, Vec::new()),
    );
    assert_eq!(gave_up(&one.session()), []);
    let later = Leftover::open(&later).unwrap();
    assert_eq!(gave_up(later.session()).len(), 2);
    // They go with it.
    Leftover::open(&one.directory).unwrap().delete().unwrap();
    assert!(note(7).exists() && note(NO_PID).exists());
    later.delete().unwrap();
    assert!(!note(7).exists() && !note(NO_PID).exists());
}
