//! A client of `trace mcp`.

use crate::sandbox::{DEADLINE, Sandbox, kill};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// Most bytes of a line of the server's, with its end.
pub const MAX_BYTES: usize = 8000;

/// A server, and this end of its pipes.
pub struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    next: u64,
}

impl Agent {
    /// Starts a server without a handshake.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server is spawned");
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        Self { child, input, output, next: 0 }
    }

    /// Starts a server in a sandbox, and agrees on a version.
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    pub fn new(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = sandbox.command("trace");
        command.arg("mcp").args(arguments);
        let mut agent = Self::start(command);
        agent.initialize("2025-11-25");
        agent
    }

    /// Agrees on a version, and returns the server's answer.
    ///
    /// # Panics
    /// If the server does not agree.
    pub fn initialize(&mut self, version: &str) -> Value {
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
        let mut response = self.ask("initialize", &params);
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        response["result"].take()
    }

    /// The server's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line.
    ///
    /// # Panics
    /// If the server does not read.
    pub fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("its input is open");
        input.write_all(format!("{line}\n").as_bytes()).expect("it reads its input");
    }

    /// This end of its input.
    ///
    /// # Panics
    /// If it was taken before.
    pub fn take_input(&mut self) -> ChildStdin {
        self.input.take().expect("its input is open")
    }

    /// The server's output.
    ///
    /// # Panics
    /// If it was closed before.
    #[must_use]
    pub fn output(&self) -> &ChildStdout {
        self.output.as_ref().expect("its output is open").get_ref()
    }

    /// Closes this end of its output.
    pub fn close_output(&mut self) {
        self.output = None;
    }

    /// Reads a line.
    ///
    /// # Panics
    /// If none comes in time, or one that is too long.
    pub fn line(&mut self) -> Option<String> {
        let output = self.output.as_mut().expect("its output is open");
        if output.buffer().is_empty() {
            let limit = Timespec { tv_sec: DEADLINE.as_secs() as i64, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(output.get_ref(), PollFlags::IN)], Some(&limit));
            assert_eq!(ready, Ok(1), "the server does not answer");
        }
        let mut line = String::new();
        output.read_line(&mut line).expect("text");
        assert!(line.len() <= MAX_BYTES, "{} bytes", line.len());
        assert!(line.is_empty() || line.ends_with('\n'), "{line}");
        (!line.is_empty()).then(|| line.trim_end().to_owned())
    }

    /// The next message.
    ///
    /// # Panics
    /// If there is none.
    pub fn message(&mut self) -> Value {
        serde_json::from_str(&self.line().expect("the server goes on")).expect("JSON")
    }

    /// Sends a request, and returns its id.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}).to_string());
        self.next
    }

    /// Sends a request, and returns the response.
    ///
    /// # Panics
    /// If another message comes.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        let response = self.message();
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!(id)), "{response}");
        response
    }

    /// Calls a tool, and returns its text, or its error.
    ///
    /// # Errors
    /// The tool has failed.
    ///
    /// # Panics
    /// If the protocol refuses the call.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<String, String> {
        let response = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        result(&response)
    }

    /// Calls a tool that succeeds with an object.
    ///
    /// # Panics
    /// If it does not.
    pub fn object(&mut self, tool: &str, arguments: &Value) -> Value {
        let text = self.call(tool, arguments).unwrap_or_else(|why| panic!("{tool} {arguments}: {why}"));
        serde_json::from_str(&text).expect("an object")
    }

    /// All pages of an answer.
    ///
    /// # Panics
    /// If one of them fails, or they do not end.
    pub fn pages(&mut self, tool: &str, arguments: &Value) -> Vec<Value> {
        let mut arguments = arguments.clone();
        let mut pages = Vec::new();
        loop {
            let page = self.object(tool, &arguments);
            assert!(pages.len() < 1000, "the pages do not end");
            arguments["cursor"] = page["next"].clone();
            pages.push(page);
            if arguments["cursor"].is_null() {
                return pages;
            }
        }
    }

    /// Closes its input, and waits for its end.
    ///
    /// # Panics
    /// If it does not end.
    pub fn finish(mut self) -> ExitStatus {
        drop(self.input.take());
        while self.line().is_some() {}
        self.child.wait().expect("it can be waited for")
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end.
    pub fn end(&mut self) -> ExitStatus {
        crate::wait_for("the end of the server", || self.child.try_wait().expect("it can be waited for"))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        kill(self.pid(), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// What a response to a call has: the tool's text, or its error.
///
/// # Errors
/// The tool has failed.
///
/// # Panics
/// If it is no such response.
pub fn result(response: &Value) -> Result<String, String> {
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned();
    if result["isError"] == true { Err(text) } else { Ok(text) }
}
