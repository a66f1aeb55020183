//! Authentication: the user of a request, from its connection and its headers.
//!
//! The methods are asked in upstream's order (`pkg/kubeapiserver/authenticator`), and the first that knows the user
//! decides. A certificate of a node that names a UID is valid while there is that Node.
//!
//! ```text
//! client certificate ─▶ bearer token ─▶ token of a WebSocket ─▶ anonymous
//!                            └──────┬──────────┘
//!     token file ─▶ ServiceAccount ─▶ bootstrap token ─▶ issuer (OIDC) ─▶ webhook
//! ```
//! A token beside a certificate that is valid is not read, as upstream. Credentials that are not valid are refused even
//! where a request without any would be allowed: they are not taken for none.
//!
//! A request without credentials is one of `system:anonymous` over TLS. On a plaintext connection, which only an
//! explicit setting allows, it is one of the administrator; so it is in a router without connections, as tests use it.

mod bootstrap_token;
mod certificate;
mod nodes;
mod oidc;
mod options;
mod token_file;
mod tokens;
mod webhook;
mod websocket_token;

use std::path::Path;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use setpoint_apiserver_config::authentication::Anonymous;
use setpoint_host::serve::ConnectionInfo;
use setpoint_kinds::Identity;
use setpoint_kinds::identity::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED};
use setpoint_proto::{ApiError, Reason};
use setpoint_store::Store;
use setpoint_store::cache::{AtLeast, Cache};

use super::service_account::{ISSUER, ServiceAccountTokens};
use crate::settings_file;
pub(crate) use nodes::Nodes;
pub use options::Options;
pub use setpoint_apiserver_config::authentication::Configuration;
pub use token_file::StaticTokens;
use tokens::Tokens;
pub use webhook::TokenWebhook;

/// The error of a token that no method knows.
pub(super) const INVALID: &str = "invalid bearer token";
/// The warning about a token that is not read, as upstream's.
const EXTRA_SPACE: &str = "the provided Authorization header contains extra space before the bearer token, and is ignored";
/// The start of the headers by which a front proxy names users. Nobody may set them here, so they are not passed on.
const REMOTE: &str = "x-remote-";

/// Authenticates requests and tokens.
pub(crate) struct Authenticator {
    tokens: Tokens,
    nodes: Nodes,
    /// The requests without credentials that are accepted over TLS.
    anonymous: Anonymous,
    /// The rule for them in the configuration, which is not changed while the process runs.
    configured: Option<Anonymous>,
}

impl Authenticator {
    /// Returns an authenticator with the default options; `cache` is the cache of the store.
    pub(crate) fn new(store: Arc<dyn Store>, cache: Cache) -> Self {
        Self::without_issuers(store, cache, Options::default())
    }

    /// Returns an authenticator, without the issuers of the options.
    fn without_issuers(store: Arc<dyn Store>, cache: Cache, options: Options) -> Self {
        let configured = options.configuration.anonymous.clone();
        let anonymous = match &configured {
            Some(configured) if options.anonymous => configured.clone(),
            _ => Anonymous::everywhere(options.anonymous),
        };
        Self {
            nodes: Nodes::new(cache.clone()),
            tokens: Tokens::new(store, cache, options),
            anonymous,
            configured,
        }
    }

    /// Returns an authenticator.
    ///
    /// # Errors
    /// If TLS to an issuer cannot be set up.
    ///
    /// # Panics
    /// With an issuer outside of a Tokio runtime.
    pub(crate) fn with_options(
        store: Arc<dyn Store>,
        cache: Cache,
        mut options: Options,
    ) -> Result<Self, String> {
        let issuers = std::mem::take(&mut options.configuration.authenticators);
        let authenticator = Self::without_issuers(store, cache, options);
        authenticator.tokens.issuers().replace(issuers)?;
        Ok(authenticator)
    }

    /// Replaces the issuers of tokens.
    ///
    /// # Errors
    /// If the configuration has another rule for requests without credentials than that of the start, or TLS to an
    /// issuer cannot be set up. What was in force stays so.
    pub(crate) fn reload(&self, configuration: Configuration) -> Result<(), String> {
        if configuration.anonymous != self.configured {
            return Err("anonymous: Forbidden: changed from initial configuration file".to_owned());
        }
        let issuers = configuration.authenticators;
        self.tokens.issuers().replace(issuers)
    }

