//! One client with its real server; everybody else says what they said in a rehearsal.
//!
//! Privacy is promised against whatever a server asks, so any surroundings give a valid test. These are the
//! method's own: the client's server runs its real steps, and what it asks next depends on what it was sent.

mod moment;
mod secret;

pub use moment::{Layout, Moment};
pub use secret::Draw;

use super::pool::{Pool, Serial};
use super::steps::{ClosedStep, Steps};
use super::{Chunk, Client, RunFault, Scratch, Server};
use crate::algorithm::{Algorithm, Run};
use crate::federation::{Federation, Member};
use fedkin_learner::Dataset;
use fedkin_privacy::{Account, Privacy, Refusal, Tally};
use moment::numbers;
use std::convert::Infallible;
use std::sync::Arc;

/// What an audited method runs on.
pub struct Ground<'a> {
    /// What the run fixes.
    pub run: &'a Run,
    /// Who takes part, arranged for the method.
    pub federation: &'a Federation,
    /// By client id.
    pub data: &'a [Arc<Dataset>],
    /// How many steps are audited.
    pub steps: u32,
    /// The privacy of the same method without noise.
    pub quiet: Privacy,
    /// Where the noise stands in a message.
    pub layout: Layout,
    /// What the rehearsal runs on.
    pub pool: Arc<dyn Pool>,
}

/// The audited client's surroundings.
pub trait Scene: Send + Sync {
    /// The audited client.
    fn member(&self) -> Member;
    /// How many rounds there are, those after the client's last word included.
    fn rounds(&self) -> u32;
    /// Whether the method can be built without noise.
    fn has_quiet(&self) -> bool;
    /// The client on each of two data sets, ready to be run over and over, with so many copies of other randomness.
    fn lane<'a>(&'a self, pair: &[Arc<Dataset>; 2], copies: usize) -> Result<Box<dyn Lane + 'a>, RunFault>;
}

/// The client on both data sets, with all that one thread needs to run it.
pub trait Lane {
    /// Runs the client on data set `truth` from the first step on and shows every answer it gives.
    fn play(&mut self, truth: usize, draw: Draw, want: Want, each: &mut dyn FnMut(&Moment));
}

/// What is wanted beside the answer itself; copies are made where the lane has them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Want {
    /// The answer on the other data set with the same private randomness.
    pub twin: bool,
    /// The answers of the method without noise.
    pub quiet: bool,
}

/// What a server was told in one step by all but the audited client.
struct Recorded<A: Algorithm> {
    /// Whether the audited client was asked.
    asked: bool,
    /// By position.
    others: Vec<(usize, Result<A::Up, Refusal>)>,
    shares: Vec<(u32, A::Share)>,
}

/// The surroundings of a client of one method.
struct OneScene<A: Algorithm> {
    algorithm: Arc<A>,
    /// The same method without noise, where it can be built.
    quiet: Option<Arc<A>>,
    run: Run,
    quiet_run: Run,
    federation: Federation,
    member: Member,
    position: usize,
    /// Up to the last one in which the client was asked.
    steps: Vec<Recorded<A>>,
    rounds: u32,
    layout: Layout,
}

/// Runs the whole federation once. Gives what every client spent, and what one server was told.
fn rehearse<A: Algorithm>(
    algorithm: &Arc<A>,
    ground: &Ground<'_>,
    audited: Option<Member>,
) -> Result<(Vec<Account>, Vec<Recorded<A>>), RunFault> {
    let Ground { run, federation, data, .. } = *ground;
    let mut steps = Steps::new(Arc::clone(algorithm), run.clone(), federation, data, ground.pool.clone())?;
    let mut recorded = Vec::new();
    while steps.step() < ground.steps && steps.begin() {
        let (mut others, mut asked) = (Vec::new(), false);
        if let Some(audited) = audited {
            for at in 0..federation.servers() {
                listen(&mut steps, at, audited, &mut others, &mut asked);
            }
        } else {
            steps.ask();
        }
        let ClosedStep { mut shares, stop, .. } = steps.close(|_, tally| *tally = Tally::default());
        if stop.is_none() {
            steps.mix(&shares);
        }
        if let Some(member) = audited {
            let neighbours = federation.topology().neighbours(member.server);
            let shares = neighbours.iter().map(|&p| (p, std::mem::take(&mut shares[p as usize]))).collect();
            recorded.push(Recorded { asked, others, shares });
        }
        if stop.is_some() {
            break;
        }
    }
    Ok((steps.accounts(), recorded))
}

