//! The registry: reads over the store and its cache, and what writes share with them.
//!
//! Reads are served by the cache, except for later pages of a list. A write is made by a verb; its order is that of
//! [`crate::admission::pipeline`]. The current object of an update is read from the cache, which may be stale; the
//! transaction detects that, and the write is repeated with the stored object.

pub(crate) mod conversion;
mod response;
mod selection;
pub(crate) mod target;

use std::sync::Arc;
use std::time::Duration;

use setpoint_audit::Auditor;
use setpoint_codec::Object;
use setpoint_kinds::versions;
use setpoint_pod_security::Configuration as PodSecurityConfiguration;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::Store;
use setpoint_store::cache::Cache;

use crate::admission::{Admission, Selection};
use crate::aggregation::Aggregator;
use crate::converter::Converter;
use crate::dial_policy::DialPolicy;
use crate::prometheus_adapter::Adapter;
use crate::request::Attributes;
use crate::request::authentication::{Authenticator, Options};
use crate::request::authorization::{
    Authorizer, Configuration as AuthorizationConfiguration, Mode,
};
use crate::request::flow_control::FlowControl;
use crate::request::impersonation::Impersonation;
use crate::request::service_account::ServiceAccountTokens;
use crate::server_info::ServerInfo;
use crate::service_ranges::ServiceRanges;
use crate::usage::Usage;

pub(crate) use crate::errors::{self, readable};
pub use crate::request_context::RequestContext;
pub use response::ObjectResponse;
pub use setpoint_kinds::{Subresource, Target};
pub use setpoint_store::cache::{AtLeast, Before, Cached, Event, Filter, Start, Watch, WatchSpec};

/// All verbs, over a store and its cache.
pub struct Registry {
    store: Arc<dyn Store>,
    cache: Cache,
    admission: Admission,
    dial_policy: DialPolicy,
    converter: Arc<Converter>,
    server: ServerInfo,
    usage: Usage,
    adapter: Option<Adapter>,
    aggregator: Aggregator,
    authenticator: Authenticator,
    impersonation: Impersonation,
    authorizer: Arc<Authorizer>,
    auditor: Option<Arc<Auditor>>,
    flow_control: Arc<FlowControl>,
    service_ranges: ServiceRanges,
}

impl Registry {
    /// Returns a registry over a store; `cache` must be the cache of that store.
    pub fn new(store: Arc<dyn Store>, cache: Cache) -> Self {
        let converter = Arc::new(Converter::new(cache.clone(), DialPolicy::default()));
        Self {
            authenticator: Authenticator::new(store.clone(), cache.clone()),
            impersonation: Impersonation::default(),
            admission: Admission::new(store.clone(), cache.clone(), converter.clone()),
            converter,
            store,
            cache,
            dial_policy: DialPolicy::default(),
            server: ServerInfo::default(),
            usage: Usage::default(),
            adapter: None,
            aggregator: Aggregator::default(),
            authorizer: Arc::default(),
            auditor: None,
            flow_control: Arc::new(FlowControl::default()),
            service_ranges: ServiceRanges::default(),
        }
    }

    /// Sets the addresses of other processes that the gateway may call.
    #[must_use]
    pub fn with_dial_policy(mut self, policy: DialPolicy) -> Self {
        self.admission = self.admission.with_dial_policy(policy.clone());
        self.dial_policy = policy.clone();
        let converter = Converter::new(self.cache.clone(), policy);
        self.with_converter(converter)
    }

    /// Sets the timeout of a call of a conversion webhook.
    #[must_use]
    pub fn with_conversion_timeout(self, timeout: Duration) -> Self {
        let converter = Converter::new(self.cache.clone(), self.dial_policy.clone());
        self.with_converter(converter.with_timeout(timeout))
    }

    fn with_converter(mut self, converter: Converter) -> Self {
        self.converter = Arc::new(converter);
        self.admission = self.admission.with_converter(self.converter.clone());
        self
    }

    /// Returns the converter of custom objects.
    pub(crate) fn converter(&self) -> &Converter {
        &self.converter
    }

    /// Returns what every write passes.
    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Adds an admission plugin behind the others.
    #[cfg(test)]
    pub(crate) fn with_plugin(mut self, plugin: Box<dyn crate::admission::Plugin>) -> Self {
        self.admission.push_plugin(plugin);
        self
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

    /// Sets which credentials are accepted.
    ///
    /// # Errors
    /// If TLS to an issuer of tokens cannot be set up.
    ///
    /// # Panics
    /// With an issuer outside of a Tokio runtime.
    pub fn with_authentication(mut self, options: Options) -> Result<Self, String> {
        let (store, cache) = (self.store.clone(), self.cache.clone());
        self.authenticator = Authenticator::with_options(store, cache, options)?;
        Ok(self)
    }

    /// Returns what decides whose a request is.
    pub(crate) fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }

