//! The adapter of metrics: custom.metrics.k8s.io and external.metrics.k8s.io from a Prometheus server, by rules of the
//! settings.
//!
//! ```text
//! metric ─▶ rule ─▶ PromQL (promql: pure) ─▶ Prometheus (bounded) ─▶ series ─▶ values (pure)
//! ```
//!
//! As prometheus-adapter does, a rule of the settings has the name of a metric and its query. HTTP clients read the two
//! groups, controllers the gRPC service `Metrics`; without a Prometheus server neither group is in discovery.
//!
//! * A template has `<<matchers>>` for the namespace, the objects and the selector of a request, and `<<by>>` for the
//!   label with the names of the objects. Names and values of requests are quoted, names of labels are checked, and a
//!   metric is only looked up among the rules, so that no request changes what a query means.
//! * A query is bounded in time (`metrics.timeout`, with the wait for one of 16 in flight) and in the size of its
//!   result (16 MiB).
//! * A value that is no number is none, so that replicas do not follow it; two series for one object are an error.

mod prometheus;
mod promql;
mod rules;
mod values;

use setpoint_codec::Kind;
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::core::Namespace;
use setpoint_proto::custom_metrics::{MetricIdentifier, MetricValueList};
use setpoint_proto::external_metrics::ExternalMetricValueList;
use setpoint_proto::meta::LabelSelector;
use setpoint_proto::setpoint::{CustomMetricRequest, ExternalMetricRequest};
use setpoint_proto::{ApiError, Reason, Resource as _};
use setpoint_store::cache::{AtLeast, Cache, Filter};

use prometheus::Prometheus;
use promql::Matchers;
use rules::Rules;
pub use rules::{CustomRule, ExternalRule, Settings};
use values::Objects;

/// The group of metrics of objects.
pub(crate) const CUSTOM: &str = "custom.metrics.k8s.io";
/// The versions of that group, the preferred one first.
pub(crate) const CUSTOM_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
/// The group of metrics of no object.
pub(crate) const EXTERNAL: &str = "external.metrics.k8s.io";
/// The version of that group.
pub(crate) const EXTERNAL_VERSION: &str = "v1beta1";
/// The resource whose objects are namespaces.
pub(crate) const NAMESPACES: &str = Namespace::RESOURCE;
/// The name that stands for all objects.
const ALL: &str = "*";

/// Answers requests for metrics.
#[derive(Debug)]
pub struct Adapter {
    prometheus: Prometheus,
    rules: Rules,
}

impl Adapter {
    /// Returns an adapter; `None` if the settings have no Prometheus server.
    ///
    /// # Errors
    /// The first invalid setting, or that TLS cannot be set up.
    pub fn new(settings: &Settings) -> Result<Option<Self>, String> {
        let rules = Rules::new(settings)?;
        let Some(url) = settings.url()? else {
            return Ok(None);
        };
        let prometheus = Prometheus::new(url, settings.timeout)?;
        Ok(Some(Self { prometheus, rules }))
    }

    /// Returns the resources with metrics, each with the name of a metric.
    pub(crate) fn custom_metrics(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rules.of_objects()
    }

    /// Returns the names of the metrics of no object.
    pub(crate) fn external_metrics(&self) -> impl Iterator<Item = &str> {
        self.rules.of_no_object()
    }

    /// Returns whether there are metrics of objects; without any, their group is not served.
    pub(crate) fn has_custom(&self) -> bool {
        self.custom_metrics().next().is_some()
    }

    /// Returns whether there are metrics of no object; without any, their group is not served.
    pub(crate) fn has_external(&self) -> bool {
        self.external_metrics().next().is_some()
    }

