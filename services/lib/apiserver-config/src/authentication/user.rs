//! The user that the claims of a verified token become, as upstream (`plugin/pkg/authenticator/token/oidc`).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use setpoint_cel::{Error, Evaluation, Input, Variables};
use setpoint_kinds::Identity;

use super::JwtAuthenticator;
use super::compiler::Compiled;

/// The limit of the cost of all expressions about one token together, as of those of an admission policy.
const BUDGET: u64 = 10_000_000;
/// The attribute that names the credential of a user.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";
/// The claim that says where other claims are.
const CLAIM_NAMES: &str = "_claim_names";

/// The rules of one issuer.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) mappings: Mappings,
    pub(super) validated: Vec<ClaimRule>,
    pub(super) of_user: Vec<Condition>,
}

#[derive(Debug)]
pub(super) struct Mappings {
    pub(super) username: Source,
    pub(super) groups: Option<Source>,
    pub(super) uid: Option<Source>,
    pub(super) extra: Vec<(String, Compiled)>,
}

/// The source of an attribute of a user.
#[derive(Debug)]
pub(super) enum Source {
    /// A claim, and the prefix of its value.
    Claim(String, String),
    Expression(Compiled),
}

/// A rule for claims.
#[derive(Debug)]
pub(super) enum ClaimRule {
    /// A claim, and its value.
    Required(String, String),
    Condition(Condition),
}

/// An expression that must be true, and the message if it is not.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) compiled: Compiled,
    pub(super) message: String,
}

impl JwtAuthenticator {
    /// Returns the user that the claims of a verified token become.
    ///
    /// # Errors
    /// The reason why they become none.
    pub fn user(&self, claims: Map<String, Value>) -> Result<Identity, String> {
        let (claims, variables) = (Value::Object(claims), Variables::default());
        let mut token = Token {
            evaluation: Evaluation::new(&variables, &[Input::Json(&claims)], BUDGET),
            claims: &claims,
        };
        let mappings = &self.rules.mappings;
        let user = Identity {
            name: token.username(&mappings.username)?,
            groups: token.groups(mappings.groups.as_ref())?,
            uid: token.uid(mappings.uid.as_ref())?,
            extra: token.extra(&mappings.extra)?,
        };
        token.check(&self.rules.validated)?;
        check_user(&user, &self.rules.of_user)?;
        Ok(user)
    }
}

/// The claims of a token, and the evaluation of expressions about them.
struct Token<'a> {
    evaluation: Evaluation<'a>,
    claims: &'a Value,
}

