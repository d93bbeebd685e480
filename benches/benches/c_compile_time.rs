//! How much processor time a file with 10 000 call sites takes to compile without optimization: `-- --sites
//! N` for another number.

use std::fmt::Write as _;
use trace_tests::native;

const SITES: usize = 10_000;
/// Sites of each function.
const FUNCTION: usize = 100;

/// Sites of the usual kinds, with up to two arguments.
fn source(sites: usize) -> String {
    let mut text = String::from("#include <lib/trace/event.h>\n");
    for function in 0..sites.div_ceil(FUNCTION) {
        let _ = writeln!(text, "void f{function}(int x);\nvoid f{function}(int x) {{");
        for site in (function * FUNCTION..sites).take(FUNCTION) {
            let place = format!("\"category {}\", \"name {site}\"", site % 40);
            let line = match site % 4 {
                0 => format!("TRACE_INSTANT({place}, TRACE_SCOPE_THREAD, \"a\", TA_INT32(x));"),
                1 => format!("TRACE_COUNTER({place}, 0, \"a\", TA_INT32(x), \"b\", TA_INT64(x));"),
                2 => format!("{{ TRACE_DURATION({place}, \"a\", TA_INT32(x), \"b\", TA_STRING(\"c\")); }}"),
                _ => format!("TRACE_DURATION_BEGIN({place});"),
            };
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str("}\n");
    }
    text
}

/// Seconds of processor time that children of this process have taken, in steps of 10 ms.
fn children_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("procfs");
    let (_, behind_name) = stat.rsplit_once(')').expect("a name");
    // The fields cutime and cstime.
    let hundredths =
        behind_name.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<u64>().ok());
    hundredths.sum::<u64>() as f64 / 100.0
}

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--sites").skip(1);
    let sites = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(SITES);
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (c, cxx, object) = (file("sites.c"), file("sites.cc"), file("sites.o"));
    for path in [&c, &cxx] {
        std::fs::write(path, source(sites)).expect("a file");
    }
    println!("{sites} sites\n\n| compiler | processor time, s |\n|---|---|");
    for (compiler, standard, path) in [
        ("gcc", "-std=gnu11", &c),
        ("clang", "-std=gnu11", &c),
        ("g++", "-std=c++17", &cxx),
        ("clang++", "-std=c++17", &cxx),
    ] {
        let start = children_seconds();
        let output = native::compiler(compiler, &[standard, "-O0", "-c", path, "-o", &object]);
        native::check(compiler, &output);
        println!("| {compiler} | {:.1} |", children_seconds() - start);
    }
}
