//! Queries of clients that providers have to answer, each within a second.

use super::{Asking, CATEGORIES_WAIT, Clients, MAX_QUERIES};
use crate::core::ClientId;
use crate::daemon::log::log;
use crate::daemon::memory::Taken;
use crate::daemon::providers::Providers;
use crate::daemon::providers::SESSION_TXID;
use crate::daemon::wire::send;
use std::collections::BTreeSet;
use std::time::Instant;
use trace_format::shown::Shown;
use trace_format::units::ProviderId;
use trace_protocol::categories::Silent;
use trace_protocol::controller::{ProviderInfo, ProvisionerResponse, SessionResponse};
use trace_protocol::limits::MAX_KNOWN_CATEGORIES;
use trace_protocol::memory::MemoryDump;
use trace_protocol::provider::ProviderResponse;
use trace_protocol::{KnownCategories, KnownCategory, Message, Txid};
use zx_sim::Handle;

/// A query that providers are still answering.
pub(super) struct Query {
    pub asking: Asking,
    /// The transaction id of the question to providers, whose answers carry it.
    question: Txid,
    waiting_for: BTreeSet<ProviderId>,
    answer: Answer,
    deadline: Instant,
}

/// The answers so far.
enum Answer {
    Categories {
        known: KnownCategories,
        /// Providers that have too many questions to answer already.
        unasked: BTreeSet<ProviderId>,
    },
    Dump(MemoryDump),
}

impl Clients {
    /// The next query for categories to send to providers; users without a running query come first.
    pub fn next_query(&mut self) -> Option<Asking> {
        if self.queries.len() >= MAX_QUERIES {
            return None;
        }
        let is_new = |asking: &Asking| self.queries.iter().all(|query| query.asking.uid != asking.uid);
        let next = self.waiting_queries.iter().position(is_new).unwrap_or(0);
        self.waiting_queries.remove(next)
    }

    /// Asks the providers that a user may see for their categories.
    pub fn begin_query(&mut self, asking: &Asking, seen: &[ProviderInfo], registered: &mut Providers) {
        let question = self.next_question();
        let ids = seen.iter().map(|provider| ProviderId(provider.id));
        let (waiting_for, unasked): (BTreeSet<_>, BTreeSet<_>) =
            ids.partition(|id| registered.ask_categories(*id, question));
        let known = KnownCategories::default();
        self.await_answers(*asking, question, waiting_for, Answer::Categories { known, unasked });
    }

    /// A number that is neither that of messages without an answer nor the session's.
    fn next_question(&mut self) -> Txid {
        self.last_question = Txid(self.last_question.0 % (SESSION_TXID.0 - 1) + 1);
        self.last_question
    }

    /// Waits for providers that were asked for a memory dump.
    pub(super) fn await_dump(&mut self, asking: Asking, taken: Taken) {
        self.await_answers(asking, Txid::ONE_WAY, taken.answering, Answer::Dump(taken.dump));
    }

    fn await_answers(
        &mut self,
        asking: Asking,
        question: Txid,
        waiting_for: BTreeSet<ProviderId>,
        answer: Answer,
    ) {
        let deadline = Instant::now() + CATEGORIES_WAIT;
        self.queries.push(Query { asking, question, waiting_for, answer, deadline });
        self.finish_queries(Instant::now());
    }

    /// A provider has answered. `session` is the client of a session that wants to know categories.
    pub fn handle_answer(
        &mut self,
        id: ProviderId,
        (txid, response): &(Txid, ProviderResponse<Handle>),
        session: Option<ClientId>,
    ) {
        match response {
            ProviderResponse::KnownCategories(known) => {
                log_unlisted(id, known);
                self.report_categories(session, known);
                for query in &mut self.queries {
                    // An answer to an earlier question may lack what the program has named since.
                    if let Answer::Categories { known: merged, .. } = &mut query.answer
                        && query.question == *txid
                        && query.waiting_for.remove(&id)
                    {
                        // At once, so that the answers of many providers take no more memory than one.
                        *merged = KnownCategories::merged([std::mem::take(merged), known.clone()]);
                    }
                }
            }
            ProviderResponse::DumpedMemory { dump, is_written } => {
                for query in &mut self.queries {
                    if let Answer::Dump(taken) = &mut query.answer
                        && taken.id == *dump
                        && query.waiting_for.remove(&id)
                    {
                        let written = taken.written.get_or_insert(0);
                        *written = written.saturating_add(u32::from(*is_written));
                    }
                }
            }
            ProviderResponse::HandOver { .. } => {}
        }
        self.finish_queries(Instant::now());
    }

    /// Sends the client of a session those categories that it has not received before.
    //= docs/protocol.md#categories-of-a-session
    fn report_categories(&mut self, client: Option<ClientId>, known: &KnownCategories) {
        let Some(session) = client.and_then(|client| self.session(client)) else {
            return;
        };
        let room = MAX_KNOWN_CATEGORIES.saturating_sub(session.reported.len());
        let is_new = |category: &&KnownCategory| !session.reported.contains(&category.name);
        let new: Vec<KnownCategory> = known.listed.iter().filter(is_new).take(room).cloned().collect();
        session.reported.extend(new.iter().map(|category| category.name.clone()));
        let response = SessionResponse::OnKnownCategories(KnownCategories::of(new));
        send(&session.channel, Message::<Handle>::encode(response, Txid::ONE_WAY));
    }

    /// Answers the queries whose time is up.
    pub fn expire_queries(&mut self, now: Instant) {
        self.finish_queries(now);
    }

    /// When [`Clients::expire_queries`] is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.queries.iter().map(|query| query.deadline).min()
    }

    fn finish_queries(&mut self, now: Instant) {
        let (finished, waiting) = std::mem::take(&mut self.queries)
            .into_iter()
            .partition(|query| query.waiting_for.is_empty() || query.deadline <= now);
        self.queries = waiting;
        let finished: Vec<Query> = finished;
        for query in finished {
            let Asking { connection, txid, .. } = query.asking;
            let response = match query.answer {
                Answer::Categories { mut known, unasked } => {
                    let silent = query.waiting_for.union(&unasked).map(|id| id.0).collect();
                    known.silent = Silent::of(silent);
                    ProvisionerResponse::KnownCategories(known)
                }
                Answer::Dump(dump) => ProvisionerResponse::DumpMemory(Some(dump)),
            };
            self.answer(connection, txid, response);
        }
    }
}

/// Names the categories that `trace list-categories` cannot list.
fn log_unlisted(id: ProviderId, known: &KnownCategories) {
    for (unlisted, why) in [
        (&known.beyond_limit, "beyond the limit of a list"),
        (&known.too_long, "with names of more than 100 bytes"),
    ] {
        if unlisted.count > 0 {
            let names = Shown(&unlisted.names.join(", "));
            log(&format!("program {}: {} categories {why}, among them: {names}", id.0, unlisted.count));
        }
    }
}
