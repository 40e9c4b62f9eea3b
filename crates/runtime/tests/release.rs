//! A client dies between every pair of steps of a noisy release on the durable store: ask, clip, noise, ledger write,
//! fsync, compaction, send, acknowledgement. Whatever the moment, no release is ever unrecorded, none is charged
//! twice, and the run ends with the bytes of the run in which nobody died.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use fedkin_harness::small as common;

use common::{names, records, world};
use fedkin_graph::Topology;
use fedkin_learner::model::{Loss, Model};
use fedkin_method::registry::Method;
use fedkin_method::round::{
    ClientNode, Effect, Envelope, Message, Mode, Peer, Record, Scratch, Server, ServerNode, Setting,
};
use fedkin_method::{Admm, Algorithm, Entry, Federation, Member, Pgfl};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::{Chain, ChainLine, Privacy, Sampler, Unit, Zcdp, sent_digest};
use fedkin_runtime::store::{Commit, DiskFault, Secret, ShakyDisk, Vault};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

const ROUNDS: u32 = 3;
const RUN: [u8; 32] = [5; 32];
const NAME: &str = "victim";

/// Between which two steps of its release the client dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Never,
    /// ask | clip: the ask has come and nothing was done.
    Asked,
    /// clip | noise: the records are clipped, the answer is not begun.
    Clipped,
    /// noise | ledger write: the answer is ready in memory.
    Noised,
    /// ledger write | fsync, and within both: this operation of the commit on the disk fails.
    Commit(u64),
    /// fsync | send: the record is durable.
    Synced,
    /// While lines move to `ledger.log`: this operation fails.
    Compact(u64),
    /// send | acknowledgement: the message left and was lost on its way.
    SentLost,
    /// send | acknowledgement: the message came.
    SentHeard,
    /// After the acknowledgement.
    Acknowledged,
}

/// How the client ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// `kill -9`: what was written stays.
    Kill,
    /// The power fails: of what was not synced any part is lost; the seed says which.
    Power(u64),
}

/// What the host does wrong, to see that the checks can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// Sends before it has committed.
    SendsFirst,
    /// Does not look at its state after a restart.
    Forgets,
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    step: u32,
    moment: Moment,
    end: End,
    wrong: Wrong,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Default)]
struct Outcome {
    /// The uploads that left the victim, by step: the same bytes however often.
    left: BTreeMap<u32, Vec<u8>>,
    lines: Vec<ChainLine>,
    models: Vec<Vec<u64>>,
    /// Operations on the disk of the commit and of the compaction.
    operations: (u64, u64),
}

fn federation() -> common::Small {
    let mut rng = PublicRng::named(3, "release", 0, 0);
    let model: Vec<f64> = (0..3).map(|_| rng.normal()).collect();
    let data = (0..2).map(|_| Arc::new(records(&mut rng, 4, &model, false))).collect();
    let entry = |name: &str| Entry { name: name.into(), server: 0, cluster: 0, samples: 4 };
    let entries = vec![entry(NAME), entry("witness")];
    let (federation, _) = Federation::new(entries, names("s", 1), names("q", 1), Topology::none(1)).unwrap();
    // Features are clipped and gradients bounded: the price rests on nothing but the code.
    let clipped =
        Model { loss: Loss::Huber(1.0), regularisation: 0.01, bias: false, feature_norm: Some(1.0) };
    let mut small = world(federation, data, clipped, 3, ROUNDS);
    small.run.privacy = Privacy::Zcdp(Zcdp {
        initial_budget: 0.01,
        growth: 0.98,
        assumed: None,
        budget: None,
        sampler: Sampler::Discrete,
        unit: Unit::Record,
    });
    small.context.privacy = small.run.privacy;
    small
}

fn secret(id: u32) -> [u8; 32] {
    [40 + id as u8; 32]
}

