//! What providers are asked, and which answers are read.

use super::Provider;
use trace_protocol::{Encoded, Header, ProtocolError, Txid};
use zx_sim::{Handle, Vmo};

/// Maximum number of questions that a provider has not answered yet. It may be slow or stopped, and its
/// channel has to have room for the requests of the recording.
const MAX_UNANSWERED: usize = 16;

/// What a provider was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// For its categories, by this transaction.
    Categories(Txid),
    /// For the memory dump of this number.
    Dump(u64),
}

impl Provider {
    /// Remembers a question; false if too many are unanswered already.
    pub(super) fn may_be_asked(&mut self, question: Question) -> bool {
        let may_be = self.unanswered.len() < MAX_UNANSWERED;
        self.unanswered.extend(may_be.then_some(question));
        may_be
    }

    /// A question is answered. Earlier ones will not be: it drops an answer that its channel has no room for.
    pub(super) fn settle(&mut self, question: Question) {
        if let Some(place) = self.unanswered.iter().position(|asked| *asked == question) {
            self.unanswered.drain(..=place);
        }
    }

    /// Puts a message of the provider's together. None for a long answer that nothing has asked for: to read
    /// it would keep others from their turn.
    pub(super) fn unspill(&self, message: Encoded<Handle>) -> Option<Result<Encoded<Handle>, ProtocolError>> {
        let asked = |txid| self.unanswered.contains(&Question::Categories(txid));
        let is_asked = Header::decode(&message.bytes).is_ok_and(|(header, _)| asked(header.txid));
        let mut is_unread = false;
        let encoded = message.unspill(|handle, length| {
            is_unread = !is_asked;
            if is_asked { Vmo::load(handle, length) } else { Ok(Vec::new()) }
        });
        (!is_unread).then_some(encoded)
    }
}
