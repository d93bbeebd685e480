//! Examples of the pages in C and other languages, as they stand there.

use super::programs::shown;
use std::fs;
use trace_tests::{Archive, Requirement, Sandbox, build, native, pages};

#[test]
fn the_example_for_other_languages_is_recorded() {
    let test = "the_example_for_other_languages_is_recorded";
    if !Requirement::Python.is_met(test) {
        return;
    }
    let page = fs::read_to_string(build::workspace().join("docs/bindings.md")).expect("the page");
    let (_, rest) = page.split_once("```python\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let lines = example.lines().filter(|line| !line.is_empty()).count();
    assert!(lines <= 30, "it has {lines} lines");
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("example.py"), example).expect("a file");
    let output = sandbox
        .command("trace")
        .env("LIBTRACE", native::library_dir().join("libtrace.so.0"))
        .args(["record", "--output-file", "trace.fxt", "--", "python3", "example.py"])
        .output()
        .expect("it runs");
    native::check("python3 example.py", &output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "499500\n");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.events.iter().map(shown).collect::<Vec<_>>(), ["complete python/sum"]);
}

/// The first example of `docs/c.md`, as it stands there.
#[test]
fn the_first_example_for_c_is_recorded() {
    if !Requirement::Compilers.is_met("the_first_example_for_c_is_recorded") {
        return;
    }
    let page = "docs/c.md";
    let block = pages::blocks(&pages::read(page)).into_iter().find(|block| block.language == "c");
    let sandbox = Sandbox::new();
    let (source, program) = (sandbox.file("main.c"), sandbox.file("a.out"));
    fs::write(&source, block.expect("an example").text).expect("a file");
    native::program("gcc", &[source.to_str().expect("UTF-8")], &native::STRICT, &program);
    let output = sandbox.trace(["record", "--", program.to_str().expect("UTF-8")]);
    native::check(page, &output);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.events.iter().map(shown).collect::<Vec<_>>(), ["complete app/main answer=42i32"]);
}
