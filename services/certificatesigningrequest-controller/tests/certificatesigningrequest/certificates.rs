//! Requests as they are parsed, and certificates as an authority signs them, without a gateway.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
    PublicKeyData as _, SanType, SigningKey as _,
};
use setpoint_certificatesigningrequest_controller::{Authority, Request, RequestView};
use setpoint_controller::View as _;
use setpoint_proto::certificates::CertificateSigningRequest;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::OID_X509_EXT_EXTENDED_KEY_USAGE;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::X509Version;
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, Tag};

const HOUR: u64 = 3_600;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn now() -> Timestamp {
    second(1_800_000_000)
}

fn der(pem: &[u8]) -> Vec<u8> {
    let mut blocks = Pem::iter_from_buffer(pem);
    blocks.next().unwrap().unwrap().contents
}

/// Returns an authority that was made at a time, and its certificate.
fn authority(made: Timestamp) -> (Authority, Vec<u8>) {
    let (certificate, key) = Authority::generate(made).unwrap();
    let authority = Authority::parse(certificate.as_bytes(), key.as_bytes()).unwrap();
    (authority, der(certificate.as_bytes()))
}

fn request_with(names: Vec<SanType>) -> String {
    let mut params = CertificateParams::default();
    params.subject_alt_names = names;
    let subject = &mut params.distinguished_name;
    subject.push(DnType::CommonName, "jane");
    subject.push(DnType::OrganizationName, "developers");
    let request = params.serialize_request(&KeyPair::generate().unwrap());
    request.unwrap().pem().unwrap()
}

/// Writes a request in PEM.
fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n")
}

fn request() -> Request {
    Request::parse(request_with(Vec::new()).as_bytes()).unwrap()
}

/// Returns a certificate of these usages that an authority signs for 10 minutes.
fn with_usages(usages: &[&str]) -> Vec<u8> {
    let usages: Vec<_> = usages.iter().map(|usage| (*usage).to_owned()).collect();
    let valid = Duration::from_secs(600);
    let signed = authority(now())
        .0
        .sign(&request(), &usages, valid, now())
        .unwrap();
    der(signed.as_bytes())
}

#[test]
fn a_certificate_is_backdated_and_a_long_one_ends_as_much_earlier() {
    let (authority, _) = authority(now());
    let day = 24 * HOUR;
    for (valid, lasts) in [
        (600, 600),
        (8 * HOUR - 1, 8 * HOUR - 1),
        (8 * HOUR, 8 * HOUR - 300),
        (day, day - 300),
    ] {
        let signed = authority.sign(&request(), &[], Duration::from_secs(valid), now());
        let signed = der(signed.unwrap().as_bytes());
        let (_, signed) = X509Certificate::from_der(&signed).unwrap();
        let (since, until) = (signed.validity().not_before, signed.validity().not_after);
        let start = now().as_second();
        assert_eq!(since.timestamp(), start - 300);
        let lasts = i64::try_from(lasts).unwrap();
        assert_eq!(until.timestamp(), start + lasts, "{valid}");
    }
}

/// RFC 5280 changes the form of times in 1950 and in 2050.
#[test]
fn a_certificate_has_its_times_in_any_century() {
    for time in ["1949-12-31", "1950-01-01", "2049-12-31", "2050-01-01"] {
        let time: Timestamp = format!("{time}T12:00:00Z").parse().unwrap();
        let (authority, _) = authority(time);
        let signed = authority.sign(&request(), &[], Duration::from_secs(600), time);
        let signed = der(signed.unwrap().as_bytes());
        let (_, signed) = X509Certificate::from_der(&signed).unwrap();
        let start = time.as_second();
        assert_eq!(signed.validity().not_before.timestamp(), start - 300);
        assert_eq!(signed.validity().not_after.timestamp(), start + 600);
    }
}

