//! Messages to peers, and those that came in a VMO.

use super::log::log;
use trace_protocol::{Encoded, ProtocolError};
use zx_sim::{Channel, Error, Handle, Vmo};

/// Sends a message, in a VMO where it is too long for a channel; false if the peer will not get it.
pub(super) fn send(channel: &Channel, message: Result<Encoded<Handle>, ProtocolError>) -> bool {
    let message = match message {
        Ok(message) => message,
        Err(error) => {
            log(&format!("cannot send: {error}"));
            return false;
        }
    };
    let store = |bytes: &[u8]| Vmo::of_bytes("message", bytes).map(Vmo::into_handle);
    message.spill(store).and_then(|message| channel.write(&message.bytes, message.handles)).is_ok()
}

/// Why a message in a VMO cannot be had; only that it cannot matters.
#[derive(Debug)]
pub(super) struct Unreadable;

impl From<Error> for Unreadable {
    fn from(_: Error) -> Self {
        Self
    }
}

impl From<ProtocolError> for Unreadable {
    fn from(_: ProtocolError) -> Self {
        Self
    }
}

/// Reads a message that travelled in a VMO.
pub(super) fn load(handle: Handle, length: usize) -> Result<Vec<u8>, Unreadable> {
    Ok(Vmo::from_sealed_handle(handle)?.to_bytes(length)?)
}
