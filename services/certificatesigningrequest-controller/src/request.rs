//! The certificate that a client asks for (PKCS #10).

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::OID_X509_EXT_SUBJECT_ALT_NAME;
use x509_parser::prelude::FromDer as _;

use crate::pem;

/// The parts of a PKCS #10 request that decide whether a signer accepts it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The common name of the subject.
    pub common_name: String,
    /// The organizations of the subject, which are the groups of a user.
    pub organizations: Vec<String>,
    /// The number of DNS names.
    pub dns_names: usize,
    /// The number of IP addresses.
    pub ips: usize,
    /// The number of email addresses.
    pub emails: usize,
    /// The number of URIs.
    pub uris: usize,
    /// The subject in DER.
    pub subject: Vec<u8>,
    /// The public key in DER.
    pub public_key: Vec<u8>,
    /// The value of the extension with the alternative names in DER.
    pub alternative_names: Option<Vec<u8>>,
}

impl Request {
    /// Parses a request in PEM, and verifies its signature.
    ///
    /// # Errors
    /// If it is malformed, or not signed with the key that it asks a certificate for.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let der = pem::read("CERTIFICATE REQUEST", text);
        let der = der.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
        let (_, parsed) = X509CertificationRequest::from_der(&der)
            .map_err(|error| format!("x509: malformed certificate request: {error}"))?;
        let signed = parsed.verify_signature();
        signed.map_err(|error| format!("x509: {error}"))?;
        let info = &parsed.certification_request_info;
        let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            attribute.as_str().unwrap_or_default().to_owned()
        };
        let mut request = Self {
            common_name: info
                .subject
                .iter_common_name()
                .last()
                .map(text)
                .unwrap_or_default(),
            organizations: info.subject.iter_organization().map(text).collect(),
            subject: info.subject.as_raw().to_owned(),
            public_key: info.subject_pki.raw.to_owned(),
            ..Self::default()
        };
        request.read_alternative_names(&parsed);
        Ok(request)
    }

    fn read_alternative_names(&mut self, parsed: &X509CertificationRequest<'_>) {
        let info = &parsed.certification_request_info;
        for attribute in info.iter_attributes() {
            use x509_parser::cri_attributes::ParsedCriAttribute;
            let ParsedCriAttribute::ExtensionRequest(requested) = attribute.parsed_attribute()
            else {
                continue;
            };
            for extension in &requested.extensions {
                if extension.oid != OID_X509_EXT_SUBJECT_ALT_NAME {
                    continue;
                }
                self.alternative_names = Some(extension.value.to_owned());
                if let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension()
                {
                    names.general_names.iter().for_each(|name| self.count(name));
                }
            }
        }
    }

    fn count(&mut self, name: &GeneralName<'_>) {
        let count = match name {
            GeneralName::DNSName(_) => &mut self.dns_names,
            GeneralName::IPAddress(_) => &mut self.ips,
            GeneralName::RFC822Name(_) => &mut self.emails,
            GeneralName::URI(_) => &mut self.uris,
            _ => return,
        };
        *count = count.saturating_add(1);
    }
}
