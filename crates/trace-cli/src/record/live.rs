//! `trace live`: what a recording records, while it does.
//!
//! The running recording is observed through the manager. A recording of the command's own is a `trace
//! record` beside it: whatever becomes of the screen, that one is complete.

pub mod feed;
pub mod frames;
pub mod keys;
mod layout;
pub mod machine;
pub mod own;
pub mod page;
mod screen;
pub mod source;
mod table;

use crate::args::live::Live as Options;
use crate::args::record::Recording;
use crate::args::values::ConfigFile;
use crate::settings::Settings;
use crate::shell::exit::Failure;
use crate::shell::stdio::{self, say};
use feed::{Feed, Picture};
use keys::{Key, Keys};
use own::{Output, Own};
use screen::Screen;
use source::{Source, Wanted, wait};
use std::time::Duration;

/// How often lines look for the end.
const END_INTERVAL: Duration = Duration::from_millis(500);

/// Shows a recording until it ends or the user quits.
pub fn run(options: &Options) -> Result<u8, Failure> {
    if !options.json && !stdio::is_stdout_terminal() {
        return Err(Failure::usage("stdout is not a terminal: --json prints a line for each update"));
    }
    if !options.json && stdio::is_dumb() {
        return Err(Failure::usage("the terminal is dumb (TERM): --json prints a line for each update"));
    }
    source::begin_beside(!options.recording.command.is_empty(), options.interval.0)?;
    let keys = Keys::open()?;
    let arguments = own::arguments(std::env::args_os(), options.recording.command.len());
    let output = if options.json { Output::Stderr } else { Output::Kept };
    let of_any_program = Recording { program: Vec::new(), ..options.recording.clone() };
    let observes_others = options.config.is_none() && of_any_program == Recording::default();
    let program = first_program(options, observes_others)?;
    let wanted = Wanted {
        arguments: &arguments,
        program: program.as_deref(),
        observes_others,
        interval: options.interval.0,
    };
    let (socket, own) = match source::begin(&wanted, output, &keys)? {
        Source::Running(socket) => (socket, None),
        Source::Own(socket, own) => (socket, Some(own)),
        Source::Ended(code) => return Ok(code),
    };
    let mut own = own;
    let feed = Feed::begin(socket)?;
    let shown = match options.json {
        true => show_lines(&feed, &keys, own.as_mut()),
        false => show_screen(&feed, &keys, own.as_mut()),
    };
    match own {
        Some(mut own) => {
            // Whatever has become of the screen, the recording is saved.
            if shown.is_err() {
                own.stop();
            }
            let code = own.finish()?.code;
            shown.map(|_| code)
        }
        None => {
            let end = shown?;
            if let Some(reason) = feed.problem() {
                return Err(Failure::new(reason));
            }
            match end {
                End::Over => say!("trace: the recording has ended"),
                End::Quit if !options.json => say!("trace: the recording goes on"),
                End::Quit => {}
            }
            Ok(0)
        }
    }
}

/// The first program of the recording, by which it is found beside others: files may name it, too. A pipe is
/// left to the recording, as it can be read only once.
fn first_program(options: &Options, observes_others: bool) -> Result<Option<String>, Failure> {
    let files = [options.config.as_deref(), options.recording.spec_file.as_deref()];
    let has_pipe = files.into_iter().flatten().any(|file| !file.is_file());
    let recording = if observes_others || has_pipe {
        options.recording.clone()
    } else {
        let config = options.config.as_deref().map(ConfigFile::from);
        // The recording itself reports what has no effect.
        Settings::read(options.recording.clone(), config, &mut |_| ())?.recording
    };
    Ok(recording.program.into_iter().next())
}

/// Why nothing is shown any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The user wants no more.
    Quit,
    /// The recording is over.
    Over,
}

fn show_lines(feed: &Feed, keys: &Keys, mut own: Option<&mut Own>) -> Result<End, Failure> {
    let mut end = End::Over;
    loop {
        if let Some(picture) = feed.take() {
            stdio::print_document(&format!("{}\n", machine::line(&picture)))?;
        } else if feed.is_over() {
            return Ok(end);
        }
        if keys.has_signal() {
            end = End::Quit;
            match &mut own {
                Some(own) => own.stop(),
                None => return Ok(end),
            }
        }
        wait(&[feed.wake(), keys.signals()], END_INTERVAL);
    }
}

fn show_screen(feed: &Feed, keys: &Keys, mut own: Option<&mut Own>) -> Result<End, Failure> {
    let mut screen = Screen::open()?;
    let mut picture: Option<Picture> = None;
    let mut end = End::Over;
    loop {
        let mut has_changed = screen.has_new_size();
        if let Some(new) = feed.take() {
            picture = Some(new);
            has_changed = true;
        } else if feed.is_over() {
            return Ok(end);
        }
        let mut wants_end = keys.has_signal();
        for key in keys.pressed() {
            match key {
                Key::Quit => wants_end = true,
                Key::Next => screen.show_next(picture.as_ref()),
            }
            has_changed = true;
        }
        if wants_end {
            end = End::Quit;
            match &mut own {
                Some(own) => own.stop(),
                None => return Ok(end),
            }
        }
        if has_changed {
            screen.draw(picture.as_ref(), own.as_deref().map(Own::state))?;
        }
        keys.wait(feed.wake());
    }
}
