//! Tokens of ServiceAccounts, which requests and TokenReviews have verified: their claims, and what makes them invalid.
//! Those in Secrets, which do not expire, are [legacy tokens](super::legacy_token).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use setpoint_codec::kind_of;
use setpoint_kinds::Identity;
use setpoint_kinds::identity::AUTHENTICATED;
use setpoint_model::Key;
use setpoint_model::time::seconds_after;
use setpoint_proto::Resource;
use setpoint_proto::core::{Node, Pod, Secret, ServiceAccount};
use setpoint_store::cache::{AtLeast, Cache};

use super::TokenKeys;
use super::authentication::{INVALID, Verified};
use super::legacy_token::{LegacyClaims, LegacyTokens, UsedTokens};
pub(crate) use super::token_keys::internal;

/// The issuer of all tokens, and their default audience.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// The tolerated clock skew in seconds; also how long a token outlives the deletion of an object that it is bound to.
const LEEWAY: i64 = 60;

/// The claims of a token of either kind.
#[derive(Deserialize)]
#[serde(untagged)]
enum AnyClaims {
    Bound(Claims),
    Legacy(LegacyClaims),
}

/// The claims of a token that expires.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) iss: String,
    pub(crate) sub: String,
    pub(crate) aud: Vec<String>,
    pub(crate) exp: i64,
    pub(crate) iat: i64,
    pub(crate) nbf: i64,
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub(crate) bound: Bound,
}

/// The objects that a token is bound to: it is invalid without them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Bound {
    pub(crate) namespace: String,
    pub(crate) serviceaccount: Reference,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Reference>,
}

/// One of those objects.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

/// The groups of a ServiceAccount.
pub(crate) fn groups(namespace: &str) -> Vec<String> {
    vec![
        "system:serviceaccounts".into(),
        format!("system:serviceaccounts:{namespace}"),
    ]
}

/// Returns the user that a ServiceAccount is, without a token.
pub(crate) fn identity(namespace: &str, name: &str) -> Identity {
    Identity {
        name: username_of(namespace, name),
        uid: String::new(),
        groups: groups(namespace),
        extra: BTreeMap::new(),
    }
}

/// Verifies tokens, with the keys that sign them.
pub(crate) struct ServiceAccountTokens {
    pub(crate) keys: TokenKeys,
    legacy: LegacyTokens,
    cache: Cache,
}

impl ServiceAccountTokens {
    /// Returns the tokens that these keys sign; `cache` has the objects that they are bound to.
    pub(super) fn new(keys: TokenKeys, cache: Cache) -> Self {
        Self {
            keys,
            legacy: LegacyTokens::new(cache.clone()),
            cache,
        }
    }

    /// Returns the Secrets whose tokens were used.
    pub(crate) fn used(&self) -> &UsedTokens {
        &self.legacy.used
    }

    /// Verifies a token: its signature, its time, one of the audiences, and that what it is bound to still exists. `at`
    /// is the least revision at which it must have existed. Returns `None` if no key of this cluster has signed it.
    ///
    /// # Errors
    /// The reason why it is not valid.
    pub(super) async fn verify(
        &self,
        token: &str,
        audiences: &[String],
        at: AtLeast,
    ) -> Result<Option<Verified>, String> {
        let claims = self.keys.claims_of(token).await;
        let refuse = |why: String| format!("[{INVALID}, {why}]");
        let claims = match claims.map_err(|error| error.message)? {
            Some(AnyClaims::Bound(claims)) if claims.iss == ISSUER => claims,
            Some(AnyClaims::Legacy(claims)) if claims.is_legacy() => {
                let verified = self.legacy.verify(token, &claims, audiences, at).await;
                return verified.map(Some).map_err(refuse);
            }
            _ => return Ok(None),
        };
        let common = claims.aud.iter().filter(|one| audiences.contains(one));
        let common: Vec<String> = common.cloned().collect();
        if common.is_empty() {
            let why = format!(
                "token audiences {:?} is invalid for the target audiences {audiences:?}",
                claims.aud
            );
            return Err(refuse(why));
        }
        check_time(&claims, Timestamp::now().as_second()).map_err(refuse)?;
        let mut bound = self.check_bound(&claims.bound, at).await;
        // The cache may not have an object yet that was just created.
        if bound.is_err() && at != AtLeast::Newest {
            bound = self.check_bound(&claims.bound, AtLeast::Newest).await;
        }
        bound.map_err(refuse)?;
        Ok(Some(Verified {
            user: user(&claims),
            audiences: common,
            warning: None,
        }))
    }

