//! An own transport: two servers and four clients talk over channels that lose every 20th payload and deliver every 7th
//! twice, and end with the models of one process, to the bit. Nodes trust a transport with nothing.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use fedkin::learner::Ridge;
use fedkin::method::{Pgfl, PgflSettings};
use fedkin::transport::{Delivery, Event, Network, Payload, Token, Transport, TransportError};
use fedkin::{Federation, Simulation};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

#[derive(Clone, Default)]
struct Wires(Arc<Mutex<BTreeMap<Token, UnboundedSender<Delivery>>>>);

struct Wire {
    me: Token,
    wires: Wires,
    mailbox: UnboundedReceiver<Delivery>,
    sent: usize,
}

impl Network for Wires {
    type End = Wire;
    fn join(&self, node: &Token) -> Result<Wire, TransportError> {
        let (sender, mailbox) = unbounded_channel();
        self.0.lock().unwrap().insert(node.clone(), sender);
        Ok(Wire { me: node.clone(), wires: self.clone(), mailbox, sent: 0 })
    }
}

impl Transport for Wire {
    fn send(&mut self, to: &Token, slot: &str, payload: Payload) -> Result<(), TransportError> {
        self.sent += 1;
        let copies = usize::from(!self.sent.is_multiple_of(20)) + usize::from(self.sent.is_multiple_of(7));
        let delivery = Delivery { from: self.me.clone(), slot: slot.into(), payload: payload.to_bytes() };
        let wires = self.wires.0.lock().unwrap();
        wires.get(to).into_iter().for_each(|to| (0..copies).for_each(|_| drop(to.send(delivery.clone()))));
        Ok(())
    }
    async fn next(&mut self) -> Event {
        Event::Delivery(self.mailbox.recv().await.unwrap())
    }
}

fn main() -> Result<(), fedkin::Error> {
    let mut builder = Federation::builder().edge("east", "west");
    let members = [("a", "east", 2.0), ("b", "east", 1.0), ("c", "west", 2.1), ("d", "west", 0.9)];
    for (client, server, slope) in members {
        let with_records = builder.client(client, 1, vec![1.0, 2.0], vec![slope, 2.0 * slope]);
        builder = with_records.server(server).cluster(if slope > 1.5 { "steep" } else { "flat" });
    }
    let simulation = Simulation::new(builder.build()?).method::<Pgfl>(PgflSettings::default());
    let simulation = simulation.learner(Ridge::default()).rounds(20);
    let alone = simulation.run()?.models_sha256();
    let over = simulation.run_over(Wires::default())?.models_sha256();
    println!("one process: {alone}\nsix nodes:   {over}");
    assert_eq!(alone, over);
    Ok(())
}
