//! Secrets with a certificate and its key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use setpoint_kinds::create;

use crate::table::Base;

/// Keys of several types, each with a certificate. The first is in the form of PKCS #1, the second in that of SEC 1,
/// and the others are in that of PKCS #8, except that P-521 is not compared.
const PAIRS: [&str; 5] = [
    include_str!("key_pairs/rsa.pem"),
    include_str!("key_pairs/p256.pem"),
    include_str!("key_pairs/p384.pem"),
    include_str!("key_pairs/ed25519.pem"),
    include_str!("key_pairs/p521.pem"),
];

/// Returns the warning about a Secret with a certificate and a key; empty if there is none.
fn warning(certificate: &str, key: &str) -> String {
    let data = |text: &str| Value::from(BASE64.encode(text));
    let object = json!({
        "metadata": {"name": "a"},
        "type": "kubernetes.io/tls",
        "data": {"tls.crt": data(certificate), "tls.key": data(key)},
    });
    let base = Base {
        resource: "secrets",
        object,
    };
    let (target, object) = base.created_object(&base.object).unwrap();
    create::warnings(&target, &*object).join("\n")
}

/// Returns the key and the certificate of a pair.
fn parts(pair: &str) -> (&str, &str) {
    pair.split_at(pair.find("-----BEGIN CERTIFICATE").unwrap())
}

#[test]
fn a_key_fits_its_certificate() {
    for pair in PAIRS {
        let (key, certificate) = parts(pair);
        assert_eq!(warning(certificate, key), "", "{pair}");
        // What else is in the texts is skipped.
        assert_eq!(warning(pair, pair), "", "{pair}");
    }
}

#[test]
fn a_key_of_another_certificate_is_found() {
    const OTHER: &str = "tls: private key does not match public key";
    const TYPE: &str = "tls: private key type does not match public key type";
    let [rsa, p256, p384, ed25519, _] = PAIRS;
    for (certificate, key, expected) in [
        (p256, p384, OTHER),
        (p384, p256, OTHER),
        (rsa, p256, TYPE),
        (p256, rsa, TYPE),
        (ed25519, p256, TYPE),
        (p384, ed25519, TYPE),
        (rsa, include_str!("key_pairs/rsa_other.pem"), OTHER),
        (p256, include_str!("key_pairs/p256_other.pem"), OTHER),
        (ed25519, include_str!("key_pairs/ed25519_other.pem"), OTHER),
    ] {
        assert_eq!(warning(certificate, key), expected, "{certificate}{key}");
    }
}

#[test]
fn texts_without_a_certificate_or_a_key_are_described() {
    let (key, certificate) = parts(PAIRS[1]);
    let other = certificate.replace("CERTIFICATE", "CRL");
    for (crt, text, expected) in [
        (
            "a",
            key,
            "tls: failed to find any PEM data in certificate input",
        ),
        (
            key,
            key,
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched",
        ),
        (
            &[key, &other].concat(),
            key,
            r#"tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [EC PRIVATE KEY CRL]"#,
        ),
        (
            certificate,
            "a",
            "tls: failed to find any PEM data in key input",
        ),
        (
            certificate,
            certificate,
            "tls: found a certificate rather than a key in the PEM for the private key",
        ),
        (
            certificate,
            &other,
            r#"tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the following types: [CRL]"#,
        ),
        (
            certificate,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "tls: failed to parse private key",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            key,
            "x509: malformed certificate",
        ),
    ] {
        assert_eq!(warning(crt, text), expected, "{crt}{text}");
    }
}

#[test]
fn other_secrets_have_none() {
    let base = Base {
        resource: "secrets",
        object: json!({"metadata": {"name": "a"}, "data": {"tls.crt": "YQ==", "tls.key": "YQ=="}}),
    };
    base.warned(&[("", &[])]);
}
