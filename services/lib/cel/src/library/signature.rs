//! Signatures of functions, as text: `string::charAt(int) string`.

use super::super::types::Type;
use super::super::values::Val;

/// A signature that was read.
pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) is_member: bool,
    pub(super) parameters: Vec<Type<'static>>,
    pub(super) result: Type<'static>,
}

/// The types of libraries: their names in signatures, and for users.
const OPAQUE: [(&str, &str); 11] = [
    ("url", "kubernetes.URL"),
    ("ip", "net.IP"),
    ("cidr", "net.CIDR"),
    ("quantity", "kubernetes.Quantity"),
    ("semver", "kubernetes.Semver"),
    ("format", "kubernetes.NamedFormat"),
    ("authorizer", "kubernetes.authorization.Authorizer"),
    ("pathCheck", "kubernetes.authorization.PathCheck"),
    ("groupCheck", "kubernetes.authorization.GroupCheck"),
    ("resourceCheck", "kubernetes.authorization.ResourceCheck"),
    ("decision", "kubernetes.authorization.Decision"),
];

/// Reads a signature. None if it is malformed.
pub(super) fn parse(text: &'static str) -> Option<Signature> {
    let (receiver, rest) = match text.split_once("::") {
        Some((receiver, rest)) => (Some(receiver), rest),
        None => (None, text),
    };
    let (name, rest) = rest.split_once('(')?;
    let (parameters, result) = rest.rsplit_once(") ")?;
    let mut types: Vec<_> = receiver.into_iter().map(of).collect::<Option<_>>()?;
    for parameter in split(parameters) {
        types.push(of(parameter)?);
    }
    Some(Signature {
        name,
        is_member: receiver.is_some(),
        parameters: types,
        result: of(result)?,
    })
}

/// Splits at the commas that are not inside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        parts.push(text[start..].trim());
    }
    parts
}

fn of(text: &str) -> Option<Type<'static>> {
    if let Some((name, inner)) = text.split_once('(') {
        let inner = split(inner.strip_suffix(')')?);
        return match (name, inner.as_slice()) {
            ("list", [item]) => Some(Type::list(of(item)?)),
            ("optional", [inner]) => Some(Type::Optional(Box::new(of(inner)?))),
            ("map", [key, value]) => Some(Type::Map(Box::new(of(key)?), Box::new(of(value)?))),
            _ => None,
        };
    }
    Some(match text {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "type" => Type::Kind,
        "A" | "B" => Type::Param(text.chars().next()?),
        other => Type::Opaque(OPAQUE.iter().find(|(known, _)| *known == other)?.1),
    })
}

/// Whether a value can be an argument for a parameter. Lists and maps are not looked into.
pub(super) fn matches(parameter: &Type<'_>, value: &Val<'_>) -> bool {
    match (parameter, value) {
        (Type::Dyn | Type::Param(_), _) => true,
        (Type::Null, Val::Null)
        | (Type::Bool, Val::Bool(_))
        | (Type::Int, Val::Int(_))
        | (Type::Uint, Val::Uint(_))
        | (Type::Double, Val::Double(_))
        | (Type::String, Val::String(_) | Val::Pattern(_))
        | (Type::Bytes, Val::Bytes(_))
        | (Type::Timestamp, Val::Timestamp(_))
        | (Type::Duration, Val::Duration(_))
        | (Type::List(_), Val::List(_))
        | (Type::Map(..), Val::Map(_))
        | (Type::Optional(_), Val::Optional(_))
        | (Type::Kind, Val::Type(_)) => true,
        (Type::Opaque(name), value) => value.type_name() == *name,
        _ => false,
    }
}