#[test]
fn an_authority_signs_until_the_second_at_which_it_expires() {
    let (authority, ca) = authority(now());
    let (_, ca) = X509Certificate::from_der(&ca).unwrap();
    let (since, expires) = (ca.validity().not_before, ca.validity().not_after);
    assert_eq!(since.timestamp(), now().as_second() - 3_600);
    let days = (expires.timestamp() - now().as_second()) / 86_400;
    assert_eq!(days, 3_652);
    let usages = ca.key_usage().unwrap().unwrap().value;
    assert!(usages.key_cert_sign() && usages.crl_sign() && usages.digital_signature());
    assert_eq!(ca.subject().to_string(), "CN=setpoint-cluster-signer");
    let sign = |now| authority.sign(&request(), &[], Duration::from_secs(600), now);
    assert!(sign(second(expires.timestamp() - 1)).is_ok());
    assert!(sign(second(expires.timestamp())).is_err());
}

#[test]
fn each_key_usage_is_a_bit_and_without_any_there_is_no_extension() {
    let bits = |usages: &[&str]| {
        let certificate = with_usages(usages);
        let (_, certificate) = X509Certificate::from_der(&certificate).unwrap();
        let usage = certificate.key_usage().unwrap();
        usage.map(|usage| (usage.critical, usage.value.flags))
    };
    let cases: [(&[&str], u16); 12] = [
        (&["signing"], 1),
        (&["signing", "digital signature"], 1),
        (&["digital signature"], 1),
        (&["content commitment"], 1 << 1),
        (&["key encipherment"], 1 << 2),
        (&["data encipherment"], 1 << 3),
        (&["key agreement"], 1 << 4),
        (&["cert sign"], 1 << 5),
        (&["crl sign"], 1 << 6),
        (&["encipher only"], 1 << 7),
        (&["decipher only"], 1 << 8),
        (
            &["decipher only", "signing", "crl sign"],
            1 << 8 | 1 << 6 | 1,
        ),
    ];
    for (usages, expected) in cases {
        assert_eq!(bits(usages), Some((true, expected)), "{usages:?}");
    }
    assert_eq!(bits(&["client auth"]), None);
}

#[test]
fn purposes_that_are_one_are_written_once_and_without_any_there_is_no_extension() {
    let certificate = with_usages(&["s/mime", "email protection", "server auth", "ipsec user"]);
    let (_, certificate) = X509Certificate::from_der(&certificate).unwrap();
    let purposes = certificate.extended_key_usage().unwrap().unwrap();
    assert!(!purposes.critical);
    assert!(purposes.value.server_auth && !purposes.value.client_auth);
    assert!(purposes.value.email_protection);
    let others = purposes.value.other.iter().map(ToString::to_string);
    assert_eq!(others.collect::<Vec<_>>(), ["1.3.6.1.5.5.7.3.7"]);
    // A sequence of three identifiers of 8 bytes.
    let extension = certificate.get_extension_unique(&OID_X509_EXT_EXTENDED_KEY_USAGE);
    assert_eq!(extension.unwrap().unwrap().value.len(), 2 + 3 * 10);

    let certificate = with_usages(&["digital signature"]);
    let (_, certificate) = X509Certificate::from_der(&certificate).unwrap();
    assert!(certificate.extended_key_usage().unwrap().is_none());
}