/// Asks all clients of a server, and at that of the audited one keeps what the others say.
fn listen<A: Algorithm>(
    steps: &mut Steps<A>,
    at: usize,
    audited: Member,
    others: &mut Vec<(usize, Result<A::Up, Refusal>)>,
    asked: &mut bool,
) {
    let (algorithm, run) = (steps.shared(), steps.run().clone());
    let Ok(()) = steps.feed(at, |first, mut chunk, clients, scratch| -> Result<(), Infallible> {
        if audited.server as usize != at {
            chunk.run(clients, scratch);
            return Ok(());
        }
        chunk.clear();
        for (i, client) in clients.iter_mut().enumerate() {
            if !chunk.is_asked(i) {
                continue;
            }
            let answer = chunk.ask(i, &algorithm, &run, client, scratch);
            chunk.take(i, answer.as_ref().map_err(|refusal| *refusal));
            if audited.id == chunk.members[i].id {
                *asked = true;
            } else {
                others.push((first + i, answer));
            }
        }
        Ok(())
    });
}

/// Rehearses and takes the place of one client: the named one, or whoever spends most.
pub(super) fn scene<A: Algorithm>(
    algorithm: Arc<A>,
    quiet: Option<Arc<A>>,
    ground: &Ground<'_>,
    client: Option<u32>,
) -> Result<Box<dyn Scene>, RunFault> {
    let members = ground.federation.members();
    let member = if let Some(id) = client {
        members[id as usize]
    } else {
        let (accounts, _) = rehearse(&algorithm, ground, None)?;
        // Among equals the one with the fewest records: its runs are the quickest.
        let key = |member: &&Member| {
            let spent = accounts[member.id as usize].total().units();
            (std::cmp::Reverse(spent), member.samples, member.id)
        };
        let most = members.iter().min_by_key(key);
        *most.ok_or_else(|| RunFault::Config("there is no client to audit".into()))?
    };
    let (_, mut steps) = rehearse(&algorithm, ground, Some(member))?;
    let rounds = steps.len() as u32;
    // What servers do once the client has said its last word tells nothing more of it.
    steps.truncate(steps.iter().rposition(|step| step.asked).map_or(0, |last| last + 1));
    let position = ground.federation.clients_of(member.server).iter().position(|id| *id == member.id);
    let quiet_run = Run { privacy: ground.quiet, ..ground.run.clone() };
    Ok(Box::new(OneScene {
        algorithm,
        quiet,
        run: ground.run.clone(),
        quiet_run,
        federation: ground.federation.clone(),
        member,
        position: position.unwrap_or(0),
        steps,
        rounds,
        layout: ground.layout.clone(),
    }))
}

impl<A: Algorithm> Scene for OneScene<A> {
    fn member(&self) -> Member {
        self.member
    }

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn has_quiet(&self) -> bool {
        self.quiet.is_some()
    }

    fn lane<'a>(&'a self, pair: &[Arc<Dataset>; 2], copies: usize) -> Result<Box<dyn Lane + 'a>, RunFault> {
        let server = Server::open(&*self.algorithm, &self.run, &self.federation, self.member.server);
        let client = |algorithm: &A, run: &Run, data: &Arc<Dataset>| {
            algorithm
                .join(data, server.view(run), &self.member)
                .map(|local| Client::new(local, run, [0; 32]))
                .map_err(|unsolved| RunFault::unsolved(&self.federation, &self.member, &unsolved))
        };
        let both = |algorithm: &A, run: &Run| -> Result<[Client<A>; 2], RunFault> {
            Ok([client(algorithm, run, &pair[0])?, client(algorithm, run, &pair[1])?])
        };
        let real = || both(&self.algorithm, &self.run);
        Ok(Box::new(OneLane {
            scene: self,
            real: real()?,
            quiet: self.quiet.as_ref().map(|quiet| both(quiet, &self.quiet_run)).transpose()?,
            copies: (0..copies).map(|_| real()).collect::<Result<_, RunFault>>()?,
            scratch: Scratch::default(),
            moment: Moment::default(),
        }))
    }
}

struct OneLane<'a, A: Algorithm> {
    scene: &'a OneScene<A>,
    real: [Client<A>; 2],
    quiet: Option<[Client<A>; 2]>,
    copies: Vec<[Client<A>; 2]>,
    scratch: Scratch<A>,
    moment: Moment,
}

