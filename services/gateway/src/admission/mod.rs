//! Admission: the order of a write ([`pipeline`]), and what a write passes on its way: the built-in plugins
//! ([`plugins`]), then policies and webhooks.
//!
//! [`Chain`] runs a request through policies and webhooks. Those that mutate are called in order, policies before
//! webhooks, and both once more if others have changed the object after them (`reinvocationPolicy`); validating
//! webhooks are called at the same time. Hooks select requests by [`constraints`] and match [`conditions`]. Expressions
//! are compiled once for each version of a policy or configuration ([`hooks`]); without any, a write costs one look
//! into the cache. Parts of a request that was admitted, such as the deletion by an eviction, are not admitted again.
//!
//! Annotations of the audit events have upstream's keys: what webhooks and policies add, webhooks that failed and are
//! ignored, and which webhooks have changed the object.

mod attributes;
mod authorizer;
mod chain;
mod conditions;
mod constraints;
mod hooks;
pub(crate) mod pipeline;
mod plugins;
pub(crate) mod pod_security_file;
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
pub use plugins::Selection;
#[cfg(test)]
pub(crate) use plugins::{Plugin, Reserving, Step};
pub(crate) use reader::Reader;
pub(crate) use reservation::Reservation;
use webhook::internal;

use std::sync::Arc;

use setpoint_pod_security::Configuration as PodSecurityConfiguration;
use setpoint_store::Store;
use setpoint_store::cache::Cache;

use crate::converter::Converter;
use crate::dial_policy::DialPolicy;
use crate::request::authorization::Authorizer;
use crate::service_ranges::ServiceRanges;
use crate::webhook::Clients;
use reader::StoreReader;

/// The admission of every write of a gateway: the built-in plugins, policies and webhooks.
pub(crate) struct Admission {
    plugins: Plugins,
    hooks: Hooks,
    webhooks: Clients,
    converter: Arc<Converter>,
    authorizer: Arc<Authorizer>,
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
            webhooks: Clients::new(cache.clone(), DialPolicy::default()),
            converter,
            authorizer: Arc::default(),
            cache,
        }
    }

    /// Sets the addresses of other processes that webhooks may be at.
    #[must_use]
    pub(crate) fn with_dial_policy(mut self, policy: DialPolicy) -> Self {
        self.webhooks = Clients::new(self.cache.clone(), policy);
        self
    }

    /// Sets the converter of custom objects.
    #[must_use]
    pub(crate) fn with_converter(self, converter: Arc<Converter>) -> Self {
        Self { converter, ..self }
    }

    /// Sets the configuration of Pod security.
    #[must_use]
    pub(crate) fn with_pod_security(mut self, configuration: PodSecurityConfiguration) -> Self {
        self.plugins.set_pod_security(configuration);
        self
    }

    /// Sets the ranges of the addresses and node ports of Services.
    #[must_use]
    pub(crate) fn with_service_ranges(mut self, ranges: ServiceRanges) -> Self {
        self.plugins.set_service_ranges(ranges);
        self
    }

    /// Turns plugins on and off; those that ask an authorizer must be there already.
    #[must_use]
    pub(crate) fn with_selection(mut self, selection: &Selection) -> Self {
        self.plugins.select(selection);
        self
    }

    /// Sets what decides about the permissions of users. Roles and bindings cannot be used to get more of them.
    #[must_use]
    pub(crate) fn with_authorizer(mut self, authorizer: Arc<Authorizer>) -> Self {
        self.plugins.ask(&authorizer, self.cache.kinds());
        Self { authorizer, ..self }
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

    /// Returns what decides about the permissions of users.
    fn authorizer(&self) -> &Arc<Authorizer> {
        &self.authorizer
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
