//! How a browser on another machine reaches this one's server: ssh forwards the port.
//= docs/perfetto.md#over-ssh

use std::net::IpAddr;

/// The default port of ssh.
const SSH_PORT: u16 = 22;

/// The command that forwards the port, if this runs in a session of ssh.
pub fn command(port: u16) -> Option<String> {
    let text = |name: &str| std::env::var_os(name).unwrap_or_default();
    let user = ["USER", "LOGNAME"].map(text).into_iter().find(|user| !user.is_empty()).unwrap_or_default();
    of_session(text("SSH_CONNECTION").to_str()?, user.to_str().unwrap_or_default(), port)
}

/// The same for the value of `SSH_CONNECTION`: address and port of the client, and of the server.
fn of_session(connection: &str, user: &str, port: u16) -> Option<String> {
    if connection.is_empty() {
        return None;
    }
    let mut fields = connection.split_ascii_whitespace().skip(2);
    // The variables may have been set by anything; the line is for a shell.
    let address = fields.next().and_then(|address| address.parse::<IpAddr>().ok());
    let ssh_port = fields.next().and_then(|port| port.parse::<u16>().ok()).filter(|port| *port != SSH_PORT);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = !user.is_empty() && !user.starts_with('-') && user.bytes().all(is_plain);
    let user = if is_name { format!("{user}@") } else { String::new() };
    let option = ssh_port.map_or_else(String::new, |port| format!("-p {port} "));
    let host = address.map_or_else(|| "HOST".to_owned(), |address| address.to_string());
    Some(format!("ssh -N -L {port}:127.0.0.1:{port} {option}{user}{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/perfetto.md#over-ssh
    #[test]
    fn the_line_is_that_of_the_session() {
        let line = |connection: &str, user: &str| of_session(connection, user, 9001);
        assert_eq!(line("", "ann"), None);
        for (connection, user, expected) in [
            ("192.0.2.7 50000 198.51.100.2 22", "ann", "ann@198.51.100.2"),
            ("192.0.2.7 50000 198.51.100.2 2222", "ann", "-p 2222 ann@198.51.100.2"),
            ("2001:db8::1 50000 2001:db8::2 22", "", "2001:db8::2"),
            ("x", "ann", "ann@HOST"),
            ("a b $(reboot) 22", "x;reboot", "HOST"),
            ("a b fe80::1%eth0 99999", "-oProxyCommand=x", "HOST"),
        ] {
            let expected = format!("ssh -N -L 9001:127.0.0.1:9001 {expected}");
            assert_eq!(line(connection, user), Some(expected), "{connection} {user}");
        }
    }
}
