//! Functions that a program has compiled at run time, as it lists them in `/tmp/perf-PID.map`.
//= docs/kernel.md#functions-without-a-file

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace_format::function::MAX_FUNCTION_BYTES;

/// How often to look for a file that did not exist.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of bytes that are read of one file.
const MAX_READ_BYTES: u64 = 64 << 20;
/// Number of bytes that are read of it at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// How long one read may take. The rest of the file is read the next time.
const MAX_LOOK: Duration = Duration::from_millis(100);
/// Longer lines are no functions.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Maximum memory for the functions of all files.
const MAX_FUNCTION_MEMORY: u64 = 128 << 20;
/// Memory of a function besides its name.
const FUNCTION_MEMORY: u64 = 96;

/// The files of all processes.
#[derive(Debug)]
pub struct PerfMaps {
    states: HashMap<u32, State>,
    room: Room,
}

/// Remaining memory for the functions of all files, in bytes.
#[derive(Clone, Debug)]
struct Room(Arc<AtomicU64>);

impl Room {
    fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Reserves memory for a function, if there is enough.
    fn take(&self, name: &[u8]) -> bool {
        let bytes = Self::bytes(name);
        let left = self.0.load(Ordering::Relaxed).checked_sub(bytes);
        left.inspect(|left| self.0.store(*left, Ordering::Relaxed)).is_some()
    }

    fn give_back(&self, name: &[u8]) {
        self.0.fetch_add(Self::bytes(name), Ordering::Relaxed);
    }

    fn bytes(name: &[u8]) -> u64 {
        FUNCTION_MEMORY + name.len() as u64
    }
}

#[derive(Debug)]
enum State {
    Absent(Instant),
    Open(Box<PerfMap>),
}

/// The file of a process, as far as it was read.
#[derive(Debug)]
pub struct PerfMap {
    file: File,
    read: u64,
    /// The beginning of a line that is not complete yet.
    rest: Vec<u8>,
    functions: Compiled,
}

/// Functions by start address, with their length and name; none overlap.
#[derive(Debug)]
struct Compiled {
    functions: BTreeMap<u64, (u64, Box<[u8]>)>,
    room: Room,
    /// Whether there was no room for a function.
    is_full: bool,
}

impl Default for PerfMaps {
    fn default() -> Self {
        Self { states: HashMap::new(), room: Room::new(MAX_FUNCTION_MEMORY) }
    }
}

impl PerfMaps {
    /// The file of a process, if it has one.
    pub fn of(&mut self, process: u32) -> Option<&mut PerfMap> {
        let open = || {
            let found = PerfMap::open(process, &self.room);
            found.map_or_else(|| State::Absent(Instant::now()), |map| State::Open(Box::new(map)))
        };
        let state = self.states.entry(process).or_insert_with(open);
        if let State::Absent(looked) = state
            && looked.elapsed() >= RETRY_INTERVAL
        {
            *state = open();
        }
        match state {
            State::Open(map) => Some(map),
            State::Absent(_) => None,
        }
    }

    /// Forgets a process.
    pub fn remove(&mut self, process: u32) {
        self.states.remove(&process);
    }
}

impl PerfMap {
    /// Opens the file of a process: in its own root, under its number in its own namespace. The file is used
    /// only if it belongs to the process's user or to root.
    fn open(process: u32, room: &Room) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let own = numbers.and_then(|numbers| numbers.split_whitespace().next_back()?.parse().ok());
        let user = fs::metadata(format!("/proc/{process}")).map(|metadata| metadata.uid()).ok();
        let user = user.unwrap_or_else(|| rustix::process::geteuid().as_raw());
        let inside = format!("/proc/{process}/root/tmp/perf-{}.map", own.unwrap_or(process));
        // For a process that has ended meanwhile.
        let outside = format!("/tmp/perf-{process}.map");
        let found = [inside, outside].into_iter().find_map(|path| Self::open_file(Path::new(&path), user));
        found.map(|file| Self::new(file, room.clone()))
    }

    fn open_file(path: &Path, user: u32) -> Option<File> {
        use rustix::fs::OFlags;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
        let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
        let metadata = file.metadata().ok()?;
        (metadata.is_file() && (metadata.uid() == user || metadata.uid() == 0)).then_some(file)
    }

    fn new(file: File, room: Room) -> Self {
        Self { file, read: 0, rest: Vec::new(), functions: Compiled::new(room) }
    }

    /// Reads new lines; false if there were none.
    pub fn read_on(&mut self) -> bool {
        let (before, began) = (self.read, Instant::now());
        while self.read < MAX_READ_BYTES && !self.functions.is_full {
            let mut chunk = vec![0; CHUNK_BYTES];
            let count = self.file.read_at(&mut chunk, self.read).unwrap_or(0);
            if count == 0 {
                break;
            }
            self.read += count as u64;
            self.rest.extend(chunk.iter().take(count));
            let end = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            for line in self.rest.drain(..end).as_slice().split(|byte| *byte == b'\n') {
                self.functions.extend(line);
            }
            if self.rest.len() > MAX_LINE_BYTES {
                self.rest.clear();
            }
            if began.elapsed() >= MAX_LOOK {
                break;
            }
        }
        self.read > before
    }

    /// The function that holds an address: its start, length and name.
    pub fn find(&self, address: u64) -> Option<(u64, u64, &[u8])> {
        self.functions.find(address)
    }
}

impl Compiled {
    fn new(room: Room) -> Self {
        Self { functions: BTreeMap::new(), room, is_full: false }
    }

