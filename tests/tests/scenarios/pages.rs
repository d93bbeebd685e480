//! The commands of the documentation, as they stand there: each page is followed from its beginning to its
//! end, and prints what it shows.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use trace_tests::build::{FOR_HARNESS, program, target_dir, workspace};
use trace_tests::pages::{self, Block, Step};
use trace_tests::{Sandbox, wait_for};

/// Pages whose commands are run, and how many of their blocks say that they are not. The gate runs README's
/// first command, and the second is what runs this test; `readme` verifies that there are no others.
const PAGES: [(&str, usize); 31] = [
    ("CONTRIBUTING.md", 1),
    ("README.md", 0),
    ("docs/ab.md", 0),
    ("docs/catapult.md", 0),
    ("docs/check.md", 0),
    ("docs/configurations.md", 0),
    ("docs/cookbook.md", 3),
    ("docs/filter.md", 0),
    ("docs/firefox.md", 0),
    ("docs/folded.md", 1),
    ("docs/getting-started.md", 1),
    ("docs/import.md", 0),
    ("docs/install.md", 0),
    ("docs/json.md", 0),
    ("docs/kernel.md", 2),
    ("docs/live.md", 2),
    ("docs/mcp.md", 0),
    ("docs/measure.md", 0),
    ("docs/perfetto.md", 0),
    ("docs/performance.md", 1),
    ("docs/recording.md", 0),
    ("docs/recovery.md", 0),
    ("docs/report.md", 1),
    ("docs/sandboxes.md", 3),
    ("docs/selecting.md", 0),
    ("docs/speedscope.md", 1),
    ("docs/stats.md", 0),
    ("docs/svg.md", 0),
    ("docs/tables.md", 1),
    ("docs/testing.md", 11),
    ("docs/troubleshooting.md", 0),
];

/// Languages of blocks that are no commands: each of those has tests of its own, or is only shown.
const OTHERS: [&str; 10] = ["bash", "c", "cmake", "cpp", "json", "python", "rust", "text", "toml", "sql"];

/// Marks the end of a command's output.
const MARK: char = '\u{1}';

/// A page's surroundings: its files, the tool, and what it has started.
struct Reader {
    sandbox: Sandbox,
    groups: Vec<u32>,
}

