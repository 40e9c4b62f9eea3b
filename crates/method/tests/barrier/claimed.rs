//! What a price rests on, and what the gate does about it.
use crate::honest::Honest;
use fedkin_method::round::{ClientNode, Effect, Envelope, Message, Note, Peer, Record, Scratch, Setting};
use fedkin_method::{Member, ROUND, Run};
use fedkin_numeric::codec::Codec;
use fedkin_privacy::{Bound, Chain, Clip, DpSgd, Privacy, Refusal, Sampler, Trust};
use std::sync::Arc;

/// What a client with the number 3 does in step 2 of a run that demands privacy, or does not.
fn effects(bound: Option<Bound>, demanded: bool) -> Vec<Effect> {
    let sampler = if demanded { Sampler::Discrete } else { Sampler::None };
    let clip = Clip::new(1.0).unwrap();
    let run = Run {
        seed: 1,
        rounds: 9,
        clients_per_server: None,
        max_norm2: 1e12,
        dimension: 1,
        clusters: 1,
        privacy: Privacy::DpSgd(DpSgd { clip, multiplier: 1.0, budget: None, sampler }),
        targets: None,
        kin: None,
        columns: None,
        learners: None,
    };
    let setting = Arc::new(Setting { algorithm: Arc::new(Honest(bound)), run, fingerprint: [1; 32] });
    let member = Member { id: 0, server: 0, cluster: 0, samples: 1 };
    let chain = Chain::start("client", &[2; 32]);
    let mut node = ClientNode::new(setting, member, 3.0, [5; 32], [2; 32], chain);
    let mut receive = |step, message| {
        let (from, to) = (Peer::Server(0), Peer::Client(0));
        node.receive(&Envelope { from, to, step, message }, &mut Scratch::default())
    };
    receive(0, Message::Welcome(0, 0));
    receive(2, Message::Ask(ROUND, Arc::from([]), Vec::new().into()))
}

fn upload(effects: &[Effect]) -> Option<f64> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send(Envelope { message: Message::Up(bytes, _), .. }) => f64::from_bytes(bytes).ok(),
        _ => None,
    })
}

fn words(effects: &[Effect]) -> Option<String> {
    effects.iter().find_map(|effect| match effect {
        Effect::Commit(Record::Client { lines, .. }) => {
            lines.first().map(|line| String::from_utf8_lossy(&line.bound).into_owned())
        }
        _ => None,
    })
}

fn refusal(effects: &[Effect]) -> Option<Refusal> {
    effects.iter().find_map(|effect| match effect {
        Effect::Note(Note::Withheld(2, refusal)) => Some(*refusal),
        _ => None,
    })
}

#[test]
fn a_claimed_bound_is_refused_where_privacy_is_demanded() {
    let refused = effects(Some(Bound::claimed(1.0)), true);
    assert_eq!((refusal(&refused), upload(&refused)), (Some(Refusal::NotPrivate), None));
    // The same price on the word of whoever runs it.
    let assumed = effects(Some(Bound::assumed(1.0)), true);
    assert_eq!(words(&assumed).as_deref(), Some(Trust::Assumed.words()));
    assert!(upload(&assumed).is_some());
}

#[test]
fn elsewhere_the_ledger_says_that_it_is_claimed() {
    let claimed = effects(Some(Bound::claimed(1.0)), false);
    assert_eq!(words(&claimed).as_deref(), Some("claimed by the learner, not checked"));
    assert!(upload(&claimed).is_some());
}

#[test]
fn the_upload_is_finished_with_what_was_asked() {
    let plain = effects(None, false);
    assert_eq!(upload(&plain), Some(2.0 * 3.0));
    assert_eq!(words(&plain).as_deref(), Some(""));
    assert_eq!(refusal(&effects(None, true)), Some(Refusal::NotPrivate));
}
