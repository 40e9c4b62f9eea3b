//! The certificate authority of a deployment, and the certificates it signs.

use super::files::{Written, write_key, write_text};
use crate::failure::Failure;
use fedkin::rooms::runtime::seal::Directory;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SigningKey as _,
};
use std::fs;
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};

/// An authority outlives what it signs.
const AUTHORITY_DAYS: u32 = 3650;

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The broker proves itself to nodes.
    Broker,
    /// A node proves itself to the broker, which takes its one DNS name for its user name.
    Node,
}

/// The authority: its certificate, and its key as long as it is in place.
pub(crate) struct Authority {
    folder: PathBuf,
    /// Its certificate as PEM.
    pub(crate) certificate: String,
    issuer: Option<Issuer<'static, KeyPair>>,
    days: u32,
    force: bool,
}

impl Authority {
    /// Opens the authority of a folder, or founds it.
    pub(crate) fn open(folder: &Path, days: u32, force: bool) -> Result<Self, Failure> {
        let (certificate, key) = (folder.join("ca.pem"), folder.join("ca.key"));
        let there = fs::read_to_string(&certificate);
        if let Ok(pem) = there {
            let issuer = match fs::read_to_string(&key) {
                Ok(text) => Some(Issuer::new(authority(days)?, pair(&text, &key)?)),
                // Whoever keeps it offline brings it back to sign.
                Err(_) => None,
            };
            return Ok(Self { folder: folder.to_path_buf(), certificate: pem, issuer, days, force });
        }
        let (pair, _) = own_key(&key)?;
        let params = authority(days)?;
        let pem = params.self_signed(&pair).map_err(failed)?.pem();
        write_text(&certificate, &pem)?;
        let issuer = Some(Issuer::new(params, pair));
        Ok(Self { folder: folder.to_path_buf(), certificate: pem, issuer, days, force })
    }

    /// Writes a key, a certificate and the authority's own; a key that is there stays. A certificate that is there
    /// stays unless it is to be renewed or another authority signed it.
    pub(crate) fn issue(
        &self,
        folder: &Path,
        stem: &str,
        role: Role,
        names: &[String],
        renew: bool,
    ) -> Result<Written, Failure> {
        let (certificate, key) = (folder.join(format!("{stem}.pem")), folder.join(format!("{stem}.key")));
        let signer = folder.join("ca.pem");
        let ours = fs::read_to_string(&signer).is_ok_and(|text| text == self.certificate);
        if certificate.exists() && key.exists() && ours && !renew && !self.force {
            return Ok(Written::Kept);
        }
        let Some(issuer) = &self.issuer else {
            let text = format!(
                "the authority's key is not in {}: put ca.key there to sign the certificate of {stem}",
                self.folder.display()
            );
            return Err(Failure::Usage(text));
        };
        let (pair, written) = own_key(&key)?;
        let mut params = CertificateParams::new(names.to_vec()).map_err(failed)?;
        valid_for(&mut params, self.days);
        params.distinguished_name.push(DnType::CommonName, names.first().map_or(stem, String::as_str));
        params.use_authority_key_identifier_extension = true;
        params.key_usages.push(KeyUsagePurpose::DigitalSignature);
        params.extended_key_usages.push(match role {
            Role::Broker => ExtendedKeyUsagePurpose::ServerAuth,
            Role::Node => ExtendedKeyUsagePurpose::ClientAuth,
        });
        write_text(&certificate, &params.signed_by(&pair, issuer).map_err(failed)?.pem())?;
        // Last: as long as it is not there, the certificate counts as another authority's.
        write_text(&signer, &self.certificate)?;
        Ok(written)
    }
}

impl Authority {
    /// Signs a text. `None`: the authority's key is elsewhere.
    fn sign(&self, text: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.issuer.as_ref().map(|issuer| issuer.key().sign(text.as_bytes()).map_err(failed)).transpose()
    }

    /// The directory as a signed file; one of the same keys that this authority has signed stays as it is.
    pub(crate) fn directory(&self, directory: &Directory, known: Option<&str>) -> Result<String, Failure> {
        let same = |text: &&str| {
            Directory::parse(text, Some(&self.certificate)).is_ok_and(|found| found == *directory)
        };
        if let Some(text) = known.filter(same) {
            return Ok(text.to_string());
        }
        match self.sign(&directory.statement())? {
            Some(signature) => Ok(directory.to_text(Some(&signature))),
            None => Err(Failure::Usage(format!(
                "the authority's key is not in {}: put ca.key there to sign the directory of keys",
                self.folder.display()
            ))),
        }
    }
}

/// The authority's certificate before it is signed. Nothing of it but the validity differs from one call to the
/// next, so that it stands for the certificate that is on disk.
fn authority(days: u32) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
    valid_for(&mut params, days.max(AUTHORITY_DAYS));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Fedkin");
    params.distinguished_name.push(DnType::CommonName, "Fedkin deployment authority");
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

/// From yesterday, because clocks differ.
fn valid_for(params: &mut CertificateParams, days: u32) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::days(1);
    params.not_after = now + Duration::days(i64::from(days));
    params.distinguished_name = rcgen::DistinguishedName::new();
}

/// The key of a file, which is created where it is not there.
fn own_key(path: &Path) -> Result<(KeyPair, Written), Failure> {
    if let Ok(text) = fs::read_to_string(path) {
        return Ok((pair(&text, path)?, Written::Updated));
    }
    let pair = KeyPair::generate().map_err(failed)?;
    write_key(path, &pair.serialize_pem())?;
    Ok((pair, Written::New))
}

fn pair(text: &str, path: &Path) -> Result<KeyPair, Failure> {
    KeyPair::from_pem(text)
        .map_err(|error| Failure::Usage(format!("{} is not a key: {error}", path.display())))
}

#[allow(clippy::needless_pass_by_value)]
fn failed(error: rcgen::Error) -> Failure {
    Failure::Usage(format!("cannot make a certificate: {error}"))
}