impl Reader {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let bin = sandbox.file("bin");
        fs::create_dir(&bin).expect("a directory");
        symlink(program("trace"), bin.join("trace")).expect("a link");
        // Programs that pages record.
        symlink(program("demo"), sandbox.file("app")).expect("a link");
        for (name, arguments) in [("busy", "1 100000 0"), ("busy-for-long", "1 100000000 10000")] {
            let script = format!("#!/bin/sh\nexec {} {arguments}\n", program("stream").display());
            fs::write(sandbox.file(name), script).expect("a script");
            fs::set_permissions(sandbox.file(name), fs::Permissions::from_mode(0o755)).expect("a script");
        }
        // The packages of pages share what they depend on.
        let target = target_dir().join("readme-app");
        fs::create_dir_all(&target).expect("a directory");
        // The cookbook runs this one as its command has built it; other tests may link it, too.
        fs::create_dir_all(target.join("release")).expect("a directory");
        let _ = symlink(program("axum-server"), target.join("release/axum-server"));
        symlink(target, sandbox.file("target")).expect("a link");
        Self { sandbox, groups: Vec::new() }
    }

    /// A file that the page has its reader make.
    fn write(&self, name: &str, text: &str) {
        let path = self.sandbox.file(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        let provider = workspace().join("crates/trace-provider");
        let text = text.replace("path/to/trace-provider", provider.to_str().expect("UTF-8"));
        fs::write(path, text).expect("a file");
        if name == "Cargo.toml" {
            // The same versions as the workspace has, which are there.
            fs::copy(workspace().join("Cargo.lock"), self.sandbox.file("Cargo.lock")).expect("a file");
        }
    }

    /// A function that the page has its reader change.
    fn replace(&self, function: &str, name: &str, text: &str) {
        let path = self.sandbox.file(name);
        let before = fs::read_to_string(&path).expect("a file");
        let (begin, rest) = before.split_once(&format!("fn {function}(")).expect("the function");
        let (_, end) = rest.split_once("\n}\n").expect("its end");
        fs::write(&path, format!("{begin}{text}{end}")).expect("a file");
    }

    /// Runs a block's commands in one shell, and returns what each has printed, and its exit code.
    fn run(&mut self, steps: &[Step]) -> Vec<(String, i32)> {
        let mut script = "exec 2>&1\n".to_owned();
        for step in steps {
            script += &format!("{}\n", step.command);
            script += &format!("status=$?; printf '\\n{MARK}%d\\n' $status; (exit $status)\n");
        }
        let output = self.sandbox.file(".output");
        let mut command = Command::new("bash");
        let paths = std::env::var("PATH").unwrap_or_default();
        command
            .args(["-c", &script])
            .current_dir(self.sandbox.work_dir())
            .env("PATH", format!("{}:{paths}", self.sandbox.file("bin").display()))
            .env("TRACE_RUNTIME_DIR", self.sandbox.runtime_dir())
            .env("XDG_CONFIG_HOME", self.sandbox.file(".config"))
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_TERM_QUIET", "true")
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("TRACE_RECORD")
            .env_remove(FOR_HARNESS)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(File::create(&output).expect("a file"));
        let mut shell = command.spawn().expect("bash runs");
        self.groups.push(shell.id());
        // What compiles may take several times the usual deadline.
        for _ in 0..10 {
            let is_over = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                wait_for("the end of a block", || shell.try_wait().expect("it can be waited for"));
            }));
            if is_over.is_ok() {
                break;
            }
        }
        let text = String::from_utf8_lossy(&fs::read(&output).expect("the output")).into_owned();
        let mut results = Vec::new();
        let mut rest = text.as_str();
        while let Some((printed, behind)) = rest.split_once(&format!("\n{MARK}")) {
            let (code, behind) = behind.split_once('\n').expect("a line");
            results.push((printed.to_owned(), code.parse().expect("a code")));
            rest = behind;
        }
        assert_eq!(results.len(), steps.len(), "the shell has ended early: {text}");
        results
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        for group in &self.groups {
            if let Some(group) = i32::try_from(*group).ok().and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Follows a page whose commands read a trace that is there already.
fn follow_with_trace(page: &str) {
    let mut reader = Reader::new();
    reader.sandbox.record(&["-o", "trace.fxt"], "demo", &[]);
    let output = reader.sandbox.trace(["convert", "--format", "catapult", "trace.fxt"]);
    assert!(output.status.success(), "{output:?}");
    follow_blocks(page, &mut reader);
}

fn follow(page: &str) {
    follow_blocks(page, &mut Reader::new());
}

fn follow_blocks(page: &str, reader: &mut Reader) {
    for block in pages::blocks(&pages::read(page)) {
        if let Some(name) = block.file() {
            reader.write(name, &block.text);
        }
        if let Some((function, name)) = block.replaced() {
            reader.replace(function, name, &block.text);
        }
        if matches!(&*block.language, "console" | "sh") && block.not_run().is_none() {
            follow_block(page, reader, &block);
        }
    }
}

fn follow_block(page: &str, reader: &mut Reader, block: &Block) {
    let steps = block.steps();
    let results = reader.run(&steps);
    for (index, (step, (printed, code))) in steps.iter().zip(&results).enumerate() {
        let place = format!("{page}, block at line {}: $ {}", block.line, step.command);
        let is_asked = steps.get(index + 1).is_some_and(|next| next.command == "echo $?");
        assert!(*code == 0 || is_asked, "{place}\nexit code {code}:\n{printed}");
        let is_shown = step.shown.is_empty() || pages::is_shown(printed, &step.shown);
        assert!(is_shown, "{place}\nprinted:\n{printed}\nthe page shows:\n{}", step.shown.join("\n"));
    }
}

#[test]
fn getting_started() {
    follow("docs/getting-started.md");
}

#[test]
fn cookbook() {
    follow("docs/cookbook.md");
}

#[test]
fn configurations() {
    follow("docs/configurations.md");
}

#[test]
fn troubleshooting() {
    follow("docs/troubleshooting.md");
}

/// A manager notices the end of its client in its own time: until then, nothing can be recovered.
#[test]
fn recovery() {
    let mut reader = Reader::new();
    let tool = program("trace").display();
    let wait = format!("n=0\nuntil {tool} recover --list | grep -q 'to be recovered' || [ $n = 600 ]");
    let wait = format!("{wait}; do n=$((n + 1)); sleep 0.1; done");
    let script = format!("#!/bin/sh\nif [ \"$1\" = recover ]; then\n{wait}\nfi\nexec {tool} \"$@\"\n");
    let path = reader.sandbox.file("bin/trace");
    fs::remove_file(&path).expect("a link");
    fs::write(&path, script).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script");
    follow_blocks("docs/recovery.md", &mut reader);
}

#[test]
fn recording() {
    follow("docs/recording.md");
}

#[test]
fn check() {
    follow_with_trace("docs/check.md");
}

#[test]
fn import() {
    follow_with_trace("docs/import.md");
}

#[test]
fn perfetto() {
    follow_with_trace("docs/perfetto.md");
}

#[test]
fn catapult() {
    follow_with_trace("docs/catapult.md");
}

#[test]
fn install() {
    follow("docs/install.md");
}

#[test]
fn measure() {
    follow_with_trace("docs/measure.md");
}

#[test]
fn report() {
    follow_with_trace("docs/report.md");
}

#[test]
fn pictures() {
    follow_with_trace("docs/svg.md");
}

#[test]
fn profilers() {
    follow_with_trace("docs/firefox.md");
    follow_with_trace("docs/folded.md");
}

#[test]
fn stats() {
    follow_with_trace("docs/stats.md");
}

#[test]
fn selecting() {
    follow_with_trace("docs/selecting.md");
}

#[test]
fn filter() {
    follow_with_trace("docs/filter.md");
}

#[test]
fn live() {
    follow("docs/live.md");
}

#[test]
fn mcp() {
    follow_with_trace("docs/mcp.md");
}

#[test]
fn tables() {
    follow_with_trace("docs/tables.md");
}

/// Every block of commands is run, or says why not.
#[test]
fn every_page_is_followed() {
    for page in pages::all() {
        let blocks = pages::blocks(&pages::read(&page));
        for block in &blocks {
            let is_known =
                ["console", "sh"].contains(&&*block.language) || OTHERS.contains(&&*block.language);
            assert!(is_known, "{page}:{}: a block of {:?}", block.line, block.language);
        }
        let commands = blocks.iter().filter(|block| ["console", "sh"].contains(&&*block.language));
        let (not_run, run): (Vec<_>, Vec<_>) = commands.partition(|block| block.not_run().is_some());
        let listed = PAGES.iter().find(|(path, _)| *path == page);
        assert!(listed.is_some() || run.is_empty() && not_run.is_empty(), "no test follows {page}");
        assert_eq!(not_run.len(), listed.map_or(0, |(_, count)| *count), "{page}: blocks that are not run");
    }
}

/// Links to files of the repository, and to headings in them.
#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages::all() {
        let directory = workspace().join(&page);
        let directory = directory.parent().expect("a directory");
        for link in pages::links(&pages::read(&page)) {
            if link.contains("://") {
                continue;
            }
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { workspace().join(&page) } else { directory.join(path) };
            let has_anchor = || {
                let text = fs::read_to_string(&target).unwrap_or_default();
                pages::headings(&text).iter().any(|heading| pages::anchor(heading) == anchor)
            };
            if !target.exists() || !anchor.is_empty() && !has_anchor() {
                wrong.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 100, "{count}");
}

/// Commands in the text, between backticks: their options are those that `--help` lists.
#[test]
fn options_in_the_text_exist() {
    let sandbox = Sandbox::new();
    let help = |arguments: &[&str]| String::from_utf8(sandbox.trace(arguments).stdout).expect("UTF-8");
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages::all() {
        for span in pages::spans(&pages::read(&page)) {
            let mut words = span.split_whitespace();
            let Some(command) = words.next().filter(|first| *first == "trace").and_then(|_| words.next())
            else {
                continue;
            };
            if !command.starts_with(|letter: char| letter.is_ascii_lowercase()) {
                continue;
            }
            let text = known.entry(command.to_owned()).or_insert_with(|| help(&["help", command]));
            count += 1;
            if text.is_empty() {
                wrong.push(format!("{page}: `{span}`: no such command"));
            }
            let options = words.take_while(|word| *word != "--").filter(|word| word.starts_with("--"));
            for option in options.map(|option| option.split(['=', ',']).next().unwrap_or_default()) {
                if !text.contains(option) {
                    wrong.push(format!("{page}: `{span}`: no {option}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 100, "{count}");
}

/// The guide for Rust has every macro.
#[test]
fn every_macro_is_described() {
    let guide = pages::read("docs/rust.md");
    let library = pages::read("crates/trace-event/src/lib.rs");
    let documentation = library.lines().take_while(|line| line.starts_with("//!"));
    let text: String = documentation.flat_map(|line| [line, "\n"]).collect();
    let macros: Vec<&str> =
        text.split("[`").skip(1).filter_map(|rest| rest.split_once("!`]")).map(|(name, _)| name).collect();
    assert!(macros.len() > 20, "{macros:?}");
    let missing: Vec<_> = macros.iter().filter(|name| !guide.contains(&format!("{name}!"))).collect();
    assert!(missing.is_empty(), "docs/rust.md lacks {missing:?}");
}

/// Pages about the format, the protocol, the libraries and the house, which name the parts of a program.
const PROVIDERS: [&str; 14] = [
    "docs/ARCHITECTURE.md",
    "docs/buffer.md",
    "docs/c.md",
    "docs/catapult.md",
    "docs/deviations.md",
    "docs/dump.md",
    "docs/format.md",
    "docs/kernel.md",
    "docs/performance.md",
    "docs/protocol.md",
    "docs/rust.md",
    "docs/testing.md",
    "docs/writing.md",
    "CONTRIBUTING.md",
];

/// The words of a line in which code, keys and links do not count.
fn words_of(line: &str) -> Vec<String> {
    let prose = line.split('`').step_by(2).map(|part| {
        let links = part.split("](").enumerate();
        let words = links.map(|(number, part)| match number {
            0 => part,
            _ => part.split_once(')').map_or(part, |(_, behind)| behind),
        });
        words.collect::<Vec<_>>().join(" ")
    });
    prose
        .collect::<Vec<_>>()
        .join(" ")
        .split(|letter: char| !letter.is_alphanumeric() && !"._-".contains(letter))
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// What takes part in a recording is a program, on pages and in what they show of commands.
//= docs/concepts.md#glossary
#[test]
fn pages_call_what_is_recorded_a_program() {
    let line = "the [provider](#a-provider) of `provider` in `trace-provider` and x.provider: Providers.";
    let found: Vec<_> = words_of(line).into_iter().filter(|word| word.starts_with("provider")).collect();
    assert_eq!(found, ["provider", "providers"]);
    let mut found = Vec::new();
    let is_of_users = |page: &String| !page.starts_with("docs/internals/") && !PROVIDERS.contains(&&**page);
    for page in pages::all().into_iter().filter(is_of_users) {
        for (number, line) in (1..).zip(pages::read(&page).lines()) {
            let is_entry = page == "docs/concepts.md" && line.starts_with("| program |");
            let is_old = words_of(line).iter().any(|word| ["provider", "providers"].contains(&&**word));
            found.extend((is_old && !is_entry).then(|| format!("{page}:{number}: {line}")));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Subjects that hide who acts, and words for which the pages have another one.
#[test]
fn words_of_the_pages_are_those_of_the_glossary() {
    const WORDS: [&str; 9] = [
        "whoever",
        "somebody",
        "nobody",
        "anybody",
        "everybody",
        "told",
        "time line",
        "trace point",
        "stranger",
    ];
    let mut found = Vec::new();
    for page in pages::all().into_iter().chain(["CHANGELOG.md".to_owned()]) {
        let text = pages::read(&page);
        let words: Vec<String> = text
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let text = format!(" {} ", words.join(" "));
        let uses = WORDS.iter().filter(|word| text.contains(&format!(" {word} ")));
        found.extend(uses.map(|word| format!("{page}: {word}")));
    }
    assert!(found.is_empty(), "{found:#?}");
}