struct Play<A: Algorithm> {
    small: common::Small,
    setting: Arc<Setting<A>>,
    server: ServerNode<A>,
    witness: ClientNode<A>,
    disk: ShakyDisk,
    /// The victim, while it lives.
    victim: Option<(ClientNode<A>, Vault)>,
    scratch: Scratch<A>,
    queue: VecDeque<Envelope>,
    trial: Trial,
    died: bool,
    outcome: Outcome,
}

fn dead<T>(_: T) {}

impl<A: Algorithm> Play<A> {
    fn new(algorithm: A, trial: Trial) -> Self {
        let small = federation();
        let setting =
            Arc::new(Setting { algorithm: Arc::new(algorithm), run: small.run.clone(), fingerprint: RUN });
        let server = ServerNode::new(setting.clone(), &small.federation, 0, Mode::Strict);
        let seed = if let End::Power(seed) = trial.end { seed } else { 0 };
        let witness =
            Self::client(&small, &setting, 1, Chain::start("witness", &small.data[1].fingerprint()));
        Self {
            small,
            setting,
            server,
            witness,
            disk: ShakyDisk::new(seed),
            victim: None,
            scratch: Scratch::default(),
            queue: VecDeque::new(),
            trial,
            died: false,
            outcome: Outcome::default(),
        }
    }

    fn member(&self) -> Member {
        self.small.federation.members()[0]
    }

    /// Joins a client: this is where its records are clipped.
    fn client(small: &common::Small, setting: &Arc<Setting<A>>, id: u32, chain: Chain) -> ClientNode<A> {
        let member = small.federation.members()[id as usize];
        let blank = Server::open(&*setting.algorithm, &setting.run, &small.federation, 0);
        let local =
            setting.algorithm.join(&small.data[id as usize], blank.view(&setting.run), &member).unwrap();
        ClientNode::new(setting.clone(), member, local, secret(id), [9; 32], chain)
    }

    /// Starts the victim from its disk. What left before must be there.
    fn wake(&mut self) -> Result<(), String> {
        let vault = Vault::open_on(Arc::new(self.disk.clone()), Path::new("/victim"), Secret::Given([7; 32]))
            .map_err(|error| format!("the vault does not open: {error}"))?;
        let fingerprint = self.small.data[0].fingerprint();
        let mut node = Self::client(&self.small, &self.setting, 0, vault.account(NAME, &fingerprint));
        if let Some(state) = vault.state(&RUN, NAME)
            && self.trial.wrong != Wrong::Forgets
        {
            node.restore(state).map_err(|_| "the state cannot be read")?;
        }
        let lines: Vec<ChainLine> =
            vault.lines(NAME, &fingerprint).unwrap().collect::<Result<_, _>>().map_err(|e| e.to_string())?;
        self.victim = Some((node, vault));
        self.outcome.lines = lines;
        self.recorded()
    }

    /// Never an unrecorded release, never a double charge.
    fn recorded(&self) -> Result<(), String> {
        let member = self.member();
        for (step, up) in &self.outcome.left {
            let sent = sent_digest(member.id, member.server, *step, Some(up));
            if !self.outcome.lines.iter().any(|line| line.sent == sent && line.step == *step) {
                return Err(format!("the release of step {step} left and is not in the ledger"));
            }
        }
        for step in 1..=ROUNDS {
            let charged = self.outcome.lines.iter().filter(|line| line.step == step).count();
            if charged > 1 {
                return Err(format!("step {step} was charged {charged} times"));
            }
        }
        Ok(())
    }

    fn die(&mut self) {
        self.victim = None;
        self.died = true;
        match self.trial.end {
            End::Kill => self.disk.kill(),
            End::Power(_) => self.disk.power_cut(),
        }
    }

    fn send(&mut self, envelope: Envelope, heard: bool) -> Result<(), String> {
        if let (Peer::Client(0), Message::Up(up, _)) = (envelope.from, &envelope.message) {
            let before = self.outcome.left.entry(envelope.step).or_insert_with(|| up.to_vec());
            if before != up {
                return Err(format!("two different uploads left in step {}", envelope.step));
            }
        }
        if heard {
            self.queue.push_back(envelope);
        }
        Ok(())
    }

