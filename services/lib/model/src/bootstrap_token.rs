//! Bootstrap tokens, by which new nodes and their administrators make themselves known to a cluster (upstream:
//! `cluster-bootstrap/token`).
//!
//! A token is an id of 6 characters, a dot, and a secret of 16. It is valid while the Secret
//! `kube-system/bootstrap-token-<id>` says so.

use jiff::Timestamp;
use setpoint_proto::core::Secret;

/// The namespace of the Secrets.
pub const NAMESPACE: &str = "kube-system";
/// The type of the Secrets.
pub const TYPE: &str = "bootstrap.kubernetes.io/token";
/// The group of all users with such a token.
pub const GROUP: &str = "system:bootstrappers";
/// The start of their further groups.
pub const GROUP_PREFIX: &str = "system:bootstrappers:";
/// The keys of the data of a Secret.
pub const ID: &str = "token-id";
/// See [`ID`].
pub const SECRET: &str = "token-secret";
/// See [`ID`]; a time in RFC 3339.
pub const EXPIRATION: &str = "expiration";
/// See [`ID`]; the further groups, comma-separated.
pub const EXTRA_GROUPS: &str = "auth-extra-groups";
/// See [`ID`]; `true` if the token identifies a user.
pub const AUTHENTICATION: &str = "usage-bootstrap-authentication";
/// See [`ID`]; `true` if the token signs the ConfigMap `kube-public/cluster-info`.
pub const SIGNING: &str = "usage-bootstrap-signing";
/// See [`ID`]; a text for people.
pub const DESCRIPTION: &str = "description";
/// The group of agents that join a cluster by a token: it brings in one node, once.
pub const JOINING_AGENTS: &str = "system:bootstrappers:setpoint:agent";
/// The annotation of a Secret with the name of the node that its token brings in.
pub const NODE_ANNOTATION: &str = "setpoint.dev/node";
/// The annotation of a Secret with the uid of the CertificateSigningRequest that its token was used for.
pub const USED_BY_ANNOTATION: &str = "setpoint.dev/used-by";
/// The start of the names of the users that tokens identify; the id follows.
pub const USER_PREFIX: &str = "system:bootstrap:";

/// The lengths of the parts of a token.
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;

/// Returns the name of the Secret of a token.
pub fn secret_name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

/// Returns the id and the secret of a token; `None` if it has another form.
pub fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    (is_plain(id, ID_LENGTH) && is_plain(secret, SECRET_LENGTH)).then_some((id, secret))
}

/// Returns the id that a Secret is for; `None` if it is not the one of that token, or is none of a token.
pub fn id(secret: &Secret) -> Option<&str> {
    let id = str::from_utf8(data(secret, ID)).ok()?;
    let is_its = secret.r#type == TYPE && secret.metadata.name == secret_name(id);
    (is_its && is_plain(id, ID_LENGTH)).then_some(id)
}

/// Returns the value of a key; empty if there is none.
pub fn data<'a>(secret: &'a Secret, key: &str) -> &'a [u8] {
    secret.data.get(key).map_or(&[], |value| value.as_ref())
}

/// Returns the time at which a token expires; `None` if it never does. A text that is no time has passed already.
pub fn expiry(secret: &Secret) -> Option<Timestamp> {
    let text = data(secret, EXPIRATION);
    let time = || str::from_utf8(text).ok()?.parse().ok();
    (!text.is_empty()).then(|| time().unwrap_or(Timestamp::MIN))
}

/// Returns whether a token has expired at `now`.
pub fn has_expired(secret: &Secret, now: Timestamp) -> bool {
    expiry(secret).is_some_and(|time| time <= now)
}

fn is_plain(text: &str, length: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() == length && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_an_id_and_a_secret() {
        let valid = "abcdef.0123456789abcdef";
        assert_eq!(parts(valid), Some(("abcdef", "0123456789abcdef")));
        for other in [
            "abcdef.0123456789abcde",
            "abcde.0123456789abcdef",
            "abcdef.0123456789abcdeF",
            "abcdef.0123456789.bcdef",
            "abcdef0123456789abcdef",
        ] {
            assert_eq!(parts(other), None, "{other}");
        }
    }

    #[test]
    fn a_secret_is_of_the_token_that_its_name_and_its_type_say() {
        let mut secret = Secret::default();
        secret.data.insert(ID.to_owned(), b"abcdef".to_vec().into());
        TYPE.clone_into(&mut secret.r#type);
        secret.metadata.name = secret_name("abcdef");
        assert_eq!(id(&secret), Some("abcdef"));
        let other_name = |secret: &mut Secret| secret.metadata.name = secret_name("abcdee");
        let other_type = |secret: &mut Secret| secret.r#type = "Opaque".to_owned();
        for change in [other_name, other_type] {
            let mut other = secret.clone();
            change(&mut other);
            assert_eq!(id(&other), None);
        }
    }

    #[test]
    fn a_time_that_cannot_be_read_has_passed() {
        let now = "2026-11-28T12:00:00Z".parse().unwrap();
        for (text, expired) in [
            ("", false),
            ("2026-11-28T12:00:01Z", false),
            ("2026-11-28T12:00:00Z", true),
            ("2026-11-28T14:00:00+02:00", true),
            ("soon", true),
        ] {
            let mut secret = Secret::default();
            secret
                .data
                .insert(EXPIRATION.to_owned(), text.as_bytes().to_vec().into());
            assert_eq!(has_expired(&secret, now), expired, "{text}");
        }
    }
}
