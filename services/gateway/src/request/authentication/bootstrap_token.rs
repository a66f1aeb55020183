//! The users of [bootstrap tokens](setpoint_model::bootstrap_token) (upstream:
//! `plugin/pkg/auth/authenticator/token/bootstrap`). That of a token is `system:bootstrap:<id>`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use setpoint_kinds::Identity;
use setpoint_model::Key;
use setpoint_model::bootstrap_token::{
    AUTHENTICATION, EXTRA_GROUPS, GROUP, GROUP_PREFIX, ID, NAMESPACE, SECRET, TYPE, USER_PREFIX,
    data, has_expired, parts, secret_name,
};
use setpoint_proto::core::Secret;
use setpoint_store::cache::{AtLeast, Cache};

use crate::cached::cached;

/// The greatest length of what follows the start of a further group.
const GROUP_LENGTH: usize = 256;

/// Bootstrap tokens as of the watch cache.
pub(super) struct BootstrapTokens {
    cache: Cache,
}

impl BootstrapTokens {
    /// Returns the tokens of a cache.
    pub(super) fn new(cache: Cache) -> Self {
        Self { cache }
    }

    /// Returns the user of a token; `None` if it is not a valid one.
    ///
    /// # Errors
    /// If the Secret cannot be read.
    pub(super) async fn user(&self, token: &str, at: AtLeast) -> Result<Option<Identity>, String> {
        let Some((id, secret)) = parts(token) else {
            return Ok(None);
        };
        let key = Key::new(NAMESPACE, secret_name(id));
        let found = cached::<Secret>(&self.cache, &key, at).await;
        let Some(stored) = found.map_err(|error| error.message)? else {
            return Ok(None);
        };
        match user_of(&stored, id, secret, Timestamp::now()) {
            Ok(user) => Ok(Some(user)),
            Err(why) => {
                tracing::debug!(secret = %key, why, "a bootstrap token was refused");
                Ok(None)
            }
        }
    }
}

/// Returns the user of a token.
///
/// # Errors
/// The reason why the Secret does not say that it is valid.
fn user_of(stored: &Secret, id: &str, secret: &str, now: Timestamp) -> Result<Identity, String> {
    let invalid = |key: &str| Err(format!("has invalid value for key {key}"));
    if stored.metadata.deletion_timestamp.is_some() {
        return Err("is deleted and awaiting removal".into());
    }
    if stored.r#type != TYPE {
        return Err(format!("has invalid type, expected {TYPE}"));
    }
    if !are_equal(data(stored, SECRET), secret.as_bytes()) {
        return invalid(SECRET);
    }
    if data(stored, ID) != id.as_bytes() {
        return invalid(ID);
    }
    if has_expired(stored, now) {
        return Err("has expired".into());
    }
    if data(stored, AUTHENTICATION) != b"true" {
        return Err(format!("is not marked {AUTHENTICATION}=true"));
    }
    let Some(groups) = groups(data(stored, EXTRA_GROUPS)) else {
        return invalid(EXTRA_GROUPS);
    };
    Ok(Identity {
        name: format!("{USER_PREFIX}{id}"),
        uid: String::new(),
        groups,
        extra: Default::default(),
    })
}

/// Returns whether two secrets are the same. Their digests are compared, so that the time that this takes tells
/// nothing about either.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    digest(&SHA256, one).as_ref() == digest(&SHA256, other).as_ref()
}

/// Returns the groups of a user in their order, each once; `None` if the name of one is not valid.
fn groups(extra: &[u8]) -> Option<Vec<String>> {
    let extra = str::from_utf8(extra).ok()?;
    let extra = extra.split(',').filter(|_| !extra.is_empty());
    let mut groups = BTreeSet::from([GROUP]);
    for group in extra {
        let name = group.strip_prefix(GROUP_PREFIX)?;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let valid = name
            .bytes()
            .all(|byte| plain(byte) || b":-".contains(&byte));
        if !valid || name.len() > GROUP_LENGTH || !name.bytes().last().is_some_and(plain) {
            return None;
        }
        groups.insert(group);
    }
    Some(groups.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN_ID: &str = "abcdef";
    const TOKEN_SECRET: &str = "0123456789abcdef";

    fn stored(changes: &[(&str, &str)]) -> Secret {
        let mut secret = Secret {
            r#type: TYPE.into(),
            ..Secret::default()
        };
        let valid = [
            ("token-id", TOKEN_ID),
            ("token-secret", TOKEN_SECRET),
            ("usage-bootstrap-authentication", "true"),
        ];
        for (key, value) in valid.iter().chain(changes) {
            let value = value.as_bytes().to_vec().into();
            secret.data.insert((*key).to_owned(), value);
        }
        secret
    }

    fn refused(secret: &Secret) -> String {
        user_of(secret, TOKEN_ID, TOKEN_SECRET, Timestamp::UNIX_EPOCH).unwrap_err()
    }

    #[test]
    fn a_secret_names_the_groups_of_its_user() {
        let extra = "system:bootstrappers:workers,system:bootstrappers:a:b-1";
        let secret = stored(&[
            ("auth-extra-groups", extra),
            ("expiration", "2100-01-01T00:00:00+01:00"),
        ]);
        let user = user_of(&secret, TOKEN_ID, TOKEN_SECRET, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(user.name, "system:bootstrap:abcdef");
        assert_eq!(
            user.groups,
            [
                GROUP,
                "system:bootstrappers:a:b-1",
                "system:bootstrappers:workers"
            ]
        );
    }

    #[test]
    fn a_secret_that_does_not_say_so_makes_no_token_valid() {
        for (key, value) in [
            ("token-secret", "0123456789abcdee"),
            ("token-id", "abcdee"),
            ("expiration", "1970-01-01T00:00:00Z"),
            ("expiration", "soon"),
            ("usage-bootstrap-authentication", "True"),
            ("auth-extra-groups", "system:masters"),
            ("auth-extra-groups", "system:bootstrappers:"),
            ("auth-extra-groups", "system:bootstrappers:a,"),
            ("auth-extra-groups", "system:bootstrappers:a-"),
        ] {
            let why = refused(&stored(&[(key, value)]));
            let told = why.contains(key) || why == "has expired";
            assert!(told, "{key}: {value}: {why}");
        }
        let opaque = Secret {
            r#type: "Opaque".into(),
            ..stored(&[])
        };
        assert_eq!(
            refused(&opaque),
            format!("has invalid type, expected {TYPE}")
        );
        let mut deleted = stored(&[]);
        deleted.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        assert_eq!(refused(&deleted), "is deleted and awaiting removal");
    }
}
