//! Each header on its own, in every language and by every compiler; and what must not compile.

use std::fs;
use std::path::Path;
use std::process::Output;
use trace_tests::{Requirement, Sandbox, compiled, native};

/// Headers that need C++, by the beginnings of their paths.
const CXX_ONLY: [&str; 19] = [
    "fbl/",
    "lib/fit/",
    "lib/zx/",
    "lib/trace/internal/string_traits.h",
    "lib/trace/internal/values.h",
    "lib/trace/observer.h",
    "lib/trace-provider/handler.h",
    "trace-reader/chunk.h",
    "trace-reader/file_reader.h",
    "trace-reader/reader.h",
    "trace-reader/records.h",
    "trace/category_registry.h",
    "trace/memory_dump_manager.h",
    "trace/perfetto.h",
    "trace/trace_event_impl.h",
    "trace/trace_log.h",
    "trace/traced_value.h",
    "trace-vthread/",
    "utils/",
];
/// Has other macros of the same names as others.
const ALONE: &str = "trace/perfetto.h";
/// As above, of older paths and what is for the other language only.
const MORE_CXX_ONLY: [&str; 3] =
    ["trace/internal/string_traits.h", "trace/observer.h", "trace-provider/handler.h"];
const C_ONLY: &str = "lib/trace/internal/arity.h";

