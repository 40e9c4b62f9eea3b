//! What goes wrong beside the network: crashes between any two effects, full disks, cut lines, a broker that
//! loses everything.

use super::checks::Checked;
use super::mutants::Mistake;
use super::network::one_in;
use super::world::{Host, World};
use fedkin_method::round::Peer;
use fedkin_numeric::rng::Random;

impl World<'_> {
    /// The faults stop: all nodes are up, disks have space, cuts heal.
    pub(crate) fn calm(&mut self) -> Checked {
        self.trouble = false;
        self.broker.heal();
        for host in 0..self.hosts.len() {
            self.hosts[host].full = 0;
            if self.hosts[host].down {
                self.wake(host)?;
            }
        }
        Ok(())
    }

    pub(crate) fn mischief(&mut self) -> Checked {
        let rates = self.scenario.rates;
        let hosts = self.hosts.len() as u32;
        if one_in(&mut self.rng, rates.wipe) {
            self.broker.wipe();
            self.log(Peer::Server(0), "broker loses everything", 0);
        }
        if one_in(&mut self.rng, rates.cut) {
            let until = self.tick + u64::from(self.rng.below(500));
            let members = self.scenario.world.federation.members();
            let member = members[self.rng.below(members.len() as u32) as usize];
            let near = self.servers[member.server as usize].neighbours();
            let other = if near.is_empty() || self.rng.below(2) == 0 {
                Peer::Client(member.id)
            } else {
                Peer::Server(near[self.rng.below(near.len() as u32) as usize])
            };
            self.broker.cut(Peer::Server(member.server), other, until);
        }
        if one_in(&mut self.rng, rates.full) {
            let host = self.rng.below(hosts) as usize;
            self.hosts[host].full = self.tick + u64::from(self.rng.below(300));
        }
        if one_in(&mut self.rng, rates.crash) {
            // One node, preferably in the middle of something; or several; or all at once.
            match self.rng.below(10) {
                0 => (0..hosts as usize).for_each(|host| self.crash(host)),
                1..4 => (0..3).for_each(|_| {
                    let host = self.rng.below(hosts) as usize;
                    self.crash(host);
                }),
                _ => {
                    let busy: Vec<usize> =
                        (0..hosts as usize).filter(|host| !self.hosts[*host].queue.is_empty()).collect();
                    let host = match busy.len() as u32 {
                        0 => self.rng.below(hosts) as usize,
                        many => busy[self.rng.below(many) as usize],
                    };
                    self.crash(host);
                }
            }
        }
        for &(client, at) in &self.scenario.silent {
            if at == self.tick {
                let host = self.servers.len() + client as usize;
                self.crash(host);
                self.hosts[host].gone = true;
            }
        }
        let due = |host: &Host| host.down && host.wakes <= self.tick && !host.gone;
        match (0..self.hosts.len()).find(|host| due(&self.hosts[*host])) {
            Some(host) => self.wake(host),
            None => Ok(()),
        }
    }

    /// Memory and everything not yet done is lost.
    fn crash(&mut self, host: usize) {
        let until = self.tick + u64::from(self.rng.below(200));
        let life = &mut self.hosts[host];
        if life.gone || life.down {
            return;
        }
        life.queue.clear();
        (life.down, life.wakes) = (true, until);
        self.stats.crashes += 1;
        self.log(self.peer(host), "crashes", 0);
    }

    fn wake(&mut self, host: usize) -> Checked {
        if self.hosts[host].gone {
            return Ok(());
        }
        self.hosts[host].down = false;
        let disk = &mut self.hosts[host].disk;
        match self.mistake {
            Some(Mistake::OldRecord) if disk.records.len() > 1 => _ = disk.records.pop(),
            Some(Mistake::LostLine) if disk.lines.len() > 1 => _ = disk.lines.remove(0),
            Some(Mistake::LostState) if !disk.lines.is_empty() => disk.records.clear(),
            _ => {}
        }
        self.log(self.peer(host), "wakes", 0);
        match self.peer(host) {
            Peer::Server(id) => {
                self.servers[host] = self.server_of(id, &self.hosts[host].disk);
                let effects = self.servers[host].start();
                self.took(host, effects)
            }
            Peer::Client(id) => {
                self.clients[id as usize] = self.client_of(id, &self.hosts[host].disk)?;
                Ok(())
            }
        }
    }
}
