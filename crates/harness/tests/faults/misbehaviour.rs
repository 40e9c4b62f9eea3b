//! Nodes that break the rules, and disks that were rolled back: each is turned away by name, and the others go on.

use fedkin_harness::worlds::{Small, small, values};
use fedkin_harness::{DATA, Disk, RUN};
use fedkin_method::registry::Method;
use fedkin_method::round::{
    ClientNode, Effect, Envelope, Hello, Message, Mode, Note, Peer, Scratch, Server, ServerNode, Setting,
};
use fedkin_method::{Admm, Algorithm, Pgfl};
use fedkin_numeric::codec::Codec;
use fedkin_numeric::rng::simulated_secret;
use fedkin_privacy::Chain;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

type A = Admm<Pgfl>;

/// Four servers in a ring over a network that loses nothing, with a hand on every message.
struct Bench {
    small: Small,
    setting: Arc<Setting<A>>,
    servers: Vec<ServerNode<A>>,
    clients: Vec<ClientNode<A>>,
    /// All disks of every node, oldest first.
    disks: BTreeMap<Peer, Vec<Disk>>,
    wire: VecDeque<Envelope>,
    notes: Vec<(Peer, Note)>,
}

impl Bench {
    fn new() -> Self {
        let small = small(3, 16, 4, 4).private();
        let algorithm = <A as Method>::from_values(&values("pgfl", &[]), &small.context).unwrap();
        let setting =
            Arc::new(Setting { algorithm: Arc::new(algorithm), run: small.run.clone(), fingerprint: RUN });
        let servers: Vec<ServerNode<A>> =
            (0..4).map(|id| ServerNode::new(setting.clone(), &small.federation, id, Mode::Strict)).collect();
        let mut bench = Self {
            small,
            setting,
            servers,
            clients: Vec::new(),
            disks: BTreeMap::new(),
            wire: VecDeque::new(),
            notes: Vec::new(),
        };
        bench.clients = (0..16).map(|id| bench.client_of(id, &Disk::default())).collect();
        for id in 0..4 {
            let effects = bench.servers[id].start();
            bench.took(Peer::Server(id as u32), effects);
        }
        bench.beat();
        bench
    }

    fn client_of(&self, id: u32, disk: &Disk) -> ClientNode<A> {
        let (federation, run) = (&self.small.federation, &self.setting.run);
        let member = federation.members()[id as usize];
        let server = Server::open(&*self.setting.algorithm, run, federation, member.server);
        let data = &self.small.data[id as usize];
        let local = self.setting.algorithm.join(data, server.view(run), &member).unwrap();
        let chain = Chain::start("client", &DATA).verify(&disk.lines).unwrap();
        let secret = simulated_secret(run.seed, id);
        let mut node = ClientNode::new(self.setting.clone(), member, local, secret, DATA, chain);
        if let Some(state) = disk.records.last() {
            node.restore(state).unwrap();
        }
        node
    }

