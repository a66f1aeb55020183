//! Requests for certificates (PKCS #10), as a node sends them in CertificateSigningRequests.

use std::net::IpAddr;

use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use ring::digest::{SHA256, digest};

use crate::Error;

/// A key, and the request for a certificate of it.
pub struct SigningRequest {
    key: KeyPair,
    request: String,
}

impl SigningRequest {
    /// Makes a key (ECDSA P-256), and a request for a certificate with this common name, organization and these
    /// alternative names, which are IPs or DNS names.
    ///
    /// # Errors
    /// If a name is not a DNS name, or there is no randomness.
    pub fn create(name: &str, organization: &str, hosts: &[String]) -> Result<Self, Error> {
        Self::with(KeyPair::generate()?, name, organization, hosts)
    }

    /// Makes a request as [`Self::create`] does, for a key in PEM.
    ///
    /// # Errors
    /// If the key is malformed.
    pub fn of_key(key: &str, name: &str, organization: &str) -> Result<Self, Error> {
        Self::with(KeyPair::from_pem(key)?, name, organization, &[])
    }

    fn with(key: KeyPair, name: &str, organization: &str, hosts: &[String]) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        let subject = &mut params.distinguished_name;
        subject.push(DnType::OrganizationName, organization);
        subject.push(DnType::CommonName, name);
        for host in hosts {
            params.subject_alt_names.push(match host.parse::<IpAddr>() {
                Ok(ip) => SanType::IpAddress(ip),
                Err(_) => SanType::DnsName(host.as_str().try_into()?),
            });
        }
        let request = params.serialize_request(&key)?.pem()?;
        Ok(Self { key, request })
    }

    /// Returns the private key in PEM (PKCS #8).
    pub fn key(&self) -> String {
        self.key.serialize_pem()
    }

    /// Returns the request in PEM.
    pub fn pem(&self) -> &str {
        &self.request
    }

    /// Returns a digest of the public key, in hexadecimal digits.
    pub fn key_digest(&self) -> String {
        hex::encode(digest(&SHA256, self.key.public_key_raw()))
    }
}
