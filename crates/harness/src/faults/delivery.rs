//! Messages reach nodes; and now and then somebody lies to a node in passing, which must raise an alarm and
//! change nothing.

use super::checks::{Checked, hold};
use super::mutants::Mistake;
use super::network::{Arrival, Rates};
use super::world::World;
use bytes::Bytes;
use fedkin_method::round::{ClientMachines, Effect, Envelope, Message, Note, Peer};
use fedkin_numeric::codec::{Codec, Reader};
use fedkin_numeric::rng::Random;
use fedkin_privacy::Refusal;

impl World<'_> {
    pub(crate) fn deliver(&mut self) -> Checked {
        let rates = if self.trouble { self.scenario.rates } else { Rates::default() };
        let (hosts, servers) = (&self.hosts, self.servers.len());
        let up = |peer: Peer| {
            let host = match peer {
                Peer::Server(id) => id as usize,
                Peer::Client(id) => servers + id as usize,
            };
            // A node may be called again while effects of the last call wait, but it does not hoard them.
            !hosts[host].down && hosts[host].queue.len() < 3
        };
        let envelope = match self.broker.pick(&mut self.rng, &rates, self.tick, up) {
            Some(Arrival::Envelope(envelope)) => envelope,
            Some(Arrival::Unnoticed) => {
                return hold(false, "wire", || "damaged bytes were taken for a message".into());
            }
            _ => return Ok(()),
        };
        let host = self.host(envelope.to);
        if self.hosts[host].gone || self.stalled(host) {
            return Ok(());
        }
        match envelope.to {
            Peer::Server(id) => self.at_server(id as usize, &envelope),
            Peer::Client(id) => self.at_client(id, &envelope),
        }
    }

    fn at_server(&mut self, server: usize, envelope: &Envelope) -> Checked {
        let effects = match &envelope.message {
            Message::Up(up, lines) if self.mistake == Some(Mistake::Altered) => {
                let message = Message::Up(up.clone(), lines + 1);
                self.servers[server].receive(&Envelope { message, ..envelope.clone() })
            }
            _ => self.servers[server].receive(envelope),
        };
        self.took(server, effects)?;
        let open = self.servers[server].standing().step == envelope.step && !self.closed(server);
        let Peer::Client(client) = envelope.from else { return Ok(()) };
        let answer = matches!(envelope.message, Message::Up(..) | Message::Refused(..));
        let known = open && answer && !self.servers[server].waits_for().contains(&client);
        if known && self.scenario.liar.is_none() && self.rng.below(8) == 0 {
            self.lie_to_server(server, client, envelope)?;
        }
        Ok(())
    }

    /// P8: a second, different answer to an open step is dropped with an alarm.
    fn lie_to_server(&mut self, server: usize, client: u32, envelope: &Envelope) -> Checked {
        let message = match &envelope.message {
            Message::Up(_, lines) => Message::Refused(Refusal::Undisclosed, *lines),
            _ => Message::Up(vec![0; 8].into(), 0),
        };
        let effects = self.servers[server].receive(&Envelope { message, ..envelope.clone() });
        let alarm = Effect::Note(Note::Equivocation(Peer::Client(client), envelope.step));
        self.stats.forged += 1;
        hold(effects == [alarm], "I2", || {
            format!("client {client} said two things in step {}: {effects:?}", envelope.step)
        })
    }

    fn at_client(&mut self, client: u32, envelope: &Envelope) -> Checked {
        let node = &mut *self.clients[client as usize];
        let before = lines(node, client);
        let effects = receive(node, envelope);
        if lines(node, client) > before {
            let (up, noise) = drawn(node, client, &effects);
            self.checks.answered(client, envelope, up, noise)?;
        }
        let host = self.host(envelope.to);
        self.took(host, effects)?;
        if matches!(envelope.message, Message::Ask(..)) && self.scenario.liar.is_none() {
            if self.clients[client as usize].step() == envelope.step && self.rng.below(8) == 0 {
                self.lie_to_client(client, envelope)?;
            }
            if self.rng.below(16) == 0 {
                self.ask_a_copy(client, &forge(envelope, FIRST))?;
            }
        }
        Ok(())
    }

    /// P3: a second, different question in the last answered step is refused with an alarm.
    fn lie_to_client(&mut self, client: u32, ask: &Envelope) -> Checked {
        let unreadable = Effect::Note(Note::Unreadable(ask.from, ask.step));
        let alarm = Effect::Note(Note::Equivocation(ask.from, ask.step));
        let (mut forged, mut effects) = (ask.clone(), vec![unreadable.clone()]);
        // The byte of a number, wherever the method has numbers: a question that cannot be read is none.
        for place in [FIRST, SECOND, LAST] {
            forged = forge(ask, place);
            effects = receive(&mut *self.clients[client as usize], &forged);
            if effects != [unreadable.clone()] {
                break;
            }
        }
        self.stats.forged += 1;
        hold(effects == [alarm], "I2", || {
            format!("client {client} was asked two things in step {}: {effects:?}", forged.step)
        })
    }

    /// I10: somebody runs an old copy of a client's disk and asks it something else.
    fn ask_a_copy(&mut self, client: u32, forged: &Envelope) -> Checked {
        let host = self.host(Peer::Client(client));
        let mut copy = self.client_of(client, &self.hosts[host].old)?;
        if copy.step() >= forged.step {
            return Ok(());
        }
        let welcome = Message::Welcome(0, lines(&*copy, client));
        receive(&mut *copy, &Envelope { message: welcome, ..forged.clone() });
        let effects = receive(&mut *copy, forged);
        let (up, noise) = drawn(&*copy, client, &effects);
        self.stats.forged += 1;
        self.checks.answered(client, forged, up, noise)
    }
}