    fn took(&mut self, peer: Peer, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Commit(record) => {
                    let disks = self.disks.entry(peer).or_default();
                    let mut disk = disks.last().cloned().unwrap_or_default();
                    disk.commit(record);
                    disks.push(disk);
                }
                Effect::Send(envelope) => self.wire.push_back(envelope),
                Effect::Note(note) => self.notes.push((peer, note)),
                Effect::Done => {}
            }
        }
    }

    fn deliver(&mut self, envelope: &Envelope) {
        let effects = match envelope.to {
            Peer::Server(id) => self.servers[id as usize].receive(envelope),
            Peer::Client(id) => self.clients[id as usize].receive(envelope, &mut Scratch::default()),
        };
        self.took(envelope.to, effects);
    }

    fn beat(&mut self) {
        let servers = self.servers.iter().map(|node| (Peer::Server(node.server().id()), node.beat()));
        let clients = self.clients.iter().map(|node| (Peer::Client(node.member().id), node.beat()));
        for (peer, effects) in servers.chain(clients).collect::<Vec<_>>() {
            self.took(peer, effects);
        }
    }

    /// Delivers everything, until this message comes up: it is handed out instead.
    fn until(&mut self, wanted: impl Fn(&Envelope) -> bool) -> Option<Envelope> {
        for _ in 0..100 {
            while let Some(envelope) = self.wire.pop_front() {
                if wanted(&envelope) {
                    return Some(envelope);
                }
                self.deliver(&envelope);
            }
            if self.clients.iter().all(ClientNode::is_over) {
                return None;
            }
            self.beat();
        }
        None
    }

    /// The answer of client 0 to this step, before it arrives.
    fn answer(&mut self, step: u32) -> Envelope {
        let from = Peer::Client(0);
        self.until(|e| e.from == from && e.step == step && matches!(e.message, Message::Up(..))).unwrap()
    }

    fn server(&self) -> Peer {
        Peer::Server(self.small.federation.members()[0].server)
    }

    fn ends(&mut self) -> bool {
        self.until(|_| false).is_none() && self.clients.iter().all(ClientNode::is_over)
    }

    fn told(&self, peer: Peer, what: impl Fn(&Note) -> bool) -> bool {
        self.notes.iter().any(|(by, note)| *by == peer && what(note))
    }
}

fn with_upload(envelope: &Envelope, change: impl FnOnce(&mut Vec<u8>)) -> Envelope {
    let mut envelope = envelope.clone();
    if let Message::Up(bytes, _) = &mut envelope.message {
        let mut changed = bytes.to_vec();
        change(&mut changed);
        *bytes = changed.into();
    }
    envelope
}

fn with_model(envelope: &Envelope, change: impl FnOnce(&mut Vec<f64>)) -> Envelope {
    with_upload(envelope, |bytes| {
        let mut model = Vec::<f64>::from_bytes(bytes).unwrap();
        change(&mut model);
        *bytes = model.to_bytes();
    })
}

#[test]
fn the_first_of_two_answers_stands_and_the_second_raises_an_alarm() {
    let mut bench = Bench::new();
    let (answer, server) = (bench.answer(2), bench.server());
    let other = with_model(&answer, |model| model[0] += 1.0);
    bench.deliver(&other);
    bench.deliver(&answer);
    bench.deliver(&other);
    let alarms = bench
        .notes
        .iter()
        .filter(|(by, note)| *by == server && *note == Note::Equivocation(Peer::Client(0), 2));
    assert_eq!(alarms.count(), 1, "{:?}", bench.notes);
    assert!(bench.ends());
}

#[test]
fn bad_uploads_are_rejected_with_a_reason_and_the_round_goes_on() {
    type Change = fn(&Envelope) -> Envelope;
    let cases: [(&str, Change); 6] = [
        ("wrong shape", |e| with_model(e, |model| model.push(0.0))),
        ("wrong shape", |e| with_model(e, Vec::clear)),
        ("not finite", |e| with_model(e, |model| model[0] = f64::NAN)),
        ("norm too large", |e| with_model(e, |model| model[0] = 1e100)),
        ("damaged or another shape", |e| with_upload(e, |bytes| *bytes = vec![1, 2, 3])),
        ("damaged or another shape", |e| with_upload(e, |bytes| bytes.truncate(12))),
    ];
    for (expected, change) in cases {
        let mut bench = Bench::new();
        let (answer, server) = (bench.answer(2), bench.server());
        bench.deliver(&change(&answer));
        assert!(bench.ends(), "{expected}");
        let rejected = Note::Rejected { client: 0, step: 2, reason: expected.into() };
        assert!(bench.told(server, |note| *note == rejected), "{expected}: {:?}", bench.notes);
    }
}

