//! Carries out the core's decisions.

use super::Daemon;
use super::archiving::write_between;
use super::log::log;
use super::output::Output;
use super::providers::Buffer;
use super::recording::Recording;
use crate::core::{Action, Event};
use trace_archive::missing::Missing;
use trace_format::units::ProviderId;
use trace_protocol::BufferDisposition;
use trace_protocol::controller::{Refusal, SessionResponse, SessionState};
use zx_sim::process::start_time;
use zx_sim::ticks;

/// Adds when the process in the way was started: it is alive, as its recording is.
pub(super) fn with_start_time(mut refusal: Refusal) -> Refusal {
    if let Some(recorder) = &mut refusal.recorder {
        recorder.started = recorder.pid.filter(|_| !recorder.is_task).and_then(start_time);
    }
    refusal
}

impl Daemon {
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::RefuseClient { client, refusal } => {
                log(&format!("session refused: {refusal}"));
                let refusal = with_start_time(refusal);
                drop(self.clients.take_output());
                if client.is_task() {
                    self.with_tasks(|tasks, effects| tasks.refused(client, refusal, effects));
                    return;
                }
                self.clients.reply(client, SessionResponse::Refused(refusal));
                self.clients.close(client, &self.io);
            }
            Action::BeginArchive { client, pid, config, uid } => {
                let Some(place) = self.clients.take_output() else {
                    return;
                };
                let mut output = Output::of_session(place, &config, uid.0);
                output.begin(&config, self.rate);
                let pid = u64::from(pid);
                // The process that has asked for a task may have ended long ago.
                let recorder = start_time(pid).filter(|_| !client.is_task()).map(|started| (pid, started));
                self.providers.begin_session(client, &config, uid, recorder, output.queue().clone());
                self.recordings.insert(client, Recording::new(uid, output));
            }
            Action::InitializeTracee { client, provider, buffer_bytes, mode, categories } => {
                let begun = self.providers.initialize(client, provider, buffer_bytes, mode, categories);
                if let Err(reason) = begun {
                    self.io.events.push_back(Event::TraceeFailed { provider, reason });
                }
            }
            Action::AskCategories(provider) => self.providers.ask_for_session(provider),
            Action::StartTracee { provider, disposition, additional_categories } => {
                if disposition == BufferDisposition::ClearEntire {
                    self.observers.note_clearing(provider);
                }
                self.providers.start(provider, disposition, additional_categories);
            }
            Action::StopTracee(provider) => self.providers.stop(provider),
            Action::FlushTracee(provider) => self.providers.flush(provider),
            Action::ReplyFlush(client, result) => {
                self.reply(client, SessionResponse::FlushBuffers(result));
            }
            Action::TakeSnapshot { client, session, config, providers } => {
                self.begin_snapshot(client, session, &config, &providers);
            }
            Action::ReplySnapshot(client, result) => self.clients.reply_snapshot(client, result),
            Action::TerminateTracee(provider) => self.providers.terminate(provider),
            Action::Transfer { client, provider, part } => self.begin_transfer(client, provider, part),
            Action::SendSaved { provider, wrapped_count, durable_data_end } => {
                self.providers.saved(provider, wrapped_count, durable_data_end);
                self.observers.note_saved(provider, &self.providers);
            }
            Action::WatchProcess(provider) => self.providers.watch_process(provider, &mut self.io),
            Action::ForgetProcess(provider) => self.providers.dying.forget(provider, &self.io),
            Action::DropTracee(provider) => self.drop_tracee(provider, Buffer::Deleted),
            Action::LeaveBuffer(provider) => self.drop_tracee(provider, Buffer::Left),
            Action::ReplyObserve(client, result) => self.reply_observe(client, result),
            Action::EndObserver(client) => self.end_observer(client),
            Action::ReplyStart(client, result) => {
                self.reply(client, SessionResponse::StartTracing(result));
            }
            Action::ReplyStop(client, Ok(result)) => match self.providers.ends(client) {
                Some(ends) => ends.hold(client, result),
                None => self.reply(client, SessionResponse::StopTracing(Ok(result))),
            },
            Action::ReplyStop(client, result) => {
                self.reply(client, SessionResponse::StopTracing(result));
            }
            Action::ReplyAlert(client, alert) => self.reply(client, SessionResponse::WatchAlert(alert)),
            Action::ReportMissing { client, provider, name, pid, reason, disposition, problem } => {
                let (reason, at) = (reason.map(|reason| reason.0), ticks::now());
                let disposition = disposition.map_or_else(String::new, String::from);
                let missing = Missing { id: provider.0, name, pid, reason, at, disposition, problem };
                self.providers.report_missing(client, missing);
            }
            Action::Untraced(client, untraced) => {
                self.reply(client, SessionResponse::OnUntraced(untraced));
            }
            Action::Waiting(client, names) => {
                self.reply(client, SessionResponse::OnWaiting(names));
            }
            Action::StateChanged(client, state) => {
                if state == SessionState::Terminating {
                    let recording = self.recordings.get_mut(&client);
                    if let Some(output) = recording.and_then(|recording| recording.output.as_mut()) {
                        output.begin_to_end();
                    }
                    self.providers.end_snapshots(client);
                }
                self.reply(client, SessionResponse::OnSessionStateChange(state));
            }
            Action::EndSession { client, is_aborted } => {
                self.clients.close(client, &self.io);
                self.providers.end_session(client);
                match self.recordings.get_mut(&client) {
                    Some(Recording { output: Some(output), .. }) if !is_aborted => {
                        write_between(&mut self.providers, client, true, output);
                        self.providers.write_ends(client, output.queue());
                        output.end();
                    }
                    _ => self.end_output(client, false),
                }
            }
            Action::Log(text) => log(&text),
        }
    }

    fn drop_tracee(&mut self, provider: ProviderId, buffer: Buffer) {
        self.observers.note_end(provider, &self.providers, &self.core, self.rate);
        self.providers.drop_tracee(provider, buffer, &self.io);
    }
}
