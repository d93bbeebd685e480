//! Questions of clients that programs have to answer: each gets its own answers, and a flood of them takes no
//! program from its manager.

use super::hostile::Scene;
use trace_protocol::controller::{ProvisionerRequest, ProvisionerResponse};
use trace_protocol::limits::{MAX_CATEGORY_DESCRIPTION_BYTES, MAX_KNOWN_CATEGORIES};
use trace_protocol::provider::{ProviderRequest, ProviderResponse};
use trace_protocol::registry::RegistryRequest;
use trace_protocol::{Encoded, KnownCategories, KnownCategory, Message, Txid};
use trace_tests::client::{Client, receive};
use trace_tests::proxy::register;
use trace_tests::{Sandbox, wait_for};
use zx_sim::{Channel, Error, Handle, Listener, Signals, Vmo, wait_one};

/// The next question for categories; its transaction id.
pub(super) fn question(channel: &Channel) -> Txid {
    let message = wait_for("a question", || channel.read().ok());
    let (txid, request) = ProviderRequest::decode(&message.bytes, message.handles).unwrap();
    assert!(matches!(request, ProviderRequest::GetKnownCategories), "{request:?}");
    txid
}

fn answer(channel: &Channel, txid: Txid, known: KnownCategories) {
    let answer = encoded(txid, known);
    let _ = channel.write(&answer.bytes, answer.handles);
}

fn encoded(txid: Txid, known: KnownCategories) -> Encoded<Handle> {
    let answer = ProviderResponse::<Handle>::KnownCategories(known).encode(txid).unwrap();
    answer.spill(Vmo::store).unwrap()
}

/// As much as an answer may hold, of a provider that is asked again and again.
pub(super) fn answer_categories(channel: &Channel, txid: Txid) {
    let answer = long_list(txid);
    let _ = channel.write(&answer.bytes, answer.handles);
}

/// As much as an answer may hold.
pub(super) fn long_list(txid: Txid) -> Encoded<Handle> {
    let category = |number| {
        let name = format!("category-{number:08}");
        KnownCategory { name, description: "x".repeat(MAX_CATEGORY_DESCRIPTION_BYTES) }
    };
    let listed = (0..MAX_KNOWN_CATEGORIES).map(category).collect();
    encoded(txid, KnownCategories { listed, ..KnownCategories::default() })
}

fn ask(client: &Client) {
    let question = ProvisionerRequest::GetKnownCategories.encode(Txid(1)).unwrap();
    client.0.write(&question.bytes, question.handles).unwrap();
}

fn answered(client: &Client) -> Vec<String> {
    let answer = receive::<ProvisionerResponse>(&client.0);
    let Some(ProvisionerResponse::KnownCategories(known)) = answer else { panic!("{answer:?}") };
    known.listed.into_iter().map(|category| category.name).collect()
}

#[test]
fn questions_for_categories_wait_for_their_turn() {
    let mut scene = Scene::new();
    let before = scene.peak_memory_kib();
    let talkers: Vec<Channel> = (0..2).map(|_| register(&scene.sandbox.runtime_dir(), "talker").0).collect();
    // One never answers: every question takes the whole of its time.
    let (_silent, _) = register(&scene.sandbox.runtime_dir(), "silent");
    let askers: Vec<Client> = (0..60).map(|_| Client::connect(&scene.sandbox)).collect();
    askers.iter().for_each(ask);
    // Those at a time that the manager asks for.
    for _ in 0..8 {
        for talker in &talkers {
            answer_categories(talker, question(talker));
        }
    }
    scene.assert_alive();
    assert_eq!(answered(&askers[0]).len(), MAX_KNOWN_CATEGORIES);
    let grown = scene.peak_memory_kib() - before;
    assert!(grown < 64 << 10, "{grown} KiB");
}

/// A program may have named more categories since an earlier question.
#[test]
fn an_answer_counts_for_its_own_question() {
    let scene = Scene::new();
    let (talker, _) = register(&scene.sandbox.runtime_dir(), "talker");
    let [early, late] = [(), ()].map(|()| Client::connect(&scene.sandbox));
    ask(&early);
    let first = question(&talker);
    ask(&late);
    let second = question(&talker);
    let named = |name: &str| {
        let category = KnownCategory { name: name.to_owned(), description: String::new() };
        KnownCategories { listed: vec![category], ..KnownCategories::default() }
    };
    answer(&talker, first, named("early"));
    assert_eq!(answered(&early), ["early"]);
    answer(&talker, second, named("late"));
    assert_eq!(answered(&late), ["late"]);
}

/// A program that is stopped, for example, has questions for as long as there is room for the recording's
/// requests.
#[test]
fn a_provider_that_answers_nothing_is_asked_sixteen_times() {
    let mut scene = Scene::new();
    let (silent, _) = register(&scene.sandbox.runtime_dir(), "silent");
    let askers: Vec<Client> = (0..20).map(|_| Client::connect(&scene.sandbox)).collect();
    askers.iter().for_each(ask);
    // Each of the first sixteen takes a second, four at a time.
    for asker in &askers {
        assert_eq!(answered(asker), [""; 0]);
    }
    scene.assert_alive();
    let last = (0..16).map(|_| question(&silent)).last().unwrap();
    assert!(silent.read().is_err(), "a further question");
    // An answer settles the questions before it, too: their answers may have had no room.
    answer(&silent, last, KnownCategories::default());
    // It is read before what a client asks for after the list of programs.
    scene.assert_alive();
    askers[..16].iter().for_each(ask);
    for asker in &askers[..16] {
        assert_eq!(answered(asker), [""; 0]);
    }
    for _ in 0..16 {
        question(&silent);
    }
}

/// The channel has no room for its answers then.
//= docs/protocol.md#provider
#[test]
fn a_program_stays_with_a_manager_that_does_not_read() {
    let sandbox = Sandbox::new();
    let listener = Listener::bind(&sandbox.runtime_dir().join("registry")).unwrap();
    let _program = sandbox.spawn("emit", &["1", "1", "--wait"]);
    let registry = wait_for("a registration", || listener.accept().ok());
    let message = wait_for("its message", || registry.read().ok());
    let (_, request) = RegistryRequest::decode(&message.bytes, message.handles).unwrap();
    let channel = Channel::from_handle(request.into_registration().unwrap().0.provider).unwrap();
    // More than any queue holds, as fast as the program takes them.
    for txid in 1..=5000 {
        let question = ProviderRequest::<Handle>::GetKnownCategories.encode(Txid(txid)).unwrap();
        while let Err(error) = channel.write(&question.bytes, Vec::new()) {
            assert!(matches!(error, Error::ShouldWait), "question {txid}: {error}");
            wait_one(&channel, Signals::WRITABLE | Signals::PEER_CLOSED, None).unwrap();
        }
    }
    let mut answers = 0;
    let last = wait_for("the last question to be answered", || {
        let message = match channel.read() {
            Ok(message) => message,
            Err(Error::ShouldWait) => {
                // All that are lost were lost before.
                let question = ProviderRequest::<Handle>::GetKnownCategories.encode(Txid(5001)).unwrap();
                channel.write(&question.bytes, Vec::new()).unwrap();
                return None;
            }
            Err(error) => panic!("after {answers} answers: {error}"),
        };
        answers += 1;
        let (txid, _) = ProviderResponse::<Handle>::decode(&message.bytes, message.handles).unwrap();
        (txid == Txid(5001)).then_some(txid)
    });
    assert_eq!(last, Txid(5001));
    assert!(listener.accept().is_err(), "it does not register again");
}
