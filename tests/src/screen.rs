//! A program in a terminal, by tmux: what stands on the screen, and keys.

use crate::sandbox::{Sandbox, wait_for};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A terminal of a scenario's own. It is gone, with what runs in it, when this is dropped.
pub struct Screen {
    socket: std::path::PathBuf,
}

impl Screen {
    /// Runs a line of shell in a terminal of a size, in the scenario's working directory. Afterwards the
    /// terminal shows `exit code: N`, and stays.
    ///
    /// # Panics
    /// If there is no tmux.
    #[must_use]
    pub fn run(sandbox: &Sandbox, line: &str, width: u16, height: u16) -> Self {
        let screen = {
            // One that ends may take its time to let go of its socket.
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            Self { socket: sandbox.runtime_dir().with_extension(format!("tmux{number}")) }
        };
        let bin = crate::build::program("trace").parent().expect("a directory").display().to_string();
        let script = format!("PATH={bin}:$PATH; {line}; echo \"exit code: $?\"; exec sleep 1000");
        let (width, height) = (width.to_string(), height.to_string());
        let environment = sandbox.command("trace");
        let mut command =
            screen.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, &script]);
        for (name, value) in environment.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("LC_ALL", "C.UTF-8").env_remove("TMUX").current_dir(sandbox.work_dir());
        let output = command.output().expect("tmux runs");
        assert!(output.status.success(), "{output:?}");
        screen
    }

    fn tmux(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(&self.socket).args(arguments);
        command
    }

    fn output(&self, arguments: &[&str]) -> String {
        let output = self.tmux(arguments).output().expect("tmux runs");
        assert!(output.status.success(), "tmux {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What stands on the screen, without empty lines at the end.
    ///
    /// # Panics
    /// If tmux has ended.
    #[must_use]
    pub fn text(&self) -> String {
        self.output(&["capture-pane", "-p"]).trim_end().to_owned()
    }

    /// Waits until something is true of the screen, and returns what stands there.
    ///
    /// # Panics
    /// If it does not become true; with the screen.
    pub fn wait_for(&self, what: &str, is_true: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for(what, || {
                last = self.text();
                is_true(&last).then(|| last.clone())
            })
        }));
        found.unwrap_or_else(|_| panic!("{what} does not come; the screen:\n{last}"))
    }

    /// Presses keys, by tmux's names: `q`, `C-c`, `Tab`.
    ///
    /// # Panics
    /// If tmux has ended.
    pub fn press(&self, keys: &[&str]) {
        self.output(&[&["send-keys"], keys].concat());
    }

    /// Gives the terminal another size.
    ///
    /// # Panics
    /// If tmux has ended.
    pub fn resize(&self, width: u16, height: u16) {
        self.output(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    /// Whether the terminal shows keys and has its cursor, as a shell needs it.
    ///
    /// # Panics
    /// If tmux has ended.
    #[must_use]
    pub fn is_restored(&self) -> bool {
        let flags = self.output(&["display-message", "-p", "#{cursor_flag} #{alternate_on} #{wrap_flag}"]);
        flags.trim() == "1 0 1"
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).output();
    }
}
