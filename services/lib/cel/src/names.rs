//! Names of properties as identifiers of expressions.

use std::borrow::Cow;

/// The words that expressions in CEL cannot use as identifiers.
pub const RESERVED_WORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
/// Texts that cannot be part of an identifier, each with its replacement.
const ESCAPES: [(&str, &str); 4] = [
    ("__", "__underscores__"),
    (".", "__dot__"),
    ("-", "__dash__"),
    ("/", "__slash__"),
];

/// Returns the identifier of a property, if it can have one: `a-b` is `a__dash__b`, and `if` is `__if__`.
pub(super) fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if RESERVED_WORDS.contains(&name) {
        return Some(format!("__{name}__").into());
    }
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    if !name.chars().all(allowed) {
        return None;
    }
    if ESCAPES.iter().all(|(plain, _)| !name.contains(plain)) {
        return Some(name.into());
    }
    let mut out = String::with_capacity(name.len() * 2);
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let found = ESCAPES.iter().find(|(plain, _)| rest.starts_with(plain));
        let taken = match found {
            Some((plain, escaped)) => {
                out.push_str(escaped);
                plain.len()
            }
            None => {
                out.push(letter);
                1
            }
        };
        rest = &rest[taken..];
    }
    Some(out.into())
}

/// Returns the property of an identifier, if it is the identifier of one.
pub(super) fn unescape(identifier: &str) -> Option<Cow<'_, str>> {
    if !identifier.contains("__") {
        return Some(identifier.into());
    }
    let name = plain(identifier)?;
    let same = escape(&name).is_some_and(|escaped| escaped == identifier);
    same.then_some(name.into())
}

fn plain(identifier: &str) -> Option<String> {
    let reserved = identifier
        .strip_prefix("__")
        .and_then(|rest| rest.strip_suffix("__"))
        .filter(|word| RESERVED_WORDS.contains(word));
    if let Some(word) = reserved {
        return Some(word.to_owned());
    }
    let mut out = String::new();
    let mut rest = identifier;
    while let Some(letter) = rest.chars().next() {
        let found = ESCAPES
            .iter()
            .find(|(_, escaped)| rest.starts_with(escaped));
        let taken = match found {
            Some((plain, escaped)) => {
                out.push_str(plain);
                escaped.len()
            }
            None if rest.starts_with("__") => return None,
            None => {
                out.push(letter);
                letter.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{escape, unescape};

    #[test]
    fn properties_have_identifiers_and_identifiers_have_properties() {
        let cases = [
            ("name", "name"),
            ("namespace", "__namespace__"),
            ("if", "__if__"),
            ("self", "self"),
            ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
            ("a__b", "a__underscores__b"),
            ("___", "__underscores___"),
            ("_a", "_a"),
        ];
        for (name, identifier) in cases {
            assert_eq!(escape(name).as_deref(), Some(identifier));
            assert_eq!(unescape(identifier).as_deref(), Some(name));
        }
    }

    #[test]
    fn other_names_have_no_identifier() {
        for name in ["", "1a", "a b", "$ref", "ä"] {
            assert_eq!(escape(name), None, "{name}");
        }
        for identifier in ["a__b", "__foo__", "a__if__"] {
            assert_eq!(unescape(identifier), None, "{identifier}");
        }
    }
}
