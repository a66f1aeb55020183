//! The headers of impersonation.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use setpoint_kinds::Identity;
use setpoint_proto::{ApiError, Reason};

/// The start of the names of all of them.
const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// Takes the user out of the headers whom a request is to act as, without what every such user has; `None` if there is
/// none. What follows does not see that there was one.
///
/// # Errors
/// `BadRequest` if there are groups, a uid or attributes without a name.
pub(super) fn take(headers: &mut HeaderMap) -> Result<Option<Identity>, ApiError> {
    let ours = |name: &&HeaderName| name.as_str().starts_with(PREFIX);
    let names: Vec<HeaderName> = headers.keys().filter(ours).cloned().collect();
    if names.is_empty() {
        return Ok(None);
    }
    let wanted = read(headers);
    for name in names {
        headers.remove(name);
    }
    let attributes =
        !(wanted.groups.is_empty() && wanted.extra.is_empty() && wanted.uid.is_empty());
    match (wanted.name.is_empty(), attributes) {
        (false, _) => Ok(Some(wanted)),
        (true, false) => Ok(None),
        (true, true) => {
            let message = format!(
                "requested {} without impersonating a user name",
                go(&wanted)
            );
            Err(ApiError::new(Reason::BadRequest, message))
        }
    }
}

fn read(headers: &HeaderMap) -> Identity {
    // No value is left out because of its letters: without its name, a request would act as its own user.
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let one = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(unescaped(key)).or_default().push(text(value));
        }
    }
    Identity {
        name: one(USER),
        uid: one(UID),
        groups: headers.get_all(GROUP).iter().map(text).collect(),
        extra,
    }
}

/// Returns the key of an attribute; as it is if its encoding is malformed.
fn unescaped(key: &str) -> String {
    let mut escapes = key.split('%').skip(1);
    let valid = escapes.all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    match valid {
        true => percent_decode_str(key).decode_utf8_lossy().into_owned(),
        false => key.to_owned(),
    }
}

/// Returns a user as Go's `%#v` prints it.
fn go(user: &Identity) -> String {
    let Identity {
        name,
        uid,
        groups,
        extra,
    } = user;
    let list = |values: &[String]| match values {
        [] => "[]string(nil)".to_owned(),
        values => {
            let values: Vec<_> = values.iter().map(|value| format!("{value:?}")).collect();
            format!("[]string{{{}}}", values.join(", "))
        }
    };
    let pairs = extra
        .iter()
        .map(|(key, values)| format!("{key:?}:{}", list(values)));
    let extra = match pairs.collect::<Vec<_>>().join(", ") {
        pairs if pairs.is_empty() => "(nil)".to_owned(),
        pairs => format!("{{{pairs}}}"),
    };
    let groups = list(groups);
    format!(
        "&user.DefaultInfo{{Name:{name:?}, UID:{uid:?}, Groups:{groups}, Extra:map[string][]string{extra}}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(pairs: &[(&'static str, &'static str)]) -> Result<Option<Identity>, ApiError> {
        let mut headers = HeaderMap::new();
        headers.append("accept", HeaderValue::from_static("*/*"));
        for (name, value) in pairs {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            headers.append(*name, value);
        }
        let taken = take(&mut headers);
        let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["accept"]);
        taken
    }

    #[test]
    fn a_user_has_the_groups_and_attributes_of_its_headers() {
        let jane = taken(&[
            (USER, "jane"),
            (UID, "7"),
            (GROUP, "a"),
            (GROUP, "b"),
            ("impersonate-extra-acme.com%2fscope", "dev"),
            ("impersonate-extra-acme.com%2fscope", "test"),
            ("impersonate-extra-50%", "all"),
        ]);
        let jane = jane.unwrap().unwrap();
        assert_eq!((jane.name.as_str(), jane.uid.as_str()), ("jane", "7"));
        assert_eq!(jane.groups, ["a", "b"]);
        assert_eq!(jane.extra["acme.com/scope"], ["dev", "test"]);
        assert_eq!(jane.extra["50%"], ["all"]);
        let other = taken(&[(USER, "jürgen"), (GROUP, "ä")]).unwrap().unwrap();
        assert_eq!(
            (other.name.as_str(), other.groups),
            ("jürgen", vec!["ä".to_owned()])
        );
        assert_eq!(taken(&[]), Ok(None));
        assert_eq!(taken(&[(USER, "")]), Ok(None));
    }

    #[test]
    fn nothing_is_impersonated_without_a_name() {
        let message = |pairs| taken(pairs).unwrap_err().message;
        assert_eq!(
            message(&[(GROUP, "a")]),
            "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"a\"}, \
            Extra:map[string][]string(nil)} without impersonating a user name"
        );
        assert_eq!(
            message(&[(UID, "7"), ("impersonate-extra-scope", "dev")]),
            "requested &user.DefaultInfo{Name:\"\", UID:\"7\", Groups:[]string(nil), \
            Extra:map[string][]string{\"scope\":[]string{\"dev\"}}} without impersonating a user name"
        );
    }
}
