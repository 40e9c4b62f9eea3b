//! How fast a broker is by itself: the yardstick for everything that is built on it.

use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::config::PostError;
use super::connect;

const SUBJECT: &str = "fedkin.probe";

/// Requests per second that one responder answers with the payload it got, `concurrency` at a time. The payload
/// must fit the broker's `max_payload` (1 MiB unless it is told otherwise).
pub async fn request_reply(
    url: &str,
    payload: Bytes,
    count: usize,
    concurrency: usize,
) -> Result<f64, PostError> {
    let failed = |error: String| PostError::Request(error);
    let (all, _) = connect::addresses(url)?;
    let options = || connect::with_login(ConnectOptions::new(), &all);
    let responder = options().connect(all.clone()).await.map_err(|e| failed(e.to_string()))?;
    let requester = options().connect(all.clone()).await.map_err(|e| failed(e.to_string()))?;
    let mut questions = responder.subscribe(SUBJECT).await.map_err(|e| failed(e.to_string()))?;
    responder.flush().await.map_err(|e| failed(e.to_string()))?;
    let answering = tokio::spawn(async move {
        while let Some(question) = questions.next().await {
            if let Some(reply) = question.reply {
                let _ = responder.publish(reply, question.payload).await;
            }
        }
    });
    // A flush hands the subscription to the system; the broker may still know it later than the first request.
    let mut tries = 0;
    while let Err(error) = ask(&requester, &payload, 1, 1).await {
        tries += 1;
        if tries == 100 {
            return Err(failed(error));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let begin = Instant::now();
    let asked = ask(&requester, &payload, count, concurrency.max(1)).await;
    let seconds = begin.elapsed().as_secs_f64();
    answering.abort();
    asked.map_err(failed)?;
    Ok(count as f64 / seconds)
}

async fn ask(client: &Client, payload: &Bytes, count: usize, concurrency: usize) -> Result<(), String> {
    stream::iter(0..count)
        .map(|_| async move {
            let answer = client.request(SUBJECT, payload.clone()).await.map_err(|e| e.to_string())?;
            if answer.payload.len() == payload.len() { Ok(()) } else { Err("a short answer".to_owned()) }
        })
        .buffer_unordered(concurrency)
        .try_collect()
        .await
}