    /// Returns the values of a metric of one object, or of all that the request selects.
    ///
    /// # Errors
    /// `NotFound` if there is no rule for the metric, or the one object has no value; `BadRequest` for a selector that
    /// series cannot have; `InternalError` if Prometheus does not answer.
    pub(crate) async fn custom(
        &self,
        cache: &Cache,
        request: &CustomMetricRequest,
    ) -> Result<MetricValueList, ApiError> {
        let (metric, resource) = (request.metric.as_str(), request.resource.as_str());
        let kind = cache.kinds().by_resource(resource);
        let kind = kind.filter(|kind| has_metrics(kind, &request.namespace));
        let known = kind.zip(self.rules.custom(metric, resource));
        let (kind, (rule, label)) = known.ok_or_else(|| no_metric(metric, resource))?;
        let selector = selector(&request.metric_label_selector)?;
        let names = names(cache, kind, request).await?;
        if names.is_empty() {
            return Ok(MetricValueList::default());
        }
        let mut matchers = Matchers::default();
        if kind.namespaced {
            matchers.equal(&rule.namespace, &request.namespace);
        }
        matchers.one_of(label, &names);
        matchers.select(&selector).map_err(bad_request)?;
        let query = rule.query.fill(&matchers, label);
        let objects = Objects {
            kind,
            namespace: &request.namespace,
            names: &names,
            label,
        };
        let metric = MetricIdentifier {
            name: metric.to_owned(),
            selector: Some(selector).filter(|selector| *selector != LabelSelector::default()),
        };
        let list = values::of_objects(&objects, &metric, self.prometheus.query(query).await?)?;
        match list.items.is_empty() && request.name != ALL {
            true => {
                let of = format!("{resource} {}", request.name);
                Err(no_metric(&request.metric, &of))
            }
            false => Ok(list),
        }
    }

    /// Returns the values of a metric of no object.
    ///
    /// # Errors
    /// As [`Self::custom`].
    pub(crate) async fn external(
        &self,
        request: &ExternalMetricRequest,
    ) -> Result<ExternalMetricValueList, ApiError> {
        let metric = request.metric.as_str();
        let rule = self.rules.external(metric);
        let rule = rule.ok_or_else(|| no_metric(metric, NAMESPACES))?;
        let mut matchers = Matchers::default();
        if !rule.namespace.is_empty() {
            matchers.equal(&rule.namespace, &request.namespace);
        }
        let selector = selector(&request.metric_label_selector)?;
        matchers.select(&selector).map_err(bad_request)?;
        let series = self
            .prometheus
            .query(rule.query.fill(&matchers, ""))
            .await?;
        Ok(values::external(metric, series))
    }
}

/// Returns whether objects of a kind in this namespace, empty for none, can have metrics.
fn has_metrics(kind: &Kind, namespace: &str) -> bool {
    !kind.is_review && !kind.is_computed && kind.namespaced != namespace.is_empty()
}

/// Returns the names of the objects of a request.
async fn names(
    cache: &Cache,
    kind: &'static Kind,
    request: &CustomMetricRequest,
) -> Result<Vec<String>, ApiError> {
    if request.name != ALL {
        return Ok(vec![request.name.clone()]);
    }
    let labels = Selector::parse(&request.label_selector);
    let labels = labels.map_err(|error| bad_request(error.to_string()))?;
    let filter = Filter::new(kind, &request.namespace, labels, &Fields::default())?;
    let snapshot = cache.list(&filter, AtLeast::Newest).await?;
    let names = snapshot.items.iter().map(|item| item.key.name.clone());
    Ok(names.collect())
}

fn selector(text: &str) -> Result<LabelSelector, ApiError> {
    let parsed = Selector::parse(text).and_then(|selector| selector.to_label_selector());
    parsed.map_err(|error| bad_request(error.to_string()))
}

fn bad_request(message: String) -> ApiError {
    ApiError::new(Reason::BadRequest, message)
}

fn no_metric(metric: &str, of: &str) -> ApiError {
    let message = format!("the server could not find the metric {metric} for {of}");
    ApiError::new(Reason::NotFound, message)
}