    /// Returns what checks certificates of nodes.
    pub(crate) const fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Returns the tokens of ServiceAccounts.
    pub(crate) fn service_accounts(&self) -> &ServiceAccountTokens {
        self.tokens.service_accounts()
    }

    /// Returns the user of a request for a path, and removes its credentials from the headers. `connection` is `None`
    /// in a router without connections.
    ///
    /// # Errors
    /// `Unauthorized` if no method knows the user.
    pub(crate) async fn authenticate(
        &self,
        connection: Option<&ConnectionInfo>,
        headers: &mut HeaderMap,
        path: &str,
    ) -> Result<Authenticated, ApiError> {
        let mut failures = Vec::new();
        let known = self.known(connection, headers, &mut failures).await;
        let authorization = headers.remove(AUTHORIZATION);
        remove_remote(headers);
        if let Some(user) = known {
            return Ok(user);
        }
        let warning = (authorization.as_ref().is_some_and(has_extra_space)).then_some(EXTRA_SPACE);
        let refused = |why: &str| {
            let mut error = unauthorized(why);
            error.warnings.extend(warning.map(str::to_owned));
            error
        };
        if !failures.is_empty() {
            return Err(refused(&failures.join(", ")));
        }
        let user = match connection.is_some_and(ConnectionInfo::is_tls) {
            true if self.anonymous.accepts(path) => anonymous(),
            true => return Err(refused("there are no credentials")),
            // What is not understood does not make an administrator.
            false if authorization.is_some() => return Err(refused("it is no bearer token")),
            false => Identity::administrator(),
        };
        Ok(Authenticated { user, warning })
    }

    /// Returns the user that the credentials of a request identify, and why those were refused that do not.
    async fn known(
        &self,
        connection: Option<&ConnectionInfo>,
        headers: &mut HeaderMap,
        failures: &mut Vec<String>,
    ) -> Option<Authenticated> {
        let of_websocket = websocket_token::take(headers);
        match connection.map_or(Ok(None), ConnectionInfo::identity) {
            Ok(Some(peer)) => match self.nodes.check(peer, connection).await {
                Ok(()) => return Some(with_authenticated(certificate::user(peer)).into()),
                Err(why) => failures.push(why),
            },
            Ok(None) => {}
            Err(why) => failures.push(why),
        }
        let bearer = headers.get(AUTHORIZATION).and_then(bearer);
        let bearer = bearer.map(str::to_owned);
        let of_websocket = of_websocket.unwrap_or_else(|why| {
            failures.push(why.to_owned());
            None
        });
        for token in [bearer, of_websocket].into_iter().flatten() {
            match self
                .authenticate_token(&token, &own_audiences(), AtLeast::Any)
                .await
            {
                Ok(Verified { user, warning, .. }) => {
                    return Some(Authenticated { user, warning });
                }
                Err(why) => failures.push(why),
            }
        }
        None
    }

    /// Returns the user that a token of any kind identifies, and the audiences that both it and the caller name. `at`
    /// is the least revision at which it must have been valid.
    ///
    /// # Errors
    /// The reasons why it is not valid.
    pub(crate) async fn authenticate_token(
        &self,
        token: &str,
        audiences: &[String],
        at: AtLeast,
    ) -> Result<Verified, String> {
        let verified = self.tokens.verify(token, audiences, at).await?;
        let user = with_authenticated(verified.user);
        Ok(Verified { user, ..verified })
    }
}

/// Reads the file of a configuration. No issuer of it may be that of ServiceAccounts.
///
/// # Errors
/// If it cannot be read, or is wrong, with the path of each field that is.
pub(crate) fn read_configuration(file: &Path) -> Result<Configuration, String> {
    let text = settings_file::read(file)?;
    Configuration::read(&text, &[ISSUER])
}

/// A token that is valid.
pub(crate) struct Verified {
    pub(crate) user: Identity,
    /// The audiences that both the token and the verifier named.
    pub(crate) audiences: Vec<String>,
    /// A warning for the user of the token, if there is one.
    pub(crate) warning: Option<&'static str>,
}

