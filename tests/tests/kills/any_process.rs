//! `kill -9` of any of those who take part, in any order, at random times, around a program's end, and around
//! the end of the recording.

use super::random::Random;
use rustix::process::Signal;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trace_tests::sandbox::{Process, kill};
use trace_tests::scene::{self, Share, THREADS, wait_for_death};
use trace_tests::{Sandbox, wait_for};

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Program,
    Second,
    Manager,
    /// Of a recording in the background there is none.
    Client,
}

/// Who records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// `trace record`, and the program is its command.
    Client,
    /// `trace start`: the manager itself.
    Manager,
}

/// When the first of them is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// After so many events.
    Sometime(u64),
    /// So long after the program's last event.
    AroundItsEnd(Duration),
    /// So long after the end of the recording was requested.
    AroundTheStop(Duration),
}

#[derive(Debug)]
struct Trial {
    mode: &'static str,
    by: By,
    /// The file of a client; the manager's is not compressed.
    output: &'static str,
    /// Of the events of both programs: `macros`, or `tracing`.
    events_by: &'static str,
    when: When,
    /// In this order, so long after each other.
    victims: Vec<(Victim, Duration)>,
}

/// The window around an end.
const WINDOW: Duration = Duration::from_millis(5);

impl Trial {
    fn draw(mode: &'static str, random: &mut Random) -> Self {
        let by = if random.below(4) == 0 { By::Manager } else { By::Client };
        // A stream hands over a half from about 10 000 events on; a oneshot buffer is full at 20 000.
        let events = random.below(if mode == "oneshot" { 4000 } else { 25_000 });
        let after = Duration::from_nanos(random.below(WINDOW.as_nanos() as u64));
        let when = match random.below(3) {
            0 => When::Sometime(events),
            1 => When::AroundItsEnd(after),
            _ => When::AroundTheStop(after),
        };
        let mut all = vec![Victim::Program, Victim::Second, Victim::Manager, Victim::Client];
        all.truncate(if by == By::Client { 4 } else { 3 });
        let chosen = 1 + random.below((1 << all.len()) - 1);
        let mut victims: Vec<_> = (0..).zip(all).filter(|(bit, _)| chosen >> bit & 1 == 1).collect();
        let mut order = Vec::new();
        while !victims.is_empty() {
            let (_, victim) = victims.swap_remove(random.below(victims.len() as u64) as usize);
            order.push((victim, Duration::from_micros(random.below(2048))));
        }
        let is_compressed = by == By::Client && random.below(2) == 0;
        let output = if is_compressed { "trace.fxt.zst" } else { "trace.fxt" };
        let events_by = ["macros", "tracing", "operations"][random.below(3) as usize];
        Self { mode, by, output, events_by, when, victims: order }
    }

    /// Events of each thread of the first program.
    fn limit(&self) -> u64 {
        match self.when {
            When::AroundItsEnd(_) if self.mode == "oneshot" => 800,
            When::AroundItsEnd(_) => 7000,
            When::Sometime(_) | When::AroundTheStop(_) => u64::MAX,
        }
    }
}

/// One of the programs that are recorded.
struct Program {
    pid: u32,
    page: PathBuf,
    /// What each thread had written when the killing began.
    before: Vec<u64>,
    /// All that it has written was recorded.
    is_exact: bool,
}

impl Program {
    fn counted(&self) -> Vec<u64> {
        scene::counted_in(&self.page)
    }
}

