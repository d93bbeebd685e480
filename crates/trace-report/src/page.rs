//! The page: the modules of `ui/` joined, and a policy that lets nothing leave it.
//!
//! Modules share one name space once `import` and `export` are dropped, so two of them that declare the same
//! name are an error. Comments are dropped, too, and the script is compressed: a loader of a few lines, whose
//! hash the policy names, makes a blob of it. The worker's text is a constant of the script.

use crate::packer::compressed;
use crate::xml;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Write};
use trace_format::shown::Shown;

const HTML: &str = include_str!("../ui/page.html");
/// In the first 4096 bytes of every page of a whole trace.
pub const GENERATOR: &str = r#"<meta name="generator" content="trace report">"#;
/// The same of a page of a part.
const GENERATOR_OF_PART: &str = r#"<meta name="generator" content="trace report of a part">"#;
const STYLE: &str = include_str!("../ui/page.css");
const LOADER: &str = include_str!("../ui/loader.js");

type Modules<'a> = &'a [(&'a str, &'a str)];

/// What both pages have; each uses only what comes before it.
const SHARED: [(&str, &str); 17] = [
    ("text.js", include_str!("../ui/text.js")),
    ("decode.js", include_str!("../ui/decode.js")),
    ("pyramid.js", include_str!("../ui/pyramid.js")),
    ("model.js", include_str!("../ui/model.js")),
    ("colour.js", include_str!("../ui/colour.js")),
    ("layout.js", include_str!("../ui/layout.js")),
    ("stats.js", include_str!("../ui/stats.js")),
    ("search.js", include_str!("../ui/search.js")),
    ("hash.js", include_str!("../ui/hash.js")),
    ("canvas.js", include_str!("../ui/canvas.js")),
    ("strips.js", include_str!("../ui/strips.js")),
    ("draw.js", include_str!("../ui/draw.js")),
    ("element.js", include_str!("../ui/element.js")),
    ("heads.js", include_str!("../ui/heads.js")),
    ("details.js", include_str!("../ui/details.js")),
    ("input.js", include_str!("../ui/input.js")),
    ("app.js", include_str!("../ui/app.js")),
];
const MAIN: [(&str, &str); 2] =
    [("summary.js", include_str!("../ui/summary.js")), ("main.js", include_str!("../ui/main.js"))];
const LIVE_MODULES: [(&str, &str); 5] = [
    ("live/columns.js", include_str!("../ui/live/columns.js")),
    ("live/growing.js", include_str!("../ui/live/growing.js")),
    ("live/model.js", include_str!("../ui/live/model.js")),
    ("live/tables.js", include_str!("../ui/live/tables.js")),
    ("live/main.js", include_str!("../ui/live/main.js")),
];

/// The modules of the worker.
const WORKER: [(&str, &str); 2] = [
    ("decode.js", include_str!("../ui/decode.js")),
    ("decode.worker.js", include_str!("../ui/decode.worker.js")),
];
/// The constant with the worker's text.
const WORKER_NAME: &str = "WORKER";

/// A kind of page.
#[derive(Clone, Copy, Debug)]
pub struct PageKind {
    /// What follows its title.
    suffix: &'static str,
    modules: Modules<'static>,
    has_worker: bool,
    /// What is added to the policy.
    policy: &'static str,
    /// Elements in the bar, and keys in the help.
    controls: &'static str,
    keys: &'static str,
}

/// The page of a trace.
pub const REPORT: PageKind =
    PageKind { suffix: "trace report", modules: &MAIN, has_worker: true, policy: "", controls: "", keys: "" };
/// The page of a recording that is still running, which a server feeds.
pub const LIVE: PageKind = PageKind {
    suffix: "trace view",
    modules: &LIVE_MODULES,
    has_worker: false,
    policy: "; connect-src 'self'",
    controls: "<button id=\"pause\" class=\"quiet\" aria-pressed=\"false\" title=\"Pause or follow (Space)\">Pause</button>\n\
               <span id=\"state\" role=\"status\">connecting…</span>\n",
    keys: "<dt><kbd>Space</kbd></dt><dd>pause, or follow the recording again</dd>\n",
};

/// A line without comments that declare types.
fn without_types(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, comment)) = rest.split_once("/** @") {
        let Some((_, after)) = comment.split_once("*/") else { break };
        kept += before;
        rest = after.trim_start();
    }
    kept + rest
}