impl Verified {
    /// Returns a token of a user for these audiences.
    fn of(user: Identity, audiences: Vec<String>) -> Self {
        Self {
            user,
            audiences,
            warning: None,
        }
    }
}

/// The user of a request.
pub(crate) struct Authenticated {
    pub(crate) user: Identity,
    /// A warning about the credentials, if there is one.
    pub(crate) warning: Option<&'static str>,
}

impl From<Identity> for Authenticated {
    fn from(user: Identity) -> Self {
        Self {
            user,
            warning: None,
        }
    }
}

/// Returns the audiences of this server.
pub(crate) fn own_audiences() -> [String; 1] {
    [ISSUER.to_owned()]
}

/// Returns the token of a header, with whatever follows it left out; `None` if it has none, as upstream.
fn bearer(header: &HeaderValue) -> Option<&str> {
    let mut parts = header.to_str().ok()?.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Returns whether a header has more than one space before its token, which is not read then.
fn has_extra_space(header: &HeaderValue) -> bool {
    let text = header.to_str().map(str::trim).unwrap_or_default();
    let parts: Vec<&str> = text.splitn(3, ' ').collect();
    matches!(parts[..], [scheme, "", _] if scheme.eq_ignore_ascii_case("bearer"))
}

/// Removes the headers of front proxies.
fn remove_remote(headers: &mut HeaderMap) {
    let is_remote = |name: &&HeaderName| name.as_str().starts_with(REMOTE);
    let names: Vec<HeaderName> = headers.keys().filter(is_remote).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

/// Returns the user of requests without credentials.
fn anonymous() -> Identity {
    Identity {
        name: ANONYMOUS.into(),
        groups: vec![UNAUTHENTICATED.into()],
        ..Identity::default()
    }
}

/// Adds the group of all known users, if the user is one of them (upstream: `AuthenticatedGroupAdder`).
fn with_authenticated(mut user: Identity) -> Identity {
    let decided = |group: &String| [AUTHENTICATED, UNAUTHENTICATED].contains(&group.as_str());
    if user.name != ANONYMOUS && !user.groups.iter().any(decided) {
        user.groups.push(AUTHENTICATED.into());
    }
    user
}

fn unauthorized(why: &str) -> ApiError {
    tracing::debug!(why, "credentials were refused");
    ApiError::new(Reason::Unauthorized, "Unauthorized")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_token_ends_at_the_next_space() {
        let read = |text: &'static str| bearer(&HeaderValue::from_static(text)).map(str::to_owned);
        for (header, token) in [
            ("Bearer a.b.c", Some("a.b.c")),
            ("  bEARER a  ", Some("a")),
            ("Bearer a b c", Some("a")),
            ("Bearer", None),
            ("Bearer  a", None),
            ("Basic eDp5", None),
            ("", None),
        ] {
            assert_eq!(read(header).as_deref(), token, "{header:?}");
        }
    }

    #[test]
    fn a_user_is_authenticated_unless_its_groups_say_otherwise() {
        let groups = |name: &str, groups: &[&str]| {
            let groups = groups.iter().map(ToString::to_string).collect();
            let user = Identity {
                name: name.into(),
                groups,
                ..anonymous()
            };
            with_authenticated(user).groups
        };
        assert_eq!(groups("jane", &["dev"]), ["dev", AUTHENTICATED]);
        assert_eq!(
            groups("jane", &[AUTHENTICATED, "dev"]),
            [AUTHENTICATED, "dev"]
        );
        assert_eq!(groups("jane", &[UNAUTHENTICATED]), [UNAUTHENTICATED]);
        assert_eq!(groups(ANONYMOUS, &["dev"]), ["dev"]);
    }

    #[test]
    fn headers_of_front_proxies_are_removed() {
        let mut headers = HeaderMap::new();
        for name in [
            "x-remote-user",
            "x-remote-group",
            "x-remote-extra-scope",
            "x-other",
        ] {
            headers.append(name, HeaderValue::from_static("root"));
        }
        remove_remote(&mut headers);
        let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-other"]);
    }
}
