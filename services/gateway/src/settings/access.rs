//! The settings of authentication and authorization.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;

use super::{Settings, named};
use crate::request::authentication::{
    self, Configuration as AuthenticationConfiguration, Options as AuthenticationOptions,
    StaticTokens, TokenWebhook,
};
use crate::request::authorization::{self, Configuration as AuthorizationConfiguration, Mode};

/// The default of the modes of authorization.
const DEFAULT_MODES: [&str; 2] = ["Node", "RBAC"];

/// The credentials of users, beside client certificates and tokens of ServiceAccounts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Authentication {
    /// Whether requests without credentials are those of system:anonymous; otherwise, and with the mode AlwaysAllow of
    /// authorization, they are refused. On a connection without TLS, they are those of the administrator.
    anonymous: bool,
    /// Whether the tokens of Secrets `kube-system/bootstrap-token-<id>` are accepted.
    bootstrap_tokens: bool,
    /// File with the certificates of the CAs by which clients are known, in PEM; several during a change of the CA.
    /// Empty for those of `tls.ca_file`, which are trusted for servers, too.
    client_ca_file: PathBuf,
    /// Whether clients are known by the CA of the signers `kubernetes.io/…`, too, that the Secret
    /// setpoint-system/cluster-signer has if no file names it.
    cluster_signer: bool,
    /// File with an AuthenticationConfiguration (apiserver.config.k8s.io/v1): issuers of OpenID Connect tokens, with
    /// what their claims become, and the paths that may be requested without credentials. It is read again when it
    /// changes, but for the rule for requests without credentials. Empty for none.
    #[serde(default)]
    configuration_file: PathBuf,
    /// File with tokens, read at start; empty for none. Each line has the columns token, user, uid and, if the user has
    /// any, groups (`"dev,ops"`).
    token_file: PathBuf,
    /// Time after which another key signs tokens of ServiceAccounts; 0s for never. Tokens of the former keys stay
    /// valid.
    #[serde(with = "DurationText")]
    token_key_lifetime: Duration,
    /// Time for which an answer about a token of the server of `authentication.token_webhook_config_file` is used
    /// again; 0s for never.
    #[serde(with = "DurationText", default = "token_webhook_cache_ttl")]
    token_webhook_cache_ttl: Duration,
    /// Kubeconfig file with the URL and the credentials of a server that is asked by TokenReviews
    /// (authentication.k8s.io/v1) about tokens that nothing else knows, read at start; empty for none.
    #[serde(default)]
    token_webhook_config_file: PathBuf,
}

/// The time for which an answer about a token is used again, as upstream.
const fn token_webhook_cache_ttl() -> Duration {
    Duration::from_secs(2 * 60)
}

/// The permissions of users.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Authorization {
    /// File with an AuthorizationConfiguration (apiserver.config.k8s.io/v1): the authorizers, of which some may be
    /// webhooks, in the order in which they are asked. It is read again when it changes. Then `authorization.modes`
    /// must be as by default, and does not count. Empty for none.
    #[serde(default)]
    configuration_file: PathBuf,
    /// Modes, of which one must allow a request: AlwaysAllow, AlwaysDeny, Node, which allows nodes what they need for
    /// themselves and their Pods, or RBAC, by which roles and bindings grant permissions. Members of system:masters may
    /// do anything.
    pub(super) modes: Vec<String>,
}

impl Default for Authentication {
    fn default() -> Self {
        Self {
            anonymous: true,
            bootstrap_tokens: true,
            client_ca_file: PathBuf::new(),
            cluster_signer: true,
            configuration_file: PathBuf::new(),
            token_file: PathBuf::new(),
            token_key_lifetime: Duration::from_secs(90 * 24 * 60 * 60),
            token_webhook_cache_ttl: token_webhook_cache_ttl(),
            token_webhook_config_file: PathBuf::new(),
        }
    }
}

impl Default for Authorization {
    fn default() -> Self {
        Self {
            configuration_file: PathBuf::new(),
            modes: DEFAULT_MODES.map(str::to_owned).into(),
        }
    }
}