fn headers() -> Vec<String> {
    fn walk(directory: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                let name = path.strip_prefix(native::include_dir()).expect("inside");
                found.push(name.to_str().expect("UTF-8").to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(&native::include_dir(), &mut found);
    found.sort();
    found
}

/// What is wrong with a list of arguments stands among the errors.
#[test]
fn lists_that_are_none_are_refused_in_words() {
    if !Requirement::Compilers.is_met("lists_that_are_none_are_refused_in_words") {
        return;
    }
    let event = |count: usize, rest: &str| {
        let pairs: String = (0..count).map(|number| format!(", \"{number}\", TA_INT32(1)")).collect();
        format!(
            "#include <lib/trace/event.h>\nvoid record(void);\nvoid record(void) {{\n  \
             TRACE_INSTANT(\"a\", \"b\", TRACE_SCOPE_THREAD{pairs}{rest});\n}}"
        )
    };
    for compiler in native::C.into_iter().chain(native::CXX) {
        let standard = if compiler.ends_with("++") { "-std=c++17" } else { "-std=c11" };
        let fits = compile(compiler, &event(15, ""), &[standard]);
        assert!(fits.status.success(), "{compiler}: {fits:?}");
        for (count, rest, words) in [
            (16, "", "an_event_has_at_most_15_arguments"),
            (31, "", "an_event_has_at_most_15_arguments"),
            (3, ", \"alone\"", "arguments_come_in_pairs"),
        ] {
            let refused = compile(compiler, &event(count, rest), &[standard]);
            let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success() && errors.contains(words), "{compiler} {count}: {errors}");
        }
    }
}

/// Compiles a text and nothing more.
fn compile(compiler: &str, text: &str, flags: &[&str]) -> Output {
    let sandbox = Sandbox::new();
    let is_cxx = compiler.ends_with("++");
    let path = sandbox.file(if is_cxx { "text.cc" } else { "text.c" });
    fs::write(&path, format!("{text}\n")).expect("a file");
    compiled::compile(compiler, &[&native::STRICT[..], flags].concat(), &path, None)
}

const OLDER: [&str; 2] = ["-std=c11", "-std=c++17"];

fn standards() -> impl Iterator<Item = (&'static str, &'static str)> {
    let c = native::C
        .into_iter()
        .flat_map(|compiler| ["-std=c11", "-std=gnu17"].map(|standard| (compiler, standard)));
    let cxx = native::CXX
        .into_iter()
        .flat_map(|compiler| ["-std=c++17", "-std=gnu++20"].map(|standard| (compiler, standard)));
    c.chain(cxx)
}

/// By the older standard of each compiler; by the newer one all of them in one file.
#[test]
fn each_header_compiles_on_its_own() {
    if !Requirement::Compilers.is_met("each_header_compiles_on_its_own") {
        return;
    }
    let headers = headers();
    assert!(headers.len() > 55, "{headers:?}");
    let is_cxx_only =
        |header: &str| CXX_ONLY.iter().chain(&MORE_CXX_ONLY).any(|start| header.starts_with(start));
    for (compiler, standard) in standards() {
        let is_cxx = compiler.ends_with("++");
        let of_language = headers.iter().filter(|header| is_cxx || !is_cxx_only(header));
        let of_language = of_language.filter(|header| !is_cxx || *header != C_ONLY);
        let include = |header: &String| format!("#include <{header}>\n");
        let texts: Vec<String> = if OLDER.contains(&standard) {
            of_language.map(include).collect()
        } else {
            vec![of_language.filter(|header| *header != ALONE).map(include).collect()]
        };
        let flags = if is_cxx { vec![standard, "-fno-exceptions", "-fno-rtti"] } else { vec![standard] };
        for text in texts {
            let output = compile(compiler, &format!("{text}typedef int something;\n"), &flags);
            native::check(&format!("{compiler} {standard} {text}"), &output);
        }
    }
}

/// An instant with so many pairs of arguments.
fn instant(pairs: usize, value: &str) -> String {
    let pairs: String = (0..pairs).map(|number| format!(", \"{number}\", {value}")).collect();
    format!("TRACE_INSTANT(\"category\", \"name\", TRACE_SCOPE_THREAD{pairs});")
}

fn function(body: &str) -> String {
    format!(
        "#include <trace/event.h>\n#include <lib/trace/event.h>\nvoid function(void);\nvoid function(void) {{\n{body}\n}}\n"
    )
}

#[test]
fn macros_take_up_to_fifteen_arguments() {
    if !Requirement::Compilers.is_met("macros_take_up_to_fifteen_arguments") {
        return;
    }
    for (compiler, standard) in standards() {
        for more in [&[][..], &["-DNTRACE"]] {
            let flags = [&[standard], more].concat();
            let body: String = [0, 1, 15].map(|pairs| instant(pairs, "TA_INT32(1)")).concat();
            let duration = body.replace("INSTANT", "DURATION").replace(", TRACE_SCOPE_THREAD", "");
            let both = function(&format!("{body}\n{duration}"));
            native::check(&format!("{compiler} {flags:?}"), &compile(compiler, &both, &flags));
            let refused = [
                instant(16, "TA_INT32(1)"),
                instant(1, "TA_INT32(1), \"without a value\""),
                "TRACE_COUNTER(\"category\", \"name\", \"an id\", \"value\", TA_INT32(1));".to_owned(),
                "TRACE_COUNTER(\"category\", \"name\", 1);".to_owned(),
            ];
            for body in refused {
                let output = compile(compiler, &function(&body), &flags);
                assert!(!output.status.success(), "{compiler} {flags:?} takes {body}");
            }
        }
    }
}

#[test]
fn values_without_a_meaning_are_refused() {
    if !Requirement::Compilers.is_met("values_without_a_meaning_are_refused") {
        return;
    }
    let refused = [
        "enum class Color { kRed }; TRACE_INSTANT(\"c\", \"n\", TRACE_SCOPE_THREAD, \"v\", Color::kRed);",
        "struct Thing {}; TRACE_INSTANT(\"c\", \"n\", TRACE_SCOPE_THREAD, \"v\", Thing());",
        "TRACE_DURATION(\"c\", \"n\", \"v\", static_cast<__int128>(1));",
    ];
    for compiler in native::CXX {
        for body in refused {
            let output = compile(compiler, &function(body), &["-std=c++17", "-Wno-pedantic"]);
            assert!(!output.status.success(), "{compiler} takes {body}");
        }
        let taken = "enum Color { kRed }; TRACE_INSTANT(\"c\", \"n\", TRACE_SCOPE_THREAD, \"v\", kRed);";
        native::check(compiler, &compile(compiler, &function(taken), &["-std=c++17"]));
    }
    for compiler in native::C {
        let sandbox = Sandbox::new();
        let path = sandbox.file("text.c");
        for body in [
            "int count = 1; TRACE_INSTANT(\"c\", \"n\", TRACE_SCOPE_THREAD, \"count\", count);",
            "TRACE_INSTANT(\"c\", \"n\", TRACE_SCOPE_THREAD, \"a\", TA_INT32(1), \"b\", 2);",
            "TRACE_DURATION(\"c\", \"n\", \"text\", \"text\");",
            "TRACE_COUNTER(\"c\", \"n\", 1, \"v\", 1.5);",
            "TRACE_FLOW_BEGIN(\"c\", \"n\", 1, \"v\", NULL);",
        ] {
            fs::write(&path, function(body)).expect("a file");
            // As most programs are compiled: without any option that makes an error of a warning.
            for flags in [&[][..], &["-DNTRACE"]] {
                let output = compiled::compile(compiler, flags, &path, None);
                assert!(!output.status.success(), "{compiler} {flags:?} takes {body}");
            }
        }
        let taken =
            "TRACE_INSTANT(\"c\", \"n\", TRACE_SCOPE_THREAD, \"a\", TA_INT32(1), \"b\", TA_STRING(\"t\"));";
        fs::write(&path, function(taken)).expect("a file");
        native::check(compiler, &compiled::compile(compiler, &[], &path, None));
    }
}

/// Arrays of arguments for the functions of `context.h`, in both languages; and a name of older programs.
#[test]
fn arguments_are_declared_in_both_languages() {
    if !Requirement::Compilers.is_met("arguments_are_declared_in_both_languages") {
        return;
    }
    let body = "trace_context_t* context = NULL;\n\
                TRACE_DECLARE_ARGS(context, args, \"n\", TA_INT32(1), \"s\", TA_STRING(\"x\"));\n\
                TRACE_COMPLETE_ARGS(context, args, TRACE_NUM_ARGS(args));\n\
                TRACE_DECLARE_ARGS(context, none);\n\
                TRACE_COMPLETE_ARGS(context, none, TRACE_NUM_ARGS(none));\n\
                trace_provider_packet_t packet = {TRACE_PROVIDER_STARTED, {1}, 2, 3};\n\
                if (packet.reserved != packet.data16) return;";
    let includes = "#include <lib/trace-engine/context.h>\n#include <lib/trace-provider/provider.h>\n";
    for (compiler, standard) in standards() {
        let text = format!("{includes}{}", function(body));
        native::check(&format!("{compiler} {standard}"), &compile(compiler, &text, &[standard]));
    }
}

/// The names that Fuchsia's own header of arguments has.
#[test]
fn arguments_have_the_names_of_the_older_header() {
    if !Requirement::Compilers.is_met("arguments_have_the_names_of_the_older_header") {
        return;
    }
    let body = "trace_context_t* context = NULL;\n\
                TRACE_INTERNAL_ALLOCATE_ARGS(args, \"n\", TA_INT32(1), \"s\", TA_STRING(\"x\"));\n\
                TRACE_INTERNAL_INIT_ARGS(args, \"n\", TA_INT32(1), \"s\", TA_STRING(\"x\"));\n\
                static_assert(TRACE_INTERNAL_NUM_ARGS(args) == 2, \"\");\n\
                TRACE_INTERNAL_COMPLETE_ARGS(context, args, TRACE_INTERNAL_NUM_ARGS(args));\n\
                TRACE_INTERNAL_DECLARE_ARGS(context, one, \"n\", TA_INT32(1));\n\
                static_assert(TRACE_INTERNAL_NUM_ARGS(one) == TRACE_INTERNAL_COUNT_ARGS(\"n\", 1), \"\");\n\
                TRACE_INTERNAL_COMPLETE_ARGS(context, one, TRACE_INTERNAL_NUM_ARGS(one));";
    for (compiler, standard) in standards() {
        let is_cxx = compiler.ends_with("++");
        let more = "if (trace::internal::MakeArgumentValue(7).int32_value != 7) return;\n\
                    static_assert(trace::internal::is_bool<const bool>::value, \"\");";
        let body = if is_cxx { format!("{body}\n{more}") } else { body.to_owned() };
        let text = format!("#include <trace/internal/event_args.h>\n{}", function(&body));
        native::check(&format!("{compiler} {standard}"), &compile(compiler, &text, &[standard]));
    }
}

#[test]
fn an_old_language_is_one_error() {
    if !Requirement::Compilers.is_met("an_old_language_is_one_error") {
        return;
    }
    for compiler in native::CXX {
        let output = compile(compiler, "#include <lib/trace/event.h>", &["-std=c++14"]);
        assert!(!output.status.success(), "{compiler}");
        let said = String::from_utf8_lossy(&output.stderr);
        let errors: Vec<&str> = said.lines().filter(|line| line.contains("error: ")).collect();
        assert_eq!(errors.len(), 1, "{compiler}: {said}");
        assert!(errors[0].contains("need C++17 or newer: compile with -std=c++17"), "{compiler}: {said}");
    }
}

#[test]
fn an_event_is_one_statement() {
    if !Requirement::Compilers.is_met("an_event_is_one_statement") {
        return;
    }
    let body = "if (TRACE_ENABLED()) TRACE_INSTANT(\"c\", \"n\", TRACE_SCOPE_THREAD); else TRACE_FLOW_END(\"c\", \"n\", 1);\n\
                for (int i = 0; i < 2; ++i) TRACE_COUNTER(\"c\", \"n\", 1, \"v\", TA_INT32(i));\n\
                TRACE_DURATION(\"c\", \"one\"); TRACE_DURATION(\"c\", \"two\");";
    for (compiler, standard) in standards() {
        for flags in [&[standard][..], &[standard, "-DNTRACE"], &[standard, "-Wshadow", "-O2"]] {
            native::check(&format!("{compiler} {flags:?}"), &compile(compiler, &function(body), flags));
        }
    }
}

/// What other languages, the engine and compiled programs rely on.
//= docs/c.md#layouts
#[test]
fn layouts_are_those_of_the_page() {
    if !Requirement::Compilers.is_met("layouts_are_those_of_the_page") {
        return;
    }
    let text = r#"
        #include <lib/trace/internal/layout.h>
        #define IS(type, size) _Static_assert(sizeof(type) == size, #type)
        #define AT(type, member, offset) _Static_assert(offsetof(type, member) == offset, #type "." #member)
        IS(trace_string_ref_t, 16); AT(trace_string_ref_t, inline_string, 8);
        IS(trace_thread_ref_t, 24); AT(trace_thread_ref_t, inline_process_koid, 8); AT(trace_thread_ref_t, inline_thread_koid, 16);
        IS(trace_arg_value_t, 24); AT(trace_arg_value_t, double_value, 8); AT(trace_arg_value_t, string_value_ref, 8);
        IS(trace_arg_t, 40); AT(trace_arg_t, value, 16);
        IS(trace_internal_site_t, 64); AT(trace_internal_site_t, category, 8); AT(trace_internal_site_t, name, 24);
        AT(trace_internal_site_t, args, 40); AT(trace_internal_site_t, next, 56); _Static_assert(_Alignof(trace_internal_site_t) == 64, "");
        IS(trace_internal_arg_name_t, 16); AT(trace_internal_arg_name_t, length, 8); AT(trace_internal_arg_name_t, index, 12);
        AT(trace_internal_thread_t, thread_bits, 8); AT(trace_internal_thread_t, latest, 16);
        AT(trace_internal_thread_t, slab.cursor, 24); AT(trace_internal_thread_t, slab.end, 32);
        AT(trace_internal_thread_t, slab.events, 40);
        _Static_assert(sizeof(trace_arg_type_t) == 4 && sizeof(bool) == 1, "");
    "#;
    for compiler in native::C {
        native::check(compiler, &compile(compiler, text, &["-std=c11"]));
    }
}