impl<A: Algorithm> OneLane<'_, A> {
    /// All clients before the first step again.
    fn renew(&mut self, draw: Draw) {
        let (run, secret) = (&self.scene.run, draw.secret(0));
        for client in &mut self.real {
            client.renew(run, secret);
        }
        for client in self.quiet.iter_mut().flatten() {
            client.renew(&self.scene.quiet_run, secret);
        }
        for (number, both) in self.copies.iter_mut().enumerate() {
            let secret = draw.secret(number as u32 + 1);
            for client in both {
                client.renew(run, secret);
            }
        }
    }

    /// Asks the client in its place of a chunk, and whoever else is wanted.
    fn answer(
        &mut self,
        chunk: &Chunk<'_, A>,
        i: usize,
        truth: usize,
        want: Want,
        each: &mut dyn FnMut(&Moment),
    ) -> Result<A::Up, Refusal> {
        let Self { scene, real, quiet, copies, scratch, moment } = self;
        let (algorithm, run) = (&*scene.algorithm, &scene.run);
        let up = chunk.ask(i, algorithm, run, &mut real[truth], scratch)?;
        moment.take(&up, scratch.charges(), &scene.layout);
        if want.twin {
            let twin = chunk.ask(i, algorithm, run, &mut real[1 - truth], scratch);
            moment.twin = twin.ok().map(|up| numbers(&up));
        }
        if want.quiet
            && let (Some(quiet), Some(method)) = (quiet.as_mut(), &scene.quiet)
        {
            let mut expect = |which: usize| {
                let up = chunk.ask(i, method, &scene.quiet_run, &mut quiet[which], scratch);
                up.ok().map(|up| numbers(&up))
            };
            moment.expected = match [expect(0), expect(1)] {
                [Some(first), Some(second)] => Some([first, second]),
                _ => None,
            };
        }
        for both in copies.iter_mut() {
            let mut copy = |which: usize| {
                let up = chunk.ask(i, algorithm, run, &mut both[which], scratch);
                up.map(|up| numbers(&up)).unwrap_or_default()
            };
            let copied = [copy(0), copy(1)];
            moment.copies.push(copied);
        }
        each(moment);
        Ok(up)
    }
}

/// The client has said its last word.
struct Over;

impl<A: Algorithm> Lane for OneLane<'_, A> {
    fn play(&mut self, truth: usize, draw: Draw, want: Want, each: &mut dyn FnMut(&Moment)) {
        self.renew(draw);
        let scene = self.scene;
        let id = scene.member.server;
        let (algorithm, run) = (Arc::clone(&scene.algorithm), scene.run.clone());
        let mut steps = Steps::of_servers(algorithm, run, &scene.federation, id..id + 1, Arc::new(Serial));
        for (number, recorded) in scene.steps.iter().enumerate() {
            if !steps.begin() {
                break;
            }
            let last = number + 1 == scene.steps.len();
            let mut others = recorded.others.iter().peekable();
            let fed = steps.feed(0, |first, mut chunk, _, _| {
                chunk.clear();
                for i in 0..chunk.members.len() {
                    let position = first + i;
                    while others.next_if(|(at, _)| *at < position).is_some() {}
                    if !chunk.is_asked(i) {
                        continue;
                    }
                    if position == scene.position {
                        let answer = self.answer(&chunk, i, truth, want, each);
                        if last {
                            return Err(Over);
                        }
                        chunk.take(i, answer.as_ref().map_err(|refusal| *refusal));
                    } else if !last {
                        match others.next_if(|(at, _)| *at == position) {
                            Some((_, answer)) => chunk.take(i, answer.as_ref().map_err(|refusal| *refusal)),
                            // It was not asked in the rehearsal: it stays silent.
                            None => chunk.miss(i),
                        }
                    }
                }
                Ok(())
            });
            if fed.is_err() {
                return;
            }
            let ClosedStep { shares, stop, .. } = steps.close(|_, tally| *tally = Tally::default());
            if stop.is_some() {
                break;
            }
            let mut near: Vec<(u32, &A::Share)> =
                recorded.shares.iter().map(|(p, share)| (*p, share)).collect();
            near.extend(shares.iter().map(|own| (id, own)));
            near.sort_unstable_by_key(|(p, _)| *p);
            steps.mix_at(0, &near);
        }
    }
}
