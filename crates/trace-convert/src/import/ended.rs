//! Inputs that end where they cannot be read any further, so that what comes before is used.

use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// Why an input ends too early: the first reason of all its layers.
#[derive(Clone, Default)]
pub struct End(Arc<Mutex<Option<io::Error>>>);

impl End {
    pub fn is(&self, error: io::Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub fn reason(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Fails once, if there is a reason.
impl Read for End {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.reason().map_or(Ok(0), Err)
    }
}

/// An input that ends where it cannot be read any further.
pub struct Ended<R> {
    input: R,
    end: End,
    is_over: bool,
}

impl<R> Ended<R> {
    pub fn new(input: R, end: &End) -> Self {
        Self { input, end: end.clone(), is_over: false }
    }
}

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        self.input.read(to).or_else(|error| {
            if error.kind() == ErrorKind::Interrupted {
                return Err(error);
            }
            self.end.is(error);
            self.is_over = true;
            Ok(0)
        })
    }
}
