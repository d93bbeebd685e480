//! How many providers a user may have.

use super::registration::plain_name;
use super::*;
use trace_format::buffer::BUFFER_VERSION;
use trace_protocol::VersionRange;
use trace_protocol::limits::MAX_PROVIDERS_OF_A_USER;
use trace_protocol::registry::{Registration, RegistryStatus};

/// A provider without a connection.
pub(super) fn provider() -> Provider {
    Provider {
        name: "app".to_owned(),
        pid: 1,
        uid: Uid(0),
        channel: None,
        process: None,
        tracee: None,
        unanswered: VecDeque::new(),
        has_handed_over: false,
        dumps_memory: false,
        answers_dumps: false,
        parent: None,
        command_line: None,
        registered: 0,
        records_alerts: true,
        is_elsewhere: false,
        backs_buffer: false,
        redacts: true,
    }
}

//= docs/protocol.md#registry
#[test]
fn names_of_providers_have_no_control_characters() {
    assert_eq!(plain_name("größer (2)"), "größer (2)");
    assert_eq!(plain_name("a\u{1b}]52;c;aGk=\u{7}\nb\u{9b}"), "a\u{fffd}]52;c;aGk=\u{fffd}\u{fffd}b\u{fffd}");
    // A replacement is longer.
    assert_eq!(plain_name(&"\n".repeat(100)), "\u{fffd}".repeat(33));
}

//= docs/protocol.md#limits
#[test]
fn a_user_can_have_so_many_providers_and_others_have_theirs() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = RuntimeDir::open_or_create(&directory.path().join("run")).unwrap();
    let clock = Clock::measure();
    let mut providers = Providers::new(runtime, clock);
    let (_ours, theirs) = Channel::pair().unwrap();
    let registration = Registration {
        provider: theirs.into_handle(),
        pid: 1,
        name: "app".to_owned(),
        protocol: VersionRange::PROTOCOL,
        buffer_header: VersionRange::only(BUFFER_VERSION),
        tick_source: ticks::UNKNOWN.to_owned(),
        dumps_memory: false,
        answers_dumps: false,
        parent: None,
        command_line: None,
        records_alerts: true,
        numbers_threads: false,
        backs_buffer: false,
        redacts: true,
    };
    let (one, other) = (Uid(1000), Uid(1001));
    for id in 0..MAX_PROVIDERS_OF_A_USER {
        assert_eq!(providers.refusal(&registration, one), None);
        let provider = Provider { uid: one, ..provider() };
        providers.providers.insert(ProviderId(id as u32), provider);
    }
    let reason = "4096 programs of this user are registered already".to_owned();
    assert_eq!(providers.refusal(&registration, one), Some((RegistryStatus::Ok, reason)));
    assert_eq!(providers.refusal(&registration, other), None);
}