    /// Checks that the account of a token and the objects that it is bound to exist, and are the same.
    async fn check_bound(&self, bound: &Bound, at: AtLeast) -> Result<(), String> {
        let namespace = bound.namespace.as_str();
        self.check_reference::<ServiceAccount>(namespace, &bound.serviceaccount, at)
            .await?;
        if let Some(secret) = &bound.secret {
            self.check_reference::<Secret>(namespace, secret, at)
                .await?;
        }
        if let Some(pod) = &bound.pod {
            return self.check_reference::<Pod>(namespace, pod, at).await;
        }
        match &bound.node {
            Some(node) => self.check_reference::<Node>("", node, at).await,
            None => Ok(()),
        }
    }

    async fn check_reference<T: Resource>(
        &self,
        namespace: &str,
        to: &Reference,
        at: AtLeast,
    ) -> Result<(), String> {
        let kind = kind_of::<T>();
        let key = Key::new(namespace, &to.name);
        let found = self.cache.get(kind, &key, at).await;
        let found = found.map_err(|error| error.message)?;
        let Some(found) = found else {
            return Err("service account token has been invalidated".into());
        };
        let object = found.decode().map_err(|error| error.to_string())?;
        let meta = object.meta();
        if meta.uid != to.uid {
            let name = T::KIND;
            return Err(format!(
                "{name} UID ({}) does not match claim ({})",
                meta.uid, to.uid
            ));
        }
        let deleted = meta.deletion_timestamp.and_then(|time| time.timestamp());
        let long_ago = seconds_after(Timestamp::now(), -LEEWAY);
        match deleted.is_some_and(|deleted| deleted < long_ago) {
            true => Err("service account token has been invalidated".into()),
            false => Ok(()),
        }
    }
}

impl Reference {
    /// Returns the reference to an object.
    pub(crate) fn to(object: &impl Resource) -> Self {
        Self {
            name: object.meta().name.clone(),
            uid: object.meta().uid.clone(),
        }
    }
}

/// Returns the name of the user of a token that is bound to these objects.
pub(crate) fn username(bound: &Bound) -> String {
    username_of(&bound.namespace, &bound.serviceaccount.name)
}

/// Returns the name of the user that a ServiceAccount is.
pub(super) fn username_of(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

fn check_time(claims: &Claims, now: i64) -> Result<(), String> {
    let problem = if claims.exp.saturating_add(LEEWAY) < now {
        "service account token has expired"
    } else if claims.nbf.saturating_sub(LEEWAY) > now {
        "service account token is not valid yet"
    } else if claims.iat.saturating_sub(LEEWAY) > now {
        "service account token is issued in the future"
    } else {
        return Ok(());
    };
    Err(problem.into())
}

/// Returns the user that a valid token identifies.
fn user(claims: &Claims) -> Identity {
    let bound = &claims.bound;
    let mut groups = groups(&bound.namespace);
    groups.push(AUTHENTICATED.into());
    let attribute = |name: &str, value: &str| {
        let name = format!("authentication.kubernetes.io/{name}");
        (!value.is_empty()).then(|| (name, vec![value.to_owned()]))
    };
    let of = |kind: &str, to: Option<&Reference>| {
        let to = to.cloned().unwrap_or_default();
        [
            attribute(&format!("{kind}-name"), &to.name),
            attribute(&format!("{kind}-uid"), &to.uid),
        ]
    };
    let id = attribute("credential-id", &format!("JTI={}", claims.jti));
    let extra = of("pod", bound.pod.as_ref()).into_iter();
    let extra = extra.chain(of("node", bound.node.as_ref())).chain([id]);
    Identity {
        name: username(bound),
        uid: bound.serviceaccount.uid.clone(),
        groups,
        extra: extra.flatten().collect::<BTreeMap<_, _>>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_from_its_issue_to_its_expiry() {
        let claims = Claims {
            exp: 1_000,
            nbf: 400,
            iat: 400,
            ..Default::default()
        };
        for now in [340, 400, 1_000, 1_060] {
            assert_eq!(check_time(&claims, now), Ok(()), "{now}");
        }
        assert!(check_time(&claims, 339).is_err());
        assert!(check_time(&claims, 1_061).is_err());
    }
}
