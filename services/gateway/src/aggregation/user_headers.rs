//! The headers that name the user of a forwarded request to an API server.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use setpoint_kinds::Identity;

pub(crate) const USER: HeaderName = HeaderName::from_static("x-remote-user");
pub(crate) const UID: HeaderName = HeaderName::from_static("x-remote-uid");
pub(crate) const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
/// The prefix of the headers of further attributes.
pub(crate) const EXTRA_PREFIX: &str = "x-remote-extra-";
/// The bytes of the name of an attribute that cannot be in the name of a header, and `%`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// Returns the user of the requests that a gateway makes by itself.
pub(crate) fn system() -> Identity {
    Identity {
        name: "system:kube-aggregator".into(),
        uid: String::new(),
        groups: vec!["system:masters".into()],
        extra: BTreeMap::new(),
    }
}

/// Sets the user of a request. Headers that the client has sent are removed. A value that cannot be one of a header is
/// left out.
pub(crate) fn set(headers: &mut HeaderMap, user: &Identity) {
    let names = headers.keys().cloned();
    let sent = |name: &HeaderName| {
        [USER, UID, GROUP].contains(name) || name.as_str().starts_with(EXTRA_PREFIX)
    };
    for name in names.filter(sent).collect::<Vec<_>>() {
        headers.remove(name);
    }
    let mut add = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.append(name, value);
        }
    };
    add(USER, &user.name);
    if !user.uid.is_empty() {
        add(UID, &user.uid);
    }
    user.groups.iter().for_each(|group| add(GROUP, group));
    for (key, values) in &user.extra {
        let name = format!("{EXTRA_PREFIX}{}", utf8_percent_encode(key, ESCAPED));
        if let Ok(name) = HeaderName::try_from(name) {
            values.iter().for_each(|value| add(name.clone(), value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_of_the_authenticated_user_whatever_the_client_sends() {
        let sent = [
            ("x-remote-user", "root"),
            ("x-remote-group", "system:masters"),
            ("x-remote-extra-scope", "all"),
            ("x-remote-uid", "0"),
            ("accept", "application/json"),
        ];
        let sent = sent.map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        let mut headers = HeaderMap::from_iter(sent);
        let extra = [("acme.com/scope%".to_owned(), vec!["a".into(), "b".into()])];
        let user = Identity {
            name: "jane".into(),
            uid: String::new(),
            groups: vec!["a".into(), "system:authenticated".into()],
            extra: extra.into(),
        };
        set(&mut headers, &user);
        let all = |name: &str| headers.get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(all("x-remote-user"), ["jane"]);
        assert_eq!(all("x-remote-group"), ["a", "system:authenticated"]);
        assert_eq!(all("x-remote-extra-acme.com%2fscope%25"), ["a", "b"]);
        assert_eq!(headers.len(), 6, "{headers:?}");
    }
}
