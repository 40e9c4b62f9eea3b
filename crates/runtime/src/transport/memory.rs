//! Mailboxes in one process.

use super::{Delivery, Event, Network, Payload, Token, Transport, TransportError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// A network in one process: a mailbox for every node, which keeps one payload per sender and slot, as a broker does. A
/// payload for a node that has not joined yet waits for it.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<Mutex<BTreeMap<Token, Arc<Mailbox>>>>);

#[derive(Debug, Default)]
struct Mailbox {
    waiting: Mutex<VecDeque<Delivery>>,
    added: Notify,
}

/// A node's end.
#[derive(Debug)]
pub struct End {
    me: Token,
    own: Arc<Mailbox>,
    network: Memory,
}

impl Memory {
    fn mailbox(&self, node: &Token) -> Arc<Mailbox> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(node.clone()).or_default())
    }
}

impl Network for Memory {
    type End = End;

    fn join(&self, node: &Token) -> Result<End, TransportError> {
        Ok(End { me: node.clone(), own: self.mailbox(node), network: self.clone() })
    }
}

impl Mailbox {
    /// Takes a payload; one of the same sender and slot that waits is replaced where it stands.
    fn put(&self, delivery: Delivery) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let older = |one: &&mut Delivery| one.from == delivery.from && one.slot == delivery.slot;
        match waiting.iter_mut().find(older) {
            Some(older) => *older = delivery,
            None => waiting.push_back(delivery),
        }
        drop(waiting);
        self.added.notify_one();
    }

    fn take(&self) -> Option<Delivery> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Transport for End {
    fn send(&mut self, to: &Token, slot: &str, payload: Payload) -> Result<(), TransportError> {
        let payload = payload.to_bytes();
        self.network.mailbox(to).put(Delivery { from: self.me.clone(), slot: slot.to_owned(), payload });
        Ok(())
    }

    async fn next(&mut self) -> Event {
        loop {
            let added = self.own.added.notified();
            if let Some(delivery) = self.own.take() {
                return Event::Delivery(delivery);
            }
            added.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_newer_payload_of_a_slot_replaces_the_older_and_others_keep_their_order() {
        let network = Memory::default();
        let (a, b) = (Token::of("a"), Token::of("b"));
        let mut sender = network.join(&a).unwrap();
        for (slot, byte) in [("x", 1u8), ("y", 2), ("x", 3)] {
            sender.send(&b, slot, vec![byte].into()).unwrap();
        }
        let mut receiver = network.join(&b).unwrap();
        for (slot, byte) in [("x", 3u8), ("y", 2)] {
            let Event::Delivery(found) = receiver.next().await else { panic!() };
            assert_eq!((found.from, &*found.slot, &found.payload[..]), (a.clone(), slot, &[byte][..]));
        }
        let nothing = tokio::time::timeout(std::time::Duration::from_millis(20), receiver.next()).await;
        assert!(nothing.is_err());
    }
}
