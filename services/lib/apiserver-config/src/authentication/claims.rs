//! The validation of the rules of one issuer: those for claims, their mappings, and those for users.

use std::collections::BTreeSet;

use setpoint_cel::Output;
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;

use super::compiler::{Compiled, Compiler};
use super::document::{
    ClaimMappings, ClaimOrExpression, ClaimValidationRule, ExtraMapping, PrefixedClaimOrExpression,
    UserValidationRule,
};
use super::user::{ClaimRule, Condition, Mappings, Source};

const BOTH: &str = "claim and expression can't both be set";
const EMAIL: &str = "claims.email_verified must be used in claimMappings.username.expression or \
                     claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email \
                     is used in claimMappings.username.expression";

/// Validates what the claims of an issuer become.
pub(super) struct Claims<'c> {
    compiler: &'c Compiler,
    /// Whether an expression reads `email_verified`.
    verifies_email: bool,
}

impl<'c> Claims<'c> {
    pub(super) const fn new(compiler: &'c Compiler) -> Self {
        Self {
            compiler,
            verifies_email: false,
        }
    }

    pub(super) fn rules(
        &mut self,
        rules: &[ClaimValidationRule],
        path: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) -> Vec<ClaimRule> {
        let (mut claims, mut expressions) = (BTreeSet::new(), BTreeSet::new());
        let mut found = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let path = path.index(index);
            match (rule.claim.as_str(), rule.expression.as_str()) {
                ("", "") => errors.required(&path, "claim or expression is required"),
                (claim, "") => {
                    if !rule.message.is_empty() {
                        let detail = "may not be specified when claim is set";
                        errors.invalid(&path.field("message"), &rule.message, detail);
                    }
                    if !claims.insert(claim) {
                        errors.duplicate(&path.field("claim"), claim);
                    }
                    let required = rule.required_value.clone();
                    found.push(ClaimRule::Required(claim.to_owned(), required));
                }
                ("", expression) => {
                    let at = path.field("expression");
                    if !rule.required_value.is_empty() {
                        let detail = "may not be specified when expression is set";
                        errors.invalid(&path.field("requiredValue"), &rule.required_value, detail);
                    }
                    if !expressions.insert(expression) {
                        errors.duplicate(&at, expression);
                        continue;
                    }
                    let compiled = self.compile(expression, Output::Bool, &at, errors);
                    let condition = compiled.map(|compiled| Condition {
                        compiled,
                        message: rule.message.clone(),
                    });
                    found.extend(condition.map(ClaimRule::Condition));
                }
                (claim, _) => errors.invalid(&path, claim, BOTH),
            }
        }
        found
    }

    pub(super) fn mappings(
        &mut self,
        mappings: &ClaimMappings,
        path: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) -> Mappings {
        let (name, groups) = (path.field("username"), path.field("groups"));
        let username = self.prefixed(&mappings.username, &name, errors);
        if mappings.username.claim.is_empty() && mappings.username.expression.is_empty() {
            errors.required(&name, "claim or expression is required");
        }
        let reads_email = match &username {
            Some(Source::Expression(name)) => name.reads_claim("email"),
            _ => false,
        };
        let found = Mappings {
            username: username.unwrap_or(Source::Claim(String::new(), String::new())),
            groups: self.unverified(|claims| claims.prefixed(&mappings.groups, &groups, errors)),
            uid: self.unverified(|claims| claims.uid(&mappings.uid, &path.field("uid"), errors)),
            extra: self.extra(&mappings.extra, &path.field("extra"), errors),
        };
        if reads_email && !self.verifies_email {
            let expression = &mappings.username.expression;
            errors.invalid(&name.field("expression"), expression, EMAIL);
        }
        found
    }

    /// Validates a mapping in which `email_verified` does not count.
    fn unverified<T>(&mut self, validate: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.verifies_email;
        let found = validate(self);
        self.verifies_email = before;
        found
    }

    fn prefixed(
        &mut self,
        mapping: &PrefixedClaimOrExpression,
        path: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) -> Option<Source> {
        match (mapping.claim.as_str(), mapping.expression.as_str()) {
            ("", "") => None,
            (claim, "") => {
                if mapping.prefix.is_none() {
                    let detail = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                    errors.required(&path.field("prefix"), detail);
                }
                let prefix = mapping.prefix.clone().unwrap_or_default();
                Some(Source::Claim(claim.to_owned(), prefix))
            }
            ("", expression) => {
                if let Some(prefix) = &mapping.prefix {
                    let detail = "may not be specified when expression is set";
                    errors.invalid(&path.field("prefix"), prefix, detail);
                }
                self.expression(expression, path, errors)
            }
            _ => {
                errors.invalid(path, "", BOTH);
                None
            }
        }
    }

    fn uid(
        &mut self,
        mapping: &ClaimOrExpression,
        path: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) -> Option<Source> {
        match (mapping.claim.as_str(), mapping.expression.as_str()) {
            ("", "") => None,
            (claim, "") => Some(Source::Claim(claim.to_owned(), String::new())),
            ("", expression) => self.expression(expression, path, errors),
            _ => {
                errors.invalid(path, "", BOTH);
                None
            }
        }
    }

    fn expression(
        &mut self,
        expression: &str,
        mapping: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) -> Option<Source> {
        let at = mapping.field("expression");
        let compiled = self.compile(expression, Output::Any, &at, errors);
        compiled.map(Source::Expression)
    }

    fn extra(
        &mut self,
        mappings: &[ExtraMapping],
        path: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) -> Vec<(String, Compiled)> {
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        for (index, mapping) in mappings.iter().enumerate() {
            let path = path.index(index);
            validate_key(&mapping.key, &path.field("key"), errors);
            if !seen.insert(&mapping.key) {
                errors.duplicate(&path.field("key"), &mapping.key);
                continue;
            }
            let at = path.field("valueExpression");
            if mapping.value_expression.is_empty() {
                errors.required(&at, "");
                continue;
            }
            let compiled = self.compile(&mapping.value_expression, Output::Any, &at, errors);
            found.extend(compiled.map(|compiled| (mapping.key.clone(), compiled)));
        }
        found
    }

    fn compile(
        &mut self,
        source: &str,
        output: Output,
        path: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) -> Option<Compiled> {
        let compiled = self.compiler.about_claims(source, output, path, errors)?;
        self.verifies_email |= compiled.reads_claim("email_verified");
        Some(compiled)
    }
}

fn validate_key(key: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.domain_prefixed_path(path, key);
    if key.chars().any(char::is_uppercase) {
        errors.invalid(path, key, "must be lowercase");
    }
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |of: &str| {
        let rest = domain.strip_suffix(of);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if is_in("kubernetes.io") || is_in("k8s.io") {
        let detail = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
        errors.invalid(path, key, detail);
    }
}

/// Validates the rules for users.
pub(super) fn user_rules(
    rules: &[UserValidationRule],
    compiler: &Compiler,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) -> Vec<Condition> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        let at = path.field("expression");
        if rule.expression.is_empty() {
            errors.required(&at, "");
        } else if !seen.insert(&rule.expression) {
            errors.duplicate(&at, &rule.expression);
        } else if let Some(compiled) = compiler.about_user(&rule.expression, &at, errors) {
            let message = rule.message.clone();
            found.push(Condition { compiled, message });
        }
    }
    found
}
