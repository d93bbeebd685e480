//! Messages to peers.

use super::log::log;
use trace_protocol::{Encoded, ProtocolError};
use zx_sim::{Channel, Handle, Vmo};

/// Sends a message, in a VMO where it is too long for a channel; false if the peer will not get it.
pub(super) fn send(channel: &Channel, message: Result<Encoded<Handle>, ProtocolError>) -> bool {
    let message = match message {
        Ok(message) => message,
        Err(error) => {
            log(&format!("cannot send: {error}"));
            return false;
        }
    };
    message.spill(Vmo::store).and_then(|message| channel.write(&message.bytes, message.handles)).is_ok()
}
