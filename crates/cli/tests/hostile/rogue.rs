//! A client host in the hands of the test: it computes as a real one does, and says what it likes.

use crate::site::{PATIENCE, Site, token};
use async_nats::{ConnectOptions, jetstream};
use fedkin_method::round::{ClientMachines, Effect, Envelope, Message, Note, Peer, seal};
use fedkin_runtime::nats::{Event, Post, subjects};
use fedkin_runtime::transport::Payload;
use std::time::Duration;

const BEAT: Duration = Duration::from_millis(200);

pub(crate) struct Rogue {
    pub(crate) clients: Box<dyn ClientMachines>,
    pub(crate) run: [u8; 32],
    run_id: String,
    me: String,
    servers: Vec<String>,
    post: Post,
    raw: async_nats::Client,
    turn: u32,
    /// Does not say that it has its models.
    pub(crate) holds: bool,
}

/// What a host gets to see.
pub(crate) enum Seen {
    /// The honest answers to asks; on a beat, the same again.
    Answers(Vec<Envelope>),
    /// All its clients are served; nobody was told, as it holds that back.
    Held,
    /// All its clients are served and dismissed.
    Over,
}

impl Rogue {
    /// In the place of a host of the site.
    pub(crate) async fn new(site: &Site, host: &str) -> Self {
        let deployment = &site.deployment;
        let ready = tokio::task::block_in_place(|| deployment.client_node(site.config(host))).unwrap();
        let mut config = deployment.post(site.config(host));
        // Its own limits are no limits to it.
        config.limits.max_payload = 1 << 30;
        let url = config.url.clone();
        let (login, address) = url.trim_start_matches("nats://").split_once('@').unwrap();
        let (user, password) = login.split_once(':').unwrap();
        let raw = ConnectOptions::new().user_and_password(user.into(), password.into());
        let raw = raw.connect(format!("nats://{address}")).await.unwrap();
        Self {
            clients: ready.clients,
            run: deployment.fingerprint,
            run_id: deployment.run_id(),
            me: host.to_string(),
            servers: deployment.nodes.servers.clone(),
            post: Post::open(config).await.unwrap(),
            raw,
            turn: 0,
            holds: false,
        }
    }

    /// Until there is something to answer. Hellos and confirmations go out by themselves.
    pub(crate) async fn next(&mut self) -> Seen {
        let work = async {
            loop {
                if self.clients.over() == self.clients.ids().len() {
                    return Seen::Over;
                }
                if self.holds && self.clients.served() == self.clients.ids().len() {
                    return Seen::Held;
                }
                let effects: Vec<Effect> = match tokio::time::timeout(BEAT, self.post.next()).await {
                    Err(_) => self.clients.beat(),
                    Ok(Event::Delivery(delivery)) => {
                        let Ok(envelopes) = fedkin_method::round::open(&self.run, &delivery.payload) else {
                            continue;
                        };
                        let work = tokio::task::block_in_place(|| self.clients.receive(envelopes));
                        work.into_iter().flat_map(|(_, effects)| effects).collect()
                    }
                    Ok(_) => continue,
                };
                let (mut answers, mut rest) = (Vec::new(), Vec::new());
                for effect in effects {
                    match effect {
                        Effect::Send(envelope) => match envelope.message {
                            Message::Up(..) | Message::Refused(..) => answers.push(envelope),
                            Message::Got if self.holds => {}
                            _ => rest.push(envelope),
                        },
                        Effect::Note(Note::Turned(_, why)) => panic!("turned away: {why}"),
                        _ => {}
                    }
                }
                if !rest.is_empty() {
                    self.say(&rest);
                }
                if !answers.is_empty() {
                    return Seen::Answers(answers);
                }
            }
        };
        tokio::time::timeout(PATIENCE, work).await.expect("nothing to answer")
    }

    /// Answers honestly until all is over.
    pub(crate) async fn behave(&mut self) {
        while let Seen::Answers(answers) = self.next().await {
            self.say(&answers);
        }
        assert!(self.post.flush(Duration::from_secs(5)).await);
    }

    /// Envelopes as they are.
    pub(crate) fn say(&mut self, envelopes: &[Envelope]) {
        let Peer::Server(server) = envelopes[0].to else { panic!("clients talk to servers") };
        assert!(envelopes.iter().all(|envelope| envelope.to == envelopes[0].to));
        self.payload(server, seal(&self.run, envelopes));
    }

    /// Any bytes, well framed.
    pub(crate) fn payload(&mut self, server: u32, payload: impl Into<Payload>) {
        self.turn += 1;
        let slot = format!("turn-{}", self.turn);
        self.post.send(&token(&self.servers[server as usize]), &slot, payload).unwrap();
    }

    /// Until everything is with the broker.
    pub(crate) async fn flush(&self) {
        assert!(self.post.flush(PATIENCE).await, "the broker does not take it");
    }

    fn subject(&self, server: u32, slot: &str) -> String {
        let to = token(&self.servers[server as usize]);
        subjects::message(&self.run_id, &to, &token(&self.me), slot)
    }

    /// The bytes of a message as they are on the broker.
    pub(crate) async fn frame(&mut self, envelope: &Envelope) -> Vec<u8> {
        let Peer::Server(server) = envelope.to else { panic!("clients talk to servers") };
        self.say(std::slice::from_ref(envelope));
        self.flush().await;
        let slot = format!("turn-{}", self.turn);
        let stream = jetstream::new(self.raw.clone());
        let stream = stream.get_stream(subjects::stream(&self.run_id)).await.unwrap();
        let message = stream.get_last_raw_message_by_subject(&self.subject(server, &slot)).await.unwrap();
        message.payload.to_vec()
    }

    /// Any bytes under its own subject, unframed.
    pub(crate) async fn bytes(&mut self, server: u32, bytes: Vec<u8>) {
        self.turn += 1;
        let slot = format!("turn-{}", self.turn);
        let subject = self.subject(server, &slot);
        self.raw.publish(subject, bytes.into()).await.unwrap();
        self.raw.flush().await.unwrap();
    }

    /// The own models of its clients.
    pub(crate) fn models(&self) -> Vec<(u32, Vec<f64>)> {
        let mut all = Vec::new();
        self.clients.outcomes(&mut |outcome| all.push((outcome.id, outcome.models[0].1.clone())));
        all
    }
}

/// The same answer with other bytes in it.
pub(crate) fn with_bytes(answer: &Envelope, change: impl FnOnce(&mut Vec<u8>)) -> Envelope {
    let mut answer = answer.clone();
    let Message::Up(bytes, _) = &mut answer.message else { panic!("a refusal: {answer:?}") };
    let mut changed = bytes.to_vec();
    change(&mut changed);
    *bytes = changed.into();
    answer
}

/// The same answer with another model in it.
pub(crate) fn with_model(answer: &Envelope, change: impl FnOnce(&mut Vec<f64>)) -> Envelope {
    use fedkin_numeric::codec::Codec;
    with_bytes(answer, |bytes| {
        let mut model = Vec::<f64>::from_bytes(bytes).unwrap();
        change(&mut model);
        *bytes = model.to_bytes();
    })
}
