//! Tokens of all kinds.

use std::sync::Arc;

use setpoint_kinds::Identity;
use setpoint_store::Store;
use setpoint_store::cache::{AtLeast, Cache};

use super::bootstrap_token::BootstrapTokens;
use super::oidc::Issuers;
use super::{INVALID, Options, StaticTokens, TokenWebhook, Verified, own_audiences};
use crate::request::TokenKeys;
use crate::request::service_account::ServiceAccountTokens;

/// Verifies tokens: those of the token file, of ServiceAccounts, bootstrap tokens, those of issuers, and those that a
/// webhook knows, in this order.
pub(super) struct Tokens {
    from_file: StaticTokens,
    service_accounts: ServiceAccountTokens,
    bootstrap: Option<BootstrapTokens>,
    issuers: Issuers,
    webhook: Option<TokenWebhook>,
}

impl Tokens {
    /// Returns the tokens of a cluster; `cache` is the cache of the store. There are no issuers yet.
    pub(super) fn new(store: Arc<dyn Store>, cache: Cache, options: Options) -> Self {
        let keys = TokenKeys::new(store, options.token_key_lifetime);
        let bootstrap = || BootstrapTokens::new(cache.clone());
        Self {
            issuers: Issuers::new(options.instance),
            webhook: options.token_webhook,
            from_file: options.static_tokens,
            bootstrap: options.bootstrap_tokens.then(bootstrap),
            service_accounts: ServiceAccountTokens::new(keys, cache),
        }
    }

    pub(super) fn service_accounts(&self) -> &ServiceAccountTokens {
        &self.service_accounts
    }

    pub(super) fn issuers(&self) -> &Issuers {
        &self.issuers
    }

    /// Returns the user of a token, and the audiences that both it and the caller name.
    ///
    /// # Errors
    /// The reasons of all kinds that it may be of.
    pub(super) async fn verify(
        &self,
        token: &str,
        audiences: &[String],
        at: AtLeast,
    ) -> Result<Verified, String> {
        let mut failures = Vec::new();
        let own = own(audiences);
        if !own.is_empty()
            && let Some(user) = self.from_file.user(token)
        {
            return Ok(Verified::of(user.clone(), own));
        }
        match self.service_accounts.verify(token, audiences, at).await {
            Ok(Some(verified)) => return Ok(verified),
            Ok(None) => {}
            Err(why) => failures.push(why),
        }
        if !own.is_empty() {
            match self.of_bootstrap(token, at).await {
                Ok(Some(user)) => return Ok(Verified::of(user, own)),
                Ok(None) => {}
                Err(why) => failures.push(why),
            }
            match self.issuers.verify(token).await {
                Some(Ok(user)) => return Ok(Verified::of(user, own)),
                None => {}
                Some(Err(why)) => failures.push(why),
            }
        }
        match self.of_webhook(token, audiences).await {
            Ok(Some(verified)) => return Ok(verified),
            Ok(None) => {}
            Err(why) => failures.push(why),
        }
        Err(joined(failures))
    }

    async fn of_webhook(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Option<Verified>, String> {
        match &self.webhook {
            Some(webhook) => webhook.verify(token, audiences).await,
            None => Ok(None),
        }
    }

    async fn of_bootstrap(&self, token: &str, at: AtLeast) -> Result<Option<Identity>, String> {
        match &self.bootstrap {
            Some(tokens) => tokens.user(token, at).await,
            None => Ok(None),
        }
    }
}

/// Returns those of the audiences that are this server: tokens without audiences of their own are for it alone.
fn own(audiences: &[String]) -> Vec<String> {
    let own = own_audiences().into_iter();
    own.filter(|one| audiences.contains(one)).collect()
}

fn joined(failures: Vec<String>) -> String {
    match failures.as_slice() {
        [] => INVALID.to_owned(),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
