//! Tokens of OpenID Connect issuers (upstream: `plugin/pkg/authenticator/token/oidc`).
//!
//! ```text
//! token ─▶ issuer by its claim `iss` ─▶ signature by the keys of that issuer ─▶ time, audiences ─▶ user by its rules
//!                                              ▲
//!                  discovery, key set ─────────┘ fetched in the background (`keys`)
//! ```
//! Only the issuer that a token names is asked about it, so that one that hangs delays its own tokens at most: those
//! that a key which is known has signed are verified without it, and others wait for one fetch, for a bounded time.

mod issuer;
mod keys;
mod provider;

use std::sync::Arc;

use parking_lot::RwLock;
use serde::Deserialize;
use setpoint_apiserver_config::authentication::JwtAuthenticator;
use setpoint_kinds::Identity;

use crate::request::jwt::Token;
use issuer::Issuer;

/// The issuer of which some tokens of Google have the claim without its scheme.
const GOOGLE: (&str, &str) = ("accounts.google.com", "https://accounts.google.com");

/// The issuers that are in force.
#[derive(Default)]
pub(super) struct Issuers {
    current: RwLock<Arc<Vec<Arc<Issuer>>>>,
    /// The name of this server in metrics.
    instance: String,
}

/// The claim that says whose a token is.
#[derive(Deserialize)]
struct Issued {
    iss: String,
}

impl Issuers {
    /// Returns no issuers; `instance` is the name of this server in metrics.
    pub(super) fn new(instance: String) -> Self {
        let current = RwLock::default();
        Self { current, instance }
    }

    /// Replaces the issuers. Those of the same server keep its keys, whatever else has changed; the keys of the others
    /// are fetched from now on.
    ///
    /// # Errors
    /// If TLS to one cannot be set up; then those before stay.
    ///
    /// # Panics
    /// With an issuer outside of a Tokio runtime.
    pub(super) fn replace(&self, authenticators: Vec<JwtAuthenticator>) -> Result<(), String> {
        let before = self.current.read().clone();
        let issuers = authenticators.into_iter().map(|one| {
            match before.iter().find(|known| known.has_server_of(&one)) {
                Some(known) => Ok(known.with(one)),
                None => Issuer::follow(one, &self.instance),
            }
        });
        let issuers = issuers.map(|issuer| issuer.map(Arc::new));
        let issuers = issuers.collect::<Result<Vec<_>, String>>()?;
        *self.current.write() = Arc::new(issuers);
        Ok(())
    }

    /// Returns the user of a token; `None` if it is of no known issuer.
    pub(super) async fn verify(&self, token: &str) -> Option<Result<Identity, String>> {
        let issuers = self.current.read().clone();
        if issuers.is_empty() {
            return None;
        }
        let token = Token::parse(token)?;
        let issued: Issued = token.claims()?;
        let named = match issued.iss.as_str() {
            name if name == GOOGLE.0 => GOOGLE.1,
            name => name,
        };
        let issuer = issuers.iter().find(|issuer| issuer.url() == named)?;
        Some(issuer.verify(&token).await)
    }
}
