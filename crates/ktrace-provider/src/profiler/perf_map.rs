//! Functions that a program has compiled while it runs, as it writes them down in `/tmp/perf-PID.map`.
//= docs/kernel.md#functions-without-a-file

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};
use trace_format::function::MAX_FUNCTION_BYTES;

/// How soon it is looked again for a file that was not there.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// What is read of one file, at most.
const MAX_READ_BYTES: u64 = 64 << 20;
/// What is read of it at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Longer lines are no functions.
const MAX_LINE_BYTES: usize = 64 << 10;

/// The files of all processes.
#[derive(Debug, Default)]
pub struct PerfMaps(HashMap<u32, State>);

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
    /// The beginning of a line whose end is not written yet.
    rest: Vec<u8>,
    functions: Compiled,
}

/// Functions by where they begin, with their length and name; none overlap.
#[derive(Debug, Default)]
struct Compiled(BTreeMap<u64, (u64, Box<[u8]>)>);

impl PerfMaps {
    /// The file of a process, if it has one.
    pub fn of(&mut self, process: u32) -> Option<&mut PerfMap> {
        let open = || {
            let found = PerfMap::open(process);
            found.map_or_else(|| State::Absent(Instant::now()), |map| State::Open(Box::new(map)))
        };
        let state = self.0.entry(process).or_insert_with(open);
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
        self.0.remove(&process);
    }
}

impl PerfMap {
    /// Opens the file of a process: in its own root, under the number that it has for itself. It counts only
    /// if it belongs to the process's user or to root.
    fn open(process: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let own = numbers.and_then(|numbers| numbers.split_whitespace().next_back()?.parse().ok());
        let user = fs::metadata(format!("/proc/{process}")).map(|metadata| metadata.uid()).ok();
        let user = user.unwrap_or_else(|| rustix::process::geteuid().as_raw());
        let inside = format!("/proc/{process}/root/tmp/perf-{}.map", own.unwrap_or(process));
        // Of a process that has ended meanwhile.
        let outside = format!("/tmp/perf-{process}.map");
        let found = [inside, outside].into_iter().find_map(|path| Self::open_file(Path::new(&path), user));
        found.map(Self::new)
    }

    fn open_file(path: &Path, user: u32) -> Option<File> {
        use rustix::fs::OFlags;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
        let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
        let metadata = file.metadata().ok()?;
        (metadata.is_file() && (metadata.uid() == user || metadata.uid() == 0)).then_some(file)
    }

    fn new(file: File) -> Self {
        Self { file, read: 0, rest: Vec::new(), functions: Compiled::default() }
    }

    /// Reads what was added; false if it was nothing.
    pub fn read_on(&mut self) -> bool {
        let before = self.read;
        while self.read < MAX_READ_BYTES {
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
        }
        self.read > before
    }

    /// The function that holds an address: its start, length and name.
    pub fn find(&self, address: u64) -> Option<(u64, u64, &[u8])> {
        self.functions.find(address)
    }
}

impl Compiled {
    /// Takes a line: `START LENGTH NAME`, with numbers in hexadecimal. What was there before is gone.
    fn extend(&mut self, line: &[u8]) {
        let Some((start, length, name)) = parse(line) else {
            return;
        };
        let end = start.saturating_add(length);
        let known = self.0.range(..end).rev();
        let overlapped = known.take_while(|(other, (length, _))| other.saturating_add(*length) > start);
        for start in overlapped.map(|(start, _)| *start).collect::<Vec<_>>() {
            self.0.remove(&start);
        }
        self.0.insert(start, (length, name.into()));
    }

    fn find(&self, address: u64) -> Option<(u64, u64, &[u8])> {
        let (start, (length, name)) = self.0.range(..=address).next_back()?;
        (address - start < *length).then_some((*start, *length, &**name))
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
        let mut map = PerfMap::new(PerfMap::open_file(&path, user).unwrap());
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
        // The memory was used again.
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
            // Root's own count for every process, another user's for none but that user's.
            assert!(PerfMap::open_file(&file, 1).is_some());
            std::os::unix::fs::chown(&file, Some(2), None).unwrap();
            assert!(PerfMap::open_file(&file, 1).is_none());
        } else {
            assert!(PerfMap::open_file(&file, user + 1).is_none());
        }
        fs::remove_dir_all(directory).unwrap();
    }

    proptest! {
        #[test]
        fn any_lines_are_read_without_harm(
            lines in proptest::collection::vec("(0x)?[0-9a-g]{0,17} [0-9a-f]{0,17} ?.{0,20}|.{0,40}", 0..50),
            address: u64,
        ) {
            let mut functions = Compiled::default();
            lines.iter().for_each(|line| functions.extend(line.as_bytes()));
            if let Some((start, length, _)) = functions.find(address) {
                prop_assert!(start <= address && address - start < length);
            }
            let places: Vec<_> = functions.0.iter().map(|(start, (length, _))| (*start, *length)).collect();
            prop_assert!(places.windows(2).all(|pair| pair[0].0.saturating_add(pair[0].1) <= pair[1].0));
        }
    }
}
