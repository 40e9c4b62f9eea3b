//! A node's keys: one secret, from which the pair for agreements and the pair for signatures follow.

use super::SealError;
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::fmt;
use std::path::Path;
use x25519_dalek::{PublicKey, StaticSecret};

/// How the file of a node's secret begins.
const TITLE: &str = "fedkin-seal-1";
/// The file is one short line.
const LONGEST: u64 = 1024;
const AGREEMENT: &str = "fedkin 2026 seal: secret of agreements";
const SIGNATURE: &str = "fedkin 2026 seal: secret of signatures";

/// What others know of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKeys {
    /// X25519: two nodes agree on a secret with theirs.
    pub agreement: [u8; 32],
    /// Ed25519: what the node says is signed with it.
    pub signature: [u8; 32],
}

/// A node's private keys.
pub struct Identity {
    secret: [u8; 32],
    agreement: StaticSecret,
    signing: Ed25519KeyPair,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("public", &self.public()).finish_non_exhaustive()
    }
}

impl Identity {
    /// New keys, drawn from the operating system.
    pub fn draw() -> Result<Self, SealError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| SealError::Entropy(error.to_string()))?;
        Self::of(secret)
    }

    fn of(secret: [u8; 32]) -> Result<Self, SealError> {
        let agreement = StaticSecret::from(blake3::derive_key(AGREEMENT, &secret));
        let signing = Ed25519KeyPair::from_seed_unchecked(&blake3::derive_key(SIGNATURE, &secret))
            .map_err(|error| SealError::Unusable(error.to_string()))?;
        Ok(Self { secret, agreement, signing })
    }

    /// What others may know.
    pub fn public(&self) -> PublicKeys {
        let mut signature = [0; 32];
        signature.copy_from_slice(self.signing.public_key().as_ref());
        PublicKeys { agreement: PublicKey::from(&self.agreement).to_bytes(), signature }
    }

    /// The content of the file. Whoever reads it can speak as this node and read what is sent to it.
    pub fn to_text(&self) -> String {
        format!("{TITLE} {}\n", hex::encode(self.secret))
    }

    /// Reads what [`Identity::to_text`] wrote.
    pub fn parse(text: &str) -> Result<Self, SealError> {
        let digits = text.trim_end().strip_prefix(TITLE).and_then(|rest| rest.strip_prefix(' '));
        let mut secret = [0; 32];
        match digits.map(|digits| hex::decode_to_slice(digits, &mut secret)) {
            Some(Ok(())) => Self::of(secret),
            _ => Err(SealError::Unusable(format!("expected one line: {TITLE} and 64 hexadecimal digits"))),
        }
    }

    /// Reads the file, which nobody but its owner may read.
    pub fn read(path: &Path) -> Result<Self, SealError> {
        let wrong = |why: String| SealError::File { path: path.to_path_buf(), why };
        let text = super::read_text(path, LONGEST)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode =
                std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.permissions().mode();
            if mode & 0o077 != 0 {
                return Err(wrong(format!(
                    "others may read this node's secret (mode {:o}): chmod 600, and draw a new one if they could have",
                    mode & 0o777
                )));
            }
        }
        Self::parse(&text).map_err(|error| wrong(error.to_string()))
    }

    /// The secret that this node and the owner of a public key share.
    pub(super) fn agree(&self, other: &PublicKeys) -> Option<[u8; 32]> {
        let shared = self.agreement.diffie_hellman(&PublicKey::from(other.agreement));
        // A key of low order gives a secret that everybody knows.
        shared.was_contributory().then(|| shared.to_bytes())
    }

    pub(super) fn sign(&self, statement: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.signing.sign(statement).as_ref());
        signature
    }
}
