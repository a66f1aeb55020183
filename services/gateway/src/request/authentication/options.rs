//! The options of authentication.

use std::time::Duration;

use super::StaticTokens;

/// The credentials that are accepted beside client certificates and tokens of ServiceAccounts.
pub struct Options {
    /// Whether requests without credentials are those of `system:anonymous` over TLS; otherwise they are refused.
    pub anonymous: bool,
    /// Whether bootstrap tokens are accepted.
    pub bootstrap_tokens: bool,
    /// The tokens of the token file.
    pub static_tokens: StaticTokens,
    /// The time for which a key signs tokens of ServiceAccounts, before the next one does; `None` for ever.
    pub token_key_lifetime: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            anonymous: true,
            bootstrap_tokens: true,
            static_tokens: StaticTokens::default(),
            token_key_lifetime: None,
        }
    }
}
