//! A second process for a test: the test's own binary again, which runs the other half of the same test.

use std::any::type_name;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use zx_sim::{Channel, Error, Handle, Message, Signals, wait_one};

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// Set in the child, to the test whose other half it runs.
pub const CHILD_OF: &str = "ZX_SIM_CHILD_OF";

/// When a test gives up, counted from now.
pub fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// The other process of a test, with a channel to it. Killed if it is still alive at the end.
pub struct Child {
    /// To the child.
    pub channel: Channel,
    process: std::process::Child,
}

/// Starts the child half of the calling test, of which there may be one, and which gets its end of a channel.
/// `None` in the child itself, when its half is done: the test has to return then.
pub fn start<F: FnOnce(Channel)>(half: F) -> Option<Child> {
    start_with(|_| {}, half)
}

/// The same, with a command that was changed before.
pub fn start_with<F: FnOnce(Channel)>(change: impl FnOnce(&mut Command), half: F) -> Option<Child> {
    let program = || std::env::current_exe().expect("the path of this program");
    start_program(program, change, half)
}

/// The same, with a copy of this program that is made before.
pub fn start_program<F: FnOnce(Channel)>(
    program: impl FnOnce() -> PathBuf,
    change: impl FnOnce(&mut Command),
    half: F,
) -> Option<Child> {
    let test = test_of::<F>();
    if std::env::var(CHILD_OF).is_ok_and(|running| running == test) {
        half(channel_of_stdin());
        return None;
    }
    let (channel, theirs) = Channel::pair().expect("a channel");
    let mut command = Command::new(program());
    command.args([&test, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD_OF, &test);
    change(&mut command);
    let process = command
        .stdin(theirs.into_handle().into_fd())
        .stdout(Stdio::null())
        .spawn()
        .expect("this program starts");
    Some(Child { channel, process })
}

/// The test that a closure stands in, as the test runner calls it.
fn test_of<F>() -> String {
    let closure = type_name::<F>();
    let test = closure.trim_end_matches("::{{closure}}");
    test.split_once("::").expect("the crate's name comes first").1.to_owned()
}

/// Standard input, and nothing in its place, so that this is the only handle.
fn channel_of_stdin() -> Channel {
    let end = std::io::stdin().as_fd().try_clone_to_owned().expect("standard input");
    let nothing = std::fs::File::open("/dev/null").expect("/dev/null");
    rustix::stdio::dup2_stdin(nothing).expect("another standard input");
    Channel::from_handle(Handle::new(end)).expect("the channel to the parent")
}

impl Child {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Ends it as nothing can prevent, and waits until it is gone.
    pub fn kill(&mut self) {
        self.process.kill().expect("the child can be killed");
        let status = self.process.wait().expect("the child can be waited for");
        assert_eq!(status.signal(), Some(9), "the child ended by itself: {status}");
    }

    /// Waits until it ends by itself.
    pub fn status(&mut self) -> ExitStatus {
        // It has the only other end of the channel, and closes it at the latest when it ends.
        wait_for(&self.channel, Signals::PEER_CLOSED);
        self.process.wait().expect("the child can be waited for")
    }

    /// Waits until it ends by itself, and nothing failed in it.
    pub fn finish(mut self) {
        let status = self.status();
        assert!(status.success(), "the child failed: {status}");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until all these signals are true of an object.
///
/// The other end is closed some time after the test closed it, and not at once: a child that another test is
/// starting has it too, until it runs its program.
///
/// # Panics
/// If it takes too long.
pub fn wait_for(object: &impl AsFd, signals: Signals) {
    let deadline = deadline();
    loop {
        let found = wait_one(object, signals, Some(deadline)).expect("a wait");
        if found.contains(signals) {
            return;
        }
        assert!(Instant::now() < deadline, "{signals:?} did not come, only {found:?}");
        // What is true already would end each wait at once.
        std::thread::yield_now();
    }
}

/// What is true of an object now.
pub fn signals_of(object: &impl AsFd) -> Signals {
    let all = Signals::all();
    wait_one(object, all, Some(Instant::now())).expect("a look")
}

/// The next message, waited for.
pub fn receive(channel: &Channel) -> Message {
    wait_for(channel, Signals::READABLE);
    channel.read().expect("a message")
}

/// The next message's bytes, waited for.
pub fn receive_bytes(channel: &Channel) -> Vec<u8> {
    receive(channel).bytes
}

/// The next message as a number.
pub fn receive_number(channel: &Channel) -> u64 {
    u64::from_le_bytes(receive_bytes(channel).try_into().expect("eight bytes"))
}

/// Sends a number as a message.
pub fn send_number(channel: &Channel, number: u64) {
    channel.write(&number.to_le_bytes(), Vec::new()).expect("a number can be sent");
}

/// The next message's only handle, waited for.
pub fn receive_handle(channel: &Channel) -> Handle {
    let mut handles = receive(channel).handles;
    assert_eq!(handles.len(), 1);
    handles.remove(0)
}

/// Sends one handle.
pub fn send_handle(channel: &Channel, handle: Handle) {
    channel.write(b"handle", vec![handle]).expect("a handle can be sent");
}

/// Waits for ever, or rather until killed or the parent is gone.
pub fn sleep_until_killed(channel: &Channel) -> ! {
    wait_for(channel, Signals::PEER_CLOSED);
    panic!("the parent is gone");
}

/// How many descriptors this process has.
pub fn descriptors() -> usize {
    // Without the one that reads the directory.
    std::fs::read_dir("/proc/self/fd").expect("/proc").count() - 1
}

/// Waits until something is true.
///
/// # Panics
/// If it takes too long.
#[track_caller]
pub fn wait_until(condition: impl Fn() -> bool) {
    let deadline = deadline();
    while !condition() {
        assert!(Instant::now() < deadline, "it did not come true");
        std::thread::yield_now();
    }
}

/// Asserts which error came.
#[track_caller]
pub fn assert_error<T: std::fmt::Debug>(result: Result<T, Error>, expected: &str) {
    assert_eq!(result.expect_err("an error").to_string(), expected);
}
