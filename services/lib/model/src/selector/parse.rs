//! The parser of label selectors.

use std::collections::BTreeSet;

use super::Error;
use super::labels::{Operator, Requirement};
use crate::names;

/// Parses the requirements of a selector in time O(n·log n) and sorts them by key.
///
/// ```text
/// selector    = [ requirement { "," requirement } ]
/// requirement = "!" key | key | key ( "=" | "==" | "!=" | ">" | "<" ) [ value ] | key ( "in" | "notin" ) "(" [ value ] { "," [ value ] } ")"
/// ```
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, Error> {
    let mut tokens = Tokens { rest: text };
    let mut requirements = Vec::new();
    match tokens.peek() {
        "" => return Ok(requirements),
        "!" => {}
        token => drop(word(token, "!, identifier, or 'end of string'")?),
    }
    loop {
        let requirement = requirement(&mut tokens)
            .map_err(|Error(why)| Error(format!("unable to parse requirement: {why}")))?;
        requirements.push(requirement);
        match tokens.next() {
            "" => break,
            "," if tokens.peek() == "!" => {}
            "," => drop(word(tokens.peek(), "identifier after ','")?),
            other => return Err(found(other, "',' or 'end of string'")),
        }
    }
    requirements.sort_by(Requirement::by_key);
    Ok(requirements)
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, Error> {
    if tokens.peek() == "!" {
        tokens.next();
        let key = key(tokens)?;
        return Requirement::new(key, Operator::DoesNotExist, BTreeSet::new());
    }
    let key = key(tokens)?;
    if matches!(tokens.peek(), "" | ",") {
        return Requirement::new(key, Operator::Exists, BTreeSet::new());
    }
    let (operator, values) = match tokens.next() {
        "=" | "==" => (Operator::Equals, one(tokens)?),
        "!=" => (Operator::NotEquals, one(tokens)?),
        ">" => (Operator::GreaterThan, one(tokens)?),
        "<" => (Operator::LessThan, one(tokens)?),
        "in" => (Operator::In, many(tokens)?),
        "notin" => (Operator::NotIn, many(tokens)?),
        other => return Err(found(other, "in, notin, =, ==, !=, gt, lt")),
    };
    Requirement::new(key, operator, values)
}

fn key<'a>(tokens: &mut Tokens<'a>) -> Result<&'a str, Error> {
    let key = word(tokens.next(), "identifier")?;
    match names::validate_label_key(key).first() {
        Some(why) => Err(Error(format!("<nil>: Invalid value: {key:?}: {why}"))),
        None => Ok(key),
    }
}

/// Parses the value of a comparison, which may be empty.
fn one(tokens: &mut Tokens<'_>) -> Result<BTreeSet<String>, Error> {
    let value = match tokens.peek() {
        "" | "," => "",
        _ => word(tokens.next(), "identifier")?,
    };
    Ok([value.to_owned()].into())
}

/// Parses values in parentheses, each of which may be empty.
fn many(tokens: &mut Tokens<'_>) -> Result<BTreeSet<String>, Error> {
    let open = tokens.next();
    if open != "(" {
        return Err(Error(format!("found '{open}' expected: '('")));
    }
    let mut values = BTreeSet::new();
    loop {
        let value = match tokens.peek() {
            token if is_word(token) => tokens.next(),
            _ => "",
        };
        values.insert(value.to_owned());
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
    Error(format!("found '{token}', expected: {expected}"))
}

const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '<', '>'];
/// Other white space is part of words, as in upstream.
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

