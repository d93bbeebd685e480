//! Parts of a document that wait until all of its numbers are known.

use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use tempfile::SpooledTempFile;

/// How much waits in memory; more goes into an unlinked file.
const IN_MEMORY: usize = 1 << 20;

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Event,
    SystemEvent,
    SystemText,
}

const PARTS: [Part; 3] = [Part::Event, Part::SystemEvent, Part::SystemText];

pub(super) struct Postponed {
    parts: BufWriter<SpooledTempFile>,
    failed: Option<io::Error>,
}

impl Default for Postponed {
    fn default() -> Self {
        Self { parts: BufWriter::new(SpooledTempFile::new(IN_MEMORY)), failed: None }
    }
}

impl Postponed {
    pub fn push(&mut self, part: Part, text: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.written(part, text).err();
        }
    }

    fn written(&mut self, part: Part, text: &[u8]) -> io::Result<()> {
        self.parts.write_all(&[part as u8])?;
        self.parts.write_all(&(text.len() as u64).to_le_bytes())?;
        self.parts.write_all(text)
    }

    /// Why a part is missing.
    pub fn failed(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Everything that was added, in this order.
    pub fn parts(mut self) -> io::Result<Parts> {
        self.failed()?;
        let mut file = self.parts.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(Parts { file: BufReader::new(file), text: Vec::new() })
    }
}

pub(super) struct Parts {
    file: BufReader<SpooledTempFile>,
    text: Vec<u8>,
}

impl Parts {
    pub fn next(&mut self) -> io::Result<Option<(Part, &[u8])>> {
        let mut part = [0];
        if self.file.read(&mut part)? == 0 {
            return Ok(None);
        }
        let mut length = [0; size_of::<u64>()];
        self.file.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        self.text.clear();
        self.file.by_ref().take(length).read_to_end(&mut self.text)?;
        let part = PARTS.get(usize::from(part[0]));
        let part = part.filter(|_| self.text.len() as u64 == length);
        part.map(|part| Some((*part, &*self.text))).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}