#[test]
fn an_answer_of_another_round_gives_no_verdict() {
    let mut bench = Bench::new();
    let (answer, server) = (bench.answer(2), bench.server());
    let before = bench.notes.len();
    bench.deliver(&Envelope { step: 7, ..answer.clone() });
    let reason = "wrong step: this is step 2".to_string();
    assert!(
        bench.told(server, |note| *note == Note::Rejected { client: 0, step: 7, reason: reason.clone() })
    );
    bench.deliver(&Envelope { step: 1, ..answer.clone() });
    assert_eq!(bench.notes.len(), before + 1, "an old one is a resend");
    bench.deliver(&answer);
    assert!(bench.ends());
}

#[test]
fn a_client_with_an_old_disk_is_told_both_numbers_and_pays_nothing() {
    let mut bench = Bench::new();
    let (me, server) = (Peer::Client(0), bench.server());
    let answer = bench.answer(3);
    bench.deliver(&answer);
    let ask = bench.until(|e| e.to == me && e.step == 4 && matches!(e.message, Message::Ask(..))).unwrap();
    // The disk after the answer to step 1: one line, where three were seen.
    let (good, old) = (bench.disks[&me].last().unwrap().clone(), bench.disks[&me][0].clone());
    bench.clients[0] = bench.client_of(0, &old);
    bench.deliver(&ask);
    assert_eq!(bench.clients[0].chain().head.seq, 1, "nothing is answered before the handshake");
    let late = Message::Welcome(3, 3);
    bench.deliver(&Envelope { message: late, ..ask.clone() });
    bench.deliver(&ask);
    assert_eq!(bench.clients[0].chain().head.seq, 1, "a welcome of another life is none");
    assert!(!bench.ends());
    assert!(bench.told(server, |note| *note == Note::Behind(me, 1, 3)), "{:?}", bench.notes);
    let words = "ledger: 1 lines there, 3 were seen here; an old disk was restored";
    assert!(bench.told(me, |note| *note == Note::Turned(server, words.into())), "{:?}", bench.notes);
    // The right disk comes back, and the run ends.
    bench.clients[0] = bench.client_of(0, &good);
    assert!(bench.ends());
}

#[test]
fn an_answer_made_from_an_old_disk_is_not_folded() {
    // Two steps behind, so the ledger is shorter; one step behind, so it is as long as the one that was seen.
    for back in [0, 1] {
        let mut bench = Bench::new();
        let (me, server) = (Peer::Client(0), bench.server());
        let answer = bench.answer(3);
        bench.deliver(&answer);
        let ask =
            bench.until(|e| e.to == me && e.step == 4 && matches!(e.message, Message::Ask(..))).unwrap();
        let (good, old) = (bench.disks[&me].last().unwrap().clone(), bench.disks[&me][back].clone());
        let mut copy = bench.client_of(0, &old);
        let welcome = Message::Welcome(0, copy.chain().head.seq);
        copy.receive(&Envelope { message: welcome, ..ask.clone() }, &mut Scratch::default());
        let mut effects = copy.receive(&ask, &mut Scratch::default());
        let Some(Effect::Send(up)) = effects.pop() else { panic!("no answer") };
        bench.deliver(&up);
        let lines = back as u64 + 2;
        assert!(bench.told(server, |note| *note == Note::OldDisk(me, lines, 3)), "{:?}", bench.notes);
        bench.clients[0] = bench.client_of(0, &good);
        bench.deliver(&ask);
        assert!(bench.ends());
        assert!(!bench.notes.iter().any(|(_, note)| matches!(note, Note::Equivocation(..))));
    }
}

#[test]
fn a_server_with_an_old_disk_is_noticed_by_its_clients_and_neighbours() {
    let mut bench = Bench::new();
    let server = bench.server();
    let Peer::Server(id) = server else { unreachable!() };
    let _ = bench.answer(4);
    // Its disk when it had asked the first step.
    let old = bench.disks[&server][0].clone();
    let mut node = ServerNode::new(bench.setting.clone(), &bench.small.federation, id, Mode::Strict);
    node.restore(&old.records[0], old.records[1..].iter().map(Vec::as_slice)).unwrap();
    bench.servers[id as usize] = node;
    bench.wire.clear();
    let effects = bench.servers[id as usize].start();
    bench.took(server, effects);
    assert!(!bench.ends());
    let words = "step: 4 there, 1 here; an old disk was restored at the server";
    let turned = |peer| Note::Turned(peer, words.into());
    assert!(bench.told(server, |note| *note == turned(Peer::Client(0))), "{:?}", bench.notes);
    assert!(bench.told(Peer::Client(0), |note| *note == turned(server)), "{:?}", bench.notes);
    let near = bench.small.federation.topology().neighbours(id)[0];
    let words = "step: 3 finished there, 0 shared here; an old disk was restored here";
    let turned = Note::Turned(Peer::Server(near), words.into());
    assert!(bench.told(server, |note| *note == turned), "{:?}", bench.notes);
}

