//! [Tokens of ServiceAccounts in Secrets](setpoint_model::legacy_token): their claims, what makes them invalid, and the
//! record of their use (upstream: `pkg/serviceaccount/legacy.go`).

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use setpoint_codec::Object;
use setpoint_kinds::Identity;
use setpoint_model::Key;
use setpoint_model::legacy_token::{INVALID_SINCE, LAST_USED, TOKEN, day_of, is_listed};
use setpoint_proto::Resource;
use setpoint_proto::core::{Secret, ServiceAccount};
use setpoint_store::cache::{AtLeast, Cache};
use tokio::sync::Notify;

use super::audit;
use super::authentication::{Verified, own_audiences};
use super::service_account::{groups, username_of};
use crate::cached::cached;
use crate::metrics::{LegacyToken, legacy_token_used};

/// The issuer of such tokens.
const ISSUER: &str = "kubernetes/serviceaccount";
/// The warning to those who use a generated one, as upstream.
const GENERATED: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.";
/// The error of a token whose Secret is gone.
const INVALIDATED: &str = "Token has been invalidated";
/// The number of Secrets that may wait for their label. A further one gets it at its next use.
const MAX_USED: usize = 1024;

/// The claims of a token. Those of others, as the end of its life, are not among them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LegacyClaims {
    iss: String,
    sub: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    account: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    uid: String,
}

impl LegacyClaims {
    /// Returns the claims of the token in a Secret of an account.
    pub(crate) fn of(account: &ServiceAccount, secret: &Secret) -> Self {
        let of = &account.metadata;
        Self {
            iss: ISSUER.to_owned(),
            sub: username_of(&of.namespace, &of.name),
            namespace: of.namespace.clone(),
            secret: secret.metadata.name.clone(),
            account: of.name.clone(),
            uid: of.uid.clone(),
        }
    }

    /// Returns whether the token is of a Secret at all.
    pub(super) fn is_legacy(&self) -> bool {
        self.iss == ISSUER
    }

    fn user(&self) -> Identity {
        Identity {
            name: self.sub.clone(),
            uid: self.uid.clone(),
            groups: groups(&self.namespace),
            extra: BTreeMap::new(),
        }
    }
}

/// The Secrets whose tokens were used on a day for the first time, until the gateway has labelled them.
#[derive(Default)]
pub(crate) struct UsedTokens {
    /// The uid of each.
    waiting: Mutex<BTreeMap<Key, String>>,
    added: Notify,
}

impl UsedTokens {
    /// Adds a Secret, unless its label names today. The label may be that of a server whose clock is ahead.
    fn add(&self, secret: &Secret, today: Date) {
        let meta = &secret.metadata;
        let last = meta.labels.get(LAST_USED).map_or("", String::as_str);
        let days = [Some(today), today.tomorrow().ok()];
        if days.iter().flatten().any(|day| day.to_string() == last) {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.len() < MAX_USED {
            waiting.insert(Key::of(meta), meta.uid.clone());
            self.added.notify_one();
        }
    }

    /// Waits until there are Secrets, and returns them with their uids.
    pub(crate) async fn next(&self) -> BTreeMap<Key, String> {
        loop {
            let waiting = std::mem::take(&mut *self.waiting.lock());
            if !waiting.is_empty() {
                return waiting;
            }
            self.added.notified().await;
        }
    }
}

/// Verifies such tokens.
pub(super) struct LegacyTokens {
    cache: Cache,
    pub(super) used: UsedTokens,
}

impl LegacyTokens {
    /// Returns the tokens of the Secrets of a cache.
    pub(super) fn new(cache: Cache) -> Self {
        Self {
            cache,
            used: UsedTokens::default(),
        }
    }

    /// Returns the user of a token that this cluster has signed. It is for this server alone.
    ///
    /// # Errors
    /// The reason why it is not valid.
    pub(super) async fn verify(
        &self,
        token: &str,
        claims: &LegacyClaims,
        audiences: &[String],
        at: AtLeast,
    ) -> Result<Verified, String> {
        audit::annotate("authentication.k8s.io/legacy-token", || claims.sub.clone());
        legacy_token_used(LegacyToken::Any);
        let own = own_audiences();
        let common: Vec<String> = (own.iter().filter(|one| audiences.contains(one)))
            .cloned()
            .collect();
        if common.is_empty() {
            return Err(format!(
                "token audiences {own:?} is invalid for the target audiences {audiences:?}"
            ));
        }
        let mut found = self.check(token, claims, at).await;
        // The cache may not have a Secret yet that was just filled.
        if found.is_err() && at != AtLeast::Newest {
            found = self.check(token, claims, AtLeast::Newest).await;
        }
        let (secret, account) = found?;
        Ok(Verified {
            user: claims.user(),
            audiences: common,
            warning: self.record(&secret, &account)?,
        })
    }