#[test]
fn a_certificate_is_signed_by_any_kind_of_key_and_names_it() {
    let elliptic = [
        &PKCS_ECDSA_P256_SHA256,
        &PKCS_ECDSA_P384_SHA384,
        &PKCS_ED25519,
    ];
    let keys = elliptic.map(|algorithm| KeyPair::generate_for(algorithm).unwrap());
    let rsa = KeyPair::from_pem(include_str!("rsa.pem")).unwrap();
    for key in keys.into_iter().chain([rsa]) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&key).unwrap();
        let authority =
            Authority::parse(ca.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap();
        let signed = authority.sign(&request(), &[], Duration::from_secs(600), now());
        let signed = der(signed.unwrap().as_bytes());
        let (_, signed) = X509Certificate::from_der(&signed).unwrap();
        let (_, ca) = X509Certificate::from_der(ca.der()).unwrap();
        signed.verify_signature(Some(ca.public_key())).unwrap();
        assert_eq!(signed.version(), X509Version::V3);
        let algorithm = &signed.signature_algorithm;
        assert_eq!(&signed.tbs_certificate.signature, algorithm);
        // RFC 4055 and RFC 5758: RSA has parameters, which are null, and the others have none.
        let is_rsa = key.algorithm() == &PKCS_RSA_SHA256;
        assert_eq!(algorithm.parameters.is_some(), is_rsa);
        let own = ca
            .extensions()
            .iter()
            .find_map(|one| match one.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0),
                _ => None,
            });
        let named = signed
            .extensions()
            .iter()
            .find_map(|one| match one.parsed_extension() {
                ParsedExtension::AuthorityKeyIdentifier(id) => Some(id.key_identifier.as_ref()?.0),
                _ => None,
            });
        assert!(own.is_some());
        assert_eq!(named, own);
        let constraints = signed.basic_constraints().unwrap().unwrap();
        assert!(constraints.critical && !constraints.value.ca);
    }
}

#[test]
fn two_certificates_of_an_authority_have_different_serial_numbers() {
    let (one, two) = (with_usages(&[]), with_usages(&[]));
    let serial = |certificate: &[u8]| {
        let (_, certificate) = X509Certificate::from_der(certificate).unwrap();
        certificate.raw_serial().to_owned()
    };
    assert_ne!(serial(&one), serial(&two));
}