/// A module without imports, exports, comments and indentation, and the names that it declares.
fn stripped(text: &str) -> (String, Vec<&str>) {
    let mut names = Vec::new();
    let mut lines = Vec::new();
    let mut is_import = false;
    for line in text.lines() {
        if is_import || line.starts_with("import ") {
            is_import = !line.ends_with(';');
            continue;
        }
        let bare = line.trim_start();
        if bare.is_empty() || bare.starts_with("//") || bare.starts_with("/*") || bare.starts_with("* ") {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let declared = ["const ", "let ", "function ", "async function ", "class "];
        if let Some(rest) = declared.iter().find_map(|word| line.strip_prefix(word)) {
            let is_part = |char: char| !(char.is_alphanumeric() || char == '_' || char == '$');
            names.extend(rest.split(is_part).next().filter(|name| !name.is_empty()));
        }
        lines.push(without_types(line.trim_start()));
    }
    (lines.join("\n") + "\n", names)
}

/// Two modules declare the same name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} and {other} both declare {name}")]
struct Clash {
    file: String,
    other: String,
    name: String,
}

/// Joins modules.
///
/// # Errors
/// Two modules declare the same name.
fn joined(modules: &[(&str, &str)]) -> Result<String, Clash> {
    let mut script = String::from("'use strict';\n");
    let mut declared = BTreeMap::new();
    for (file, text) in modules {
        let (text, names) = stripped(text);
        for name in names {
            if let Some(other) = declared.insert(name.to_owned(), *file) {
                let [file, other, name] = [file, other, name].map(str::to_owned);
                return Err(Clash { file, other, name });
            }
        }
        script += &text;
    }
    Ok(script)
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// JSON that may stand inside an element.
pub fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// The page without its data.
pub struct Page {
    kind: PageKind,
    /// The compressed script.
    script: String,
}

impl Page {
    /// Joins the modules.
    ///
    /// # Errors
    /// They do not fit together, which a test makes sure of.
    pub fn of(kind: &PageKind) -> io::Result<Self> {
        let worker = joined(&WORKER).map_err(io::Error::other)?;
        let worker = format!("const {WORKER_NAME} = {};", serde_json::Value::from(worker));
        let mut modules = Vec::new();
        if kind.has_worker {
            modules.push(("the worker", worker.as_str()));
        }
        modules.extend(SHARED);
        modules.extend(kind.modules);
        let script = joined(&modules).map_err(io::Error::other)?;
        Ok(Self { kind: *kind, script: compressed(script.as_bytes())? })
    }

    /// Writes everything up to the data. The title is any text.
    pub fn begin(&self, title: &str, is_part: bool, output: &mut impl Write) -> io::Result<()> {
        let policy = format!(
            "default-src 'none'; script-src {} blob:; worker-src blob:; style-src {}; img-src blob: data:; base-uri \
             'none'; form-action 'none'{}",
            hash(LOADER),
            hash(STYLE),
            self.kind.policy
        );
        let title = xml::escaped(&Shown(title).to_string());
        let title = format!("{title} · {}", self.kind.suffix);
        let (head, _) = HTML.split_once("<!--data-->").unwrap_or((HTML, ""));
        let (head, body) = head.split_once("/*style*/").unwrap_or((head, ""));
        let head = if is_part { head.replace(GENERATOR, GENERATOR_OF_PART) } else { head.to_owned() };
        let head = head.replace("<!--policy-->", &policy).replace("<!--title-->", &title);
        let body = body.replace("<!--controls-->", self.kind.controls).replace("<!--keys-->", self.kind.keys);
        write!(output, "{head}{STYLE}{body}")
    }

    /// Writes an element with data, which has no `<` in it.
    pub fn section(&self, id: &str, text: &str, output: &mut impl Write) -> io::Result<()> {
        debug_assert!(!text.contains('<'), "data ends its element");
        writeln!(output, "<script type=\"text/plain\" id=\"{id}\">{text}</script>")
    }

    /// Writes what follows the data.
    pub fn end(&self, output: &mut impl Write) -> io::Result<()> {
        self.section("code", &self.script, output)?;
        let (_, tail) = HTML.split_once("<!--data-->").unwrap_or(("", HTML));
        let (before, after) = tail.split_once("/*script*/").unwrap_or((tail, ""));
        write!(output, "{before}{LOADER}{after}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_joined_without_imports() {
        let first = "import {a} from './a.js';\nimport {\n  b,\n} from './b.js';\n// A remark.\nexport const one = 1;\n";
        let (text, names) = stripped(first);
        assert_eq!((text.as_str(), names), ("const one = 1;\n", vec!["one"]));
        let clash = joined(&[("a.js", "const x = 1;"), ("b.js", "export function x() {}")]);
        assert_eq!(clash.unwrap_err().to_string(), "b.js and a.js both declare x");
    }

    #[test]
    fn the_page_is_small_and_its_parts_fit_together() {
        for kind in [&REPORT, &LIVE] {
            let page = Page::of(kind).unwrap();
            let mut whole = Vec::new();
            page.begin("a <b> & \u{202e}c", false, &mut whole).unwrap();
            page.end(&mut whole).unwrap();
            let whole = String::from_utf8(whole).unwrap();
            assert!(whole.len() <= 60_000, "{} bytes", whole.len());
            assert!(whole.contains("<title>a &lt;b&gt; &amp; \\u{202e}c · trace "), "{}", &whole[..600]);
            for mark in ["<!--", "/*style*/", "/*script*/"] {
                assert!(!whole.contains(mark), "{mark} is left");
            }
            // Only the page that is fed asks for anything.
            assert_eq!(whole.contains("connect-src 'self'"), kind.suffix == LIVE.suffix);
        }
    }

    #[test]
    fn comments_are_dropped() {
        let text = "/** A.\n * @param {x} y */\nconst a = /** @type {b} */ (c);\n  // D.\n  e(/** @type {f} */ (g), '/* h */');\n";
        assert_eq!(stripped(text).0, "const a = (c);\ne((g), '/* h */');\n");
    }

    #[test]
    fn data_does_not_end_its_element() {
        assert_eq!(escaped(r#"["</script>"]"#), r#"["\u003c/script>"]"#);
    }
}
