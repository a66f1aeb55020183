//! CertificateSigningRequest: names its requester; conditions approve or deny it, and a signer sets the certificate.
//! The gateway has no signer of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::certificates::{
    CertificateSigningRequest, CertificateSigningRequestCondition, ExtraValue,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::AttributeTypeAndValue;

use super::{Identity, Paths, StoredKind, Subresource, age};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
const FAILED: &str = "Failed";
/// Conditions that, once set, stay and are `True`.
const FINAL: [&str; 3] = [APPROVED, DENIED, FAILED];
/// Conditions that only the subresource `approval` sets.
const DECISIONS: [&str; 2] = [APPROVED, DENIED];

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The largest lengths of a signer's domain and of the path after it, in bytes.
const DOMAIN_MAX: usize = 253;
const SIGNER_MAX: usize = DOMAIN_MAX + 1 + 253 + 64;
const SHORTEST_SECONDS: i32 = 600;

impl StoredKind for CertificateSigningRequest {
    const STATUS_RESETS: Paths = &[&["spec"], &["status", "conditions"]];
    fn check_name(name: &str) -> Vec<String> {
        names::validate_path_segment(name)
    }

    fn set_requester(&mut self, user: &Identity) {
        let spec = &mut self.spec;
        spec.username.clone_from(&user.name);
        spec.uid.clone_from(&user.uid);
        spec.groups.clone_from(&user.groups);
        let extra = user.extra.iter().map(|(name, values)| {
            let items = values.clone();
            (name.clone(), ExtraValue { items })
        });
        spec.extra = extra.collect();
    }

    fn prepare_create(&mut self) {
        self.status = Default::default();
    }

    fn prepare_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
        self.status.clone_from(&old.status);
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
        for kept in DECISIONS {
            keep_condition(self, old, kept);
        }
        set_times(self, old, Timestamp::now());
    }

    /// The subresource `approval` changes the conditions only.
    fn prepare_part_update(&mut self, old: &Self, _part: Subresource) {
        set_times(self, old, Timestamp::now());
        self.spec.clone_from(&old.spec);
        self.status.certificate.clone_from(&old.status.certificate);
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        validate(self, None, errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        validate(self, Some(old), errors);
        validate_conditions_kept(self, old, false, errors);
    }

    fn validate_status_update(&self, old: &Self, errors: &mut FieldErrors) {
        validate(self, Some(old), errors);
        validate_conditions_kept(self, old, false, errors);
        let before = &old.status.certificate;
        if self.status.certificate != *before && !before.is_empty() {
            let path = FieldPath::root("status");
            let detail = "updates may not modify existing certificate content";
            errors.forbidden(&path.field("certificate"), detail);
        }
    }

    fn validate_part_update(&self, old: &Self, _part: Subresource, errors: &mut FieldErrors) {
        validate(self, Some(old), errors);
        validate_conditions_kept(self, old, true, errors);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        Some(match column {
            "RequestedDuration" => match self.spec.expiration_seconds {
                Some(seconds) => age::duration(i64::from(seconds)).into(),
                None => "<none>".into(),
            },
            "Condition" => condition_cell(self).into(),
            _ => return None,
        })
    }
}

fn condition_cell(request: &CertificateSigningRequest) -> String {
    let conditions = &request.status.conditions;
    let has = |of: &str| conditions.iter().any(|condition| condition.r#type == of);
    let decision = match (has(DENIED), has(APPROVED)) {
        (true, _) => DENIED,
        (_, true) => APPROVED,
        _ => "Pending",
    };
    let failed = if has(FAILED) { ",Failed" } else { "" };
    let issued = match request.status.certificate.is_empty() {
        true => "",
        false => ",Issued",
    };
    format!("{decision}{failed}{issued}")
}

/// Replaces the conditions of a type by those of `old`, if the numbers are equal. Otherwise the validation refuses the
/// change.
fn keep_condition(new: &mut CertificateSigningRequest, old: &CertificateSigningRequest, of: &str) {
    let before: Vec<_> = conditions(old, of).cloned().collect();
    if conditions(new, of).count() != before.len() {
        return;
    }
    let mut before = before.into_iter();
    for condition in &mut new.status.conditions {
        if condition.r#type == of {
            condition.clone_from(&before.next().unwrap_or_default());
        }
    }
}

