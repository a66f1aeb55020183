//! The metrics of tokens of ServiceAccounts in Secrets, with upstream's names.

use std::sync::LazyLock;

use prometheus::{IntCounter, register_int_counter};

/// The way in which a token is used.
#[derive(Clone, Copy)]
pub(crate) enum LegacyToken {
    /// Any, before it is verified.
    Any,
    /// One that its account lists.
    Generated,
    /// One that was made by hand.
    Manual,
    /// One that is no longer valid.
    Invalid,
}

static USES: LazyLock<[IntCounter; 4]> = LazyLock::new(|| {
    let counter = |name: &str, help: &str| {
        let name = format!("serviceaccount_{name}_total");
        register_int_counter!(name, help).expect("the name is used once")
    };
    [
        counter(
            "legacy_tokens",
            "Cumulative legacy service account tokens used",
        ),
        counter(
            "legacy_auto_token_uses",
            "Cumulative auto-generated legacy tokens used",
        ),
        counter(
            "legacy_manual_token_uses",
            "Cumulative manually created legacy tokens used",
        ),
        counter(
            "invalid_legacy_auto_token_uses",
            "Cumulative invalid auto-generated legacy tokens used",
        ),
    ]
});

/// Counts the use of a token.
pub(crate) fn legacy_token_used(token: LegacyToken) {
    let [any, generated, manual, invalid] = &*USES;
    match token {
        LegacyToken::Any => any.inc(),
        LegacyToken::Generated => generated.inc(),
        LegacyToken::Manual => manual.inc(),
        LegacyToken::Invalid => invalid.inc(),
    }
}
