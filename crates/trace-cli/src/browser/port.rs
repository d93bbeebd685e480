//! Finds the process that listens on a port of this machine.

use std::fs;
use std::path::Path;

/// Maximum number of characters of a command line that are shown.
const SHOWN_CHARACTERS: usize = 200;
const LISTENING: &str = "0A";

/// The process that listens on the port of 127.0.0.1, or its user, for people.
pub fn holder(port: u16) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let (socket, user) = tables.iter().find_map(|table| listener(table, port))?;
    Some(match process(&socket) {
        Some((pid, command)) => format!("process {pid} ({command})"),
        None => format!("a process of user {user}"),
    })
}

/// Number of the socket and of the user.
fn listener(table: &str, port: u16) -> Option<(String, String)> {
    let local = u32::from_ne_bytes([127, 0, 0, 1]);
    let mapped = u32::from_ne_bytes([0, 0, 0xff, 0xff]);
    let addresses = [
        format!("{local:08X}:{port:04X}"),
        format!("{:08X}:{port:04X}", 0),
        format!("{:032X}:{port:04X}", 0),
        format!("{:016X}{mapped:08X}{local:08X}:{port:04X}", 0),
        format!("{:016X}{mapped:08X}{:08X}:{port:04X}", 0, 0),
    ];
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, address, _, LISTENING, _, _, _, user, _, socket, ..] = fields[..] else {
            return None;
        };
        addresses.iter().any(|known| known == address).then(|| (socket.to_owned(), user.to_owned()))
    })
}

/// A process that has a socket open, and its command line. None if this user may not examine it.
fn process(socket: &str) -> Option<(u32, String)> {
    let wanted = format!("socket:[{socket}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_it = |pid: &u32| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|link| link == Path::new(&wanted))
    };
    let pid = pids.find(has_it)?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    Some((pid, shown(&command)))
}

/// A command line without terminal controls.
fn shown(command: &[u8]) -> String {
    let text = String::from_utf8_lossy(command).replace('\0', " ");
    let text = text.trim_end().replace(char::is_control, "?");
    text.chars().take(SHOWN_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_holder_of_a_port_is_found() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0", "[::ffff:127.0.0.1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                // There may be no IPv6.
                assert!(address.starts_with('['), "{address}");
                continue;
            };
            let found = holder(listener.local_addr().unwrap().port()).unwrap();
            let expected = format!("process {} (", std::process::id());
            assert!(found.starts_with(&expected), "{address}: {found}");
        }
        let other = TcpListener::bind("127.0.0.2:0").unwrap();
        assert_eq!(holder(other.local_addr().unwrap().port()), None);
    }

    #[test]
    fn command_lines_are_cut_and_harmless() {
        assert_eq!(shown(b"python3\0-m\0http.server\0\x1b[2J\0"), "python3 -m http.server ?[2J");
        assert_eq!(shown(&[b'x'; 1000]).len(), SHOWN_CHARACTERS);
    }
}