/// The remaining tokens. The empty token is the end.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn peek(&self) -> &'a str {
        let text = self.rest.trim_start_matches(SPACES);
        let length = match text.find(|c: char| SPACES.contains(&c) || SYMBOLS.contains(&c)) {
            Some(0) if text.starts_with("==") || text.starts_with("!=") => 2,
            Some(0) => 1,
            Some(length) => length,
            None => text.len(),
        };
        &text[..length]
    }

    fn next(&mut self) -> &'a str {
        let token = self.peek();
        self.rest = &self.rest.trim_start_matches(SPACES)[token.len()..];
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of upstream's tests (`TestSetSelectorParser`, `TestSelectorParse`): selectors and their canonical forms.
    #[test]
    fn selectors_are_parsed_as_by_upstream() {
        for (text, written) in [
            ("", ""),
            ("\rx", "x"),
            (
                "this-is-a-dns.domain.com/key-with-dash",
                "this-is-a-dns.domain.com/key-with-dash",
            ),
            (
                "this-is-another-dns.domain.com/key-with-dash in (so,what)",
                "this-is-another-dns.domain.com/key-with-dash in (so,what)",
            ),
            (
                "0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)",
                "0.1.2.domain/99 notin (10.10.100.1,tick.tack.clock)",
            ),
            ("foo  in\t (abc)", "foo in (abc)"),
            ("x notin\n (abc)", "x notin (abc)"),
            ("x  notin\t\t\t(abc,def)", "x notin (abc,def)"),
            ("x in (abc,)", "x in (,abc)"),
            ("x in (abc,abc)", "x in (abc)"),
            ("x in ()", "x in ()"),
            ("x in (a,,a,,a,,a,,)", "x in (,a)"),
            (
                "x notin (abc,,def),bar,z in (),w",
                "bar,w,x notin (,abc,def),z in ()",
            ),
            ("x,y in (a)", "x,y in (a)"),
            ("x notin ( )", "x notin ()"),
            ("x notin (, a)", "x notin (,a)"),
            ("a ", "a"),
            ("a in (x,y,notin, z,in)", "a in (in,notin,x,y,z)"),
            ("x>1,z<5", "x>1,z<5"),
            ("x= ,z= ", "x=,z="),
            ("x=a,a=x", "a=x,x=a"),
            ("notin=in", "notin=in"),
            ("!x,y!=b", "!x,y!=b"),
        ] {
            let requirements = requirements(text).unwrap();
            let requirements: Vec<_> = requirements.iter().map(ToString::to_string).collect();
            assert_eq!(requirements.join(","), written, "{text:?}");
        }
        for text in [
            "x=a||y=b",
            "x==a==b",
            "!x=a",
            "x<a",
            "x,,y",
            ",x,y",
            "x nott in (y)",
            "a in (xyz),",
            "a in (xyz)b notin ()",
            "a in (xyz abc)",
            "a notin(",
            "a (",
            "(",
            "x\u{a0}",
            "x in (\u{a0})",
        ] {
            assert!(requirements(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn errors_have_the_messages_of_upstream() {
        let requirement = |why: &str| format!("unable to parse requirement: {why}");
        for (text, complaint) in [
            (
                "app web",
                requirement("found 'web', expected: in, notin, =, ==, !=, gt, lt"),
            ),
            (
                "=web",
                "found '=', expected: !, identifier, or 'end of string'".into(),
            ),
            (
                "app=web,",
                "found '', expected: identifier after ','".into(),
            ),
            ("app in web", requirement("found 'web' expected: '('")),
            (
                "app in (a b)",
                requirement("found 'b', expected: ',' or ')'"),
            ),
            ("app in (a", requirement("found '', expected: ',' or ')'")),
            ("app=(", requirement("found '(', expected: identifier")),
            (
                "app=web db",
                "found 'db', expected: ',' or 'end of string'".into(),
            ),
            ("!", requirement("found '', expected: identifier")),
            (
                "size>x",
                requirement(
                    "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
                ),
            ),
        ] {
            assert_eq!(requirements(text), Err(Error(complaint)), "{text}");
        }
        for (text, complaint) in [
            (
                "app=a/b",
                "unable to parse requirement: values[0][app]: Invalid value: \"a/b\": a valid label must be an empty string",
            ),
            (
                "-=a",
                "unable to parse requirement: <nil>: Invalid value: \"-\": name part must consist of",
            ),
        ] {
            let error = requirements(text).unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{text}: {error}");
        }
    }

    /// Checks F2: a quadratic parser would take an hour.
    #[test]
    fn parsing_many_values_takes_less_than_quadratic_time() {
        let values: Vec<_> = (0..300_000).map(|n| n.to_string()).collect();
        let text = format!("odd in ({})", values.join(","));
        assert_eq!(requirements(&text).unwrap().len(), 1);
        let keys: Vec<_> = (0..100_000).rev().map(|n| format!("k{n}")).collect();
        assert_eq!(requirements(&keys.join(",")).unwrap().len(), keys.len());
    }
}
