//! Root certificates for outbound TLS: a CA bundle, or the system's.

use std::sync::{Arc, LazyLock};

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::verifier::Verifier;

/// The roots of the system, read when they are first needed. Without any, no certificate is valid.
static SYSTEM: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a root certificate of the system cannot be read");
    }
    roots.add_parsable_certificates(found.certs);
    Arc::new(roots)
});

/// Returns the verifier by the certificates of a CA bundle; by those of the system if it is blank.
///
/// # Errors
/// If none of them can be used.
pub(super) fn verifier(
    ca_bundle: &[u8],
    provider: &Arc<CryptoProvider>,
) -> Result<Verifier, String> {
    let bundle = CertificateDer::pem_slice_iter(ca_bundle);
    let bundle: Vec<_> = bundle.filter_map(Result::ok).collect();
    let roots = match ca_bundle.trim_ascii().is_empty() {
        true => SYSTEM.clone(),
        false => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(bundle.iter().cloned());
            Arc::new(roots)
        }
    };
    let unusable = || "no valid certificate authority data seen".to_owned();
    let by_chain = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
    Ok(Verifier::new(by_chain.map_err(|_| unusable())?, bundle))
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::crypto::ring;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    fn verifier(ca_bundle: &[u8]) -> Result<Verifier, String> {
        super::verifier(ca_bundle, &Arc::new(ring::default_provider()))
    }

    #[test]
    fn a_bundle_has_a_usable_certificate() {
        assert!(verifier(b"nonsense").is_err());
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        assert!(verifier(pem.as_bytes()).is_ok());
    }

    #[test]
    fn a_server_may_present_a_certificate_of_the_bundle() {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let verifier = verifier(certificate.pem().as_bytes()).unwrap();
        let verify = |name: &str, now| {
            let name = ServerName::try_from(name.to_owned()).unwrap();
            let verified = verifier.verify_server_cert(certificate.der(), &[], &name, &[], now);
            verified.is_ok()
        };
        assert!(verify("localhost", UnixTime::now()));
        assert!(!verify("example.com", UnixTime::now()));
        let early = UnixTime::since_unix_epoch(std::time::Duration::ZERO);
        assert!(!verify("localhost", early));
    }
}