#[test]
fn a_node_of_another_kind_is_refused_with_both_sides_named() {
    let mut bench = Bench::new();
    assert!(bench.until(|e| e.step == 2).is_some());
    let (server, me) = (bench.server(), Peer::Client(0));
    let Peer::Server(id) = server else { unreachable!() };
    let known = bench.servers[id as usize].known(0).unwrap().clone();
    let client = bench.servers[id as usize].server().members()[0].id;
    assert_eq!(client, 0);
    let right = Hello { data: DATA, lines: known.lines, head: known.head, ..Hello::of::<A>(RUN) };
    let right = Hello { step: known.step, spent: known.spent, ..right };
    let cases: [(Hello, &[&str]); 7] = [
        (Hello { protocol: 9, ..right.clone() }, &["protocol version", "9 there", "2 here"]),
        (Hello { version: 7, ..right.clone() }, &["pgfl version 7 there", "pgfl version 2 here"]),
        (Hello { algorithm: Box::from(*b"gfl"), ..right.clone() }, &["gfl version 2 there", "pgfl version"]),
        (Hello { messages: [5; 32], ..right.clone() }, &["message schema", "0505050505050505 there"]),
        (Hello { run: [8; 32], ..right.clone() }, &["0808080808080808 there", "0101010101010101 here"]),
        (Hello { data: [6; 32], ..right.clone() }, &["data fingerprint", "0606060606060606 there", "0202"]),
        (Hello { step: 9, ..right.clone() }, &["step: 9 there, 2 here"]),
    ];
    let hello = |hello: Hello| Envelope { from: me, to: server, step: 1, message: Message::Hello(hello) };
    for (wrong, words) in cases {
        let effects = bench.servers[id as usize].receive(&hello(wrong));
        let [Effect::Send(answer), Effect::Note(Note::Turned(peer, why))] = effects.as_slice() else {
            panic!("{words:?}: {effects:?}");
        };
        assert_eq!((answer.to, *peer), (me, me));
        assert!(matches!(&answer.message, Message::Turned(text, _) if **text == *why.as_bytes()));
        assert!(words.iter().all(|word| why.contains(word)), "{why}: {words:?}");
    }
    let stranger = Envelope { from: Peer::Client(99), ..hello(right.clone()) };
    let effects = bench.servers[id as usize].receive(&stranger);
    assert!(matches!(&effects[1], Effect::Note(Note::Turned(_, why)) if why.contains("not on the roster")));
    // Other numerics are a warning, once, when the node joins.
    let mut fresh = ServerNode::<A>::new(bench.setting.clone(), &bench.small.federation, id, Mode::Strict);
    fresh.start();
    let first = Hello { step: 0, numeric: [4; 32], ..right };
    let effects = fresh.receive(&hello(first.clone()));
    let warned = |effects: &[Effect]| {
        effects.iter().any(|effect| {
            matches!(effect, Effect::Note(Note::OtherNumerics(_, why))
            if why.contains("0404040404040404 there") && why.contains("bits are not comparable"))
        })
    };
    assert!(warned(&effects), "{effects:?}");
    assert!(
        effects.iter().any(|e| matches!(e, Effect::Send(e) if matches!(e.message, Message::Welcome(..))))
    );
    assert!(!warned(&fresh.receive(&hello(first))));
    assert!(bench.ends());
}