/// Sets the times of conditions that have none.
fn set_times(new: &mut CertificateSigningRequest, old: &CertificateSigningRequest, now: Timestamp) {
    for condition in &mut new.status.conditions {
        if condition.last_update_time.timestamp().is_none() {
            condition.last_update_time = now.into();
        }
        if condition.last_transition_time.timestamp().is_none() {
            let before = conditions(old, &condition.r#type)
                .find(|before| before.status == condition.status)
                .and_then(|before| before.last_transition_time.timestamp());
            condition.last_transition_time = before.unwrap_or(now).into();
        }
    }
}

fn conditions<'a>(
    of: &'a CertificateSigningRequest,
    r#type: &'a str,
) -> impl Iterator<Item = &'a CertificateSigningRequestCondition> {
    let conditions = of.status.conditions.iter();
    conditions.filter(move |condition| condition.r#type == r#type)
}

/// Validates a request. Problems that `old` already has are tolerated.
fn validate(
    request: &CertificateSigningRequest,
    old: Option<&CertificateSigningRequest>,
    errors: &mut FieldErrors,
) {
    let (spec, path) = (&request.spec, FieldPath::root("spec"));
    if let Err(problem) = check_request(&spec.request) {
        errors.invalid(
            &path.field("request"),
            BASE64.encode(&spec.request),
            problem,
        );
    }
    if old.is_none_or(|old| old.spec != *spec) {
        validate_usages(&spec.usages, &path.field("usages"), errors);
        validate_signer(&spec.signer_name, &path.field("signerName"), errors);
        if let Some(seconds) = spec.expiration_seconds
            && seconds < SHORTEST_SECONDS
        {
            let detail = "may not specify a duration less than 600 seconds (10 minutes)";
            errors.invalid(&path.field("expirationSeconds"), seconds, detail);
        }
    }
    let path = FieldPath::root("status");
    validate_conditions(request, &path.field("conditions"), errors);
    let certificate = &request.status.certificate;
    if old.is_none_or(|old| old.status.certificate != *certificate)
        && let Err(problem) = check_certificate(certificate)
    {
        errors.invalid(&path.field("certificate"), "<certificate data>", problem);
    }
}

fn validate_usages(usages: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if usages.is_empty() {
        errors.required(path, "");
    }
    for (index, usage) in usages.iter().enumerate() {
        errors.one_of(&path.index(index), usage.as_str(), USAGES);
        if usages[..index].contains(usage) {
            errors.duplicate(&path.index(index), usage);
        }
    }
}

/// Validates the name of a signer: a domain, a slash and a path.
fn validate_signer(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    if name == "kubernetes.io/legacy-unknown" {
        let detail = "the legacy signerName is not allowed via this API version";
        return errors.invalid(path, name, detail);
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.invalid(path, name, detail);
    };
    if domain.len() > DOMAIN_MAX {
        errors.too_long(path, DOMAIN_MAX);
    }
    validate_labels(domain, names::validate_dns_label, path, errors);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.invalid(path, domain, detail);
    }
    validate_labels(rest, names::validate_dns_subdomain, path, errors);
    if name.len() > SIGNER_MAX {
        errors.too_long(path, SIGNER_MAX);
    }
}

/// Validates a text of labels separated by dots, up to the first invalid one.
fn validate_labels(
    text: &str,
    check: fn(&str) -> Vec<String>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mut checked = text.split('.').map(|label| (label, check(label)));
    if let Some((label, problems)) = checked.find(|(_, problems)| !problems.is_empty()) {
        for problem in problems {
            errors.invalid(path, text, format!("validating label {label:?}: {problem}"));
        }
    }
}

