//! Memory that processes share.

use crate::child::{
    self, assert_error, receive, receive_bytes, receive_handle, receive_number, send_handle, send_number,
    sleep_until_killed,
};
use crate::skip::skip;
use crate::wait::interrupt_with;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::UnshareFlags;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use zx_sim::{Backing, Channel, Error, Vmo, available_in};

const MIB: u64 = 1 << 20;

/// A directory in memory, where there is one.
fn directory() -> TempDir {
    let base = Path::new("/dev/shm");
    if base.is_dir() { TempDir::new_in(base) } else { TempDir::new() }.unwrap()
}

fn is_empty(directory: &Path) -> bool {
    directory.read_dir().unwrap().next().is_none()
}

#[test]
fn what_one_process_writes_another_reads() {
    let Some(child) = child::start(|channel| {
        let path = receive_path(&channel);
        let vmo = Vmo::create_in(&path, "vmo", 10_000).unwrap();
        assert_eq!(vmo.path(), Some(path.join("vmo").as_path()));
        vmo.write_at(9_000, b"from the child").unwrap();
        send_handle(&channel, vmo.into_handle());
    }) else {
        return;
    };
    let directory = directory();
    child.channel.write(directory.path().to_str().unwrap().as_bytes(), Vec::new()).unwrap();
    let vmo = Vmo::from_handle(receive_handle(&child.channel)).unwrap();
    child.finish();
    assert_eq!(vmo.path(), None, "a handle has no name");
    assert_eq!(vmo.size().unwrap(), 10_000);
    let mut bytes = [1; 20];
    assert_eq!(vmo.read_at(8_998, &mut bytes).unwrap(), 20);
    assert_eq!(&bytes, b"\0\0from the child\0\0\0\0");
    assert_eq!(vmo.read_at(9_995, &mut bytes).unwrap(), 5, "short at the end");
    assert_eq!(vmo.read_at(10_000, &mut bytes).unwrap(), 0);
    let metadata = std::fs::metadata(directory.path().join("vmo")).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o600);
    assert!(metadata.blocks() * 512 >= 10_000, "backed in full");
}

#[test]
fn what_one_process_writes_to_its_mapping_another_reads() {
    let Some(child) = child::start(|channel| {
        for handle in receive(&channel).handles {
            let mapping = Vmo::from_handle(handle).unwrap().map().unwrap();
            assert_eq!(mapping.len(), 8192);
            // SAFETY: both are inside the mapping, which is alive.
            unsafe {
                assert_eq!(mapping.as_ptr().add(100).read_volatile(), 42);
                mapping.as_ptr().add(8191).write_volatile(43);
            }
        }
    }) else {
        return;
    };
    let directory = directory();
    let vmos =
        [Vmo::create_in(directory.path(), "vmo", 8192).unwrap(), Vmo::of_bytes("vmo", &[0; 8192]).unwrap()];
    for vmo in &vmos {
        vmo.write_at(100, &[42]).unwrap();
    }
    let handles = vmos.iter().map(|vmo| vmo.duplicate().unwrap().into_handle()).collect();
    child.channel.write(b"map these", handles).unwrap();
    child.finish();
    for vmo in &vmos {
        let mut byte = [0];
        assert_eq!(vmo.read_at(8191, &mut byte).unwrap(), 1);
        assert_eq!(byte, [43]);
    }
}

#[test]
fn a_vmo_keeps_its_size() {
    let directory = directory();
    let named = Vmo::create_in(directory.path(), "vmo", 4096).unwrap();
    let anonymous = Vmo::of_bytes("vmo", &[0; 4096]).unwrap();
    for vmo in [&named, &anonymous] {
        assert_error(vmo.write_at(4090, b"fits in"), "end of a vmo write is 4097, expected 0 to 4096");
        assert!(vmo.write_at(u64::MAX, b"x").is_err());
        vmo.write_at(4090, b"fits").unwrap();
        assert_eq!(vmo.size().unwrap(), 4096);
    }
    for length in [0, 4095, 4097, 8192] {
        assert_eq!(rustix::fs::ftruncate(&anonymous, length), Err(rustix::io::Errno::PERM), "{length}");
    }
    let most = i64::MAX;
    for size in [0, u64::MAX] {
        let expected = format!("vmo size in bytes is {size}, expected 1 to {most}");
        assert_error(Vmo::create_in(directory.path(), "other", size), &expected);
    }
    assert_error(Vmo::of_bytes("vmo", &[]), &format!("vmo size in bytes is 0, expected 1 to {most}"));
}

