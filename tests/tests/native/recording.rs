//! Recording programs from C.

use std::fs;
use std::process::Command;
use trace_tests::build::program;
use trace_tests::{Archive, Requirement, Sandbox, native};

//= docs/client.md#from-c
#[test]
fn a_c_program_records_others() {
    let test = "a_c_program_records_others";
    if !Requirement::Compilers.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let source = native::source("record.c");
    for (compiler, name) in [("gcc", "gcc.fxt"), ("clang", "clang.fxt")] {
        let record = sandbox.file(name).with_extension("");
        native::client_program(compiler, &[source.to_str().unwrap()], &native::STRICT, &record);
        let raising = format!("{} alert stall >/dev/null", program("stubborn").display());
        fs::write(sandbox.file("wait"), "").unwrap();
        let output = Command::new(&record)
            .args([program("trace"), &sandbox.runtime_dir(), &sandbox.file(name)])
            .arg(raising)
            .arg(format!("{} wait", program("living").display()))
            .args([sandbox.file("living.fxt"), sandbox.file("last.fxt")])
            .current_dir(sandbox.work_dir())
            .output()
            .unwrap();
        native::check("the client", &output);
        let bytes = fs::metadata(sandbox.file(name)).unwrap().len();
        let expected = format!(
            "1 unable to start trace: there is no buffering mode 7\n\
             alert: 0\n\
             alert: 1 stall 1\n\
             listed stubborn: 1, 0 dropped\n\
             recording stubborn: 1, 0 dropped\n\
             flush: 1\n\
             snapshot: 0\n\
             cannot write /no/such/directory/a.fxt: directory /no: No such file or directory (os error 2)\n\
             ended: 0\n\
             events: 2, dropped: 0, bytes: {bytes}, complete: 1\n\
             snapshot: 1, events: 503\n\
             snapshot: 0 nothing is being recorded\n\
             ended: 0\n\
             stop: 1, events: 503\n\
             1 the run\n"
        );
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{compiler}");
        let archive = Archive::read(&sandbox.file(name));
        let names: Vec<String> = archive.events.iter().map(trace_tests::archive::Event::name).collect();
        assert_eq!(names, ["here", "alert"], "{compiler}");
        for file in ["living.fxt", "last.fxt"] {
            assert_eq!(Archive::read(&sandbox.file(file)).events.len(), 503, "{compiler}: {file}");
        }
    }
}

#[test]
fn the_recording_library_exports_what_its_header_declares() {
    let test = "the_recording_library_exports_what_its_header_declares";
    native::check_exports(test, "libtraceclient", ("trace-client/c_api.h", "trace_client_", 10));
}