/// What a client does with a message.
fn receive(node: &mut dyn ClientMachines, envelope: &Envelope) -> Vec<Effect> {
    node.receive(vec![envelope.clone()]).into_iter().flat_map(|(_, effects)| effects).collect()
}

/// How many lines a client's ledger has.
fn lines(node: &dyn ClientMachines, client: u32) -> u64 {
    node.chain(client).map_or(0, |chain| chain.head.seq)
}

/// What a client sends, and the noise in it: the upload less the exact model in its memory.
fn drawn<'e>(
    node: &dyn ClientMachines,
    client: u32,
    effects: &'e [Effect],
) -> (Option<&'e Bytes>, Option<Vec<f64>>) {
    let up = effects.iter().find_map(|effect| match effect {
        Effect::Send(Envelope { message: Message::Up(bytes, _), .. }) => Some(bytes),
        _ => None,
    });
    let memory = node.state(client).unwrap_or_default();
    let exact = Vec::<f64>::get(&mut Reader::new(&memory));
    let (Some(bytes), Ok(exact)) = (up, exact) else { return (up, None) };
    let sent = Vec::<f64>::from_bytes(bytes).ok().filter(|sent| sent.len() == exact.len());
    (up, sent.map(|sent| sent.iter().zip(&exact).map(|(a, b)| a - b).collect()))
}

/// In the middle of the first number of a list of numbers.
const FIRST: usize = 8 + 4;
/// The same in a list of lists, after a word.
const SECOND: usize = 8 + 4 + 8 + 4;
/// The same of whatever comes last.
const LAST: usize = usize::MAX;

/// The same question about another centre, or under another label where the method sends none.
fn forge(ask: &Envelope, place: usize) -> Envelope {
    let mut forged = ask.clone();
    if let Message::Ask(label, _, down) = &mut forged.message {
        let place = if place == LAST { down.len().saturating_sub(5) } else { place };
        let mut changed = down.to_vec();
        match changed.get_mut(place) {
            Some(byte) => *byte ^= 0x55,
            None => label.part ^= 1,
        }
        *down = changed.into();
    }
    forged
}
