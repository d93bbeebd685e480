//! Memory and faults of each process.

use super::parse::{self, Resident};
use super::{PROCESSES, PSS, counter, read};
use crate::processes::{name, numbers};
use std::collections::BTreeMap;
use trace_format::argument::ArgumentValue;
use trace_format::units::{Koid, Thread};
use trace_linux::{Kernel, Records};

/// The last reported name and values of each process: unchanged ones are not repeated.
#[derive(Debug, Default)]
pub struct Processes(BTreeMap<u32, Told>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told {
    /// The name of its first thread, which changes when it executes another program.
    thread_name: String,
    resident: Option<Resident>,
    faults: Option<(u64, u64)>,
    pss: Option<u64>,
}

impl Processes {
    /// Reports what has changed since the last time.
    pub fn sample(&mut self, at: u64, kernel: &mut Kernel<impl Records>, has_memory: bool, has_pss: bool) {
        let mut before = std::mem::take(&mut self.0);
        for process in numbers("/proc") {
            let directory = format!("/proc/{process}");
            let status = read(&format!("{directory}/status"));
            let Some(resident) = parse::resident(&status) else {
                continue;
            };
            let mut thread_name = parse::thread_name(&status);
            let known = before.remove(&process);
            if known.as_ref().is_none_or(|known| known.thread_name != thread_name) {
                // Another program, a new process, or a thread of the kernel's until now.
                kernel.belongs(process, process);
                if !name(kernel, process) {
                    // The next time.
                    thread_name = "";
                }
            }
            let known = known.unwrap_or_default();
            let mut current = Told { thread_name: thread_name.to_owned(), ..known };
            let koid = Koid(process.into());
            let thread = Thread { process: koid, thread: koid };
            let value = ArgumentValue::Uint64;
            if has_memory {
                current.resident = Some(resident);
                current.faults = parse::faults(&read(&format!("{directory}/stat")));
                if current.resident != known.resident {
                    let Resident { anon, file, shmem, swap } = resident;
                    let values = [("anon", anon), ("file", file), ("shmem", shmem), ("swap", swap)]
                        .map(|(name, bytes)| (name, value(bytes)));
                    counter(at, kernel, thread, PROCESSES, "resident memory", 0, &values);
                }
                if let Some((minor, major)) = current.faults.filter(|_| current.faults != known.faults) {
                    let values = [("minor", value(minor)), ("major", value(major))];
                    counter(at, kernel, thread, PROCESSES, "page faults", 0, &values);
                }
            }
            if has_pss {
                current.pss = parse::kilobytes(&read(&format!("{directory}/smaps_rollup")), "Pss");
                if let Some(pss) = current.pss.filter(|_| current.pss != known.pss) {
                    counter(at, kernel, thread, PSS, "proportional memory", 0, &[("pss", value(pss))]);
                }
            }
            self.0.insert(process, current);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Lines;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    /// A shell is seen before it executes a program, whose values are then those of the program.
    //= docs/kernel.md#metrics
    #[test]
    fn a_process_has_the_name_of_the_program_that_it_executes() {
        let mut shell = Command::new("sh")
            .args(["-c", "echo ready; read go; exec tail -f"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, output) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        BufReader::new(output).read_line(&mut String::new()).unwrap();
        let mut kernel = Kernel::new(Lines::default());
        let mut processes = Processes::default();
        let names = |kernel: &Kernel<Lines>| -> Vec<String> {
            let start = format!("process {}: ", shell.id());
            let lines = kernel.writer.0.iter();
            lines.filter_map(|line| line.strip_prefix(&start)).map(str::to_owned).collect()
        };
        processes.sample(1, &mut kernel, true, false);
        processes.sample(2, &mut kernel, true, false);
        assert_eq!(names(&kernel), ["sh"]);
        input.write_all(b"\n").unwrap();
        let command_line = format!("/proc/{}/cmdline", shell.id());
        while !read(&command_line).starts_with("tail") {
            std::thread::yield_now();
        }
        processes.sample(3, &mut kernel, true, false);
        processes.sample(4, &mut kernel, true, false);
        assert_eq!(names(&kernel), ["sh", "tail"]);
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