#[test]
fn the_alternative_names_of_a_request_are_read_by_kind_and_signed() {
    let text = |text: &str| text.try_into().unwrap();
    let names = vec![
        SanType::DnsName(text("one.example.com")),
        SanType::IpAddress([10, 0, 0, 1].into()),
        SanType::IpAddress([10, 0, 0, 2].into()),
        SanType::Rfc822Name(text("a@example.com")),
        SanType::Rfc822Name(text("b@example.com")),
        SanType::Rfc822Name(text("c@example.com")),
        SanType::URI(text("spiffe://a")),
        SanType::URI(text("spiffe://b")),
        SanType::URI(text("spiffe://c")),
        SanType::URI(text("spiffe://d")),
    ];
    let parsed = Request::parse(request_with(names).as_bytes()).unwrap();
    let addresses: [std::net::IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
    assert_eq!(parsed.dns_names, ["one.example.com"]);
    assert_eq!(parsed.ips, addresses);
    let emails = ["a@example.com", "b@example.com", "c@example.com"];
    assert_eq!(parsed.emails, emails);
    let uris = ["spiffe://a", "spiffe://b", "spiffe://c", "spiffe://d"];
    assert_eq!(parsed.uris, uris);
    let signed = authority(now())
        .0
        .sign(&parsed, &[], Duration::from_secs(600), now());
    let signed = der(signed.unwrap().as_bytes());
    let (_, signed) = X509Certificate::from_der(&signed).unwrap();
    let signed = signed.subject_alternative_name().unwrap().unwrap();
    assert!(!signed.critical);
    let signed: Vec<_> = signed.value.general_names.iter().collect();
    let mut expected = vec![GeneralName::DNSName("one.example.com")];
    expected.extend(emails.map(GeneralName::RFC822Name));
    expected.push(GeneralName::IPAddress(&[10, 0, 0, 1]));
    expected.push(GeneralName::IPAddress(&[10, 0, 0, 2]));
    expected.extend(uris.map(GeneralName::URI));
    assert_eq!(signed, expected.iter().collect::<Vec<_>>());
    assert_eq!(
        (&*parsed.common_name, &*parsed.organizations),
        ("jane", &["developers".to_owned()][..])
    );
}

#[test]
fn a_request_that_is_not_signed_with_its_key_is_refused() {
    let problem = |text: &[u8]| Request::parse(text).unwrap_err();
    let none = "PEM block type must be CERTIFICATE REQUEST";
    assert_eq!(problem(b""), none);
    let (certificate, _) = Authority::generate(now()).unwrap();
    assert_eq!(problem(certificate.as_bytes()), none);
    let request = request_with(Vec::new());
    let mut der = der(request.as_bytes());
    // The last bytes are those of the signature.
    *der.last_mut().unwrap() ^= 1;
    let forged = pem(&der);
    assert!(problem(forged.as_bytes()).starts_with("x509: "));
    let malformed = pem(&der[..9]);
    let malformed = problem(malformed.as_bytes());
    assert!(malformed.starts_with("x509: malformed certificate request: "));
}

#[test]
fn other_extensions_that_a_request_asks_for_are_not_its_alternative_names() {
    let mut params = CertificateParams::default();
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let parse = |params: &CertificateParams| {
        let request = params.serialize_request(&KeyPair::generate().unwrap());
        Request::parse(request.unwrap().pem().unwrap().as_bytes()).unwrap()
    };
    assert!(parse(&params).ips.is_empty());
    params.subject_alt_names = vec![SanType::IpAddress([10, 0, 0, 1].into())];
    assert_eq!(parse(&params).ips.len(), 1);
}

#[test]
fn a_request_knows_when_its_certificate_expires() {
    let valid = Duration::from_secs(600);
    let signed = authority(now()).0.sign(&request(), &[], valid, now());
    let mut object = CertificateSigningRequest::default();
    assert_eq!(RequestView::of(object.clone()).expires, None);
    object.status.certificate = signed.unwrap().into_bytes().into();
    let request = RequestView::of(object);
    assert_eq!(
        (request.is_issued, request.expires),
        (true, Some(now() + valid))
    );
}

/// Returns a request whose subject has these attributes, and whose alternative names are these bytes of each kind.
fn crafted(subject: &[(&[u64], &str)], names: &[(u64, &[u8])]) -> String {
    let key = KeyPair::generate().unwrap();
    let content = yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_u8(0);
            writer.next().write_sequence(|writer| {
                for (oid, value) in subject {
                    writer.next().write_set(|writer| {
                        writer.next().write_sequence(|writer| {
                            writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
                            writer.next().write_utf8_string(value);
                        });
                    });
                }
            });
            writer.next().write_der(&key.subject_public_key_info());
            writer
                .next()
                .write_tagged_implicit(Tag::context(0), |writer| {
                    writer.write_set(|writer| {
                        if !names.is_empty() {
                            requested(writer.next(), names);
                        }
                    });
                });
        });
    });
    let signature = key.sign(&content).unwrap();
    let request = yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_der(&content);
            writer.next().write_sequence(|writer| {
                let ecdsa_with_sha256 = [1, 2, 840, 10_045, 4, 3, 2];
                writer
                    .next()
                    .write_oid(&ObjectIdentifier::from_slice(&ecdsa_with_sha256));
            });
            writer
                .next()
                .write_bitvec_bytes(&signature, signature.len() * 8);
        });
    });
    pem(&request)
}

/// Writes the attribute that asks for an extension with alternative names.
fn requested(writer: DERWriter<'_>, names: &[(u64, &[u8])]) {
    let value = yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            for (kind, bytes) in names {
                let writer = writer.next();
                writer.write_tagged_implicit(Tag::context(*kind), |writer| {
                    writer.write_bytes(bytes);
                });
            }
        });
    });
    writer.write_sequence(|writer| {
        let extension_request = [1, 2, 840, 113_549, 1, 9, 14];
        writer
            .next()
            .write_oid(&ObjectIdentifier::from_slice(&extension_request));
        writer.next().write_set(|writer| {
            writer.next().write_sequence(|writer| {
                writer.next().write_sequence(|writer| {
                    let alternative_names = [2, 5, 29, 17];
                    writer
                        .next()
                        .write_oid(&ObjectIdentifier::from_slice(&alternative_names));
                    writer.next().write_bytes(&value);
                });
            });
        });
    });
}