    /// Returns what decides as whom a request acts.
    pub(crate) fn impersonation(&self) -> &Impersonation {
        &self.impersonation
    }

    /// Sets what records requests. Without, nothing does.
    #[must_use]
    pub fn with_auditor(mut self, auditor: Option<Arc<Auditor>>) -> Self {
        self.auditor = auditor;
        self
    }

    /// Returns what records requests.
    pub(crate) fn auditor(&self) -> Option<&Arc<Auditor>> {
        self.auditor.as_ref()
    }

    /// Sets the limits on the requests that are executed at a time.
    #[must_use]
    pub(crate) fn with_flow_control(mut self, control: FlowControl) -> Self {
        self.flow_control = Arc::new(control);
        self
    }

    /// Sets the number of requests that are executed at a time, which the priority levels share.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_seats(self, seats: usize) -> Self {
        self.with_flow_control(FlowControl::new(seats, 0))
    }

    /// Returns the limits on the requests that are executed at a time.
    pub(crate) fn flow_control(&self) -> &FlowControl {
        &self.flow_control
    }

    /// Sets the modes of authorization. Without, everything is allowed.
    ///
    /// # Panics
    /// With [`Mode::Rbac`] outside of a Tokio runtime.
    #[must_use]
    pub fn with_authorization(self, modes: &[Mode]) -> Self {
        let authorizer = Authorizer::new(modes, &self.cache);
        self.with_authorizer(authorizer)
    }

    /// Sets the authorizers of a configuration.
    ///
    /// # Errors
    /// If the kubeconfig file of a webhook cannot be read or is wrong.
    ///
    /// # Panics
    /// With the type RBAC outside of a Tokio runtime.
    pub fn with_authorizers(
        self,
        configuration: AuthorizationConfiguration,
    ) -> Result<Self, String> {
        let authorizer = Authorizer::configured(configuration, &self.cache)?;
        Ok(self.with_authorizer(authorizer))
    }

    fn with_authorizer(mut self, authorizer: Authorizer) -> Self {
        let authorizer = Arc::new(authorizer);
        self.admission = self.admission.with_authorizer(authorizer.clone());
        self.authorizer = authorizer;
        self
    }

    /// Sets the configuration of Pod security. Without, every namespace is privileged unless its labels say otherwise.
    #[must_use]
    pub fn with_pod_security(mut self, configuration: PodSecurityConfiguration) -> Self {
        self.admission = self.admission.with_pod_security(configuration);
        self
    }

    /// Sets the ranges of the addresses and node ports of Services.
    #[must_use]
    pub(crate) fn with_service_ranges(mut self, ranges: ServiceRanges) -> Self {
        self.admission = self.admission.with_service_ranges(ranges.clone());
        self.service_ranges = ranges;
        self
    }

    /// Like [`Self::with_service_ranges`], with the texts of both settings.
    ///
    /// # Errors
    /// The setting that is wrong, and why.
    #[cfg(feature = "testing")]
    pub fn with_service_range_texts(self, addresses: &str, ports: &str) -> Result<Self, String> {
        Ok(self.with_service_ranges(ServiceRanges::parse(addresses, ports)?))
    }

    /// Returns the ranges of the addresses and node ports of Services.
    pub(crate) fn service_ranges(&self) -> &ServiceRanges {
        &self.service_ranges
    }

    /// Turns admission plugins on and off, after the modes of authorization are set.
    #[must_use]
    pub fn with_admission_plugins(mut self, selection: &Selection) -> Self {
        self.admission = self.admission.with_selection(selection);
        self
    }

    /// Returns what decides about the permissions of users.
    pub(crate) fn authorizer(&self) -> &Authorizer {
        &self.authorizer
    }

    /// Authorizes something that the user of a request asks for.
    ///
    /// # Errors
    /// Those of [`Authorizer::authorize`].
    pub(crate) async fn authorize(
        &self,
        context: &RequestContext,
        asked: &Attributes,
    ) -> Result<(), ApiError> {
        self.authorizer.authorize(&context.user, asked).await
    }

    /// Returns whether the user of a request may do something that a response is reduced by, instead of being refused.
    pub(crate) fn allows(&self, context: &RequestContext, asked: &Attributes) -> bool {
        self.authorizer.allows(&context.user, asked)
    }

    /// Returns the addresses of other processes that the gateway may call.
    pub(crate) fn dial_policy(&self) -> &DialPolicy {
        &self.dial_policy
    }

    /// Returns the resource usage of Pods.
    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
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
    pub(crate) fn tokens(&self) -> &ServiceAccountTokens {
        self.authenticator.service_accounts()
    }
}

/// Returns the object of a request in the form that it is processed in. If it is not of the kind that the URL names,
/// returns `BadRequest`.
pub(crate) fn expect_kind(
    object: Box<dyn Object>,
    target: &Target,
) -> Result<Box<dyn Object>, ApiError> {
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