impl Token<'_> {
    fn username(&mut self, source: &Source) -> Result<String, String> {
        let Source::Claim(claim, prefix) = source else {
            let name = self.text_of(source, "username")?;
            return match name.is_empty() {
                true => Err("oidc: empty username via CEL expression is not allowed".into()),
                false => Ok(name),
            };
        };
        let name = self.text_of(source, "username")?;
        if claim == "email"
            && let Some(verified) = self.claims.get("email_verified")
        {
            match verified.as_bool() {
                Some(true) => {}
                Some(false) => return Err("oidc: email not verified".into()),
                None => return Err("oidc: parse 'email_verified' claim: it is no boolean".into()),
            }
        }
        Ok(format!("{prefix}{name}"))
    }

    /// Returns the text of a claim without its prefix, or of an expression.
    fn text_of(&mut self, source: &Source, of: &str) -> Result<String, String> {
        match source {
            Source::Claim(claim, _) => {
                let found = self.claim(claim).and_then(text);
                found.map_err(|why| format!("oidc: parse {of} claims {claim:?}: {why}"))
            }
            Source::Expression(compiled) => {
                let failed =
                    |why: String| format!("oidc: error evaluating {of} claim expression: {why}");
                match self.value(compiled).map_err(failed)? {
                    Value::String(text) => Ok(text),
                    _ => {
                        let why = format!("{of} claim expression must return a string");
                        Err(failed(why))
                    }
                }
            }
        }
    }

    fn groups(&mut self, source: Option<&Source>) -> Result<Vec<String>, String> {
        match source {
            None => Ok(Vec::new()),
            Some(Source::Claim(claim, prefix)) => {
                let Some(found) = self.claims.get(claim) else {
                    self.check_not_distributed(claim)?;
                    return Ok(Vec::new());
                };
                let failed = |why| format!("oidc: parse groups claim {claim:?}: {why}");
                let groups = match found {
                    Value::Array(items) => items.iter().map(text).collect(),
                    single => text(single).map(|single| vec![single]),
                };
                let groups: Vec<String> = groups.map_err(failed)?;
                let prefixed = groups.iter().map(|group| format!("{prefix}{group}"));
                Ok(prefixed.collect())
            }
            Some(Source::Expression(compiled)) => {
                let found = self.value(compiled).and_then(texts);
                found.map_err(|why| format!("oidc: error evaluating group claim expression: {why}"))
            }
        }
    }

    /// Checks that a claim is not kept by another server, which is not asked: without it, the user could be taken for
    /// one with other rights.
    fn check_not_distributed(&self, claim: &str) -> Result<(), String> {
        let names = self.claims.get(CLAIM_NAMES);
        match names.is_some_and(|names| names.get(claim).is_some()) {
            true => Err(
                "oidc: could not expand distributed claims: distributed claims are not supported"
                    .into(),
            ),
            false => Ok(()),
        }
    }

    fn uid(&mut self, source: Option<&Source>) -> Result<String, String> {
        source.map_or(Ok(String::new()), |source| self.text_of(source, "uid"))
    }

    fn extra(
        &mut self,
        mappings: &[(String, Compiled)],
    ) -> Result<BTreeMap<String, Vec<String>>, String> {
        let mut extra = BTreeMap::new();
        if let Some(id) = self.claims.get("jti").and_then(Value::as_str)
            && !id.is_empty()
        {
            extra.insert(CREDENTIAL.to_owned(), vec![format!("JTI={id}")]);
        }
        for (key, compiled) in mappings {
            let values = self.value(compiled).and_then(texts);
            let values = values.map_err(|why| {
                let source = &compiled.source;
                format!("oidc: error evaluating extra claim expression: {source}: {why}")
            })?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        Ok(extra)
    }

    /// Checks the rules for claims, those of values before expressions.
    fn check(&mut self, rules: &[ClaimRule]) -> Result<(), String> {
        for rule in rules {
            let ClaimRule::Required(claim, required) = rule else {
                continue;
            };
            let Some(found) = self.claims.get(claim) else {
                return Err(format!(
                    "oidc: required claim {claim} not present in ID token"
                ));
            };
            let found = text(found).map_err(|why| format!("oidc: parse claim {claim}: {why}"))?;
            if found != *required {
                return Err(format!(
                    "oidc: required claim {claim} value does not match. Got = {found}, want = {required}"
                ));
            }
        }
        let conditions = rules.iter().filter_map(|rule| match rule {
            ClaimRule::Condition(condition) => Some(condition),
            ClaimRule::Required(..) => None,
        });
        for condition in conditions {
            let checked = condition.check(&mut self.evaluation);
            checked.map_err(|why| {
                format!("oidc: error evaluating claim validation expression: {why}")
            })?;
        }
        Ok(())
    }

    fn claim(&self, name: &str) -> Result<&Value, String> {
        let found = self.claims.get(name);
        found.ok_or_else(|| "claim not present".to_owned())
    }

    fn value(&mut self, compiled: &Compiled) -> Result<Value, String> {
        let value = self.evaluation.json(&compiled.expression);
        value.map_err(|error| told(&error))
    }
}

/// Checks the rules for a user.
fn check_user(user: &Identity, rules: &[Condition]) -> Result<(), String> {
    if rules.is_empty() {
        return Ok(());
    }
    let value = json!({
        "username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra,
    });
    let variables = Variables::default();
    let mut evaluation = Evaluation::new(&variables, &[Input::Json(&value)], BUDGET);
    for rule in rules {
        let checked = rule.check(&mut evaluation);
        checked
            .map_err(|why| format!("oidc: error evaluating user info validation rule: {why}"))?;
    }
    Ok(())
}

impl Condition {
    fn check(&self, evaluation: &mut Evaluation<'_>) -> Result<(), String> {
        let value = evaluation.json(&self.compiled.expression);
        match value.map_err(|error| told(&error))? {
            Value::Bool(true) => Ok(()),
            _ => Err(format!(
                "validation expression '{}' failed: {}",
                self.compiled.source, self.message
            )),
        }
    }
}

fn told(error: &Error) -> String {
    match error {
        Error::Failed(why) => why.clone(),
        Error::OutOfBudget => "the expressions cost more than they may".to_owned(),
    }
}

/// Returns the text of a claim; null is empty, as in Go.
fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Null => Ok(String::new()),
        _ => Err("it is no string".to_owned()),
    }
}

/// Returns the texts of an expression, without those that are empty.
fn texts(value: Value) -> Result<Vec<String>, String> {
    let wrong = || "expression must return a string or a list of strings".to_owned();
    let texts = match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        single => vec![single],
    };
    let texts = texts.into_iter().map(|item| match item {
        Value::String(text) => Ok(text),
        _ => Err(wrong()),
    });
    let mut texts = texts.collect::<Result<Vec<String>, String>>()?;
    texts.retain(|text| !text.is_empty());
    Ok(texts)
}

#[cfg(test)]
mod tests;
