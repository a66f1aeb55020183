//! Certificates of CAs that are known by the hash of their public key (RFC 7469), as kubeadm's
//! `--discovery-token-ca-cert-hash`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use pem::{EncodeConfig, LineEnding, Pem};
use ring::digest::{SHA256, digest};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::Error;
use crate::files::Block;
use crate::material::certificates;

/// The prefix of the only kind of hash.
const PREFIX: &str = "sha256:";
/// The length of the hash.
const LENGTH: usize = 32;

/// The SHA-256 of the public key of a certificate: of its `SubjectPublicKeyInfo` in DER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin([u8; LENGTH]);

impl Pin {
    fn of(certificate: &[u8]) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        let hash = digest(&SHA256, parsed.public_key().raw);
        hash.as_ref().try_into().ok().map(Self)
    }
}

/// As kubeadm writes it.
impl fmt::Display for Pin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{}", hex::encode(self.0))
    }
}

impl FromStr for Pin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(PREFIX);
        let digits = digits.ok_or("it does not begin with \"sha256:\"")?;
        let bytes = hex::decode(digits).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        let bytes = bytes.ok_or("\"sha256:\" must be followed by 64 hexadecimal digits")?;
        Ok(Self(bytes))
    }
}

/// Certificates of CAs with their pins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned(Vec<(Pin, CertificateDer<'static>)>);

impl Pinned {
    /// Reads the certificates of a text in PEM, of which there is at least one.
    ///
    /// # Errors
    /// If the text has no certificate, or one is malformed.
    pub fn parse(bundle: &str) -> Result<Self, Error> {
        let block = Block::new("the CA", bundle);
        let pinned = certificates(&block)?.into_iter().map(|certificate| {
            let pin = Pin::of(&certificate).ok_or_else(|| Error::Certificate {
                file: block.source.clone(),
                reason: "malformed certificate".to_owned(),
            })?;
            Ok((pin, certificate))
        });
        pinned.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the pin of each certificate.
    pub fn pins(&self) -> Vec<Pin> {
        self.0.iter().map(|(pin, _)| *pin).collect()
    }

    /// Returns the certificates with one of these pins; `None` if there is none. The others are not to be trusted,
    /// whoever has sent all of them together.
    #[must_use]
    pub fn matching(&self, pins: &[Pin]) -> Option<Self> {
        let matching = self.0.iter().filter(|(pin, _)| pins.contains(pin));
        let matching: Vec<_> = matching.cloned().collect();
        (!matching.is_empty()).then_some(Self(matching))
    }

    /// Returns the certificates in PEM.
    pub fn pem(&self) -> String {
        in_pem(self.0.iter().map(|(_, certificate)| certificate))
    }

    /// Returns the settings of connections to servers with certificates by these CAs alone. The client presents no
    /// certificate, and the protocol is HTTP/1.1.
    ///
    /// # Errors
    /// If a certificate cannot be one of a CA.
    pub fn client(&self) -> Result<Arc<ClientConfig>, Error> {
        let unusable = |source| Error::Unusable {
            file: "the CA".to_owned(),
            source,
        };
        let mut roots = RootCertStore::empty();
        for (_, certificate) in &self.0 {
            roots.add(certificate.clone()).map_err(unusable)?;
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Returns certificates in PEM.
pub(crate) fn in_pem<'c>(
    certificates: impl IntoIterator<Item = &'c CertificateDer<'static>>,
) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    let blocks = certificates.into_iter().map(|certificate| {
        let block = Pem::new("CERTIFICATE", certificate.as_ref());
        pem::encode_config(&block, config)
    });
    blocks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Authority;

    /// A CA of kubeadm's kind, and the hash of its key by
    /// `openssl x509 -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256`.
    const CA: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBgDCCASWgAwIBAgIUVq335TIP7iX0fZMjrswcmflMURcwCgYIKoZIzj0EAwIw\n\
FTETMBEGA1UEAwwKa3ViZXJuZXRlczAeFw0yNjExMjgxNzU4NDRaFw0zNjExMjUx\n\
NzU4NDRaMBUxEzARBgNVBAMMCmt1YmVybmV0ZXMwWTATBgcqhkjOPQIBBggqhkjO\n\
PQMBBwNCAAQphU/Mqsl0DNueQR5r7TDHuvr7u4s93bA0M7bozDewhCH+ERYuXmBJ\n\
ViaA9hespUOmmOvQPbGL3ER4vZ+767bwo1MwUTAdBgNVHQ4EFgQUlpylqgO2HI5g\n\
/JgZX67ZOaP4djIwHwYDVR0jBBgwFoAUlpylqgO2HI5g/JgZX67ZOaP4djIwDwYD\n\
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAmhRbAiE+HbTIOMzbhIDg\n\
mcD5pcD0MH1N9mXUF18rGOsCIQCw5vJnV/evkILlnbu7nCtyDC6WyJQbgh8SNLTF\n\
PuBdEg==\n\
-----END CERTIFICATE-----\n";
    const HASH: &str = "sha256:033ee75cfb524d64348a98691bffd09c4dff867dbdf92bb430e6eafb302b8c07";

    #[test]
    fn a_pin_is_the_hash_of_the_public_key_as_openssl_makes_it() {
        let pinned = Pinned::parse(CA).unwrap();
        assert_eq!(pinned.pins(), [HASH.parse().unwrap()]);
        assert_eq!(pinned.pins()[0].to_string(), HASH);
        assert_eq!(pinned.pem(), CA);
        assert!(pinned.client().is_ok());
    }

    #[test]
    fn a_pin_has_the_form_of_kubeadm() {
        for other in [
            "",
            "sha256:",
            "sha256:abcd",
            "sha1:00",
            &HASH["sha256:".len()..],
        ] {
            assert!(other.parse::<Pin>().is_err(), "{other}");
        }
        assert!(HASH.to_uppercase().parse::<Pin>().is_err());
    }

    #[test]
    fn of_many_certificates_only_those_with_a_pin_are_trusted() {
        let other = Authority::create("other").unwrap();
        let both = Pinned::parse(&format!("{CA}{}", other.certificate())).unwrap();
        let pins = Pinned::parse(CA).unwrap().pins();
        assert_eq!(both.pins().len(), 2);
        assert_eq!(both.matching(&pins).unwrap().pem(), CA);
        let others = Pinned::parse(other.certificate()).unwrap();
        assert_eq!(others.matching(&pins), None);
        assert!(Pinned::parse("").is_err());
    }
}
