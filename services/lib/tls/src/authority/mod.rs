//! A certificate authority, which issues the certificates of processes, nodes and users.

mod encoding;
mod leaf;
mod present;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension::SubjectKeyIdentifier;
use x509_parser::prelude::FromDer as _;

pub use leaf::{Issued, Leaf, Usage};
pub use present::Present;

use crate::files::Block;
use crate::x509::{Content, Extension};
use crate::{Error, Validity};

/// The time for which an authority is valid.
const LIFETIME: Duration = Duration::from_secs(3_652 * 24 * 3_600);
/// The time by which clocks may differ: certificates are valid since then.
const CLOCK_SKEW: Duration = Duration::from_secs(3_600);
/// The mode of files with keys.
const PRIVATE: u32 = 0o600;
/// The mode of files with certificates.
const PUBLIC: u32 = 0o644;

/// A certificate authority: a certificate and its key.
pub struct Authority {
    key: KeyPair,
    certificate: String,
    /// Its name in DER.
    subject: Vec<u8>,
    /// The identifier of its key, if it has one.
    key_id: Option<Vec<u8>>,
    validity: Validity,
}

impl Authority {
    /// Makes an authority with an ECDSA key (P-256) and this common name, which is valid for ten years.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn create(name: &str) -> Result<Self, Error> {
        Self::create_at(name, Timestamp::now())
    }

    /// Makes an authority like [`Self::create`] at another time.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn create_at(name: &str, now: Timestamp) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let epoch = date_time_ymd(1970, 1, 1);
        let at = |time: Timestamp| {
            let distance = Duration::from_secs(time.as_second().unsigned_abs());
            match time < Timestamp::UNIX_EPOCH {
                true => epoch - distance,
                false => epoch + distance,
            }
        };
        params.not_before = at(early(now));
        params.not_after = at(late(now, LIFETIME));
        let certificate = params.self_signed(&key)?;
        Self::parse(&Block::new("the CA", &certificate.pem()), key, "its key")
    }

    /// Reads an authority from two files in PEM.
    ///
    /// # Errors
    /// If one cannot be read or is malformed, or the certificate is not one of a CA or not of this key.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, Error> {
        Self::from_blocks(&Block::read(certificate)?, &Block::read(key)?)
    }

    fn from_blocks(certificate: &Block, key: &Block) -> Result<Self, Error> {
        let Block { source, text } = key;
        let pair = KeyPair::from_pem(&String::from_utf8_lossy(text));
        let pair = pair.map_err(|error| Error::Certificate {
            file: source.clone(),
            reason: error.to_string(),
        })?;
        Self::parse(certificate, pair, source)
    }

    /// Returns the authority of two texts in PEM.
    ///
    /// # Errors
    /// If one is malformed, or the certificate is not one of a CA or not of this key.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, Error> {
        let block = |source: &str, text: &[u8]| Block {
            source: source.to_owned(),
            text: text.to_owned(),
        };
        Self::from_blocks(
            &block("the certificate of the CA", certificate),
            &block("the key of the CA", key),
        )
    }

    /// Reads the authority of two files, or makes it and writes them, if there is none.
    ///
    /// # Errors
    /// If the files cannot be used, only one of them exists, or one cannot be written.
    pub fn load_or_create(name: &str, certificate: &Path, key: &Path) -> Result<Self, Error> {
        if certificate.exists() || key.exists() {
            return Self::load(certificate, key);
        }
        let authority = Self::create(name)?;
        authority.write(certificate, key)?;
        Ok(authority)
    }

    /// Writes the certificate and the key to two files in PEM.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn write(&self, certificate: &Path, key: &Path) -> Result<(), Error> {
        // The key first: a certificate alone is of no use.
        write(key, &self.key.serialize_pem(), PRIVATE)?;
        write(certificate, &self.certificate, PUBLIC)?;
        // Leaves are issued again after a crash, but the authority is for good.
        for path in [key, certificate] {
            let synced = File::open(path).and_then(|file| file.sync_all());
            synced.map_err(|source| unwritable(path, source))?;
        }
        Ok(())
    }

    /// Returns the certificate in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the private key in PEM (PKCS #8).
    pub fn key(&self) -> String {
        self.key.serialize_pem()
    }

    /// Returns the identifier of the key, if the authority has one.
    pub fn key_id(&self) -> Option<&[u8]> {
        self.key_id.as_deref()
    }

    /// Returns the certificate in PEM of another key, signed by this authority. It is valid as long as the authority at
    /// most.
    ///
    /// # Errors
    /// If the key of the authority is of an unknown kind, or cannot sign.
    pub fn sign(
        &self,
        subject: &[u8],
        public_key: &[u8],
        validity: Validity,
        extensions: &[Extension<'_>],
    ) -> Result<String, Error> {
        let content = Content {
            issuer: &self.subject,
            subject,
            public_key,
            validity: self.within(validity),
            extensions,
        };
        Ok(content.sign(&self.key)?)
    }

    /// Returns the certificate in PEM of another authority, signed by this one: clients that trust this one alone then
    /// accept servers of the other one that present it.
    ///
    /// # Errors
    /// If the key of this authority is of an unknown kind, or cannot sign.
    pub fn cross_sign(&self, other: &Self) -> Result<String, Error> {
        encoding::cross_certificate(self, other)
    }

    /// Returns the part of a time in which the authority is valid.
    fn within(&self, validity: Validity) -> Validity {
        Validity {
            not_before: validity.not_before.max(self.validity.not_before),
            not_after: validity.not_after.min(self.validity.not_after),
        }
    }

    /// Returns the time in which the authority is valid.
    pub const fn validity(&self) -> Validity {
        self.validity
    }

    /// Issues a certificate with a new key. It is valid since an hour ago, since clocks differ, and not longer than
    /// the authority.
    ///
    /// # Errors
    /// If a name is neither a DNS name nor an IP address, or there is no randomness.
    pub fn issue(&self, leaf: &Leaf) -> Result<Issued, Error> {
        let now = Timestamp::now();
        self.issue_for(
            leaf,
            Validity {
                not_before: early(now),
                not_after: late(now, leaf.lifetime),
            },
        )
    }

    /// Issues a certificate with a new key, which is valid at this time, and not longer than the authority.
    ///
    /// # Errors
    /// If a name is neither a DNS name nor an IP address, or there is no randomness.
    pub fn issue_for(&self, leaf: &Leaf, validity: Validity) -> Result<Issued, Error> {
        let validity = self.within(validity);
        let key = KeyPair::generate()?;
        Ok(Issued {
            ca: self.certificate.clone(),
            certificate: encoding::certificate(self, leaf, &key, validity)?,
            key: key.serialize_pem(),
            validity,
        })
    }

    fn parse(certificate: &Block, key: KeyPair, key_source: &str) -> Result<Self, Error> {
        let unusable = |reason: String| Error::Certificate {
            file: certificate.source.clone(),
            reason,
        };
        let der = CertificateDer::from_pem_slice(&certificate.text);
        let der = der.map_err(|error| unusable(error.to_string()))?;
        let (_, parsed) = X509Certificate::from_der(&der)
            .map_err(|error| unusable(format!("malformed certificate: {error}")))?;
        if !parsed.is_ca() {
            return Err(unusable("its certificate is not one of a CA".to_owned()));
        }
        let public_key = &parsed.public_key().subject_public_key.data;
        if public_key.as_ref() != key.public_key_raw() {
            return Err(Error::Mismatch {
                certificate: certificate.source.clone(),
                key: key_source.to_owned(),
            });
        }
        let mut extensions = parsed.iter_extensions();
        let key_id = extensions.find_map(|extension| match extension.parsed_extension() {
            SubjectKeyIdentifier(id) => Some(id.0.to_owned()),
            _ => None,
        });
        let validity = Validity::of(&der);
        Ok(Self {
            key,
            certificate: String::from_utf8_lossy(&certificate.text).into_owned(),
            subject: parsed.subject().as_raw().to_owned(),
            key_id,
            validity: validity.ok_or_else(|| unusable("malformed certificate".to_owned()))?,
        })
    }
}

/// Returns the time since which a certificate is valid that is made at `now`.
fn early(now: Timestamp) -> Timestamp {
    now.checked_sub(CLOCK_SKEW).unwrap_or(Timestamp::MIN)
}

fn late(now: Timestamp, lifetime: Duration) -> Timestamp {
    now.checked_add(lifetime).unwrap_or(Timestamp::MAX)
}

/// Writes certificates in PEM to one file, such as the CAs that are trusted. The file is replaced as a whole.
///
/// # Errors
/// If the file cannot be written.
pub fn write_certificates(file: &Path, certificates: &[&str]) -> Result<(), Error> {
    write(file, &certificates.concat(), PUBLIC)
}

/// Writes a private key in PEM to a file that others may not read. The file is replaced as a whole.
///
/// # Errors
/// If the file cannot be written.
pub fn write_key(file: &Path, key: &str) -> Result<(), Error> {
    write(file, key, PRIVATE)
}

/// Replaces a file as a whole: a reader finds the content before or the new one.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    // One that a crash left may have other permissions.
    let _ = fs::remove_file(&new);
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&new)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|source| unwritable(path, source))
}

fn unwritable(path: &Path, source: io::Error) -> Error {
    let file = path.display().to_string();
    Error::Write { file, source }
}
