//! Compilers of C and C++, and tools for what they make.

use super::Requirement;
use super::trial::{Scratch, run};
use crate::native::{C, CXX, SANITIZED, STATIC_LIBRARIES};
use std::path::PathBuf;
use std::process::Command;

/// Starts a thread, as all programs of tests do.
const PROGRAM_C: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    static void *run(void *text) { puts(text); free(text); return 0; }\n\
    int main(void) {\n  pthread_t thread;\n  char *text = calloc(1, 6);\n  snprintf(text, 6, \"tried\");\n\
    if (pthread_create(&thread, 0, run, text) != 0) return 1;\n  return pthread_join(thread, 0);\n}\n";
const PROGRAM_CXX: &str = "#include <iostream>\n#include <string>\n#include <thread>\n\
    int main() {\n  std::string text = \"tried\";\n\
    std::thread thread([&] { std::cout << text << std::endl; });\n  thread.join();\n}\n";

/// Compiles a program with flags.
fn compile(scratch: &Scratch, compiler: &str, flags: &[&str]) -> Result<PathBuf, String> {
    let (source, standard) = if CXX.contains(&compiler) {
        (scratch.write("tried.cc", PROGRAM_CXX), "-std=c++17")
    } else {
        (scratch.write("tried.c", PROGRAM_C), "-std=gnu17")
    };
    let program = scratch.path("tried");
    let mut command = Command::new(compiler);
    run(command.args(flags).args([standard, "-pthread"]).arg(source).arg("-o").arg(&program))?;
    Ok(program)
}

/// Compiles a program with flags and runs it.
fn compile_and_run(compiler: &str, flags: &[&str]) -> Result<(), String> {
    let scratch = Scratch::new();
    let program = compile(&scratch, compiler, flags)?;
    match &*run(&mut Command::new(program))? {
        "tried\n" => Ok(()),
        other => Err(format!("a program of {compiler} {flags:?} prints {other:?}")),
    }
}

pub fn compilers() -> Result<(), String> {
    C.into_iter().chain(CXX).try_for_each(|compiler| compile_and_run(compiler, &["-O1"]))
}

pub fn sanitizers(compiler: &str) -> Result<(), String> {
    compile_and_run(compiler, &SANITIZED)
}

pub fn valgrind() -> Result<(), String> {
    let scratch = Scratch::new();
    let program = compile(&scratch, "gcc", &["-g"])?;
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    run(command.arg(program)).map(drop)
}

pub fn function_tracers() -> Result<(), String> {
    let scratch = Scratch::new();
    let program = compile(&scratch, "gcc", &["-pg"])?;
    run(Command::new("uftrace").arg("record").arg("--data").arg(scratch.path("calls")).arg(&program))?;
    let program = compile(&scratch, "clang", &["-fxray-instrument"])?;
    let options =
        format!("patch_premain=true xray_mode=xray-basic xray_logfile_base={}/", scratch.path("").display());
    run(Command::new(program).env("XRAY_OPTIONS", options))?;
    run(Command::new("llvm-xray").arg("--version")).map(drop)
}

pub fn binutils() -> Result<(), String> {
    let scratch = Scratch::new();
    let program = compile(&scratch, "cc", &["-g", "-Wl,--build-id"])?;
    let symbols = run(Command::new("nm").arg(&program))?;
    let main = symbols.lines().find_map(|line| line.strip_suffix(" T main"));
    let address = main.ok_or("nm shows no main")?;
    let line = run(Command::new("addr2line").arg("-e").arg(&program).arg(address))?;
    if !line.contains("tried.c:") {
        return Err(format!("addr2line prints {line:?} of main"));
    }
    run(Command::new("readelf").args(["--dynamic", "-SW", "-lW"]).arg(&program))?;
    let debug = scratch.path("tried.debug");
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&program).arg(&debug))?;
    run(Command::new("strip").arg("--strip-all").arg(&program))?;
    let link = format!("--add-gnu-debuglink={}", debug.display());
    run(Command::new("objcopy").arg(link).arg(&program)).map(drop)
}

pub fn installing() -> Result<(), String> {
    Requirement::Binutils.tried()?;
    let scratch = Scratch::new();
    scratch.write("Makefile", "tried:\n\tinstall -D -m 644 Makefile copied/Makefile\n");
    run(Command::new("make").arg("-C").arg(scratch.path("")))?;

    scratch.write("tried.pc", "Name: tried\nDescription: tried\nVersion: 1\nLibs: -ltried\n");
    let mut command = Command::new("pkg-config");
    run(command.env("PKG_CONFIG_PATH", scratch.path("")).args(["--libs", "tried"]))?;

    scratch.write("tried.c", PROGRAM_C);
    scratch.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.16)\nproject(tried C)\nadd_executable(tried tried.c)\n",
    );
    let build = scratch.path("build");
    run(Command::new("cmake").arg("-S").arg(scratch.path("")).arg("-B").arg(&build))?;
    run(Command::new("cmake").arg("--build").arg(&build))?;

    // Without any shared library.
    let program = scratch.path("static");
    let mut command = Command::new("gcc");
    command.arg(scratch.path("tried.c")).arg("-o").arg(&program).args(STATIC_LIBRARIES).arg("-static");
    run(&mut command)?;
    run(&mut Command::new(program)).map(drop)
}