    /// Adds a line: `START LENGTH NAME`, with numbers in hexadecimal. Replaces functions at these addresses.
    fn extend(&mut self, line: &[u8]) {
        let Some((start, length, name)) = parse(line) else {
            return;
        };
        let end = start.saturating_add(length);
        let known = self.functions.range(..end).rev();
        let overlapped = known.take_while(|(other, (length, _))| other.saturating_add(*length) > start);
        for start in overlapped.map(|(start, _)| *start).collect::<Vec<_>>() {
            self.functions.remove(&start).inspect(|(_, name)| self.room.give_back(name));
        }
        self.is_full |= !self.room.take(name);
        if !self.is_full {
            self.functions.insert(start, (length, name.into()));
        }
    }

    fn find(&self, address: u64) -> Option<(u64, u64, &[u8])> {
        let (start, (length, name)) = self.functions.range(..=address).next_back()?;
        (address - start < *length).then_some((*start, *length, &**name))
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        self.functions.values().for_each(|(_, name)| self.room.give_back(name));
    }
}

fn parse(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let word = str::from_utf8(words.next()?).ok()?;
        u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
    };
    let (start, length) = (number()?, number()?);
    let name = words.next()?.trim_ascii();
    (length > 0 && !name.is_empty()).then(|| (start, length, &name[..name.len().min(MAX_FUNCTION_BYTES)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    //= docs/kernel.md#functions-without-a-file
    #[test]
    fn a_map_is_read_while_it_is_written() {
        let path = std::env::temp_dir().join(format!("map-{}", std::process::id()));
        let mut writer = File::create(&path).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let mut map = PerfMap::new(PerfMap::open_file(&path, user).unwrap(), Room::new(MAX_FUNCTION_MEMORY));
        assert!(!map.read_on());
        writer.write_all(b"7f0000001000 40 LazyCompile:~add /a b.js:1\n0x7f0000002000 0x10 ja").unwrap();
        assert!(map.read_on());
        let first: (u64, u64, &[u8]) = (0x7f00_0000_1000, 0x40, b"LazyCompile:~add /a b.js:1");
        assert_eq!(map.find(0x7f00_0000_103f), Some(first));
        assert_eq!(map.find(0x7f00_0000_1040), None);
        assert_eq!(map.find(0x7f00_0000_2000), None);
        writer.write_all(b"va.run\nnonsense\n7f0000001020 100 again\n").unwrap();
        assert!(map.read_on());
        assert_eq!(map.find(0x7f00_0000_2000).unwrap().2, b"java.run");
        // The memory was reused.
        assert_eq!(map.find(0x7f00_0000_1000), None);
        assert_eq!(map.find(0x7f00_0000_1020).unwrap().2, b"again");
        fs::remove_file(path).unwrap();
    }

    //= docs/kernel.md#functions-without-a-file
    #[test]
    fn maps_of_other_users_and_what_is_no_file_do_not_count() {
        let directory = std::env::temp_dir().join(format!("maps-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (file, link) = (directory.join("map"), directory.join("link"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let user = rustix::process::geteuid().as_raw();
        assert!(PerfMap::open_file(&file, user).is_some());
        assert!(PerfMap::open_file(&link, user).is_none());
        assert!(PerfMap::open_file(&directory, user).is_none());
        if user == 0 {
            // Root's files are used for every process, another user's only for that user's processes.
            assert!(PerfMap::open_file(&file, 1).is_some());
            // Root of a container may have no other users.
            if std::os::unix::fs::chown(&file, Some(2), None).is_ok() {
                assert!(PerfMap::open_file(&file, 1).is_none());
            }
        } else {
            assert!(PerfMap::open_file(&file, user + 1).is_none());
        }
        fs::remove_dir_all(directory).unwrap();
    }

    //= docs/kernel.md#functions-without-a-file
    #[test]
    fn the_functions_of_all_maps_have_bounded_memory() {
        let path = std::env::temp_dir().join(format!("large-map-{}", std::process::id()));
        let lines = (1..=100_u64).map(|at| format!("{:x} 10 f\n", at << 4)).collect::<String>();
        fs::write(&path, lines).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let room = Room::new(150 * (FUNCTION_MEMORY + 1));
        let read = || {
            let mut map = PerfMap::new(PerfMap::open_file(&path, user).unwrap(), room.clone());
            assert!(map.read_on());
            map
        };
        let [first, second] = [read(), read()];
        let count = |map: &PerfMap| (1..=100).filter(|at| map.find(at << 4).is_some()).count();
        assert_eq!([count(&first), count(&second)], [100, 50]);
        drop(first);
        assert_eq!(count(&read()), 100, "what a process had is free again");
        fs::remove_file(path).unwrap();
    }

    proptest! {
        #[test]
        fn any_lines_are_read_without_harm(
            lines in proptest::collection::vec("(0x)?[0-9a-g]{0,17} [0-9a-f]{0,17} ?.{0,20}|.{0,40}", 0..50),
            address: u64,
        ) {
            let mut functions = Compiled::new(Room::new(MAX_FUNCTION_MEMORY));
            lines.iter().for_each(|line| functions.extend(line.as_bytes()));
            if let Some((start, length, _)) = functions.find(address) {
                prop_assert!(start <= address && address - start < length);
            }
            let places: Vec<_> = functions.functions.iter().map(|(start, (length, _))| (*start, *length)).collect();
            prop_assert!(places.windows(2).all(|pair| pair[0].0.saturating_add(pair[0].1) <= pair[1].0));
        }
    }
}