    /// Returns the Secret and the account of a token, if they are those that it was made for.
    async fn check(
        &self,
        token: &str,
        claims: &LegacyClaims,
        at: AtLeast,
    ) -> Result<(Box<Secret>, Box<ServiceAccount>), String> {
        if claims.sub != username_of(&claims.namespace, &claims.account) {
            return Err("sub claim is invalid".to_owned());
        }
        let secret: Option<Box<Secret>> = self.get(&claims.namespace, &claims.secret, at).await?;
        let secret = secret.filter(|one| one.metadata.deletion_timestamp.is_none());
        let secret = secret.ok_or(INVALIDATED)?;
        let stored = secret.data.get(TOKEN);
        if !stored.is_some_and(|stored| are_equal(stored, token.as_bytes())) {
            return Err("Token does not match server's copy".to_owned());
        }
        let (namespace, name) = (&claims.namespace, &claims.account);
        let account: Option<Box<ServiceAccount>> = self.get(namespace, name, at).await?;
        let account = account.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
        let meta = &account.metadata;
        if meta.deletion_timestamp.is_some() {
            return Err(format!(
                "ServiceAccount {namespace}/{name} has been deleted"
            ));
        }
        if meta.uid != claims.uid {
            return Err(format!(
                "ServiceAccount UID ({}) does not match claim ({})",
                meta.uid, claims.uid
            ));
        }
        Ok((secret, account))
    }

    async fn get<T: Resource + Object>(
        &self,
        namespace: &str,
        name: &str,
        at: AtLeast,
    ) -> Result<Option<Box<T>>, String> {
        let found = cached(&self.cache, &Key::new(namespace, name), at).await;
        found.map_err(|error| error.message)
    }

    /// Records the use of a token. Returns the warning about it.
    ///
    /// # Errors
    /// If the Secret says that it is no longer valid. That is recorded, too.
    fn record(
        &self,
        secret: &Secret,
        account: &ServiceAccount,
    ) -> Result<Option<&'static str>, String> {
        self.used.add(secret, day_of(Timestamp::now()));
        let meta = &secret.metadata;
        let name = || meta.name.clone();
        if meta
            .labels
            .get(INVALID_SINCE)
            .is_some_and(|since| !since.is_empty())
        {
            audit::annotate("authentication.k8s.io/legacy-token-invalidated", || {
                format!("{}/{}", meta.name, meta.namespace)
            });
            legacy_token_used(LegacyToken::Invalid);
            return Err(invalid(secret, account));
        }
        if is_listed(account, &meta.name) {
            audit::annotate(
                "authentication.k8s.io/legacy-token-autogenerated-secret",
                name,
            );
            legacy_token_used(LegacyToken::Generated);
            return Ok(Some(GENERATED));
        }
        audit::annotate("authentication.k8s.io/legacy-token-manual-secret", name);
        legacy_token_used(LegacyToken::Manual);
        Ok(None)
    }
}

/// Returns the error of a token that is no longer valid, as upstream.
fn invalid(secret: &Secret, account: &ServiceAccount) -> String {
    let (secret, account) = (Key::of(&secret.metadata), Key::of(&account.metadata));
    format!(
        "the token in secret {secret} for service account {account} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
    )
}

/// Returns whether two tokens are the same. Their digests are compared, so that the time that this takes tells nothing
/// about either.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    digest(&SHA256, one).as_ref() == digest(&SHA256, other).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(label: &str) -> usize {
        let (used, mut secret) = (UsedTokens::default(), Secret::default());
        let label = (LAST_USED.to_owned(), label.to_owned());
        secret.metadata.labels.extend([label]);
        used.add(&secret, Date::constant(2026, 11, 30));
        used.waiting.lock().len()
    }

    #[test]
    fn a_use_is_recorded_once_a_day() {
        for (label, expected) in [
            ("", 1),
            ("2026-11-29", 1),
            ("2026-11-30", 0),
            ("2026-12-01", 0),
            ("2026-12-02", 1),
        ] {
            assert_eq!(used(label), expected, "{label}");
        }
    }

    #[test]
    fn the_secrets_that_wait_for_their_label_are_bounded() {
        let (used, mut secret) = (UsedTokens::default(), Secret::default());
        for number in 0..2 * MAX_USED {
            secret.metadata.name = number.to_string();
            used.add(&secret, Date::constant(2026, 11, 30));
        }
        assert_eq!(used.waiting.lock().len(), MAX_USED);
    }
}
