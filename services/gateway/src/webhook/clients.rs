//! The clients of all webhooks, so that their connections are used again.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_store::cache::Cache;

use super::client::Client;
use super::{Config, Error};
use crate::dial_policy::DialPolicy;

/// The maximum number of clients. Others are made anew when they are needed.
const MAX: usize = 256;

/// Clients by the names of their webhooks.
pub(crate) struct Clients {
    cache: Cache,
    policy: DialPolicy,
    known: Mutex<HashMap<String, Arc<Client>>>,
}

impl Clients {
    /// Returns clients that find Services in a cache, and that call no address that `policy` excludes.
    pub(crate) fn new(cache: Cache, policy: DialPolicy) -> Self {
        Self {
            cache,
            policy,
            known: Mutex::default(),
        }
    }

    /// Returns the client of a webhook. It is replaced when its config changes.
    ///
    /// # Errors
    /// If the config is not valid.
    pub(crate) fn get(&self, name: &str, config: &Config) -> Result<Arc<Client>, Error> {
        let mut known = self.known.lock();
        if let Some(client) = known.get(name).filter(|client| client.config() == config) {
            return Ok(client.clone());
        }
        let client = Client::new(config.clone(), self.cache.clone(), self.policy.clone())?;
        let client = Arc::new(client);
        if known.len() >= MAX {
            let other = known.keys().next().cloned();
            other.map(|other| known.remove(&other));
        }
        known.insert(name.to_owned(), client.clone());
        Ok(client)
    }
}
