//! Hosts that make it hard for a library to be their guest: `hosts WAY HOSTILITY DIRECTORY`.
//!
//! A way is `provider`, `polled`, `client`, `local` or `startup`. A host begins in its way, records ten
//! events `before`, is hostile, records ten events `after`, and ends. It exits with 0 if it found nothing of
//! its own changed; else the file `problem` of the directory says what was. A client records programs: `hosts
//! emit NAME`, each with ten events.

mod begun;
mod descriptors;
mod ends;
mod limits;
mod processes;
mod signals;

use begun::Host;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, hostility, rest @ ..] = &arguments[..] else { panic!("hosts WAY HOSTILITY DIRECTORY") };
    if way == "emit" {
        return begun::emit(hostility);
    }
    let directory = std::path::PathBuf::from(&rest[0]);
    let problem = directory.join("problem");
    std::panic::set_hook(Box::new(move |info| {
        limits::lift();
        let _ = std::fs::write(&problem, info.to_string());
    }));
    let mut host = Host::new(way, directory);
    match &**hostility {
        "close" => descriptors::close(&mut host),
        "closes" => descriptors::closes(&mut host),
        "standard" => descriptors::standard(&mut host),
        "handles" => signals::handles(&mut host),
        "sigwait" => signals::sigwait(&mut host),
        "blocks" => signals::blocks(&mut host),
        "pipe" => signals::pipe(&mut host),
        "forks" => processes::forks(&mut host),
        "threads" => processes::threads(&mut host),
        "spawns" => processes::spawns(&mut host),
        "waits" => processes::waits(&mut host),
        "ignores" => processes::ignores(&mut host),
        "small files" => limits::small_files(&mut host),
        "smaller files" => limits::smaller_files(&mut host),
        "few numbers" => limits::few_numbers(&mut host),
        "little space" => limits::little_space(&mut host),
        "little memory" => limits::little_memory(&mut host),
        how => ends::end(&mut host, how),
    }
}
