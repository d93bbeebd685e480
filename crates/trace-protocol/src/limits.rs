//! The limits every message obeys. String limits count UTF-8 bytes, list limits count entries.
//!
//! A message beyond a limit does not decode, and its receiver closes the channel it came on.

/// Longest provider name, in bytes.
pub const MAX_PROVIDER_NAME_BYTES: usize = 100;
/// Longest command line of a provider's program, in bytes.
pub const MAX_PROVIDER_COMMAND_LINE_BYTES: usize = 2000;
/// Most enabled categories in one list.
pub const MAX_CATEGORIES: usize = 5000;
/// Most known categories in one list.
pub const MAX_KNOWN_CATEGORIES: usize = 5000;
/// Most names of known categories that are not in the list.
pub const MAX_UNLISTED_NAMES: usize = 10;
/// Programs that are named in the answer to GetKnownCategories as they have not answered.
pub const MAX_SILENT_PROVIDERS: usize = 1000;
/// Longest category name, in bytes.
pub const MAX_CATEGORY_NAME_BYTES: usize = 100;
/// Longest category description, in bytes.
pub const MAX_CATEGORY_DESCRIPTION_BYTES: usize = 400;
/// Most entries in the first list of the answer to `GetProviders`, and most provider-specific entries in a
/// configuration.
pub const MAX_PROVIDERS: usize = 100;
/// Most providers in the answer to `GetProviders`, and in a report of progress, in both lists together.
pub const MAX_LISTED_PROVIDERS: usize = 10_000;
/// Most providers that have ended in the status of a task: the last ones.
pub const MAX_ENDED_PROVIDERS: usize = 1000;
/// Longest description of a recording in the answer to `GetProviders`, in bytes: 10 000 of them fit into a
/// message.
pub const MAX_RECORDING_BYTES: usize = 200;
/// Most providers in an update for an observer.
pub const MAX_OBSERVED_PROVIDERS: usize = 10_000;
/// Longest frame for an observer, in bytes, without its header.
pub const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;
/// Most sessions of one user's in a manager, those included whose archives are still being read.
pub const MAX_SESSIONS_OF_A_USER: usize = 8;
/// Most observers of a session at a time.
pub const MAX_OBSERVERS: usize = 4;
/// Longest alert name, in bytes.
pub const MAX_ALERT_NAME_BYTES: usize = 14;

/// Most alerts that end a task.
pub const MAX_TRIGGERS: usize = 100;
/// Most tasks in the status of another one.
pub const MAX_TASKS: usize = 64;
/// Longest name of a task, in bytes.
pub const MAX_TASK_NAME_BYTES: usize = 100;
/// Longest path of a task's file, in bytes.
pub const MAX_PATH_BYTES: usize = 4096;

/// Longest name of a tick source, in bytes.
pub const MAX_TICK_SOURCE_BYTES: usize = 32;
/// Longest sentence in a refusal or in a provider's statistics, in bytes.
pub const MAX_REASON_BYTES: usize = 1000;
/// Longest command line in a trace configuration: the bytes of all its arguments together.
pub const MAX_COMMAND_LINE_BYTES: usize = 32_000;

/// Longest message that travels inside a channel, in bytes, its header included.
pub const MAX_MESSAGE_BYTES: usize = 65_536;
/// Longest message that travels in a VMO, in bytes, its header included.
pub const MAX_SPILLED_BYTES: usize = 4 * 1024 * 1024;

/// Most providers of one user's that a manager serves.
pub const MAX_PROVIDERS_OF_A_USER: usize = 4096;
/// Most requests on one connection of a client's that wait for their answers.
pub const MAX_UNANSWERED: usize = 16;

/// `text` cut at a character boundary so that it fits into `limit` bytes.
///
/// Meant for our own sentences, such as the reason of a refusal, that quote text of a peer.
#[must_use]
pub fn cut(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}
