use super::*;
use crate::transport::{Memory, Network};
use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair, SigningKey as _};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

const RUN: [u8; 32] = [7; 32];
const SECRET: &[u8] = b"the mean stay of ward 3 is 4.25 days";

fn token(name: &str) -> Token {
    Token::of(name)
}

fn party() -> (BTreeMap<&'static str, String>, Directory) {
    let (mut secrets, mut directory) = (BTreeMap::new(), Directory::default());
    for name in ["a", "b", "c"] {
        let identity = Identity::draw().unwrap();
        directory.insert(token(name), identity.public());
        secrets.insert(name, identity.to_text());
    }
    (secrets, directory)
}

/// A transport that keeps all it is given and delivers what it is told.
#[derive(Default, Clone)]
struct Wire(Arc<Mutex<Vec<(Token, String, Bytes)>>>, Arc<Mutex<Vec<Delivery>>>);

impl Transport for Wire {
    fn send(&mut self, to: &Token, slot: &str, payload: Payload) -> Result<(), TransportError> {
        self.0.lock().unwrap().push((to.clone(), slot.into(), payload.to_bytes()));
        Ok(())
    }
    async fn next(&mut self) -> Event {
        let delivery = self.1.lock().unwrap().pop();
        match delivery {
            Some(delivery) => Event::Delivery(delivery),
            None => Event::Disconnected,
        }
    }
}

struct Node {
    wire: Wire,
    end: Sealed<Wire>,
}

fn node(name: &str, run: [u8; 32], secret: &str, directory: &Directory) -> Node {
    let wire = Wire::default();
    let identity = Identity::parse(secret).unwrap();
    let keys = Keys { me: token(name), run, identity, directory: directory.clone() };
    Node { end: Sealed::new(wire.clone(), keys).unwrap(), wire }
}

impl Node {
    fn say(&mut self, to: &str, slot: &str, payload: &[u8]) -> Bytes {
        self.end.send(&token(to), slot, payload.to_vec().into()).unwrap();
        self.wire.0.lock().unwrap().last().unwrap().2.clone()
    }