    /// The victim takes a message; the trial says how far it gets.
    fn take(&mut self, envelope: &Envelope) -> Result<(), String> {
        let ask = matches!(envelope.message, Message::Ask(..)) && envelope.step == self.trial.step;
        let acknowledged = matches!(envelope.message, Message::Ask(..) | Message::Served(..))
            && envelope.step > self.trial.step
            || matches!(envelope.message, Message::Served(..)) && self.trial.step == ROUNDS;
        let moment = if self.died { Moment::Never } else { self.trial.moment };
        if moment == Moment::Acknowledged && acknowledged || ask && moment == Moment::Asked {
            self.die();
            return Ok(());
        }
        let Some((mut node, mut vault)) = self.victim.take() else { return Ok(()) };
        if ask && moment == Moment::Clipped {
            let chain = vault.account(NAME, &self.small.data[0].fingerprint());
            dead(Self::client(&self.small, &self.setting, 0, chain));
            dead((node, vault));
            self.die();
            return Ok(());
        }
        let effects = node.receive(envelope, &mut self.scratch);
        let answers = effects.iter().any(|effect| matches!(effect, Effect::Commit(_))) && ask;
        let moment = if answers { moment } else { Moment::Never };
        if moment == Moment::Noised {
            dead((node, vault));
            self.die();
            return Ok(());
        }
        let (records, others): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Commit(_)));
        let mut ordered: Vec<Effect> = Vec::new();
        if self.trial.wrong == Wrong::SendsFirst {
            ordered.extend(others);
            ordered.extend(records);
        } else {
            ordered.extend(records);
            ordered.extend(others);
        }
        for effect in ordered {
            match effect {
                Effect::Commit(Record::Client { state, lines }) => {
                    let fingerprint = self.small.data[0].fingerprint();
                    let commit = Commit { client: NAME, fingerprint, state: &state, lines: &lines };
                    let begun = self.disk.operations();
                    if let Moment::Commit(operation) = moment {
                        self.disk.fail_after(operation, DiskFault::Crash);
                    }
                    let mut ended = vault.commit(&RUN, &[commit]);
                    let committed = self.disk.operations();
                    if ended.is_ok() && moment == Moment::Synced {
                        dead((node, vault));
                        self.die();
                        return Ok(());
                    }
                    if let (Moment::Compact(operation), Ok(())) = (moment, &ended) {
                        self.disk.fail_after(operation, DiskFault::Crash);
                    }
                    if ended.is_ok() {
                        ended = vault.compact();
                    }
                    if answers {
                        let after = self.disk.operations();
                        self.outcome.operations = (committed - begun, after - committed);
                    }
                    if ended.is_err() {
                        dead((node, vault));
                        self.die();
                        return Ok(());
                    }
                }
                Effect::Send(envelope) => {
                    let upload = matches!(envelope.message, Message::Up(..)) && answers;
                    match moment {
                        Moment::SentLost | Moment::SentHeard if upload => {
                            self.send(envelope, moment == Moment::SentHeard)?;
                            dead((node, vault));
                            self.die();
                            return Ok(());
                        }
                        _ => self.send(envelope, true)?,
                    }
                }
                _ => {}
            }
        }
        self.victim = Some((node, vault));
        Ok(())
    }

    fn did(&mut self, effects: Vec<Effect>) -> Result<(), String> {
        for effect in effects {
            if let Effect::Send(envelope) = effect {
                self.send(envelope, true)?;
            }
        }
        Ok(())
    }

    fn run(mut self) -> Result<(Outcome, bool), String> {
        self.wake()?;
        let effects = self.server.start();
        self.did(effects)?;
        for _ in 0..200 {
            while let Some(envelope) = self.queue.pop_front() {
                match envelope.to {
                    Peer::Server(_) => {
                        let effects = self.server.receive(&envelope);
                        self.did(effects)?;
                    }
                    Peer::Client(0) => self.take(&envelope)?,
                    Peer::Client(_) => {
                        let effects = self.witness.receive(&envelope, &mut self.scratch);
                        self.did(effects)?;
                    }
                }
            }
            if self.victim.is_none() {
                self.wake()?;
            }
            let over = self.victim.as_ref().is_some_and(|(node, _)| node.is_over());
            if over && self.witness.is_over() {
                break;
            }
            let effects = [
                self.server.beat(),
                self.victim.as_ref().map(|(node, _)| node.beat()).unwrap_or_default(),
                self.witness.beat(),
            ];
            effects.into_iter().try_for_each(|effects| self.did(effects))?;
        }
        let Some((node, _)) = &self.victim else { return Err("the victim never came back".into()) };
        if !node.is_over() {
            return Err(format!("the run stands still at step {}", node.step()));
        }
        let mut models = Vec::new();
        node.personal(&mut |_, model| models.push(model.iter().map(|x| x.to_bits()).collect()));
        let died = self.died;
        self.victim = None;
        self.disk.kill();
        self.wake()?;
        let mut outcome = self.outcome;
        outcome.models = models;
        Ok((outcome, died))
    }
}

