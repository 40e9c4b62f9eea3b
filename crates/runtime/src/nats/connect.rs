//! Connecting: addresses, certificates, what failed, and the state of the connection.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use tokio::sync::watch;

use super::config::{PostConfig, PostError, Tls};
use super::subjects;

/// The connection: how often it was made, and whether it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Link {
    pub(super) made: u64,
    pub(super) up: bool,
}

/// 50 ms, doubled up to 2 s.
pub(super) fn pause(attempt: usize) -> Duration {
    let doublings = attempt.saturating_sub(1).min(6) as u32;
    Duration::from_millis(50 << doublings).min(Duration::from_secs(2))
}

/// The addresses of a list, and the list without user names and passwords.
pub(super) fn addresses(url: &str) -> Result<(Vec<ServerAddr>, String), PostError> {
    let mut all = Vec::new();
    for one in url.split(',').map(str::trim) {
        // The text is not repeated: it may hold a password.
        let address: ServerAddr = one.parse().map_err(|error: std::io::Error| PostError::Address {
            url: one.rsplit('@').next().unwrap_or_default().to_owned(),
            reason: error.to_string(),
        })?;
        all.push(address);
    }
    let shown = all.iter().map(|a| format!("{}://{}:{}", a.scheme(), a.host(), a.port()));
    let shown = shown.collect::<Vec<_>>().join(",");
    Ok((all, shown))
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The rule that nothing leaves the machine unencrypted by accident.
pub(super) fn check_plain(config: &PostConfig, all: &[ServerAddr]) -> Result<(), PostError> {
    if config.allow_plain || config.tls.is_some() {
        return Ok(());
    }
    match all.iter().find(|a| !a.tls_required() && !is_loopback(a.host())) {
        Some(open) => Err(PostError::Plain(format!("{}:{}", open.host(), open.port()))),
        None => Ok(()),
    }
}

fn readable(tls: &Tls) -> Result<(), PostError> {
    for path in [&tls.ca, &tls.certificate, &tls.key] {
        std::fs::File::open(path)
            .map_err(|error| PostError::Certificate { path: path.clone(), reason: error.to_string() })?;
    }
    Ok(())
}

/// Connects, trying again until the time is over; what cannot get better by waiting ends it at once.
pub(super) async fn connect(
    config: &PostConfig,
) -> Result<(Client, watch::Receiver<Link>, String), PostError> {
    let (all, shown) = addresses(&config.url)?;
    check_plain(config, &all)?;
    if let Some(tls) = &config.tls {
        readable(tls)?;
    }
    let begin = Instant::now();
    let mut attempt = 0;
    loop {
        // A fresh channel each time: an attempt that failed must not leave its events behind.
        let (link, state) = watch::channel(Link::default());
        match with_login(options(config, link), &all).connect(all.clone()).await {
            Ok(client) => return Ok((client, state, shown)),
            Err(error) => {
                let (failure, is_final) = explain(&error, &shown, begin.elapsed());
                attempt += 1;
                if is_final || begin.elapsed() + pause(attempt) > config.limits.connect_timeout {
                    return Err(failure);
                }
            }
        }
        tokio::time::sleep(pause(attempt)).await;
    }
}

/// User and password, where the address has them: the client library does not look.
pub(super) fn with_login(options: ConnectOptions, all: &[ServerAddr]) -> ConnectOptions {
    match all.iter().find_map(|a| Some((a.username()?, a.password()?))) {
        Some((user, password)) => options.user_and_password(user.to_owned(), password.to_owned()),
        None => options,
    }
}

fn options(config: &PostConfig, link: watch::Sender<Link>) -> ConnectOptions {
    // Fails when the process has one already, which is as good.
    let _ = async_nats::rustls::crypto::ring::default_provider().install_default();
    let link = Arc::new(link);
    let mut options = ConnectOptions::new()
        .name(format!("fedkin {} {}", config.run, config.node))
        .custom_inbox_prefix(subjects::inbox(&config.node))
        .connection_timeout(config.limits.connect_timeout.min(Duration::from_secs(5)))
        .request_timeout(Some(config.limits.ack_timeout))
        .ping_interval(Duration::from_secs(10))
        .client_capacity(256)
        .subscription_capacity(config.limits.pull_messages * 2 + 16)
        .reconnect_delay_callback(pause)
        // Where to connect is the operator's word, not the broker's.
        .ignore_discovered_servers()
        .event_callback(move |event| {
            note(&link, &event);
            std::future::ready(())
        });
    if let Some(tls) = &config.tls {
        options = options
            .require_tls(true)
            .add_root_certificates(tls.ca.clone())
            .add_client_certificate(tls.certificate.clone(), tls.key.clone());
    }
    options
}

fn note(link: &watch::Sender<Link>, event: &Event) {
    match event {
        Event::Connected => link.send_modify(|l| *l = Link { made: l.made + 1, up: true }),
        Event::Disconnected | Event::Closed => link.send_modify(|l| l.up = false),
        Event::ServerError(error) => tracing::warn!(%error, "the broker refused something"),
        other => tracing::debug!(event = %other, "connection"),
    }
}

/// What to tell, and whether trying again is pointless.
fn explain(error: &async_nats::ConnectError, url: &str, waited: Duration) -> (PostError, bool) {
    let url = url.to_owned();
    let reason = deepest(error);
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            (PostError::Authorization(url), true)
        }
        ConnectErrorKind::ServerParse => (PostError::Address { url, reason }, true),
        ConnectErrorKind::Tls => (PostError::Tls { url, reason }, true),
        _ if is_tls(error) => (PostError::Tls { url, reason }, true),
        _ => (PostError::Refused { url, seconds: waited.as_secs_f64(), reason }, false),
    }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&e| {
        // `io::Error` does not name what it wraps as its source, but that one's source.
        match e.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => e.source(),
        }
    })
}

fn is_tls(error: &async_nats::ConnectError) -> bool {
    chain(error).any(<dyn Error>::is::<async_nats::rustls::Error>)
}

fn deepest(error: &async_nats::ConnectError) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nats::subjects::Token;

    #[test]
    fn plain_connections_stay_on_this_machine() {
        let check = |url: &str, allow: bool| {
            let mut config = PostConfig::new(url, "0123456789abcdef", Token::of("a"));
            config.allow_plain = allow;
            check_plain(&config, &addresses(url).unwrap().0)
        };
        for url in ["nats://127.0.0.1:4222", "localhost:1", "nats://127.9.9.9", "nats://[::1]:4222"] {
            assert!(check(url, false).is_ok(), "{url}");
        }
        for url in [
            "nats://10.0.0.1:4222",
            "nats://example.org",
            "nats://localhost.example.org",
            "nats://0.0.0.0",
            "nats://127.0.0.1:4222,nats://10.0.0.1:4222",
        ] {
            let error = check(url, false).unwrap_err();
            assert!(error.to_string().contains("--allow-plain"), "{error}");
            assert!(check(url, true).is_ok(), "{url}");
        }
        assert!(check("tls://example.org", false).is_ok());
    }

    #[test]
    fn a_password_is_never_shown() {
        let (_, shown) = addresses("nats://me:secret@127.0.0.1:4222,tls://you:hidden@example.org").unwrap();
        assert_eq!(shown, "nats://127.0.0.1:4222,tls://example.org:4222");
        let error = addresses("nats://me:secret@bad host:port").unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn pauses_double_up_to_two_seconds() {
        let all: Vec<u128> = (1..9).map(|n| pause(n).as_millis()).collect();
        assert_eq!(all, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(pause(usize::MAX).as_millis(), 2000);
    }
}
