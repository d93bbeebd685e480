//! Programs and managers of different releases.

use std::path::PathBuf;
use std::process::Command;
use trace_protocol::provider::ProviderRequest;
use trace_protocol::registry::{Registration, RegistryRequest};
use trace_protocol::{Message, Txid, VersionRange};
use trace_tests::build::{program, workspace};
use trace_tests::client::{Client, receive};
use trace_tests::skip::skip;
use trace_tests::{Archive, Sandbox, wait_for};
use zx_sim::{Channel, Handle};

/// A program of a later release: both sides say which versions there are, and it runs on.
//= docs/protocol.md#versions
#[test]
fn a_provider_of_an_unknown_version_is_told_so_and_the_log_says_it() {
    let sandbox = Sandbox::new();
    let manager = sandbox.spawn("trace", &["manager"]);
    let _client = Client::connect(&sandbox);
    for (protocol, buffer_header, sentence) in [
        (VersionRange { min: 7, max: 9 }, VersionRange::only(1), "it speaks protocol 7 to 9, this manager 1"),
        (VersionRange::PROTOCOL, VersionRange::only(4), "it writes buffer header 4, this manager reads 1"),
    ] {
        let registry = Channel::connect(&sandbox.runtime_dir().join("registry")).unwrap();
        let (ours, theirs) = Channel::pair().unwrap();
        let registration = Registration {
            provider: theirs.into_handle(),
            pid: 1,
            name: "later".to_owned(),
            protocol,
            buffer_header,
            tick_source: zx_sim::ticks::source().name().to_owned(),
            dumps_memory: false,
        };
        let message = RegistryRequest::RegisterProvider(registration).encode(Txid::ONE_WAY).unwrap();
        registry.write(&message.bytes, message.handles).unwrap();
        let request: ProviderRequest<Handle> = receive(&ours).unwrap();
        let ProviderRequest::Refused { reason } = request else { panic!("{request:?}") };
        assert_eq!(reason, sentence);
        let line = format!("provider \"later\" refused: {sentence}");
        wait_for("a line in the log", || manager.stderr_so_far().contains(&line).then_some(()));
    }
}

/// Where the last release is built; none where its tag is not in this clone.
fn last_release() -> Option<PathBuf> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(workspace()).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let tags = git(&["tag", "--list", "v*", "--sort=-version:refname"])?;
    let tag = tags.lines().next()?;
    let directory = trace_tests::build::target_dir().join("last-release");
    let (sources, target) = (directory.join(tag), directory.join("target"));
    if !sources.join("Cargo.toml").exists() {
        std::fs::create_dir_all(&sources).unwrap();
        let archive = directory.join("sources.tar");
        git(&["archive", "--output", archive.to_str().unwrap(), tag])?;
        let unpacked = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&sources).status().unwrap();
        assert!(unpacked.success());
    }
    let built = Command::new(env!("CARGO"))
        .current_dir(&sources)
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "trace-cli",
            "--package",
            "trace-tests",
            "--bins",
        ])
        .env("CARGO_TARGET_DIR", &target)
        .status();
    assert!(built.unwrap().success(), "{tag} does not build");
    Some(target.join("debug"))
}

//= docs/protocol.md#versions
#[test]
fn the_last_release_and_this_one_record_each_other() {
    let Some(release) = last_release() else {
        return skip(
            "the_last_release_and_this_one_record_each_other",
            "release",
            "the tag of the last release is not in this clone",
        );
    };
    let today = |name: &str| program(name).to_owned();
    for (trace, emit) in [(today("trace"), release.join("emit")), (release.join("trace"), today("emit"))] {
        for mode in ["oneshot", "circular", "streaming"] {
            let sandbox = Sandbox::new();
            let output = Command::new(&trace)
                .current_dir(sandbox.work_dir())
                .env("TRACE_RUNTIME_DIR", sandbox.runtime_dir())
                .args(["record", "--buffering-mode", mode, "--"])
                .arg(&emit)
                .args(["1", "1"])
                .output()
                .unwrap();
            assert!(output.status.success(), "{mode}: {output:?}");
            let archive = Archive::read(&sandbox.file("trace.fxt"));
            assert_eq!(archive.events.len(), 14, "{mode}, {} under {}", emit.display(), trace.display());
        }
    }
}
