//! The certificate that a client asks for (PKCS #10).

use std::fmt;
use std::net::IpAddr;

use setpoint_tls::USER_ID;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{OID_PKCS9_EXTENSION_REQUEST, OID_X509_EXT_SUBJECT_ALT_NAME};
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::AttributeTypeAndValue;

use crate::pem;

/// The object identifier of common names.
pub(crate) const COMMON_NAME: &[u64] = &[2, 5, 4, 3];
/// The object identifier of organizations.
pub(crate) const ORGANIZATION: &[u64] = &[2, 5, 4, 10];
/// The other attributes that a subject may have: serial number, country, locality, province, street, organizational
/// unit, postal code.
const OTHERS: [&[u64]; 7] = [
    &[2, 5, 4, 5],
    &[2, 5, 4, 6],
    &[2, 5, 4, 7],
    &[2, 5, 4, 8],
    &[2, 5, 4, 9],
    &[2, 5, 4, 11],
    &[2, 5, 4, 17],
];

/// The parts of a PKCS #10 request. A certificate is made of these alone: what is not here was neither checked nor is
/// it signed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The common name of the subject.
    pub common_name: String,
    /// The organizations of the subject, which are the groups of a user.
    pub organizations: Vec<String>,
    /// The other attributes of the subject: their object identifiers and values.
    pub others: Vec<(&'static [u64], String)>,
    /// The DNS names.
    pub dns_names: Vec<String>,
    /// The IP addresses.
    pub ips: Vec<IpAddr>,
    /// The email addresses.
    pub emails: Vec<String>,
    /// The URIs.
    pub uris: Vec<String>,
    /// The public key in DER.
    pub public_key: Vec<u8>,
}

/// Writes the common name only, since plans are printed for users.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.common_name, f)
    }
}

impl Request {
    /// Parses a request in PEM, and verifies its signature.
    ///
    /// # Errors
    /// If it is malformed, not signed with the key that it asks a certificate for, or asks for names that no signer
    /// knows how to check.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let der = pem::read("CERTIFICATE REQUEST", text);
        let der = der.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
        let (_, parsed) = X509CertificationRequest::from_der(&der)
            .map_err(|error| format!("x509: malformed certificate request: {error}"))?;
        let signed = parsed.verify_signature();
        signed.map_err(|error| format!("x509: {error}"))?;
        let info = &parsed.certification_request_info;
        let mut request = Self {
            public_key: info.subject_pki.raw.to_owned(),
            ..Self::default()
        };
        for attribute in info.subject.iter_attributes() {
            request.read_attribute(attribute)?;
        }
        request.read_extensions(&parsed)?;
        Ok(request)
    }

    /// Adds the UID of the user to the subject, which no request may name itself.
    pub(crate) fn identify(&mut self, uid: &str) {
        self.others.push((USER_ID, uid.to_owned()));
    }

    fn read_attribute(&mut self, attribute: &AttributeTypeAndValue<'_>) -> Result<(), String> {
        let oid = attribute.attr_type();
        let value = attribute.as_str();
        let value = value.map_err(|_| format!("subject attribute {oid} is not a string"))?;
        let is = |known: &[u64]| {
            let parts = oid.iter();
            parts.is_some_and(|parts| parts.eq(known.iter().copied()))
        };
        if is(COMMON_NAME) {
            if !self.common_name.is_empty() {
                return Err("subject has more than one common name".to_owned());
            }
            value.clone_into(&mut self.common_name);
        } else if is(ORGANIZATION) {
            self.organizations.push(value.to_owned());
        } else {
            let known = OTHERS.into_iter().find(|known| is(known));
            let known = known.ok_or_else(|| format!("subject attribute {oid} is not allowed"))?;
            self.others.push((known, value.to_owned()));
        }
        Ok(())
    }

    fn read_extensions(&mut self, parsed: &X509CertificationRequest<'_>) -> Result<(), String> {
        let mut is_named = false;
        for attribute in parsed.certification_request_info.iter_attributes() {
            if attribute.oid != OID_PKCS9_EXTENSION_REQUEST {
                continue;
            }
            let ParsedCriAttribute::ExtensionRequest(requested) = attribute.parsed_attribute()
            else {
                return Err("the requested extensions are malformed".to_owned());
            };
            for extension in &requested.extensions {
                if extension.oid != OID_X509_EXT_SUBJECT_ALT_NAME {
                    continue;
                }
                let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension()
                else {
                    return Err("subjectAltName extension is malformed".to_owned());
                };
                if is_named {
                    return Err("more than one subjectAltName extension".to_owned());
                }
                is_named = true;
                for name in &names.general_names {
                    self.read_name(name)?;
                }
            }
        }
        Ok(())
    }

    fn read_name(&mut self, name: &GeneralName<'_>) -> Result<(), String> {
        match name {
            GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
            GeneralName::RFC822Name(email) => self.emails.push((*email).to_owned()),
            GeneralName::URI(uri) => self.uris.push((*uri).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let malformed = || {
                    let length = bytes.len();
                    format!("x509: cannot parse IP address of length {length}")
                };
                self.ips.push(address(bytes).ok_or_else(malformed)?);
            }
            _ => {
                let problem = "subjectAltNames other than DNS names, IP addresses, emails and URIs are not allowed";
                return Err(problem.to_owned());
            }
        }
        Ok(())
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let short: Option<[u8; 4]> = bytes.try_into().ok();
    let long = || <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from);
    short.map(IpAddr::from).or_else(long)
}
