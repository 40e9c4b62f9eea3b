//! The public keys of all nodes, signed by the authority of the deployment.
//!
//! ```text
//! fedkin directory 1
//! NODE AGREEMENT SIGNATURE       one line per node, keys in hexadecimal digits
//! signed DIGITS                  ECDSA (P-256, SHA-256, DER) over all lines before, by the key of ca.pem
//! ```

use super::{PublicKeys, SealError};
use crate::transport::Token;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const TITLE: &str = "fedkin directory 1";
const SIGNED: &str = "signed ";
/// Far more than the 10,000 nodes of a run need.
const LONGEST: u64 = 16 << 20;
const LONGEST_CERTIFICATE: u64 = 1 << 20;

/// The public keys of all nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory(BTreeMap<Token, PublicKeys>);

impl Directory {
    /// Adds a node.
    pub fn insert(&mut self, node: Token, keys: PublicKeys) {
        self.0.insert(node, keys);
    }

    /// The keys of a node.
    pub fn get(&self, node: &Token) -> Option<&PublicKeys> {
        self.0.get(node)
    }

    /// Refuses a directory in which one of these nodes is missing.
    pub fn covers<'a>(&self, nodes: impl IntoIterator<Item = &'a Token>) -> Result<(), SealError> {
        match nodes.into_iter().find(|node| !self.0.contains_key(node)) {
            Some(missing) => Err(SealError::Unknown(missing.clone())),
            None => Ok(()),
        }
    }

    /// The lines that are signed.
    pub fn statement(&self) -> String {
        let mut text = format!("{TITLE}\n");
        for (node, keys) in &self.0 {
            let _ = writeln!(text, "{node} {} {}", hex::encode(keys.agreement), hex::encode(keys.signature));
        }
        text
    }

    /// The file, with the authority's signature over [`Directory::statement`] where there is an authority.
    pub fn to_text(&self, signature: Option<&[u8]>) -> String {
        let mut text = self.statement();
        if let Some(signature) = signature {
            let _ = writeln!(text, "{SIGNED}{}", hex::encode(signature));
        }
        text
    }

    /// Reads a file. With the certificate of an authority, its signature must be there and right; without one the file is
    /// believed as it stands, like the config that names it.
    pub fn read(path: &Path, authority: Option<&Path>) -> Result<Self, SealError> {
        let text = super::read_text(path, LONGEST)?;
        let wrong = |why: String| SealError::File { path: path.to_path_buf(), why };
        let authority = match authority {
            None => None,
            Some(file) => Some((file, super::read_text(file, LONGEST_CERTIFICATE)?)),
        };
        Self::parse(&text, authority.as_ref().map(|(_, pem)| pem.as_str())).map_err(|error| match authority {
            Some((file, _)) => wrong(format!("{error} (the authority is {})", file.display())),
            None => wrong(error.to_string()),
        })
    }

    /// Reads a text; `authority` is a certificate as PEM.
    pub fn parse(text: &str, authority: Option<&str>) -> Result<Self, SealError> {
        let bad = |why: String| Err(SealError::Unusable(why));
        let (statement, signature) = match text.rfind(SIGNED) {
            Some(at) if at == 0 || text[..at].ends_with('\n') => {
                (&text[..at], hex::decode(text[at + SIGNED.len()..].trim_end()).ok())
            }
            _ => (text, None),
        };
        if let Some(authority) = authority {
            let Some(signature) = signature else {
                return bad("the directory has no signature that can be read".into());
            };
            verify(statement.as_bytes(), &signature, authority)?;
        }
        let mut lines = statement.lines();
        if lines.next() != Some(TITLE) {
            return bad(format!(
                "expected {TITLE:?} in the first line: not a directory, or one of another version"
            ));
        }
        let mut nodes = BTreeMap::new();
        for (number, line) in lines.enumerate() {
            let Some((node, keys)) = entry(line) else {
                return bad(format!(
                    "line {}: expected a node and two keys of 64 hexadecimal digits",
                    number + 2
                ));
            };
            if nodes.insert(node, keys).is_some() {
                return bad(format!("line {}: a node that stands there twice", number + 2));
            }
        }
        Ok(Self(nodes))
    }
}

fn entry(line: &str) -> Option<(Token, PublicKeys)> {
    let mut words = line.split(' ');
    let node = Token::parse(words.next()?)?;
    let mut keys = PublicKeys { agreement: [0; 32], signature: [0; 32] };
    hex::decode_to_slice(words.next()?, &mut keys.agreement).ok()?;
    hex::decode_to_slice(words.next()?, &mut keys.signature).ok()?;
    words.next().is_none().then_some((node, keys))
}

fn verify(statement: &[u8], signature: &[u8], authority: &str) -> Result<(), SealError> {
    let unusable = |error: &dyn std::fmt::Display| {
        SealError::Unusable(format!("the authority's certificate cannot be read: {error}"))
    };
    let der = CertificateDer::from_pem_slice(authority.as_bytes()).map_err(|error| unusable(&error))?;
    let certificate = webpki::EndEntityCert::try_from(&der).map_err(|error| unusable(&error))?;
    certificate.verify_signature(webpki::ring::ECDSA_P256_SHA256, statement, signature).map_err(|_| {
        SealError::Unusable("the directory is not signed by the authority, or was changed since".into())
    })
}