fn play(trial: Trial) -> Result<(Outcome, bool), String> {
    let values = common::values("pgfl", &[]);
    Play::new(<Admm<Pgfl>>::from_values(&values, &federation().context).unwrap(), trial).run()
}

fn reference() -> Outcome {
    let trial = Trial { step: 1, moment: Moment::Never, end: End::Kill, wrong: Wrong::Nothing };
    play(trial).unwrap().0
}

fn moments(reference: &Outcome) -> Vec<Moment> {
    let (commit, compact) = reference.operations;
    assert!(commit >= 2 && compact >= 3, "a write and a sync at least: {:?}", reference.operations);
    let mut all = vec![Moment::Asked, Moment::Clipped, Moment::Noised];
    all.extend((0..commit).map(Moment::Commit));
    all.push(Moment::Synced);
    all.extend((0..compact).map(Moment::Compact));
    all.extend([Moment::SentLost, Moment::SentHeard, Moment::Acknowledged]);
    all
}

fn ends() -> impl Iterator<Item = End> {
    std::iter::once(End::Kill).chain((0..8).map(End::Power))
}

#[test]
fn no_moment_loses_a_release_or_charges_it_twice() {
    let whole = reference();
    assert_eq!(whole.left.len(), ROUNDS as usize);
    assert_eq!(whole.lines.len(), ROUNDS as usize);
    assert!(whole.lines.iter().all(|line| line.units > 0 && line.sigma > 0.0 && &*line.bound == b"enforced"));
    let mut trials = 0;
    for moment in moments(&whole) {
        for step in 1..=ROUNDS {
            for end in ends() {
                let trial = Trial { step, moment, end, wrong: Wrong::Nothing };
                let (outcome, died) = play(trial).unwrap_or_else(|why| panic!("{trial:?}: {why}"));
                assert!(died, "{trial:?}: the moment never came");
                assert_eq!(outcome.left, whole.left, "{trial:?}: other bytes left");
                assert_eq!(outcome.lines, whole.lines, "{trial:?}: another ledger");
                assert_eq!(outcome.models, whole.models, "{trial:?}: other models");
                trials += 1;
            }
        }
    }
    println!("{trials} deaths, {} moments", moments(&whole).len());
}

#[test]
fn a_host_that_sends_first_or_forgets_is_noticed() {
    let whole = reference();
    let caught = |wrong: Wrong, words: &str| {
        let trials = moments(&whole)
            .into_iter()
            .flat_map(|moment| ends().map(move |end| Trial { step: 2, moment, end, wrong }));
        trials.filter(|trial| play(*trial).is_err_and(|why| why.contains(words))).count()
    };
    assert!(caught(Wrong::SendsFirst, "is not in the ledger") > 0);
    assert!(caught(Wrong::Forgets, "was charged 2 times") > 0);
}
