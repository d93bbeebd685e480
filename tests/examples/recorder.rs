//! Records other programs with the library: `recorder TOOL FILE`. Says "recording" when it does, waits for a
//! line, and prints how many events the archive has. At the end of its input it ends at once instead.
#![forbid(unsafe_code)]

use trace_client::{Client, Config, Tool};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let tool = arguments.next().expect("the tool");
    let file = arguments.next().expect("the name of a file");
    let client = Client::open_with(Tool::At(tool.into())).wait().expect("a manager");
    let recording = client.record(Config::default(), file).wait().expect("a recording");
    println!("recording");
    let Some(Ok(_)) = std::io::stdin().lines().next() else {
        std::process::exit(1);
    };
    let report = recording.stop().wait().expect("the archive");
    println!("{}", report.events());
}
