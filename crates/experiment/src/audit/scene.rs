//! One client with its real server; everybody else says what they said in a rehearsal.
//!
//! Privacy is promised against whatever a server asks, so any surroundings give a valid test. These are the
//! method's own: the client's server runs its real steps, and what it asks next depends on what it was sent.

use super::moment::{Layout, Moment, numbers};
use super::secret::Draw;
use crate::error::Error;
use fedkin_core::algorithm::{Algorithm, Phase, Run};
use fedkin_core::model::Unsolved;
use fedkin_core::privacy::{Account, Privacy, Refusal, Tally};
use fedkin_core::rng::simulated_secret;
use fedkin_core::round::{CHUNK, Client, Scratch, Server};
use fedkin_core::{Dataset, Federation, Member};
use fedkin_data::InOrder;
use fedkin_runtime::Fault;
use rayon::prelude::*;
use std::sync::Arc;

/// A method with what it runs on.
pub(super) struct Ground<'a> {
    pub(super) run: &'a Run,
    pub(super) federation: &'a Federation,
    pub(super) data: &'a [Arc<Dataset>],
    /// How many steps are audited.
    pub(super) steps: u32,
    /// The privacy of the same method without noise.
    pub(super) quiet: Privacy,
    pub(super) layout: Layout,
}

/// What a server was told in one step by all but the audited client.
struct Recorded<A: Algorithm> {
    /// Whether the audited client was asked.
    asked: bool,
    /// By position.
    others: Vec<(usize, Result<A::Up, Refusal>)>,
    shares: Vec<(u32, A::Share)>,
}

/// The audited client's surroundings.
pub(super) struct Scene<A: Algorithm> {
    algorithm: A,
    /// The same method without noise, where it can be built.
    quiet: Option<A>,
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
    algorithm: &A,
    ground: &Ground<'_>,
    audited: Option<Member>,
) -> Result<(Vec<Account>, Vec<Recorded<A>>), Error> {
    let (run, federation) = (ground.run, ground.federation);
    let ids: Vec<u32> = (0..federation.servers() as u32).collect();
    let opened: Vec<(Server<A>, Vec<Client<A>>)> = ids
        .par_iter()
        .map(|&id| {
            let server = Server::open(algorithm, run, federation, id);
            let join = |member: &Member| {
                let local = algorithm.join(&ground.data[member.id as usize], server.view(run), member);
                local
                    .map(|local| Client::new(local, run, simulated_secret(run.seed, member.id)))
                    .map_err(|unsolved| refused(federation, *member, unsolved))
            };
            let clients = server.members().iter().map(join).collect::<Result<Vec<_>, Error>>()?;
            Ok::<_, Error>((server, clients))
        })
        .in_order()?;
    let (mut servers, mut clients): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
    let mut scratch = Scratch::default();
    let mut recorded = Vec::new();
    for step in 1..=ground.steps {
        let begun: Vec<Phase> = servers.iter_mut().map(|server| server.begin(algorithm, run, step)).collect();
        if begun.iter().all(|phase| *phase == Phase::Deliver) {
            break;
        }
        let (mut others, mut asked) = (Vec::new(), false);
        for (server, clients) in servers.iter_mut().zip(&mut clients) {
            let listen = audited.is_some_and(|member| member.server == server.id());
            let chunks = server.chunks(algorithm, run).zip(clients.chunks_mut(CHUNK)).enumerate();
            for (number, (mut chunk, clients)) in chunks {
                if !listen {
                    chunk.run(clients, &mut scratch);
                    continue;
                }
                chunk.clear();
                for (i, client) in clients.iter_mut().enumerate() {
                    if !chunk.is_asked(i) {
                        continue;
                    }
                    let answer = chunk.ask(i, algorithm, run, client, &mut scratch);
                    chunk.take(i, answer.as_ref().map_err(|refusal| *refusal));
                    if audited.is_some_and(|member| member.id != chunk.members[i].id) {
                        others.push((number * CHUNK + i, answer));
                    } else {
                        asked = true;
                    }
                }
            }
        }
        let mut shares: Vec<A::Share> =
            servers.iter_mut().map(|server| server.close(algorithm, run, &mut Tally::default()).0).collect();
        for server in &mut servers {
            let mut near: Vec<(u32, &A::Share)> =
                server.neighbours().iter().map(|&p| (p, &shares[p as usize])).collect();
            near.push((server.id(), &shares[server.id() as usize]));
            near.sort_unstable_by_key(|(p, _)| *p);
            server.mix(algorithm, run, &near);
            server.chunks(algorithm, run).for_each(|mut chunk| chunk.settle());
        }
        if let Some(member) = audited {
            let neighbours = servers[member.server as usize].neighbours();
            let shares = neighbours.iter().map(|&p| (p, std::mem::take(&mut shares[p as usize]))).collect();
            recorded.push(Recorded { asked, others, shares });
        }
    }
    let mut accounts = vec![Account::default(); federation.members().len()];
    for (server, clients) in servers.iter().zip(&clients) {
        for (member, client) in server.members().iter().zip(clients) {
            accounts[member.id as usize] = client.account().clone();
        }
    }
    Ok((accounts, recorded))
}

fn refused(federation: &Federation, member: Member, unsolved: Unsolved) -> Error {
    let client = federation.client_name(member.id).to_string();
    Fault::Unsolved { client, reason: unsolved.0.to_string() }.into()
}

