//! One issuer: what its tokens must have.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use setpoint_apiserver_config::authentication::JwtAuthenticator;
use setpoint_kinds::Identity;
use tokio::time::Instant;

use super::keys::Keys;
use super::provider::Provider;
use crate::metrics::JwtIssuer;
use crate::request::jwt::Token;

/// The tolerated clock skew for the begin of a token in seconds, as upstream's library.
const LEEWAY: i64 = 5 * 60;

/// An issuer whose keys are followed.
pub(super) struct Issuer {
    authenticator: JwtAuthenticator,
    keys: Arc<Keys>,
    metrics: JwtIssuer,
}

/// The claims that are checked for every issuer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Checked {
    aud: Audiences,
    exp: f64,
    nbf: Option<f64>,
}

/// One audience, or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Audiences {
    One(String),
    Several(Vec<String>),
}

impl Default for Audiences {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Audiences {
    fn list(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

impl Issuer {
    /// Returns an issuer, whose keys are fetched from now on until it is dropped.
    ///
    /// # Errors
    /// If TLS to it cannot be set up.
    pub(super) fn follow(authenticator: JwtAuthenticator, instance: &str) -> Result<Self, String> {
        let provider = Provider::new(&authenticator.issuer)?;
        let metrics = JwtIssuer::new(&authenticator.issuer.url, instance);
        Ok(Self {
            keys: Arc::new(Keys::follow(provider, metrics.clone())),
            metrics,
            authenticator,
        })
    }

    /// Returns whether the keys of another authenticator are on the same server, and the server is trusted in the same
    /// way.
    pub(super) fn has_server_of(&self, other: &JwtAuthenticator) -> bool {
        let (own, other) = (&self.authenticator.issuer, &other.issuer);
        own.url == other.url
            && own.discovery_url == other.discovery_url
            && own.certificate_authority == other.certificate_authority
    }

    /// Returns an issuer with the same keys.
    pub(super) fn with(&self, authenticator: JwtAuthenticator) -> Self {
        Self {
            authenticator,
            keys: self.keys.clone(),
            metrics: self.metrics.clone(),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.authenticator.issuer.url
    }

    /// Returns the user of a token that names this issuer.
    pub(super) async fn verify(&self, token: &Token<'_>) -> Result<Identity, String> {
        let begun = Instant::now();
        let verified = self.user_of(token).await;
        self.metrics
            .authenticated(verified.is_ok(), begun.elapsed());
        verified
    }

    async fn user_of(&self, token: &Token<'_>) -> Result<Identity, String> {
        self.keys.verify(token).await?;
        let claims: Option<Map<String, Value>> = token.claims();
        let claims = claims.ok_or("oidc: parse claims: they are no object")?;
        let checked = self.check(&claims, Timestamp::now().as_second());
        checked.map_err(|why| format!("oidc: verify token: {why}"))?;
        self.authenticator.user(claims)
    }

    /// Checks the time and the audiences.
    fn check(&self, claims: &Map<String, Value>, now: i64) -> Result<(), String> {
        let checked = Checked::deserialize(claims).map_err(|error| error.to_string())?;
        let now = now as f64;
        if checked.exp < now {
            return Err("oidc: token is expired".into());
        }
        if let Some(begin) = checked.nbf
            && begin > now + LEEWAY as f64
        {
            return Err("oidc: current time is before the nbf (not before) time".into());
        }
        let (expected, found) = (&self.authenticator.issuer.audiences, checked.aud.list());
        match found.iter().any(|audience| expected.contains(audience)) {
            true => Ok(()),
            false => Err(format!(
                "oidc: expected audience in {expected:?} got {found:?}"
            )),
        }
    }
}
