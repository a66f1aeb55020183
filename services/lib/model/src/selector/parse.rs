//! kubectl's grammar of label selectors.

use std::collections::BTreeSet;

use super::Error;
use super::labels::{Operator, Requirement};

/// ```text
/// selector    = [ requirement { "," requirement } ]
/// requirement = "!" key | key | key ( "=" | "==" | "!=" | ">" | "<" ) [ value ] | key ( "in" | "notin" ) "(" [ value ] { "," [ value ] } ")"
/// ```
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, Error> {
    let mut tokens = Tokens { rest: text };
    let mut requirements = Vec::new();
    if tokens.peek().is_empty() {
        return Ok(requirements);
    }
    loop {
        requirements.push(requirement(&mut tokens)?);
        match tokens.next() {
            "" => return Ok(requirements),
            "," => {}
            other => return Err(found(other, "',' or 'end of string'")),
        }
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, Error> {
    if tokens.peek() == "!" {
        tokens.next();
        let key = word(tokens.next(), "identifier")?;
        return Requirement::new(key, Operator::DoesNotExist, BTreeSet::new());
    }
    let key = word(tokens.next(), "!, identifier, or 'end of string'")?;
    if matches!(tokens.peek(), "" | ",") {
        return Requirement::new(key, Operator::Exists, BTreeSet::new());
    }
    let (operator, values) = match tokens.next() {
        "=" | "==" => (Operator::In, one(tokens)),
        "!=" => (Operator::NotIn, one(tokens)),
        ">" => (Operator::GreaterThan, one(tokens)),
        "<" => (Operator::LessThan, one(tokens)),
        "in" => (Operator::In, many(tokens)?),
        "notin" => (Operator::NotIn, many(tokens)?),
        other => return Err(found(other, "in, notin, =, ==, !=, gt, lt")),
    };
    Requirement::new(key, operator, values)
}

/// The value after a comparison; `a=,b=c` compares with the empty one.
fn one(tokens: &mut Tokens<'_>) -> BTreeSet<String> {
    let value = if is_word(tokens.peek()) {
        tokens.next()
    } else {
        ""
    };
    [value.to_owned()].into()
}

fn many(tokens: &mut Tokens<'_>) -> Result<BTreeSet<String>, Error> {
    let open = tokens.next();
    if open != "(" {
        return Err(found(open, "'('"));
    }
    let mut values = BTreeSet::new();
    loop {
        values.append(&mut one(tokens));
        match tokens.next() {
            ")" => return Ok(values),
            "," => {}
            other => return Err(found(other, "',' or ')'")),
        }
    }
}

fn word<'a>(token: &'a str, expected: &str) -> Result<&'a str, Error> {
    is_word(token)
        .then_some(token)
        .ok_or_else(|| found(token, expected))
}

fn is_word(token: &str) -> bool {
    !token.is_empty() && !token.starts_with(SYMBOLS)
}

fn found(token: &str, expected: &str) -> Error {
    Error(format!(
        "unable to parse requirement: found '{token}', expected: {expected}"
    ))
}

const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '<', '>'];

/// What is left of the text, cut into words and symbols; the empty token is the end.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn peek(&self) -> &'a str {
        let text = self.rest.trim_start();
        let length = match text.find(|c: char| c.is_whitespace() || SYMBOLS.contains(&c)) {
            Some(0) if text.starts_with("==") || text.starts_with("!=") => 2,
            Some(0) => 1,
            Some(length) => length,
            None => text.len(),
        };
        &text[..length]
    }

    fn next(&mut self) -> &'a str {
        let token = self.peek();
        self.rest = &self.rest.trim_start()[token.len()..];
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named() {
        for (text, complaint) in [
            (
                "app web",
                "found 'web', expected: in, notin, =, ==, !=, gt, lt",
            ),
            (
                "=web",
                "found '=', expected: !, identifier, or 'end of string'",
            ),
            (
                "app=web,",
                "found '', expected: !, identifier, or 'end of string'",
            ),
            ("app in web", "found 'web', expected: '('"),
            ("app in (a b)", "found 'b', expected: ',' or ')'"),
            ("app in (a", "found '', expected: ',' or ')'"),
            ("app=web db", "found 'db', expected: ',' or 'end of string'"),
            ("!", "found '', expected: identifier"),
            (
                "app=a/b",
                "values[0][app]: Invalid value: \"a/b\": a valid label must be an empty string",
            ),
            (
                "-=a",
                "key: Invalid value: \"-\": name part must consist of",
            ),
            ("size>x", "the value must be an integer"),
        ] {
            let error = requirements(text).unwrap_err().to_string();
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }
}
