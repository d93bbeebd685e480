//! Messages that take long: whatever peers send, no turn of the manager's loop does.
//!
//! The manager notes a turn of more than 20 ms of processor time in its log. Without optimizations it has
//! five
//! times as long.
//= docs/internals/manager.md#what-a-message-may-cost

use super::hostile::{Scene, assert_honest};
use super::questions::{long_list, question as question_of};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use trace_protocol::controller::{ProvisionerRequest, ProvisionerResponse};
use trace_protocol::provider::{ProviderRequest, ProviderResponse};
use trace_protocol::{BufferingMode, Message, Txid};
use trace_tests::client::{Client, receive};
use trace_tests::proxy::register;
use trace_tests::wait_for;
use zx_sim::{Channel, Handle};

const MOST_MILLISECONDS: u64 = if cfg!(debug_assertions) { 100 } else { 20 };
const SIZE: u64 = 64 << 20;
/// Bytes that a user's programs have copied at most.
const MAX_COPIED: u64 = 128 << 20;

/// Registers programs; none of them sends STARTED later.
fn programs(scene: &Scene, count: u32) -> Vec<Channel> {
    let runtime = scene.sandbox.runtime_dir();
    (0..count).map(|number| register(&runtime, &format!("bulk-{number}")).0).collect()
}

fn await_start(channel: &Channel) -> ProviderRequest<Handle> {
    let request = receive::<ProviderRequest<Handle>>(channel);
    request.filter(|request| matches!(request, ProviderRequest::Initialize { .. })).expect("Initialize")
}

/// Hands a buffer over that has memory at every `step`th byte.
fn hand_over(channel: &Channel, step: Option<u64>) {
    let memory = memfd_create("bulk", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&memory, SIZE).unwrap();
    for place in step.into_iter().flat_map(|step| (0..SIZE / step).map(move |number| number * step)) {
        rustix::io::pwrite(&memory, &[7], place).unwrap();
    }
    let response =
        ProviderResponse::HandOver { buffer: Handle::new(memory), buffering_mode: BufferingMode::Oneshot };
    let message = response.encode(Txid::ONE_WAY).unwrap();
    channel.write(&message.bytes, message.handles).unwrap();
}

/// Bytes on the file system of the manager's directory.
fn used(scene: &Scene) -> u64 {
    let mut directories = vec![scene.sandbox.runtime_dir()];
    let mut bytes = 0;
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => directories.push(entry.path()),
                found => bytes += found.map_or(0, |found| found.blocks() * 512),
            }
        }
    }
    bytes
}

fn copy_of(handle: &Handle) -> Handle {
    Handle::new(handle.as_fd().try_clone_to_owned().unwrap())
}

fn assert_turns_were_short(scene: &Scene) {
    let log = scene.manager.stderr_so_far();
    let took =
        log.lines().filter_map(|line| line.split_once("a turn took ")?.1.split(' ').next()?.parse().ok());
    assert!(took.max().unwrap_or(0) <= MOST_MILLISECONDS, "{log}");
}

//= docs/protocol.md#what-was-recorded-before
#[test]
fn hand_overs_are_copied_in_steps_and_within_a_limit() {
    let mut scene = Scene::new();
    let programs = programs(&scene, 40);
    let recording = scene.start(BufferingMode::Oneshot);
    let initialized: Vec<_> = programs.iter().map(await_start).collect();
    let before = used(&scene);
    for (number, channel) in programs.iter().enumerate() {
        // All, every second page, or none.
        hand_over(channel, [Some(4096), Some(8192), None][number.min(2)]);
    }
    let is_over = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(used(&scene));
            }
            most
        });
        scene.run_honest(1);
        // All that was handed over before is copied, since it is read in front of that.
        let copied = || scene.manager.stderr_so_far().matches("its own buffer cannot be deleted").count();
        wait_for("the copies", || (copied() == programs.len()).then_some(()));
        is_over.store(true, Ordering::Relaxed);
        looking.join().unwrap()
    });
    let copied = most.saturating_sub(before);
    assert!((1..=MAX_COPIED + (8 << 20)).contains(&copied), "{copied} bytes");
    assert_turns_were_short(&scene);
    drop((programs, initialized));
    scene.assert_alive();
    assert_honest(&recording.stop().0, 1, "hand-overs");
    assert_turns_were_short(&scene);
}

//= docs/protocol.md#what-no-peer-can-do
#[test]
fn lists_that_nothing_has_asked_for_are_not_read() {
    let mut scene = Scene::new();
    let programs = programs(&scene, 5);
    let recording = scene.start(BufferingMode::Oneshot);
    let initialized: Vec<_> = programs.iter().map(await_start).collect();
    let list = long_list(Txid(77));
    for _ in 0..100 {
        for channel in &programs {
            // Until it has read some.
            wait_for("room", || {
                let handles: Vec<_> = list.handles.iter().map(copy_of).collect();
                channel.write(&list.bytes, handles).ok()
            });
        }
    }
    scene.run_honest(1);
    scene.assert_alive();
    assert_turns_were_short(&scene);
    drop((programs, initialized));
    assert_honest(&recording.stop().0, 1, "lists");
    assert_turns_were_short(&scene);
}

/// The longest answers that there are, to a client that has asked.
#[test]
fn lists_that_a_client_has_asked_for_are_read_one_at_a_time() {
    let mut scene = Scene::new();
    let programs = programs(&scene, 8);
    let client = Client::connect(&scene.sandbox);
    let question = ProvisionerRequest::GetKnownCategories.encode(Txid(1)).unwrap();
    client.0.write(&question.bytes, question.handles).unwrap();
    for channel in &programs {
        let list = long_list(question_of(channel));
        channel.write(&list.bytes, list.handles).unwrap();
    }
    let answer = receive::<ProvisionerResponse>(&client.0);
    assert!(matches!(answer, Some(ProvisionerResponse::KnownCategories(_))));
    scene.assert_alive();
    assert_turns_were_short(&scene);
}
