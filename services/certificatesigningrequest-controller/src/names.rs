//! The names of a certificate, encoded from those of a request that were checked.

use std::net::IpAddr;

use setpoint_tls::x509;
use yasna::models::ObjectIdentifier;
use yasna::{DERWriterSeq, construct_der};

use crate::Request;
use crate::request::{COMMON_NAME, ORGANIZATION};

/// Returns the subject in DER.
pub(crate) fn subject(request: &Request) -> Vec<u8> {
    let others = request.others.iter().map(|(oid, value)| (*oid, value));
    let organizations = request.organizations.iter();
    let organizations = organizations.map(|value| (ORGANIZATION, value));
    let name = Some(&request.common_name).filter(|name| !name.is_empty());
    let name = name.map(|name| (COMMON_NAME, name));
    construct_der(|writer| {
        writer.write_sequence(|writer| {
            for (oid, value) in others.chain(organizations).chain(name) {
                attribute(writer, oid, value);
            }
        });
    })
}

fn attribute(writer: &mut DERWriterSeq<'_>, oid: &[u64], value: &str) {
    writer.next().write_set(|writer| {
        writer.next().write_sequence(|writer| {
            writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
            match is_printable(value) {
                true => writer.next().write_printable_string(value),
                false => writer.next().write_utf8_string(value),
            }
        });
    });
}

/// Whether a text has only characters of the type PrintableString.
fn is_printable(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.all(|byte| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte))
}

/// Returns the alternative names in DER; `None` if there are none.
pub(crate) fn alternatives(request: &Request) -> Option<Vec<u8>> {
    let texts = |tag, texts: &[String]| {
        let entries = texts.iter().map(|text| (tag, text.clone().into_bytes()));
        entries.collect::<Vec<_>>()
    };
    let mut names = texts(2, &request.dns_names);
    names.extend(texts(1, &request.emails));
    names.extend(request.ips.iter().map(|ip| match ip {
        IpAddr::V4(ip) => (7, ip.octets().to_vec()),
        IpAddr::V6(ip) => (7, ip.octets().to_vec()),
    }));
    names.extend(texts(6, &request.uris));
    (!names.is_empty()).then(|| x509::tagged(&names))
}