#[test]
fn a_name_is_taken_once() {
    let directory = directory();
    let first = Vmo::create_in(directory.path(), "vmo", 4096).unwrap();
    first.write_at(0, b"mine").unwrap();
    match Vmo::create_in(directory.path(), "vmo", 100) {
        Err(Error::Io { what, error }) => {
            assert_eq!(what, format!("cannot create {}", directory.path().join("vmo").display()));
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(&std::fs::read(directory.path().join("vmo")).unwrap()[..4], b"mine");
}

#[test]
fn only_a_file_is_taken_for_a_vmo() {
    let handle = Channel::pair().unwrap().0.into_handle();
    assert_error(Vmo::from_handle(handle), "handle is not a vmo");
}

/// What a process that only finds the file sees.
fn is_found_live(path: &Path) -> bool {
    Vmo::open(path).unwrap().is_live().unwrap()
}

#[test]
fn memory_is_in_use_as_long_as_it_is_mapped_by_what_marked_it() {
    let Some(mut child) = child::start(|channel| {
        let vmo = Vmo::from_handle(receive_handle(&channel)).unwrap();
        let _mapping = vmo.marked().unwrap().map().unwrap();
        // No descriptor is needed for it.
        drop(vmo);
        send_number(&channel, 1);
        sleep_until_killed(&channel);
    }) else {
        return;
    };
    let directory = directory();
    let vmo = Vmo::create_in(directory.path(), "vmo", 4096).unwrap();
    let path = vmo.path().unwrap().to_owned();
    assert!(!vmo.is_live().unwrap());
    send_handle(&child.channel, vmo.duplicate().unwrap().into_handle());
    assert_eq!(receive_number(&child.channel), 1);
    assert!(vmo.is_live().unwrap() && is_found_live(&path));
    let ours = vmo.marked().unwrap().map().unwrap();
    child.kill();
    assert!(is_found_live(&path), "ours");
    drop(ours);
    assert!(!is_found_live(&path) && !vmo.is_live().unwrap());
}

/// A place in a mount namespace of this process's own, where a small file system is mounted. To be called in
/// a process without other threads. `None` where that is not permitted.
fn small_file_system(at: &Path, options: &std::ffi::CStr) -> Option<()> {
    // The current user is root in a user namespace, where those are allowed.
    let flags = if rustix::process::geteuid().is_root() {
        UnshareFlags::NEWNS
    } else {
        UnshareFlags::NEWNS | UnshareFlags::NEWUSER
    };
    // SAFETY: no descriptors are unshared.
    unsafe { rustix::thread::unshare_unsafe(flags) }.ok()?;
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).ok()?;
    rustix::mount::mount("tmpfs", at, "tmpfs", MountFlags::empty(), options).ok()
}

/// The children's answers.
const DONE: u64 = 1;
const NOT_PERMITTED: u64 = 2;

/// Gives a child a place to mount something, and waits until it is done, unless it is not permitted to.
fn finish_or_skip(child: child::Child, test: &str) {
    // Of this process, which can remove it: nothing is mounted there for it.
    let directory = TempDir::new().unwrap();
    child.channel.write(directory.path().to_str().unwrap().as_bytes(), Vec::new()).unwrap();
    match receive_number(&child.channel) {
        NOT_PERMITTED => skip(test, "root", "a file system cannot be mounted"),
        answer => assert_eq!(answer, DONE),
    }
    child.finish();
}

fn receive_path(channel: &Channel) -> PathBuf {
    PathBuf::from(String::from_utf8(receive_bytes(channel)).unwrap())
}

#[test]
fn a_full_file_system_is_an_error_and_not_a_signal() {
    let test = "vmo::a_full_file_system_is_an_error_and_not_a_signal";
    let Some(child) = child::start(|channel| {
        let directory = receive_path(&channel);
        if small_file_system(&directory, c"size=1m").is_none() {
            return send_number(&channel, NOT_PERMITTED);
        }
        let path = directory.as_path();
        let no_space = |name: &str, needed: u64, available: u64| {
            match Vmo::create_in(path, name, needed) {
                Err(Error::NoSpace { directory, needed: n, available: a }) => {
                    assert_eq!((directory.as_path(), n, a), (path, needed, available));
                }
                other => panic!("{other:?}"),
            }
            assert_error(
                Vmo::create_in(path, name, needed),
                &format!("no room in {}: {needed} bytes needed, {available} available", path.display()),
            );
            assert!(!path.join(name).exists());
        };
        no_space("large", MIB + 1, MIB);
        let first = Vmo::create_in(path, "first", 768 * 1024).unwrap();
        no_space("second", 512 * 1024, 256 * 1024);
        let second = Vmo::create_in(path, "second", 256 * 1024).unwrap();
        no_space("third", 1, 0);
        // All that was promised is there, on a file system that is full.
        for vmo in [first, second] {
            let mapping = vmo.map().unwrap();
            for offset in 0..mapping.len() {
                // SAFETY: inside the mapping, which is alive.
                unsafe { mapping.as_ptr().add(offset).write_volatile(offset as u8) };
            }
            let mut bytes = vec![0; mapping.len()];
            assert_eq!(vmo.read_at(0, &mut bytes).unwrap(), bytes.len());
            assert!(bytes.iter().enumerate().all(|(offset, byte)| *byte == offset as u8));
        }
        send_number(&channel, DONE);
    }) else {
        return;
    };
    finish_or_skip(child, test);
}

/// Of a sparse one only what was asked for, and of the rest no more is promised than there is.
#[test]
fn a_sparse_vmo_takes_only_what_it_begins_with() {
    let test = "vmo::a_sparse_vmo_takes_only_what_it_begins_with";
    let Some(child) = child::start(|channel| {
        let directory = receive_path(&channel);
        if small_file_system(&directory, c"size=1m").is_none() {
            return send_number(&channel, NOT_PERMITTED);
        }
        let begin = |name: &str, size: u64, promised: u64| {
            Backing::begin_sparse(&directory, name, size, &[0..8192, 100 << 10..1 << 30], promised)
        };
        let mut backing = begin("first", 128 << 10, 0).unwrap();
        assert_eq!((backing.size(), backing.missing_bytes()), (128 << 10, 128 << 10));
        assert!(backing.step(4096).unwrap().is_none());
        assert_eq!(backing.missing_bytes(), 124 << 10);
        assert!(backing.step(8192).unwrap().is_none());
        let first = backing.step(u64::MAX).unwrap().expect("it is complete");
        assert_eq!((first.size().unwrap(), first.backed_bytes().unwrap()), (128 << 10, 36 << 10));
        assert_eq!(available_in(&directory).unwrap(), MIB - (36 << 10));
        let mut bytes = [1; 4096];
        assert_eq!(first.read_at(50 << 10, &mut bytes).unwrap(), 4096);
        assert_eq!(bytes, [0; 4096], "what is not there reads as zero");
        // Reading and mapping take nothing.
        let mapping = first.map_first(first.size().unwrap(), true).unwrap();
        assert_eq!((mapping.len(), first.backed_bytes().unwrap()), (128 << 10, 36 << 10));
        assert_eq!(first.map().unwrap().len(), 128 << 10);
        assert_eq!(first.backed_bytes().unwrap(), 128 << 10, "all pages are present");
        let available = MIB - (128 << 10);
        begin("second", available - 4096, 4096).unwrap();
        match begin("second", available, 4096) {
            Err(Error::NoSpace { needed, available: rest, .. }) => {
                assert_eq!((needed, rest), (available, available - 4096));
            }
            other => panic!("{other:?}"),
        }
        assert!(!directory.join("second").exists());
        send_number(&channel, DONE);
    }) else {
        return;
    };
    finish_or_skip(child, test);
}

/// Which says that it has no blocks at all.
#[test]
fn a_file_system_without_limit_has_room() {
    let test = "vmo::a_file_system_without_limit_has_room";
    let Some(child) = child::start(|channel| {
        let directory = receive_path(&channel);
        if small_file_system(&directory, c"size=0").is_none() {
            return send_number(&channel, NOT_PERMITTED);
        }
        assert_eq!(rustix::fs::statvfs(&directory).unwrap().f_blocks, 0);
        assert_eq!(Vmo::create_in(&directory, "vmo", MIB).unwrap().size().unwrap(), MIB);
        send_number(&channel, DONE);
    }) else {
        return;
    };
    finish_or_skip(child, test);
}

/// In a child, because the limit is the whole process's.
#[test]
fn a_vmo_that_cannot_be_backed_leaves_no_file_behind() {
    let Some(child) = child::start(|channel| {
        let directory = directory();
        // The kernel would end this process.
        let resource = rustix::process::Resource::Fsize;
        let limits = rustix::process::getrlimit(resource);
        let small = rustix::process::Rlimit { current: Some(3 * MIB), ..limits };
        rustix::process::setrlimit(resource, small).unwrap();
        assert_error(
            Vmo::create_in(directory.path(), "vmo", 4 * MIB),
            "file size in bytes (ulimit -f) is 4194304, expected 1 to 3145728",
        );
        assert!(is_empty(directory.path()));
        // The limit gets lower in the middle of the work.
        // SAFETY: ignoring a signal is no handler of ours.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        let mut backing = Backing::begin(directory.path(), "vmo", 3 * MIB).unwrap();
        let smaller = rustix::process::Rlimit { current: Some(MIB), ..limits };
        rustix::process::setrlimit(resource, smaller).unwrap();
        let place = directory.path().join("vmo");
        assert_error(
            backing.step(u64::MAX),
            &format!("cannot create {}: File too large (os error 27)", place.display()),
        );
        drop(backing);
        assert!(is_empty(directory.path()));
        rustix::process::setrlimit(resource, small).unwrap();
        Vmo::create_in(directory.path(), "vmo", 3 * MIB).unwrap();
        send_number(&channel, DONE);
    }) else {
        return;
    };
    assert_eq!(receive_number(&child.channel), DONE);
    child.finish();
}

#[test]
fn all_of_a_vmo_is_backed_in_advance() {
    let directory = directory();
    for vmo in [
        Vmo::create_in(directory.path(), "vmo", 3 * MIB).unwrap(),
        Vmo::of_bytes("vmo", &vec![0; 3 * MIB as usize]).unwrap(),
    ] {
        let stat = rustix::fs::fstat(&vmo).unwrap();
        assert_eq!(stat.st_size as u64, 3 * MIB);
        assert!(stat.st_blocks as u64 * 512 >= 3 * MIB, "{} blocks", stat.st_blocks);
    }
}

/// Many kernels give up backing a file when a signal comes, and a profiler's come all the time.
#[test]
fn signals_do_not_keep_a_vmo_from_being_made() {
    let Some(child) = child::start(|channel| {
        interrupt_with(libc::SIGALRM);
        let every = libc::timeval { tv_sec: 0, tv_usec: 2000 };
        let timer = libc::itimerval { it_interval: every, it_value: every };
        // SAFETY: reads one `itimerval`, which `timer` is.
        let status = unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
        assert_eq!(status, 0);
        let directory = directory();
        for _ in 0..4 {
            Vmo::create_in(directory.path(), "vmo", 64 * MIB).unwrap();
            std::fs::remove_file(directory.path().join("vmo")).unwrap();
            Vmo::of_bytes("vmo", &vec![0; 64 * MIB as usize]).unwrap();
        }
        send_number(&channel, DONE);
    }) else {
        return;
    };
    assert_eq!(receive_number(&child.channel), DONE);
    child.finish();
}

#[test]
fn nothing_is_written_through_a_read_only_handle() {
    let directory = directory();
    let vmo = Vmo::create_in(directory.path(), "vmo", 2 * 4096).unwrap();
    vmo.write_at(0, b"before").unwrap();
    let writable = vmo.duplicate().unwrap();
    let vmo = vmo.into_read_only();
    assert_eq!(vmo.path(), Some(directory.path().join("vmo").as_path()));
    assert!(matches!(vmo.write_at(0, b"no"), Err(Error::Io { .. })), "written");
    writable.write_at(4096, b"behind").unwrap();
    let mut bytes = [0; 6];
    assert_eq!(vmo.read_at(4096, &mut bytes).unwrap(), 6);
    assert_eq!(&bytes, b"behind");
    // Memory is given back all the same, also when the file has no name any more.
    std::fs::remove_file(directory.path().join("vmo")).unwrap();
    vmo.discard(4096..2 * 4096).unwrap();
    vmo.read_at(4096, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 6]);
}