impl Settings {
    /// Returns which credentials are accepted. Where these modes allow every user everything, nobody may remain
    /// unknown, as upstream.
    ///
    /// # Errors
    /// If a file cannot be read or is wrong.
    pub(crate) fn authentication(&self, modes: &[Mode]) -> Result<AuthenticationOptions, String> {
        let settings = &self.authentication;
        let lifetime = settings.token_key_lifetime;
        let static_tokens = match named(&settings.token_file) {
            None => StaticTokens::default(),
            Some(file) => StaticTokens::read(&file)?,
        };
        let configuration = match self.authentication_file() {
            Some(file) => authentication::read_configuration(&file)
                .map_err(|error| in_line("authentication.configuration_file", &error))?,
            None => AuthenticationConfiguration::default(),
        };
        if configuration.anonymous.is_some() && !settings.anonymous {
            let error = "authentication.anonymous cannot be set when anonymous field is configured in \
                         authentication.configuration_file";
            return Err(error.to_owned());
        }
        let token_webhook = named(&settings.token_webhook_config_file)
            .map(|file| TokenWebhook::read(&file, settings.token_webhook_cache_ttl))
            .transpose()
            .map_err(|error| format!("authentication.token_webhook_config_file: {error}"))?;
        Ok(AuthenticationOptions {
            anonymous: settings.anonymous && !modes.contains(&Mode::AlwaysAllow),
            bootstrap_tokens: settings.bootstrap_tokens,
            configuration,
            static_tokens,
            token_webhook,
            token_key_lifetime: Some(lifetime).filter(|lifetime| !lifetime.is_zero()),
            instance: String::new(),
        })
    }

    /// Returns the file with the configuration of authentication, if there is one.
    pub(crate) fn authentication_file(&self) -> Option<PathBuf> {
        named(&self.authentication.configuration_file)
    }

    /// Returns the file with the CAs of clients, if there is one of its own.
    pub(crate) fn client_ca_file(&self) -> Option<PathBuf> {
        named(&self.authentication.client_ca_file)
    }

    /// Returns whether clients are known by the CA of the signers.
    pub(crate) fn knows_signers(&self) -> bool {
        self.authentication.cluster_signer
    }

    /// Returns what decides about the permissions of users.
    ///
    /// # Errors
    /// If a mode is not valid, or the file cannot be read or is wrong.
    pub(crate) fn authorization(&self) -> Result<Authorizers, String> {
        let (modes, file) = (&self.authorization.modes, self.authorization_file());
        let Some(file) = file else {
            return Mode::parse_all(modes).map(Authorizers::Modes);
        };
        if *modes != DEFAULT_MODES {
            let error = "authorization.modes cannot be specified when authorization.configuration_file is set";
            return Err(error.to_owned());
        }
        let read = authorization::read_configuration(&file);
        read.map(Authorizers::File)
            .map_err(|error| in_line("authorization.configuration_file", &error))
    }

    /// Returns the file with the configuration of authorization, if there is one.
    pub(crate) fn authorization_file(&self) -> Option<PathBuf> {
        named(&self.authorization.configuration_file)
    }
}

/// Returns the error of a setting in one line: those of expressions have several.
fn in_line(setting: &str, error: &str) -> String {
    let lines = error.lines().map(str::trim);
    format!("{setting}: {}", lines.collect::<Vec<_>>().join(" "))
}

/// The authorizers of requests.
pub(crate) enum Authorizers {
    Modes(Vec<Mode>),
    File(AuthorizationConfiguration),
}

impl Authorizers {
    /// Returns the modes, of which a file has webhooks besides.
    pub(crate) fn modes(&self) -> Vec<Mode> {
        match self {
            Self::Modes(modes) => modes.clone(),
            Self::File(configuration) => Mode::of(configuration),
        }
    }

    /// Checks the files that they name.
    pub(super) fn check(self) -> Result<(), String> {
        match self {
            Self::Modes(_) => Ok(()),
            Self::File(configuration) => authorization::check_configuration(configuration)
                .map_err(|error| format!("authorization.configuration_file: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F29.
    #[test]
    fn nobody_is_anonymous_where_everything_is_allowed() {
        let mut settings = Settings::default();
        let anonymous = |settings: &Settings| {
            let modes = settings.authorization().unwrap().modes();
            settings.authentication(&modes).unwrap().anonymous
        };
        assert!(anonymous(&settings));
        settings.authorization.modes = vec!["RBAC".to_owned(), "AlwaysAllow".to_owned()];
        assert!(!anonymous(&settings));
    }
}
