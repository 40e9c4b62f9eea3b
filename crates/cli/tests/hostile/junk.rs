//! What is no upload at all: nobody waits for it longer than the deadline, and memory stays bounded.

use crate::rogue::{Rogue, Seen};
use crate::site::{SMALL, Site};
use fedkin_method::round::{Envelope, Message, seal};

const MIB: u64 = 1 << 20;
/// A node may hold 128 MiB of payloads that are being put together; the rest is for what is under way.
const ASSEMBLY: u64 = 160 * MIB;

fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn junk_is_dropped_and_named_the_run_goes_on_and_memory_stays_bounded() {
    let experiment =
        SMALL.replace("rounds = 8", "rounds = 400") + "mode = \"deadline\"\ndeadline = 0.4\nquorum = 1.0\n";
    let Some(site) = Site::new(&experiment, 4) else { return };
    let rogues = site.clients_of("host-1");
    let mut hosts: Vec<_> = ["host-0", "host-2", "host-3"].iter().map(|host| site.start(&[host])).collect();
    let mut rogue = Rogue::new(&site, "host-1").await;
    let mut servers = [site.start(&["server-000"]), site.start(&["server-001"])];
    let server = &servers[0];
    let mut deed = 0;
    let mut last = 0;
    let mut growth = Vec::new();
    while let Seen::Answers(answers) = rogue.next().await {
        // A step of its own for each deed; the beats in between stay silent.
        let step = answers[0].step;
        if step <= last {
            continue;
        }
        last = step;
        deed += 1;
        let before = server.peak_from_now();
        let incident = async |rogue: &Rogue, reason: &str| {
            rogue.flush().await;
            server.await_line(&[("from", "host-1"), ("message", "message dropped"), ("reason", reason)]);
        };
        match deed {
            1 => {
                let hello = Envelope { message: Message::Got, ..answers[0].clone() };
                let frame = rogue.frame(&hello).await;
                rogue.bytes(0, frame[..frame.len() / 2].to_vec()).await;
                incident(&rogue, "checksum").await;
                rogue.bytes(0, frame[..20].to_vec()).await;
                incident(&rogue, "is truncated").await;
                let mut newer = frame.clone();
                newer[4] = 9;
                rogue.bytes(0, newer).await;
                incident(&rogue, "has transport version 9, this node speaks 1").await;
                // The right bytes in the wrong place.
                rogue.bytes(0, frame).await;
            }
            2 => {
                let mut payload = seal(&rogue.run, &answers).to_bytes().to_vec();
                rogue.payload(0, payload[..payload.len() - 3].to_vec());
                incident(&rogue, "damaged or truncated").await;
                payload[0] = 7;
                rogue.payload(0, payload);
                incident(&rogue, "protocol 7, this node speaks 2").await;
                rogue.payload(0, seal(&[9; 32], &answers));
                incident(&rogue, "run 0909090909090909, this node is in run").await;
            }
            3 => {
                let early: Vec<Envelope> =
                    answers.iter().map(|answer| Envelope { step: step + 7, ..answer.clone() }).collect();
                rogue.say(&early);
                let ancient: Vec<Envelope> =
                    answers.iter().map(|answer| Envelope { step: 0, ..answer.clone() }).collect();
                rogue.say(&ancient);
                server.await_line(&[("client", site.client(rogues[0])), ("reason", "wrong step")]);
            }
            // Silence.
            4 => {}
            5 => {
                // One payload of 100 MB: judged by what it announces, none of it is read.
                rogue.payload(0, noise(100_000_000, 5));
                incident(&rogue, "announces 100000000 bytes, the limit is").await;
                growth.push(("100 MB in one", server.peak() - before, 16 * MIB));
            }
            6 => {
                // Each below the limit, all of them above it.
                for seed in 0..4 {
                    rogue.payload(0, noise(40_000_000, seed));
                }
                rogue.flush().await;
                let count = || server.counter("incidents", &["host-1", "another protocol"]);
                crate::site::eventually("four dropped", || count() >= 5, || server.page("/metrics").1);
                growth.push(("4 times 40 MB", server.peak() - before, ASSEMBLY));
            }
            7 => {
                // 100 MB in pieces that are no messages.
                for seed in 0..1000 {
                    rogue.bytes(0, noise(100_000, 1000 + seed)).await;
                }
                let count = || server.counter("incidents", &["host-1", "not a Fedkin message"]);
                crate::site::eventually(
                    "a thousand dropped",
                    || count() >= 1000,
                    || server.page("/metrics").1,
                );
                growth.push(("1000 times 100 kB", server.peak() - before, 48 * MIB));
            }
            8 => {
                // Few bytes that claim, or are, very many envelopes.
                let got = Envelope { message: Message::Got, ..answers[0].clone() };
                let one = seal(&rogue.run, std::slice::from_ref(&got)).to_bytes();
                let mut many = one[..38].to_vec();
                many[34..38].copy_from_slice(&u32::MAX.to_le_bytes());
                many.resize(60_000_000, 0);
                let reserved = server.most_reserved();
                rogue.payload(0, many);
                incident(&rogue, "announces 4294967295 envelopes").await;
                assert!(server.most_reserved() - reserved < 2 * ASSEMBLY);
                let count = 2_000_000u32;
                let mut crowd = one[..38].to_vec();
                crowd[34..38].copy_from_slice(&count.to_le_bytes());
                crowd.extend(one[38..].repeat(count as usize));
                rogue.payload(0, crowd);
                incident(&rogue, "announces 2000000 envelopes").await;
                growth.push(("bombs of envelopes", server.peak() - before, ASSEMBLY));
            }
            9 => {
                // A counter for each reason, not for each thing a sender can think of.
                for other in 0..500u16 {
                    let mut run = [0; 32];
                    run[..2].copy_from_slice(&other.to_be_bytes());
                    rogue.payload(0, seal(&run, &answers));
                }
                rogue.flush().await;
                let count = || server.counter("incidents", &["host-1", "another run"]);
                crate::site::eventually("all dropped", || count() >= 501, || server.page("/metrics").1);
                let (_, page) = server.page("/metrics");
                let lines = page.lines().filter(|line| line.starts_with("fedkin_incidents_total")).count();
                assert!(lines < 20, "{page}");
            }
            _ => {
                rogue.say(&answers);
                break;
            }
        }
    }
    assert!(deed >= 10, "the run was over after {deed} deeds");
    rogue.behave().await;
    for server in &mut servers {
        server.must_end_well();
    }
    for host in &mut hosts {
        host.must_end_well();
    }
    for (what, grown, bound) in &growth {
        eprintln!("{what}: the server's peak grew by {:.1} MiB", *grown as f64 / MIB as f64);
        assert!(grown < bound, "{what}: {grown} bytes, allowed are {bound}");
    }
    // The silent are named, the others were folded.
    for client in rogues {
        let fields =
            [("message", "step closed without some"), ("missing", site.client(client)), ("values", "3")];
        servers[0].must_have_said(&fields);
    }
    servers[0].must_have_said(&[("message", "upload rejected"), ("reason", "wrong step")]);
    let models = site.models(&["host-0", "host-2", "host-3"]);
    assert!(models.values().flatten().all(|value| value.abs() < 1e3), "{models:?}");
}
