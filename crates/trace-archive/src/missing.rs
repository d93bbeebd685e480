//! Programs of which an unknown number of records is missing, because they were not recorded, or only from a
//! time on, or up to one; and programs that have ended before they recorded anything.
//= docs/protocol.md#programs-of-which-something-is-missing

use crate::framing;
use crate::gave_up::Note;
use crate::program_info;
use crate::session_info::OWN_ID;
use serde::{Deserialize, Serialize};
use trace_format::loss::LossCode;
use trace_format::slab::Loss;
use trace_format::units::{Koid, ProviderId, Ticks};
use trace_protocol::controller::{Lost, ProviderDisposition, ProviderStats};

/// The problem of a program that gave up.
pub const GAVE_UP: &str = "the trace manager has not answered it in time";

/// A program of which something is missing, as the manifest stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The provider's number in the archive.
    pub id: u32,
    /// The provider's name.
    pub name: String,
    /// The pid of the program's process.
    pub pid: u64,
    /// What is missing, by its number in a loss blob; none if nothing is.
    pub reason: Option<u16>,
    /// When that was found, in ticks; 0 if that is unknown.
    pub at: u64,
    /// How the recording of the program ended, as in [`ProviderStats::disposition`]; empty while the manager
    /// records it.
    pub disposition: String,
    /// Why, for people; may be empty.
    pub problem: String,
}

impl Missing {
    /// What a note says.
    pub(crate) fn gave_up(id: u32, note: Note) -> Self {
        Self {
            id,
            name: note.name,
            pid: note.pid,
            reason: Some(LossCode::NOT_RECORDED.0),
            at: 0,
            disposition: ProviderDisposition::GaveUp.into(),
            problem: GAVE_UP.to_owned(),
        }
    }

    /// What a note says of a program that the manager has recorded later.
    pub(crate) fn joined_late(id: u32, note: Note) -> Self {
        Self {
            reason: Some(LossCode::JOINED_LATE.0),
            disposition: String::new(),
            problem: String::new(),
            ..Self::gave_up(id, note)
        }
    }

    fn how(&self) -> String {
        let Self { disposition, problem, .. } = self;
        if problem.is_empty() { disposition.clone() } else { format!("{disposition}: {problem}") }
    }

    /// The program's entry in the statistics of a recording.
    pub(crate) fn stats(&self) -> ProviderStats {
        ProviderStats {
            id: self.id,
            name: self.name.clone(),
            pid: self.pid,
            losses: self.reason.map(|reason| Lost { reason, records: 1 }).into_iter().collect(),
            disposition: self.disposition.clone(),
            problem: self.problem.clone(),
            ..ProviderStats::default()
        }
    }

    /// Appends that something is missing and, where the archive describes programs, how the recording of this
    /// one ended.
    pub fn write(&self, has_metadata: bool, out: &mut Vec<u8>) {
        let (id, at) = (ProviderId(self.id), self.at);
        framing::provider_info(id, &self.name, out);
        if let Some(reason) = self.reason {
            framing::loss(id, LossCode(reason), Loss { count: 1, first: at, last: at }, out);
        }
        if has_metadata && !self.disposition.is_empty() {
            framing::provider_section(OWN_ID, out);
            let at = Some(Ticks(at)).filter(|at| at.0 > 0);
            program_info::end(id, Koid(self.pid), at, &self.how(), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/protocol.md#programs-of-which-something-is-missing
    #[test]
    fn a_program_has_a_name_a_loss_and_an_end() {
        let missing = Missing {
            id: 3,
            name: "app".to_owned(),
            pid: 7,
            reason: Some(36),
            at: 5,
            disposition: "refused".to_owned(),
            problem: "it is too old".to_owned(),
        };
        let written = |missing: &Missing, has_metadata| {
            let mut out = Vec::new();
            missing.write(has_metadata, &mut out);
            out
        };
        let mut expected = Vec::new();
        framing::provider_info(ProviderId(3), "app", &mut expected);
        let lost = Loss { count: 1, first: 5, last: 5 };
        framing::loss(ProviderId(3), LossCode::NOT_RECORDED, lost, &mut expected);
        assert_eq!(written(&missing, false), expected);
        // Without a disposition there is no description of the end.
        let goes_on = Missing { disposition: String::new(), ..missing.clone() };
        assert_eq!(written(&goes_on, true), expected);
        framing::provider_section(OWN_ID, &mut expected);
        let how = "refused: it is too old";
        program_info::end(ProviderId(3), Koid(7), Some(Ticks(5)), how, &mut expected);
        assert_eq!(written(&missing, true), expected);
        let stats = missing.stats();
        assert_eq!((stats.disposition.as_str(), stats.problem.as_str()), ("refused", "it is too old"));
        assert_eq!(stats.losses, [Lost { reason: 36, records: 1 }]);
        let bare = Missing { problem: String::new(), ..missing };
        assert_eq!(bare.how(), "refused");
    }
}
