//! How nodes introduce themselves, and what must agree before they talk.

use super::messages::PROTOCOL;
use crate::algorithm::Algorithm;
use fedkin_numeric::codec::Codec;

fedkin_numeric::record! {
    /// What a node says of itself. Two nodes work together only where the first seven agree.
    pub struct Hello {
        /// Version of the protocol.
        protocol: u16,
        /// Name of the method.
        algorithm: Box<[u8]>,
        /// Its version.
        version: u16,
        /// Digest of the names and types of everything that crosses.
        messages: [u8; 32],
        /// Digest of the config, the roster and the schema of the data.
        run: [u8; 32],
        /// Digest of a fixed computation: equal where numbers come out equal to the bit.
        numeric: [u8; 32],
        /// Digest of this client's records under its own secret; zero for a server. It may not change in a run.
        data: [u8; 32],
        /// How many lines the client's ledger has.
        lines: u64,
        /// The hash of the last one.
        head: [u8; 32],
        /// Units the client has spent on its data, in all runs.
        spent: u64,
        /// The last step this node has finished.
        step: u32,
    }
}

/// Why two nodes do not fit; both sides are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// They cannot work together.
    Refuse(String),
    /// They can, but their numbers may differ in the last bits.
    Warn(String),
}

/// The first hex digits of a digest, enough to tell two apart.
pub fn short(digest: &[u8]) -> String {
    hex::encode(&digest[..digest.len().min(8)])
}

impl Hello {
    /// The hello of a node that runs this method.
    pub fn of<A: Algorithm>(run: [u8; 32]) -> Self {
        let schemas = [A::Common::schema(), A::Down::schema(), A::Up::schema(), A::Share::schema()];
        Self {
            protocol: PROTOCOL,
            algorithm: A::NAME.as_bytes().into(),
            version: A::VERSION,
            messages: *blake3::hash(schemas.join(";").as_bytes()).as_bytes(),
            run,
            numeric: fedkin_numeric::fingerprint::numeric(),
            ..Self::default()
        }
    }

    /// Whether a node with hello `theirs` may work with this one.
    pub fn fits(&self, theirs: &Self) -> Result<(), Misfit> {
        let refuse = |what: &str, theirs: String, ours: String| {
            Err(Misfit::Refuse(format!("{what}: {theirs} there, {ours} here")))
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if theirs.protocol != self.protocol {
            return refuse("protocol version", theirs.protocol.to_string(), self.protocol.to_string());
        }
        if (&theirs.algorithm, theirs.version) != (&self.algorithm, self.version) {
            let name = |hello: &Self| format!("{} version {}", text(&hello.algorithm), hello.version);
            return refuse("algorithm", name(theirs), name(self));
        }
        if theirs.messages != self.messages {
            return refuse("message schema", short(&theirs.messages), short(&self.messages));
        }
        if theirs.run != self.run {
            return refuse(
                "run fingerprint (config, roster or data schema)",
                short(&theirs.run),
                short(&self.run),
            );
        }
        if theirs.numeric != self.numeric {
            return Err(Misfit::Warn(format!(
                "numeric fingerprint: {} there, {} here; bits are not comparable",
                short(&theirs.numeric),
                short(&self.numeric)
            )));
        }
        Ok(())
    }
}