impl<A: Algorithm> Scene<A> {
    /// Rehearses and takes the place of one client: the named one, or whoever spends most.
    pub(super) fn new(
        algorithm: A,
        quiet: Option<A>,
        ground: &Ground<'_>,
        client: Option<u32>,
    ) -> Result<Self, Error> {
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
            *members.iter().min_by_key(key).ok_or_else(|| Error::Usage("there is no client".into()))?
        };
        let (_, mut steps) = rehearse(&algorithm, ground, Some(member))?;
        let rounds = steps.len() as u32;
        // What servers do once the client has said its last word tells nothing more of it.
        steps.truncate(steps.iter().rposition(|step| step.asked).map_or(0, |last| last + 1));
        let position = ground.federation.clients_of(member.server).iter().position(|id| *id == member.id);
        let quiet_run = Run { privacy: ground.quiet, ..ground.run.clone() };
        Ok(Self {
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
        })
    }

    /// The audited client.
    pub(super) fn member(&self) -> Member {
        self.member
    }

    /// How many rounds there are, those after the client's last word included.
    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Whether the method can be built without noise.
    pub(super) fn has_quiet(&self) -> bool {
        self.quiet.is_some()
    }

    /// The client on each of two data sets, ready to be run over and over.
    pub(super) fn lane(&self, pair: &[Arc<Dataset>; 2], copies: usize) -> Result<Lane<A>, Error> {
        let server = Server::open(&self.algorithm, &self.run, &self.federation, self.member.server);
        let client = |algorithm: &A, run: &Run, data: &Arc<Dataset>| {
            algorithm
                .join(data, server.view(run), &self.member)
                .map(|local| Client::new(local, run, [0; 32]))
                .map_err(|unsolved| refused(&self.federation, self.member, unsolved))
        };
        let both = |algorithm: &A, run: &Run| -> Result<[Client<A>; 2], Error> {
            Ok([client(algorithm, run, &pair[0])?, client(algorithm, run, &pair[1])?])
        };
        let real = || both(&self.algorithm, &self.run);
        Ok(Lane {
            real: real()?,
            quiet: self.quiet.as_ref().map(|quiet| both(quiet, &self.quiet_run)).transpose()?,
            copies: (0..copies).map(|_| real()).collect::<Result<_, Error>>()?,
            scratch: Scratch::default(),
            moment: Moment::default(),
        })
    }

    /// Runs the client on data set `truth` from the first step on and shows every answer it gives.
    pub(super) fn play(
        &self,
        lane: &mut Lane<A>,
        truth: usize,
        draw: Draw,
        want: Want,
        each: &mut dyn FnMut(&Moment),
    ) {
        let Lane { real, quiet, copies, scratch, moment } = lane;
        let (algorithm, run) = (&self.algorithm, &self.run);
        let secret = draw.secret(0);
        for client in real.iter_mut() {
            client.renew(run, secret);
        }
        for client in quiet.iter_mut().flatten() {
            client.renew(&self.quiet_run, secret);
        }
        for (number, both) in copies.iter_mut().enumerate() {
            let secret = draw.secret(number as u32 + 1);
            for client in both {
                client.renew(run, secret);
            }
        }
        let mut server = Server::open(algorithm, run, &self.federation, self.member.server);
        for (step, recorded) in (1..).zip(&self.steps) {
            if server.begin(algorithm, run, step) == Phase::Deliver {
                break;
            }
            let last = step as usize == self.steps.len();
            let mut others = recorded.others.iter().peekable();
            for (number, mut chunk) in server.chunks(algorithm, run).enumerate() {
                chunk.clear();
                for i in 0..chunk.members.len() {
                    let position = number * CHUNK + i;
                    while others.next_if(|(at, _)| *at < position).is_some() {}
                    if !chunk.is_asked(i) {
                        continue;
                    }
                    if position != self.position {
                        if last {
                            continue;
                        }
                        match others.next_if(|(at, _)| *at == position) {
                            Some((_, answer)) => chunk.take(i, answer.as_ref().map_err(|refusal| *refusal)),
                            // It was not asked in the rehearsal: it stays silent.
                            None => chunk.miss(i),
                        }
                        continue;
                    }
                    let answer = chunk.ask(i, algorithm, run, &mut real[truth], scratch);
                    if let Ok(up) = &answer {
                        moment.take(up, scratch.charges(), &self.layout);
                        if want.twin {
                            let twin = chunk.ask(i, algorithm, run, &mut real[1 - truth], scratch);
                            moment.twin = twin.ok().map(|up| numbers(&up));
                        }
                        if want.quiet
                            && let (Some(quiet), Some(method)) = (quiet.as_mut(), self.quiet.as_ref())
                        {
                            let mut expect = |which: usize| {
                                let up = chunk.ask(i, method, &self.quiet_run, &mut quiet[which], scratch);
                                up.ok().map(|up| numbers(&up))
                            };
                            let expected = [expect(0), expect(1)];
                            moment.expected = match expected {
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
                    }
                    if last {
                        return;
                    }
                    chunk.take(i, answer.as_ref().map_err(|refusal| *refusal));
                }
            }
            let (own, _) = server.close(algorithm, run, &mut Tally::default());
            let mut near: Vec<(u32, &A::Share)> =
                recorded.shares.iter().map(|(p, share)| (*p, share)).collect();
            near.push((self.member.server, &own));
            near.sort_unstable_by_key(|(p, _)| *p);
            server.mix(algorithm, run, &near);
            server.chunks(algorithm, run).for_each(|mut chunk| chunk.settle());
        }
    }
}

/// The client on both data sets, with all that one thread needs to run it.
pub(super) struct Lane<A: Algorithm> {
    real: [Client<A>; 2],
    quiet: Option<[Client<A>; 2]>,
    copies: Vec<[Client<A>; 2]>,
    scratch: Scratch<A>,
    moment: Moment,
}

/// What is wanted beside the answer itself; copies are made where the lane has them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Want {
    /// The answer on the other data set with the same private randomness.
    pub(super) twin: bool,
    /// The answers of the method without noise.
    pub(super) quiet: bool,
}
