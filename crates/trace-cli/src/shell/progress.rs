//! Progress bars at a terminal.

use crate::shell::stdio;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Read;
use std::time::Duration;

/// Work of at least this size shows a bar.
const WORTH_SHOWING_BYTES: u64 = 16 << 20;

/// A bar over the bytes of an input; hidden for small ones, and if stderr is no terminal.
pub fn bar(what: &'static str, bytes: u64) -> ProgressBar {
    if bytes < WORTH_SHOWING_BYTES {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(bytes), stdio::progress_target());
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Reads through a bar.
pub fn reading<R: Read>(input: R, bar: &ProgressBar) -> impl Read + use<R> {
    bar.wrap_read(input)
}