/// The type of an attribute, as an object identifier, and its value.
type Attribute<'a> = (&'a [u64], &'a str);
/// The tag of a subjectAltName, and its content.
type AltName<'a> = (u64, &'a [u8]);

/// Checks DG9: a name that no signer looks at is in no certificate.
#[test]
fn a_request_with_names_that_are_not_checked_is_refused() {
    const NAME: &[u64] = &[2, 5, 4, 3];
    let one: Attribute = (NAME, "system:node:one");
    let manager: Attribute = (NAME, "system:kube-controller-manager");
    let mail: Attribute = (&[1, 2, 840, 113_549, 1, 9, 1], "a@example.com");
    let others =
        "subjectAltNames other than DNS names, IP addresses, emails and URIs are not allowed";
    let length = "x509: cannot parse IP address of length 3";
    // A user principal name, and the name of a directory, as OpenSSL writes them.
    let principal: &[u8] = b"\x06\x0a\x2b\x06\x01\x04\x01\x82\x37\x14\x02\x03\xa0\x03\x0c\x01a";
    let directory: &[u8] = b"\x30\x0d\x31\x0b\x30\x09\x06\x03\x55\x04\x03\x0c\x02ab";
    let cases: [(&[Attribute], &[AltName], &str); 8] = [
        (
            &[manager, one],
            &[],
            "subject has more than one common name",
        ),
        (
            &[one, manager],
            &[],
            "subject has more than one common name",
        ),
        (
            &[one, mail],
            &[],
            "subject attribute 1.2.840.113549.1.9.1 is not allowed",
        ),
        (&[one], &[(0, principal)], others),
        (&[one], &[(4, directory)], others),
        (&[one], &[(8, b"\x2a\x03")], others),
        (&[one], &[(2, b"a"), (9, b"b")], others),
        (&[one], &[(7, b"\x0a\x00\x01")], length),
    ];
    for (subject, names, problem) in cases {
        let request = crafted(subject, names);
        let parsed = Request::parse(request.as_bytes());
        assert_eq!(
            parsed.err().as_deref(),
            Some(problem),
            "{subject:?} {names:?}"
        );
    }
    let allowed = crafted(&[one], &[(2, b"one"), (7, &[10, 0, 0, 1])]);
    let parsed = Request::parse(allowed.as_bytes()).unwrap();
    assert_eq!((parsed.dns_names.len(), parsed.ips.len()), (1, 1));
}

/// Checks DG9: a certificate has the subject that was checked, and its names are critical if it has no other.
#[test]
fn a_certificate_is_made_of_the_fields_that_were_checked() {
    let attributes: [(&[u64], &str); 4] = [
        (&[2, 5, 4, 6], "DE"),
        (&[2, 5, 4, 10], "developers"),
        (&[2, 5, 4, 3], "Jäne"),
        (&[2, 5, 4, 10], "admins"),
    ];
    let sign = |subject: &[(&[u64], &str)]| {
        let request = crafted(subject, &[(2, b"one")]);
        let parsed = Request::parse(request.as_bytes()).unwrap();
        let valid = Duration::from_secs(600);
        let signed = authority(now()).0.sign(&parsed, &[], valid, now());
        der(signed.unwrap().as_bytes())
    };
    let signed = sign(&attributes);
    let (_, signed) = X509Certificate::from_der(&signed).unwrap();
    assert_eq!(
        signed.subject().to_string(),
        "C=DE, O=developers, O=admins, CN=Jäne"
    );
    let names = signed.subject_alternative_name().unwrap().unwrap();
    assert!(!names.critical);
    let nameless = sign(&[]);
    let (_, nameless) = X509Certificate::from_der(&nameless).unwrap();
    assert_eq!(nameless.subject().to_string(), "");
    let names = nameless.subject_alternative_name().unwrap().unwrap();
    assert!(names.critical);
}