    fn hear(&mut self, from: &str, slot: &str, payload: Bytes) -> Result<Bytes, String> {
        let delivery = Delivery { from: token(from), slot: slot.into(), payload };
        self.wire.1.lock().unwrap().push(delivery);
        let next = futures_util::FutureExt::now_or_never(self.end.next()).unwrap();
        match next {
            Event::Delivery(found) => Ok(found.payload),
            Event::Incident(Incident { kind: KIND, reason, .. }) => Err(reason),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn nodes_understand_each_other_over_a_network_in_memory() {
    let (secrets, directory) = party();
    let network = Memory::default();
    let join = |name: &str| {
        let keys = Keys {
            me: token(name),
            run: RUN,
            identity: Identity::parse(&secrets[name]).unwrap(),
            directory: directory.clone(),
        };
        Sealed::new(network.join(&token(name)).unwrap(), keys).unwrap()
    };
    let (mut a, mut b) = (join("a"), join("b"));
    for turn in 0..3u8 {
        a.send(&token("b"), "turn-1", vec![turn; 9].into()).unwrap();
        let Event::Delivery(found) = b.next().await else { panic!() };
        assert_eq!((found.from, &found.payload[..]), (token("a"), &[turn; 9][..]));
        b.send(&token("a"), "turn-1", Vec::new().into()).unwrap();
        let Event::Delivery(found) = a.next().await else { panic!() };
        assert!(found.payload.is_empty());
    }
}

#[test]
fn another_sender_receiver_run_or_slot_does_not_open() {
    let (secrets, directory) = party();
    let mut a = node("a", RUN, &secrets["a"], &directory);
    let mut b = node("b", RUN, &secrets["b"], &directory);
    let mut c = node("c", RUN, &secrets["c"], &directory);
    let said = a.say("b", "turn-1", SECRET);
    assert_eq!(b.hear("a", "turn-1", said.clone()).unwrap(), SECRET);
    assert!(b.hear("c", "turn-1", said.clone()).unwrap_err().contains("does not open"));
    assert!(b.hear("a", "turn-2", said.clone()).unwrap_err().contains("does not open"));
    assert!(c.hear("a", "turn-1", said.clone()).is_err());
    assert!(a.hear("b", "turn-1", said.clone()).is_err(), "a message does not come back as an answer");
    assert!(node("b", [8; 32], &secrets["b"], &directory).hear("a", "turn-1", said.clone()).is_err());
    // What still opens after all that: the message itself, again. The protocol above takes it once.
    assert_eq!(b.hear("a", "turn-1", said).unwrap(), SECRET);
}

#[test]
fn what_is_plain_of_another_version_or_from_a_stranger_is_named() {
    let (secrets, directory) = party();
    let mut a = node("a", RUN, &secrets["a"], &directory);
    let mut b = node("b", RUN, &secrets["b"], &directory);
    assert!(b.hear("a", "x", Bytes::from_static(SECRET)).unwrap_err().contains("not sealed"));
    let mut other = a.say("b", "x", SECRET).to_vec();
    other[4] = 9;
    assert!(b.hear("a", "x", other.into()).unwrap_err().contains("seal version 9"));
    let said = a.say("b", "x", SECRET);
    assert!(b.hear("d", "x", said).unwrap_err().contains("the node d has no keys in the directory"));
    let refused = a.end.send(&token("d"), "x", SECRET.to_vec().into()).unwrap_err();
    assert!(refused.0.contains("the node d has no keys in the directory"), "{refused}");
}

/// A node with its own keys, and the directory, which everybody has, tries to speak as another.
#[test]
fn a_node_speaks_for_itself_alone_and_a_carrier_for_nobody() {
    let (secrets, directory) = party();
    let mut b = node("b", RUN, &secrets["b"], &directory);
    // c claims to be a: its directory says so, that of b does not.
    let mut lie = directory.clone();
    lie.insert(token("a"), Identity::parse(&secrets["c"]).unwrap().public());
    let mut c = node("a", RUN, &secrets["c"], &lie);
    let forged = c.say("b", "x", SECRET);
    assert!(b.hear("a", "x", forged).is_err());
    // Whoever stole the key of b could compute the secret that b shares with a, and still cannot sign as a.
    let (thief, a) = (Identity::parse(&secrets["b"]).unwrap(), directory.get(&token("a")).unwrap());
    let own = thief.public();
    let way = Way { run: &RUN, from: &token("a"), to: &token("b") };
    let session = way.key(&thief, a, a, &own).unwrap().session(&[1; 24]).unwrap();
    let forged = session.seal(&thief, way, "x", 0, &SECRET.to_vec().into()).unwrap();
    assert!(b.hear("a", "x", forged).unwrap_err().contains("not signed by its sender"));
}

#[test]
fn nothing_of_a_payload_is_seen_on_the_wire_and_no_nonce_comes_twice() {
    let (secrets, directory) = party();
    let mut seen = BTreeSet::new();
    for _restart in 0..5 {
        let mut a = node("a", RUN, &secrets["a"], &directory);
        for turn in 0..20 {
            let said = a.say(["b", "c"][turn % 2], "turn-1", SECRET);
            assert_eq!(said.len(), SECRET.len() + OVERHEAD);
            assert!(!said.windows(6).any(|part| SECRET.windows(6).any(|plain| plain == part)));
            assert!(seen.insert(cipher::head(&said).unwrap()), "salt and count came twice");
        }
    }
}

#[test]
fn a_message_from_before_the_sender_started_again_still_opens() {
    let (secrets, directory) = party();
    let mut b = node("b", RUN, &secrets["b"], &directory);
    let old = node("a", RUN, &secrets["a"], &directory).say("b", "x", b"old");
    let new = node("a", RUN, &secrets["a"], &directory).say("b", "x", b"new");
    for (sealed, plain) in [(&new, "new"), (&old, "old"), (&new, "new")] {
        assert_eq!(b.hear("a", "x", sealed.clone()).unwrap(), plain);
    }
}

#[test]
fn a_payload_that_nobody_else_holds_is_opened_where_it_is() {
    let (secrets, directory) = party();
    let mut a = node("a", RUN, &secrets["a"], &directory);
    let mut b = node("b", RUN, &secrets["b"], &directory);
    a.end.send(&token("b"), "x", vec![5; 100_000].into()).unwrap();
    let sealed = a.wire.0.lock().unwrap().pop().unwrap().2;
    let place = sealed.as_ptr_range();
    let opened = b.hear("a", "x", sealed).unwrap();
    assert!(place.contains(&opened.as_ptr()) && opened[..] == vec![5; 100_000][..]);
}

proptest! {
    #[test]
    fn every_changed_bit_and_every_cut_is_noticed(payload in prop::collection::vec(any::<u8>(), 0..80)) {
        let (secrets, directory) = party();
        let mut a = node("a", RUN, &secrets["a"], &directory);
        let mut b = node("b", RUN, &secrets["b"], &directory);
        let said = a.say("b", "x", &payload);
        for bit in 0..said.len() * 8 {
            let mut changed = said.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(b.hear("a", "x", changed.into()).is_err(), "bit {bit}");
        }
        for cut in 0..said.len() {
            prop_assert!(b.hear("a", "x", said.slice(..cut)).is_err(), "cut at {cut}");
        }
        prop_assert_eq!(&b.hear("a", "x", said).unwrap()[..], &payload[..]);
    }

    #[test]
    fn whatever_comes_is_an_incident(bytes in prop::collection::vec(any::<u8>(), 0..300), marked: bool) {
        let (secrets, directory) = party();
        let mut b = node("b", RUN, &secrets["b"], &directory);
        let mut all = Vec::new();
        if marked {
            all.extend_from_slice(&MAGIC);
            all.extend_from_slice(&VERSION.to_le_bytes());
        }
        all.extend_from_slice(&bytes);
        prop_assert!(b.hear("a", "x", all.into()).is_err());
    }
}

fn authority() -> (KeyPair, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(0));
    let pem = params.self_signed(&key).unwrap().pem();
    (key, pem)
}

#[test]
fn a_directory_is_believed_only_with_the_signature_of_the_authority() {
    let (_, directory) = party();
    let ((key, pem), (_, other)) = (authority(), authority());
    let signature = key.sign(directory.statement().as_bytes()).unwrap();
    let text = directory.to_text(Some(&signature));
    assert_eq!(Directory::parse(&text, Some(&pem)).unwrap(), directory);
    assert_eq!(Directory::parse(&text, None).unwrap(), directory);
    let refused = |text: &str, pem: &str| Directory::parse(text, Some(pem)).unwrap_err().to_string();
    assert!(refused(&text, &other).contains("not signed by the authority"));
    assert!(refused(&directory.to_text(None), &pem).contains("no signature"));
    assert!(refused(&text, "nonsense").contains("certificate cannot be read"));
    let swapped = text.replacen("\na ", "\nd ", 1);
    assert!(refused(&swapped, &pem).contains("was changed since"));
    // Lines after the signature are part of nothing.
    assert!(Directory::parse(&format!("{text}e 00 00\n"), Some(&pem)).is_err());
    for bad in ["", "fedkin directory 2\n", "fedkin directory 1\na b c\n"] {
        assert!(Directory::parse(bad, None).is_err(), "{bad:?}");
    }
    let twice = format!("{}{}", directory.statement(), directory.statement().lines().last().unwrap());
    assert!(Directory::parse(&twice, None).unwrap_err().to_string().contains("twice"));
    assert!(directory.covers([&token("a")]).is_ok());
    assert!(
        matches!(directory.covers([&token("a"), &token("d")]), Err(SealError::Unknown(node)) if node == token("d"))
    );
}

#[cfg(unix)]
#[test]
fn a_secret_that_others_may_read_or_that_does_not_fit_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seal.key");
    let identity = Identity::draw().unwrap();
    std::fs::write(&path, identity.to_text()).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(Identity::read(&path).unwrap_err().to_string().contains("chmod 600"));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(Identity::read(&path).unwrap().public(), identity.public());
    assert!(!format!("{identity:?}").contains(identity.to_text().split(' ').nth(1).unwrap().trim()));
    std::fs::write(&path, "fedkin-seal-1 00\n").unwrap();
    assert!(Identity::read(&path).unwrap_err().to_string().contains("64 hexadecimal digits"));
    let (_, directory) = party();
    let keys = |me: &str| Keys {
        me: token(me),
        run: RUN,
        identity: Identity::draw().unwrap(),
        directory: directory.clone(),
    };
    assert!(matches!(Sealed::new(Wire::default(), keys("a")), Err(SealError::Other(_))));
    assert!(matches!(Sealed::new(Wire::default(), keys("d")), Err(SealError::Unknown(_))));
}
