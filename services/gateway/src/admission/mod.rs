//! Admission by policies and webhooks, as upstream's plugins.
//!
//! ```text
//! object with defaults ─▶ mutating policies, in order                                       (`policy::mutating`)
//!   ─▶ mutating webhooks, in order; both again if others have changed it later               (`webhook::mutating`)
//!   ─▶ defaults, validation
//!   ─▶ validating policies                                                                    (`policy`)
//!   ─▶ validating webhooks, at the same time                                                  (`webhook::validating`)
//!   ─▶ commit
//! ```
//!
//! [`Chain`] is the way of one request through it. Both kinds of hooks select requests by [`constraints`] and match [`conditions`].
//! Expressions are compiled once for each version of a policy or configuration (`hooks`). Without any, a write costs one look into
//! the cache. Parts of a request that was admitted, such as the deletion by an eviction, are not admitted again. There is no audit log.

mod attributes;
mod authorizer;
mod chain;
mod conditions;
mod constraints;
mod hooks;
pub(crate) mod pipeline;
mod plugins;
mod policy;
mod reader;
mod reinvocation;
mod replacement;
mod request;
mod request_data;
mod reservation;
mod webhook;

pub(crate) use attributes::{Attributes, Operation};
pub(crate) use chain::Chain;
use hooks::Hooks;
use plugins::Plugins;
#[cfg(test)]
pub(crate) use plugins::{Plugin, Reserving, Step};
pub(crate) use reader::Reader;
pub(crate) use reservation::Reservation;
use webhook::internal;

use std::sync::Arc;

use setpoint_store::Store;
use setpoint_store::cache::Cache;

use crate::converter::Converter;
use crate::peers::Peers;
use crate::webhook::Clients;
use reader::StoreReader;

/// What every write of a gateway passes: the built-in plugins, policies and webhooks.
pub(crate) struct Admission {
    plugins: Plugins,
    hooks: Hooks,
    webhooks: Clients,
    converter: Arc<Converter>,
    cache: Cache,
}

impl Admission {
    /// Returns the admission of writes to a store; `cache` must be the cache of that store.
    pub(crate) fn new(store: Arc<dyn Store>, cache: Cache, converter: Arc<Converter>) -> Self {
        Self {
            plugins: Plugins::new(StoreReader {
                store,
                cache: cache.clone(),
            }),
            hooks: Hooks::default(),
            webhooks: Clients::new(cache.clone(), Peers::default()),
            converter,
            cache,
        }
    }

    /// Sets the addresses of other processes that webhooks may be at.
    #[must_use]
    pub(crate) fn with_peers(mut self, peers: Peers) -> Self {
        self.webhooks = Clients::new(self.cache.clone(), peers);
        self
    }

    /// Sets the converter of custom objects.
    #[must_use]
    pub(crate) fn with_converter(self, converter: Arc<Converter>) -> Self {
        Self { converter, ..self }
    }

    /// Adds a plugin behind the others.
    #[cfg(test)]
    pub(crate) fn push_plugin(&mut self, plugin: Box<dyn Plugin>) {
        self.plugins.push(plugin);
    }

    /// Returns the built-in plugins.
    fn plugins(&self) -> &Plugins {
        &self.plugins
    }

    /// Returns the policies and webhooks.
    fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Returns the clients of webhooks.
    fn webhooks(&self) -> &Clients {
        &self.webhooks
    }

    /// Returns the converter of custom objects.
    fn converter(&self) -> &Converter {
        &self.converter
    }

    /// Returns the cache that policies, webhooks and their parameters are read from.
    fn cache(&self) -> &Cache {
        &self.cache
    }
}
