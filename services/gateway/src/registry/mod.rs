//! The registry: the verbs of the API over the store and its cache.
//!
//! A write passes access → defaults → mutating webhooks → preparation → validation → policies and validating webhooks → one transaction. The current object is read from the
//! cache, which may be stale; the transaction detects that, and the write is repeated with the stored object. Reads are
//! served by the cache, except for later pages of a list.

mod aggregated;
pub(crate) mod conversion;
pub(crate) mod errors;
mod request_context;
mod response;
mod selection;
pub(crate) mod target;
mod verbs;
pub(crate) mod write;

use std::sync::Arc;
use std::time::Duration;

use setpoint_codec::Object;
use setpoint_kinds::versions;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::Store;
use setpoint_store::cache::Cache;

use crate::admission::{Hooks, Plugins, StoreReader};
use crate::aggregation::Aggregator;
use crate::converter::Converter;
use crate::dial_policy::DialPolicy;
use crate::prometheus_adapter::Adapter;
use crate::request::service_account::Tokens;
use crate::server_info::ServerInfo;
use crate::usage::Usage;
use crate::webhook::Clients;

pub(crate) use errors::readable;
pub use request_context::RequestContext;
pub use response::ObjectResponse;
pub use setpoint_kinds::{Subresource, Target};
pub use setpoint_store::cache::{AtLeast, Before, Cached, Event, Filter, Start, Watch, WatchSpec};
pub(crate) use verbs::create::Owner;
pub use verbs::delete::Deleted;
pub(crate) use verbs::patch::resets_managers;
pub use verbs::patch::{Check, Patch};
pub use verbs::read::{List, ListParams, RevisionMatch};

/// All verbs, over a store and its cache.
pub struct Registry {
    store: Arc<dyn Store>,
    cache: Cache,
    plugins: Plugins,
    hooks: Hooks,
    dial_policy: DialPolicy,
    converter: Converter,
    webhooks: Clients,
    server: ServerInfo,
    usage: Usage,
    adapter: Option<Adapter>,
    aggregator: Aggregator,
    tokens: Tokens,
}

impl Registry {
    /// Returns a registry over a store; `cache` must be the cache of that store.
    pub fn new(store: Arc<dyn Store>, cache: Cache) -> Self {
        let plugins = Plugins::new(StoreReader {
            store: store.clone(),
            cache: cache.clone(),
        });
        Self {
            converter: Converter::new(cache.clone(), DialPolicy::default()),
            webhooks: Clients::new(cache.clone(), DialPolicy::default()),
            tokens: Tokens::new(store.clone(), cache.clone()),
            store,
            cache,
            plugins,
            hooks: Hooks::default(),
            dial_policy: DialPolicy::default(),
            server: ServerInfo::default(),
            usage: Usage::default(),
            adapter: None,
            aggregator: Aggregator::default(),
        }
    }

    /// Sets the addresses of other processes that the gateway may call.
    #[must_use]
    pub fn with_dial_policy(mut self, policy: DialPolicy) -> Self {
        self.converter = Converter::new(self.cache.clone(), policy.clone());
        self.webhooks = Clients::new(self.cache.clone(), policy.clone());
        self.dial_policy = policy;
        self
    }

    /// Sets the timeout of a call of a conversion webhook.
    #[must_use]
    pub fn with_conversion_timeout(mut self, timeout: Duration) -> Self {
        self.converter = self.converter.with_timeout(timeout);
        self
    }

    /// Returns the converter of custom objects.
    pub(crate) fn converter(&self) -> &Converter {
        &self.converter
    }

    /// Returns the clients of admission webhooks.
    pub(crate) fn webhooks(&self) -> &Clients {
        &self.webhooks
    }

    /// Sets what the gateway publishes about itself.
    #[must_use]
    pub fn with_server(mut self, server: ServerInfo) -> Self {
        self.server = server;
        self
    }

    /// Returns what the gateway publishes about itself.
    pub(crate) fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// Sets the adapter of metrics.
    #[must_use]
    pub fn with_adapter(mut self, adapter: Option<Adapter>) -> Self {
        self.adapter = adapter;
        self
    }

    /// Returns the adapter of metrics; `None` if there is no Prometheus server.
    pub(crate) fn adapter(&self) -> Option<&Adapter> {
        self.adapter.as_ref()
    }

    /// Sets the aggregator of other API servers.
    #[must_use]
    pub(crate) fn with_aggregator(mut self, aggregator: Aggregator) -> Self {
        self.aggregator = aggregator;
        self
    }

    /// Returns the aggregator of other API servers.
    pub(crate) fn aggregator(&self) -> &Aggregator {
        &self.aggregator
    }

    /// Returns the addresses of other processes that the gateway may call.
    pub(crate) fn dial_policy(&self) -> &DialPolicy {
        &self.dial_policy
    }

    /// Returns the resource usage of Pods.
    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns the built-in admission plugins.
    pub(crate) fn plugins(&self) -> &Plugins {
        &self.plugins
    }

    /// Returns the policies and webhooks that requests pass.
    pub(crate) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Returns the store that the verbs write to.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Returns the cache that the verbs read from.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Returns the tokens of ServiceAccounts.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }
}

/// Returns the object of a request in the form that it is processed in. If it is not of the kind that the URL names, returns `BadRequest`.
fn expect_kind(object: Box<dyn Object>, target: &Target) -> Result<Box<dyn Object>, ApiError> {
    let (sent, kind) = (object.kind(), target.served);
    if sent == kind {
        return Ok(versions::to_stored(object));
    }
    let message = format!(
        "the {} in the data ({}) does not match the expected {} ({})",
        sent.kind,
        sent.api_version(),
        kind.kind,
        kind.api_version()
    );
    Err(ApiError::new(Reason::BadRequest, message))
}