fn validate_conditions(
    request: &CertificateSigningRequest,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let conditions = &request.status.conditions;
    for (index, condition) in conditions.iter().enumerate() {
        let at = path.index(index);
        errors.not_empty(&at.field("type"), &condition.r#type);
        let allowed: &[&str] = match FINAL.contains(&condition.r#type.as_str()) {
            true => &["True"],
            false => &["False", "True", "Unknown"],
        };
        match condition.status.as_str() {
            "" => errors.required(&at.field("status"), ""),
            status => errors.one_of(&at.field("status"), status, allowed),
        }
        let before = &conditions[..index];
        let has = |of: &str| before.iter().any(|condition| condition.r#type == of);
        let opposite = match condition.r#type.as_str() {
            APPROVED => has(DENIED),
            DENIED => has(APPROVED),
            _ => false,
        };
        if opposite {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.invalid(path, &condition.r#type, detail);
        }
        if has(&condition.r#type) {
            errors.duplicate(&at.field("type"), &condition.r#type);
        }
    }
}

/// Requires that final conditions are not removed, and that decisions change only if `decides`.
fn validate_conditions_kept(
    new: &CertificateSigningRequest,
    old: &CertificateSigningRequest,
    decides: bool,
    errors: &mut FieldErrors,
) {
    let path = FieldPath::root("status");
    let path = path.field("conditions");
    for of in FINAL {
        let before: Vec<_> = conditions(old, of).collect();
        let now: Vec<_> = conditions(new, of).collect();
        let change = if now.len() < before.len() {
            "remove"
        } else if decides || of == FAILED {
            continue;
        } else if now.len() > before.len() {
            "add"
        } else if now != before {
            "modify"
        } else {
            continue;
        };
        errors.forbidden(
            &path,
            format!("updates may not {change} a condition of type {of:?}"),
        );
    }
}

/// Checks that the bytes are a request for a certificate (PKCS #10) in PEM with a valid signature.
fn check_request(pem: &[u8]) -> Result<(), String> {
    let block = request_block(pem)?;
    let signed = parse(&block)?.verify_signature();
    signed.map_err(|error| format!("x509: {error}"))
}

/// The subject of a certificate that is requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The common name, the last one if there are several; the name of a user.
    pub common_name: String,
    /// The organizations: the groups of the user.
    pub organizations: Vec<String>,
}

/// Reads the subject of a request for a certificate (PKCS #10) in PEM.
///
/// # Errors
/// If the bytes are no such request, or a name is in an encoding that cannot be read: it might be a forbidden one.
pub fn subject(pem: &[u8]) -> Result<Subject, String> {
    let block = request_block(pem)?;
    let request = parse(&block)?;
    let subject = &request.certification_request_info.subject;
    let text = |value: &AttributeTypeAndValue<'_>| match value.as_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(format!("x509: malformed subject: {error}")),
    };
    let common_name = subject.iter_common_name().last().map(text);
    Ok(Subject {
        common_name: common_name.transpose()?.unwrap_or_default(),
        organizations: subject
            .iter_organization()
            .map(text)
            .collect::<Result<_, _>>()?,
    })
}

fn request_block(pem: &[u8]) -> Result<Pem, String> {
    let block = Pem::iter_from_buffer(pem).next().and_then(Result::ok);
    let block = block.filter(|block| block.label == "CERTIFICATE REQUEST");
    block.ok_or_else(|| "PEM block type must be CERTIFICATE REQUEST".into())
}

fn parse(block: &Pem) -> Result<X509CertificationRequest<'_>, String> {
    let parsed = X509CertificationRequest::from_der(&block.contents);
    let (_, request) =
        parsed.map_err(|error| format!("x509: malformed certificate request: {error}"))?;
    Ok(request)
}

/// Checks that the bytes are certificates in PEM, or none.
fn check_certificate(pem: &[u8]) -> Result<(), String> {
    if pem.is_empty() {
        return Ok(());
    }
    let mut found = false;
    for block in Pem::iter_from_buffer(pem).map_while(Result::ok) {
        if block.label != "CERTIFICATE" {
            let label = block.label;
            return Err(format!(
                "only CERTIFICATE PEM blocks are allowed, found {label:?}"
            ));
        }
        X509Certificate::from_der(&block.contents)
            .map_err(|error| format!("x509: malformed certificate: {error}"))?;
        found = true;
    }
    match found {
        true => Ok(()),
        false => Err("must contain at least one CERTIFICATE PEM block".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_a_request_is_a_user_with_groups() {
        let jane = subject(include_bytes!("../tests/kinds/request.pem")).unwrap();
        assert_eq!(jane.common_name, "jane");
        assert_eq!(jane.organizations, ["acme"]);
        let wrong = subject(include_bytes!("../tests/kinds/certificate.pem")).unwrap_err();
        assert_eq!(wrong, "PEM block type must be CERTIFICATE REQUEST");
    }
}
