//! The validation of a document, in upstream's words (`apis/apiserver/validation`).

use std::collections::BTreeSet;
use std::sync::Arc;

use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use x509_parser::pem::Pem;

use super::claims::Claims;
use super::compiler::Compiler;
use super::document::{Document, Issuer, Jwt};
use super::user::Rules;
use super::{Configuration, JwtAuthenticator, url};

/// The most issuers.
const MOST: usize = 64;

/// Validates a document, and compiles its expressions.
pub(super) fn configuration(
    document: Document,
    disallowed: &[&str],
) -> Result<Configuration, String> {
    let (mut errors, root) = (FieldErrors::default(), FieldPath::root("jwt"));
    if document.jwt.len() > MOST {
        errors.at_most(&root, document.jwt.len(), MOST);
        return Err(errors.to_string());
    }
    let (compiler, mut seen) = (Compiler::new(), Seen::default());
    let mut authenticators = Vec::new();
    for (index, jwt) in document.jwt.into_iter().enumerate() {
        let path = root.index(index);
        let rules = authenticator(&jwt, &compiler, disallowed, &path, &mut errors);
        seen.add(&jwt.issuer, &path, &mut errors);
        authenticators.push(JwtAuthenticator {
            issuer: jwt.issuer,
            rules: Arc::new(rules),
        });
    }
    if let Some(anonymous) = &document.anonymous
        && !anonymous.enabled
        && !anonymous.conditions.is_empty()
    {
        let paths: Vec<_> = anonymous.conditions.iter().map(|one| &one.path).collect();
        let path = FieldPath::root("anonymous");
        let detail = "enabled should be set to true when conditions are defined";
        errors.invalid(&path.field("conditions"), paths, detail);
    }
    match errors.count() {
        0 => Ok(Configuration {
            authenticators,
            anonymous: document.anonymous,
        }),
        _ => Err(errors.to_string()),
    }
}

/// The URLs so far.
#[derive(Default)]
struct Seen {
    issuers: BTreeSet<String>,
    discovery: BTreeSet<String>,
}

impl Seen {
    fn add(&mut self, issuer: &Issuer, path: &FieldPath<'_>, errors: &mut FieldErrors) {
        let path = path.field("issuer");
        if !self.issuers.insert(issuer.url.clone()) {
            errors.duplicate(&path.field("url"), &issuer.url);
        }
        let discovery = &issuer.discovery_url;
        if !discovery.is_empty() && !self.discovery.insert(discovery.clone()) {
            errors.duplicate(&path.field("discoveryURL"), discovery);
        }
    }
}

fn authenticator(
    jwt: &Jwt,
    compiler: &Compiler,
    disallowed: &[&str],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) -> Rules {
    validate_issuer(&jwt.issuer, disallowed, &path.field("issuer"), errors);
    let mut claims = Claims::new(compiler);
    let validated = claims.rules(
        &jwt.claim_validation_rules,
        &path.field("claimValidationRules"),
        errors,
    );
    let mappings = claims.mappings(&jwt.claim_mappings, &path.field("claimMappings"), errors);
    let of_user = super::claims::user_rules(
        &jwt.user_validation_rules,
        compiler,
        &path.field("userValidationRules"),
        errors,
    );
    Rules {
        mappings,
        validated,
        of_user,
    }
}

fn validate_issuer(
    issuer: &Issuer,
    disallowed: &[&str],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("url");
    match issuer.url.as_str() {
        "" => errors.required(&at, ""),
        given => {
            if disallowed.contains(&given) {
                let detail = format!(
                    "URL must not overlap with disallowed issuers: [{}]",
                    disallowed.join(" ")
                );
                errors.invalid(&at, given, detail);
            }
            url::validate(given, &at, errors);
        }
    }
    validate_discovery_url(issuer, &path.field("discoveryURL"), errors);
    validate_audiences(issuer, path, errors);
    let ca = &issuer.certificate_authority;
    if !ca.is_empty() && !has_certificate(ca) {
        let detail = "data does not contain any valid RSA or ECDSA certificates";
        errors.invalid(&path.field("certificateAuthority"), "<omitted>", detail);
    }
    let egress = issuer.egress_selector_type.as_str();
    if !egress.is_empty() {
        let detail = "egress selection is not supported";
        errors.forbidden(&path.field("egressSelectorType"), detail);
    }
}

fn validate_discovery_url(issuer: &Issuer, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let given = issuer.discovery_url.as_str();
    if given.is_empty() {
        return;
    }
    let is_same = given.trim_end_matches('/') == issuer.url.trim_end_matches('/');
    if !issuer.url.is_empty() && is_same {
        errors.invalid(path, given, "discoveryURL must be different from URL");
    }
    url::validate(given, path, errors);
}

fn validate_audiences(issuer: &Issuer, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (at, audiences) = (path.field("audiences"), &issuer.audiences);
    if audiences.is_empty() {
        let detail = format!("at least one {at} is required");
        return errors.required(&at, &detail);
    }
    let mut seen = BTreeSet::new();
    for (index, audience) in audiences.iter().enumerate() {
        let at = at.index(index);
        errors.not_empty(&at, audience);
        if !seen.insert(audience) {
            errors.duplicate(&at, audience);
        }
    }
    let policy = issuer.audience_match_policy.as_str();
    let (detail, allowed): (_, &[&str]) = match audiences.len() {
        1 => (
            "audienceMatchPolicy must be empty or MatchAny for single audience",
            &["", "MatchAny"],
        ),
        _ => (
            "audienceMatchPolicy must be MatchAny for multiple audiences",
            &["MatchAny"],
        ),
    };
    if !allowed.contains(&policy) {
        errors.invalid(&path.field("audienceMatchPolicy"), policy, detail);
    }
}

fn has_certificate(pem: &str) -> bool {
    let mut found = Pem::iter_from_buffer(pem.as_bytes());
    found.any(|pem| pem.is_ok_and(|pem| pem.label == "CERTIFICATE" && pem.parse_x509().is_ok()))
}
