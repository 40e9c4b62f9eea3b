//! The broker's address and its config.

use crate::failure::Failure;
use fedkin::rooms::runtime::nats::{Access, broker_accounts};
use std::net::IpAddr;

/// Where the broker listens, and by which names its certificate is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// Host name or address, as nodes dial it.
    pub(crate) host: String,
    /// Port.
    pub(crate) port: u16,
    /// All names of the certificate: the host first, localhost and its addresses last.
    pub(crate) names: Vec<String>,
    /// Names that machines may not be able to resolve, with their address.
    pub(crate) known: Vec<(String, String)>,
}

impl Address {
    /// Reads `HOST[:PORT]` and the list of `NAME[=ADDRESS]`.
    pub(crate) fn parse(broker: &str, names: &[String]) -> Result<Self, Failure> {
        let wrong = |text: String| Failure::Usage(text);
        let (host, port) = match broker.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None if broker.matches(':').count() > 1 => (broker, None),
            None => broker.split_once(':').map_or((broker, None), |(host, port)| (host, Some(port))),
        };
        let port =
            port.map_or(Ok(4222), str::parse).ok().filter(|&port: &u16| port > 0).ok_or_else(|| {
                wrong(format!(
                    "--broker {broker}: the port is not a number from 1 to 65535: write HOST or HOST:PORT"
                ))
            })?;
        let mut all = vec![host.to_string()];
        let mut known = Vec::new();
        for item in names.iter().map(|item| item.trim()).filter(|item| !item.is_empty()) {
            let (name, address) = item.split_once('=').map_or((item, None), |(name, to)| (name, Some(to)));
            if let Some(address) = address {
                if address.parse::<IpAddr>().is_err() {
                    return Err(wrong(format!(
                        "--names {item}: {address:?} is no address: write NAME=ADDRESS"
                    )));
                }
                known.push((name.to_string(), address.to_string()));
                all.push(address.to_string());
            }
            all.push(name.to_string());
        }
        all.extend(["localhost", "127.0.0.1", "::1"].map(String::from));
        for name in &all {
            if !is_host(name) {
                return Err(wrong(format!("{name:?} is neither a host name nor an address of the broker")));
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|name| seen.insert(name.clone()));
        Ok(Self { host: host.to_string(), port, names: all, known })
    }

    /// As nodes dial it.
    pub(crate) fn url(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("tls://{host}:{}", self.port)
    }

    /// Whether only this machine can dial it.
    pub(crate) fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Where the broker listens: on this machine alone where only this machine can dial it.
    fn listens(&self) -> String {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) if address.is_loopback() => format!("[{address}]"),
            Ok(IpAddr::V6(_)) => "[::]".into(),
            Ok(address) if address.is_loopback() => address.to_string(),
            _ if self.is_local() => "127.0.0.1".into(),
            _ => "0.0.0.0".into(),
        }
    }

    /// The line of the config that says whom the certificate is for.
    pub(crate) fn signed_for(&self) -> String {
        format!("# The certificate is for {}.", self.names.join(", "))
    }
}

/// A host name or an address.
fn is_host(name: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    name.parse::<IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(label))
}

/// The config of the broker: TLS on both sides, one account per node, nothing for anybody else.
pub(crate) fn config(address: &Address, run: &str, nodes: &[Access]) -> String {
    let listen = address.listens();
    let mut text = format!(
        "# The broker of run {run}. Written by `fedkin provision`, which writes it again.\n\
         # Start it in this folder: nats-server -c nats.conf\n\
         {}\n\
         server_name: \"fedkin-broker\"\n\
         listen: \"{listen}:{}\"\n\
         \n\
         jetstream {{\n  store_dir: \"jetstream\"\n}}\n\
         \n\
         # A node is who its certificate says: its DNS name is its user.\n\
         tls {{\n  \
           cert_file: \"broker.pem\"\n  \
           key_file: \"broker.key\"\n  \
           ca_file: \"ca.pem\"\n  \
           verify_and_map: true\n  \
           timeout: 10\n\
         }}\n\
         \n\
         # An account for each node: only what it may say exists for it.\n",
        address.signed_for(),
        address.port
    );
    text.push_str(&broker_accounts(nodes));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_written() {
        let plain = Address::parse("broker.example", &[]).unwrap();
        assert_eq!(plain.url(), "tls://broker.example:4222");
        assert_eq!(plain.names, ["broker.example", "localhost", "127.0.0.1", "::1"]);
        let full = Address::parse("[::1]:5222", &["b=10.0.0.5".into(), "c".into()]).unwrap();
        assert_eq!(full.url(), "tls://[::1]:5222");
        assert!(full.is_local() && !plain.is_local());
        assert_eq!(full.names, ["::1", "10.0.0.5", "b", "c", "localhost", "127.0.0.1"]);
        for (broker, listens) in [
            ("hub.example", "0.0.0.0"),
            ("10.0.0.5", "0.0.0.0"),
            ("localhost", "127.0.0.1"),
            ("127.0.0.2", "127.0.0.2"),
            ("[::1]", "[::1]"),
            ("2001:db8::5", "[::]"),
        ] {
            assert_eq!(Address::parse(broker, &[]).unwrap().listens(), listens, "{broker}");
        }
        for (broker, names) in [("a:b", ""), ("a:0", ""), ("", ""), ("a b", ""), ("a", "x=y"), ("a", "x/y")] {
            assert!(Address::parse(broker, &[names.to_string()]).is_err(), "{broker} {names}");
        }
    }
}