/// Waits without giving the processor away.
fn spin(duration: Duration) {
    let until = Instant::now() + duration;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Kills, and checks that nothing is missing that was committed.
pub fn kill_once(mode: &'static str, random: &mut Random) {
    let trial = Trial::draw(mode, random);
    println!("{trial:?}");
    let mut stage = Stage::set(&trial);
    stage.wait_for_moment(&trial);
    stage.kill(&trial);
    stage.end(&trial);
    stage.check(&trial);
}

struct Stage {
    sandbox: Sandbox,
    /// The client that records, or that has begun the recording.
    client: Option<Process>,
    /// What asks a recording in the background to end.
    stop: Option<Process>,
    is_stopping: bool,
    manager: u32,
    programs: [Program; 2],
    /// Those of them that this has started.
    _processes: Vec<Process>,
}

impl Stage {
    /// Two programs that are being recorded.
    fn set(trial: &Trial) -> Self {
        let sandbox = Sandbox::new();
        let pages = ["page", "page2"].map(|name| sandbox.file(name));
        for page in &pages {
            std::fs::write(page, [0; 4096]).unwrap();
        }
        let [page, page2] = [0, 1].map(|number| pages[number].to_str().unwrap().to_owned());
        let limit = trial.limit().to_string();
        let endless = u64::MAX.to_string();
        // The second program comes before the first one ends, on a busy machine too.
        let ends = trial.by == By::Client && matches!(trial.when, When::AroundItsEnd(_));
        let pause = match (trial.mode == "oneshot", ends) {
            (true, true) => "1000",
            (true, false) | (false, true) => "100",
            (false, false) => "10",
        };
        let burst = trace_tests::build::program("burst").to_str().unwrap();
        let options = ["--buffering-mode", trial.mode, "--buffer-size", "1", "-o", trial.output];
        let mut processes = Vec::new();
        let (client, pid) = match trial.by {
            By::Client => {
                let command = ["--", burst, &page, &limit, pause, trial.events_by];
                let client = sandbox.spawn("trace", &[&["record"], &options[..], &command].concat());
                let has_begun = || std::fs::read(&pages[0]).is_ok_and(|bytes| bytes[THREADS * 8] == 1);
                wait_for("the program to be recorded", || has_begun().then_some(()));
                let pid = scene::child_of(client.pid(), "burst").expect("the program runs");
                (Some(client), pid)
            }
            By::Manager => {
                let output = sandbox.trace([&["start"], &options[..]].concat());
                assert!(output.status.success(), "{output:?}");
                let program = sandbox.spawn_recorded("burst", &[&page, &limit, pause, trial.events_by]);
                let pid = program.pid();
                processes.push(program);
                (None, pid)
            }
        };
        let second = sandbox.spawn_recorded("burst", &[&page2, &endless, pause, trial.events_by]);
        let pids = [pid, second.pid()];
        processes.push(second);
        for page in &pages {
            let has_begun = || std::fs::read(page).is_ok_and(|bytes| bytes[THREADS * 8] == 1);
            wait_for("the programs to be recorded", || has_begun().then_some(()));
        }
        let mut pages = pages.into_iter();
        let programs = pids.map(|pid| {
            let page = pages.next().expect("a page");
            Program { pid, page, before: Vec::new(), is_exact: false }
        });
        let manager = sandbox.manager_pid().expect("a manager runs");
        Self { sandbox, client, stop: None, is_stopping: false, manager, programs, _processes: processes }
    }

    fn wait_for_moment(&mut self, trial: &Trial) {
        let sum = |program: &Program| program.counted().iter().sum::<u64>();
        let [program, second] = &self.programs;
        let before = match trial.when {
            When::Sometime(events) => {
                wait_for("events", || (sum(program) + sum(second) > events).then_some(()));
                [program.counted(), second.counted()]
            }
            When::AroundItsEnd(_) => {
                // Its end is that of the recording, and may be long past when a busy machine lets this look
                // again: what the second program has written counts as long as the first was seen to write.
                let mut while_it_wrote = vec![0; THREADS];
                loop {
                    let by_second = second.counted();
                    let by_program = program.counted();
                    if by_program.iter().all(|counted| *counted >= trial.limit()) {
                        break [by_program, while_it_wrote];
                    }
                    while_it_wrote = by_second;
                    spin(Duration::from_micros(50));
                }
            }
            When::AroundTheStop(_) => {
                wait_for("events", || (sum(program).min(sum(second)) > 1000).then_some(()));
                [program.counted(), second.counted()]
            }
        };
        for (program, before) in self.programs.iter_mut().zip(before) {
            program.before = before;
        }
        match trial.when {
            When::Sometime(_) => {}
            When::AroundItsEnd(after) => spin(after),
            When::AroundTheStop(after) => {
                self.ask_to_stop();
                spin(after);
            }
        }
    }

    /// Has the recording end, once.
    fn ask_to_stop(&mut self) {
        if std::mem::replace(&mut self.is_stopping, true) {
            return;
        }
        match &self.client {
            Some(client) => client.signal(Signal::TERM),
            None => self.stop = Some(self.sandbox.spawn("trace", &["stop"])),
        }
    }

    fn kill(&mut self, trial: &Trial) {
        let mut is_recording = !self.is_stopping;
        if let When::AroundItsEnd(_) = trial.when {
            self.programs[0].is_exact = true;
            // Its end is that of the recording.
            is_recording &= trial.by == By::Manager;
        }
        for (victim, between) in &trial.victims {
            match victim {
                Victim::Program | Victim::Second => {
                    let program = &mut self.programs[usize::from(*victim == Victim::Second)];
                    kill(program.pid, Signal::KILL);
                    program.is_exact |= is_recording;
                    is_recording &= trial.by == By::Manager || *victim == Victim::Second;
                }
                Victim::Manager => {
                    kill(self.manager, Signal::KILL);
                    is_recording = false;
                }
                Victim::Client => {
                    self.client.iter().for_each(|client| client.signal(Signal::KILL));
                    is_recording = false;
                }
            }
            spin(*between);
        }
    }

    /// Brings to an end what goes on.
    fn end(&mut self, trial: &Trial) {
        let killed = |victim| trial.victims.iter().any(|(other, _)| *other == victim);
        for (program, victim) in self.programs.iter().zip([Victim::Program, Victim::Second]) {
            if killed(victim) {
                wait_for_death(program.pid);
            }
        }
        if killed(Victim::Manager) {
            wait_for_death(self.manager);
        }
        if !killed(Victim::Manager) || self.client.is_some() {
            self.ask_to_stop();
        }
        for process in [&mut self.client, &mut self.stop].into_iter().flatten() {
            wait_for("the client to end", || (!process.is_running()).then_some(()));
        }
        self.programs.iter().for_each(|program| kill(program.pid, Signal::KILL));
        self.programs.iter().for_each(|program| wait_for_death(program.pid));
        // A manager that lives leaves an archive without a recipient.
        let is_over = |session: &PathBuf| {
            let manifest = std::fs::read_to_string(session.join("manifest.jsonl")).unwrap_or_default();
            !session.exists() || manifest.contains("\"ended\"")
        };
        wait_for("the session to end", || {
            let is_dead = scene::is_dead(self.manager);
            (is_dead || scene::Scene::sessions_of(&self.sandbox).iter().all(is_over)).then_some(())
        });
    }

    fn check(&self, trial: &Trial) {
        let sessions = scene::Scene::sessions_of(&self.sandbox);
        let manifest = |session: &PathBuf| std::fs::read_to_string(session.join("manifest.jsonl"));
        let manifests: Vec<_> = sessions.iter().map(manifest).collect();
        let output = self.sandbox.trace(["recover", "-o", "recovered.fxt"]);
        let said = scene::stderr(&output);
        assert!(output.status.success() || said.contains("nothing to recover"), "{trial:?}: {said}");
        let file = super::FILES.into_iter().find(|name| self.sandbox.file(name).exists());
        for program in &self.programs {
            let counted = program.counted();
            let least = if program.is_exact { &counted } else { &program.before };
            let most: Vec<u64> = counted.iter().map(|counted| counted + 1).collect();
            let what = format!("{trial:?}, pid {}, {file:?}: {said}{manifests:?}", program.pid);
            let share = Share { pid: program.pid, is_from_first: trial.mode != "circular" };
            scene::check_share(&self.sandbox, file, &share, least, &most, &what);
        }
    }
}
