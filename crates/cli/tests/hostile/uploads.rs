//! Uploads that a server must turn away, and uploads that come twice.

use crate::rogue::{Rogue, Seen, with_bytes, with_model};
use crate::site::{SMALL, Site, sha};
use fedkin_method::round::{Envelope, Message, Peer};
use fedkin_privacy::Refusal;
use std::collections::BTreeMap;

/// What the rogue clients say in each step, and the reason in the log.
const BAD: [(&str, &str); 9] = [
    ("nan", "not finite"),
    ("infinite", "not finite"),
    ("overflow", "not finite"),
    ("short", "wrong shape"),
    ("long", "wrong shape"),
    ("large", "norm too large"),
    ("cut", "damaged or another shape"),
    ("empty", "damaged or another shape"),
    ("junk", "damaged or another shape"),
];

fn spoilt(how: &str, answer: &Envelope) -> Envelope {
    match how {
        "nan" => with_model(answer, |model| model[1] = f64::NAN),
        "infinite" => with_model(answer, |model| model[3] = f64::NEG_INFINITY),
        // Every number is finite, the norm is not.
        "overflow" => with_model(answer, |model| model[0] = f64::MAX),
        "short" => with_model(answer, |model| model.truncate(3)),
        "long" => with_model(answer, |model| model.push(0.0)),
        "large" => with_model(answer, |model| model[2] = 1.1e6),
        "cut" => with_bytes(answer, |bytes| bytes.truncate(bytes.len() - 1)),
        "empty" => with_bytes(answer, Vec::clear),
        // A length that no memory holds, and a megabyte behind it.
        "junk" => with_bytes(answer, |bytes| *bytes = vec![0xff; 1 << 20]),
        _ => panic!("{how}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_uploads_are_turned_away_by_name_and_the_round_ends_with_the_rest() {
    let rounds = BAD.len() as u32 + 1;
    let experiment = SMALL.replace("rounds = 8", &format!("rounds = {rounds}"));
    let Some(site) = Site::new(&experiment, 4) else { return };
    // host-1 has three of the six clients of the first server.
    let rogues = site.clients_of("host-1");
    assert_eq!(rogues, [3, 4, 5]);
    let mut first = site.start(&["server-000"]);
    let mut second = site.start(&["server-001"]);
    let mut hosts: Vec<_> = ["host-0", "host-2", "host-3"].iter().map(|host| site.start(&[host])).collect();
    let mut rogue = Rogue::new(&site, "host-1").await;
    let mut steps = 0;
    while let Seen::Answers(answers) = rogue.next().await {
        let step = answers[0].step;
        if let Some((how, _)) = BAD.get(step as usize - 1) {
            steps = steps.max(step);
            let spoilt: Vec<Envelope> = answers.iter().map(|answer| spoilt(how, answer)).collect();
            rogue.say(&spoilt);
            continue;
        }
        // The last step: everything before it is closed, and the server still waits.
        for (kind, count) in [("value", 3 * BAD.len()), ("rejected", 3 * BAD.len())] {
            assert_eq!(first.counter("answers", &[&format!("verdict=\"{kind}\"")]), count as u64, "{kind}");
        }
        assert_eq!(first.counter("answers", &["missing"]), 0);
        for reason in ["not finite", "wrong shape", "norm too large", "damaged or another shape"] {
            let times = BAD.iter().filter(|(_, why)| *why == reason).count();
            for client in &rogues {
                let labels = [site.client(*client), &format!("reason=\"{reason}\"")];
                assert_eq!(first.counter("rejected", &labels), times as u64, "{labels:?}");
            }
        }
        // In the name of a client of another host, of a server, and of a client that is not there.
        for from in [Peer::Client(0), Peer::Server(1), Peer::Client(99)] {
            let forged = Envelope { from, ..answers[0].clone() };
            rogue.say(&[forged]);
        }
        rogue.flush().await;
        first.await_line(&[("from", "host-1"), ("reason", "client 99")]);
        assert_eq!(first.counter("incidents", &["host-1", "speaks for another node"]), 3);
        break;
    }
    assert_eq!(steps, BAD.len() as u32);
    rogue.behave().await;
    first.must_end_well();
    second.must_end_well();
    for host in &mut hosts {
        host.must_end_well();
    }
    for (step, (_, reason)) in (1..).zip(BAD) {
        for client in &rogues {
            let step = format!("{step}");
            let name = site.client(*client);
            let fields =
                [("message", "upload rejected"), ("client", name), ("step", &step), ("reason", reason)];
            assert_eq!(first.said(&fields).len(), 1, "{fields:?}");
        }
    }
    for peer in ["client 0", "server 1", "client 99"] {
        first.must_have_said(&[("message", "message dropped"), ("from", "host-1"), ("reason", peer)]);
    }
    assert!(second.said(&[("message", "upload rejected")]).is_empty());
    // What honest clients got did not suffer from it.
    let models = site.models(&["host-0", "host-2", "host-3"]);
    assert!(models.values().flatten().all(|value| value.abs() < 1e3), "{models:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn replays_and_second_thoughts_change_nothing() {
    let Some(site) = Site::new(SMALL, 4) else { return };
    let expected = site.alone();
    let mut first = site.start(&["server-000"]);
    let mut second = site.start(&["server-001"]);
    let mut hosts: Vec<_> = ["host-0", "host-2", "host-3"].iter().map(|host| site.start(&[host])).collect();
    let mut rogue = Rogue::new(&site, "host-1").await;
    let mut said: BTreeMap<u32, Vec<Envelope>> = BTreeMap::new();
    let mut killed = false;
    while let Seen::Answers(answers) = rogue.next().await {
        let step = answers[0].step;
        // Every old upload again, first as it was, then under this step's number where nobody reads on.
        let old: Vec<Envelope> = said.values().flatten().cloned().collect();
        if !old.is_empty() {
            rogue.say(&old);
        }
        if step == 4 && !killed {
            // One of three answers is in the server's memory when it dies; old ones come to its next life first.
            killed = true;
            rogue.say(&answers[..1]);
            rogue.flush().await;
            first.kill();
            rogue.say(&old);
            rogue.flush().await;
            first = site.start(&["server-000"]);
            continue;
        }
        if step == 6 {
            // The step stays open until the third client has spoken: the server hears both.
            let other = with_model(&answers[0], |model| model[0] += 1.0);
            let refused =
                Envelope { message: Message::Refused(Refusal::Undisclosed, 7), ..answers[1].clone() };
            let told = [answers[0].clone(), other, answers[1].clone(), refused, answers[0].clone()];
            rogue.say(&told[..]);
            rogue.flush().await;
            for client in &answers[..2] {
                let Peer::Client(id) = client.from else { panic!() };
                first.await_line(&[("who", site.client(id)), ("step", "6"), ("message", "the first stands")]);
            }
            assert!(first.counter("alarms", &["equivocation", site.client(3)]) >= 1);
            assert!(first.counter("alarms", &["equivocation", site.client(4)]) >= 1);
            assert_eq!(first.counter("alarms", &["equivocation", site.client(5)]), 0);
        }
        rogue.say(&answers);
        said.insert(step, answers);
    }
    assert!(killed && said.len() == 8, "{}", said.len());
    // Once more, when all is over or nearly so.
    let old: Vec<Envelope> = said.values().flatten().cloned().collect();
    rogue.say(&old);
    rogue.flush().await;
    first.must_end_well();
    second.must_end_well();
    for host in &mut hosts {
        host.must_end_well();
    }
    assert!(first.said(&[("message", "upload rejected")]).is_empty());
    let mut models = site.models(&["host-0", "host-2", "host-3"]);
    models.extend(rogue.models());
    assert_eq!(sha(&models, 12), expected);
}
