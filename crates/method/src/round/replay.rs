//! What nodes have decided and sent, run again through the typed steps: closed sets give the same bits whenever they are
//! replayed.

use super::pool::Pool;
use super::steps::Steps;
use crate::algorithm::{Algorithm, Run, Verdict};
use crate::federation::Federation;
use bytes::Bytes;
use fedkin_numeric::codec::{Codec, Digest, Encoder, Sink};
use std::sync::Arc;

/// The servers of a run, fed with answers that were given elsewhere.
pub trait Replay {
    /// Begins a step at a server; false where it delivers. Servers may end after different steps.
    fn begin(&mut self, server: u32, step: u32) -> bool;
    /// Folds the closed set of a server: what became of each client by position, and the uploads by client id.
    fn fold(
        &mut self,
        server: u32,
        verdicts: &[Verdict],
        upload: &dyn Fn(u32) -> Option<Bytes>,
    ) -> Result<(), String>;
    /// Closes the step of a server; the digest of its share.
    fn close(&mut self, server: u32) -> [u8; 32];
    /// Mixes the shares that these servers have closed last, sorted by id, at one of them.
    fn mix(&mut self, server: u32, of: &[u32]);
    /// The method's whole state at a server, seats included, as bytes.
    fn state(&self, server: u32) -> Vec<u8>;
    /// What a client would be served now, as bytes: broadcast and own part.
    fn served(&self, server: u32, position: usize) -> (Vec<u8>, Vec<u8>);
}

struct Replayed<A: Algorithm> {
    steps: Steps<A>,
    /// The last share of every server, by id.
    shares: Vec<A::Share>,
}

/// A replay of a method, from before the first step.
pub(super) fn replay<A: Algorithm>(
    algorithm: Arc<A>,
    run: Run,
    federation: &Federation,
    pool: Arc<dyn Pool>,
) -> Box<dyn Replay> {
    let steps = Steps::of_servers(algorithm, run, federation, 0..federation.servers() as u32, pool);
    let shares = steps.servers().iter().map(|_| A::Share::default()).collect();
    Box::new(Replayed { steps, shares })
}

impl<A: Algorithm> Replay for Replayed<A> {
    fn begin(&mut self, server: u32, step: u32) -> bool {
        self.steps.begin_at(server as usize, step)
    }

    fn fold(
        &mut self,
        server: u32,
        verdicts: &[Verdict],
        upload: &dyn Fn(u32) -> Option<Bytes>,
    ) -> Result<(), String> {
        self.steps.feed(server as usize, |first, mut chunk, _, _| {
            chunk.clear();
            for i in 0..chunk.members.len() {
                let client = chunk.members[i].id;
                match verdicts[first + i] {
                    Verdict::NotAsked => {}
                    Verdict::Asked => return Err(format!("client {client} has no verdict")),
                    Verdict::Value => {
                        let up = upload(client).and_then(|bytes| A::Up::from_bytes(&bytes).ok());
                        let up = up.ok_or_else(|| format!("no upload of client {client}"))?;
                        chunk.take(i, Ok(&up));
                    }
                    Verdict::Refused(reason) => chunk.take(i, Err(reason)),
                    Verdict::Rejected(reason) => chunk.reject(i, reason),
                    Verdict::Missing => chunk.miss(i),
                }
            }
            Ok(())
        })
    }

    fn close(&mut self, server: u32) -> [u8; 32] {
        let share = self.steps.close_at(server as usize);
        let mut digest = Digest::default();
        digest.bytes(&share.to_bytes());
        self.shares[server as usize] = share;
        digest.finish()
    }

    fn mix(&mut self, server: u32, of: &[u32]) {
        let near: Vec<(u32, &A::Share)> = of.iter().map(|&id| (id, &self.shares[id as usize])).collect();
        self.steps.mix_at(server as usize, &near);
    }

    fn state(&self, server: u32) -> Vec<u8> {
        let mut bytes = Encoder::default();
        self.steps.servers()[server as usize].save(&mut bytes);
        bytes.0
    }

    fn served(&self, server: u32, position: usize) -> (Vec<u8>, Vec<u8>) {
        let (algorithm, run) = (self.steps.algorithm(), self.steps.run());
        let server = &self.steps.servers()[server as usize];
        let mut down = A::Down::default();
        server.serve(algorithm, run, position, &mut down);
        (server.farewell(algorithm, run).to_bytes(), down.to_bytes())
    }
}
