//! The options of authentication.

use std::time::Duration;

use setpoint_apiserver_config::authentication::Configuration;

use super::{StaticTokens, TokenWebhook};

/// The credentials that are accepted beside client certificates and tokens of ServiceAccounts.
pub struct Options {
    /// Whether requests without credentials are those of `system:anonymous` over TLS; otherwise they are refused,
    /// whatever the configuration says.
    pub anonymous: bool,
    /// Whether bootstrap tokens are accepted.
    pub bootstrap_tokens: bool,
    /// The tokens of the token file.
    pub static_tokens: StaticTokens,
    /// The server that is asked about tokens that nothing else knows.
    pub token_webhook: Option<TokenWebhook>,
    /// The issuers of other tokens, and the paths that may be requested without credentials.
    pub configuration: Configuration,
    /// The name of this server in metrics.
    pub instance: String,
    /// The time for which a key signs tokens of ServiceAccounts, before the next one does; `None` for ever.
    pub token_key_lifetime: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            anonymous: true,
            bootstrap_tokens: true,
            static_tokens: StaticTokens::default(),
            token_webhook: None,
            configuration: Configuration::default(),
            instance: String::new(),
            token_key_lifetime: None,
        }
    }
}
