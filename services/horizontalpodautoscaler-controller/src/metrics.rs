//! Metrics: the port that reads usage, and the readings.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use setpoint_controller::Client;
use setpoint_controller::client::ListOptions;
use setpoint_model::Selector;
use setpoint_model::quantity::Amount;
use setpoint_proto::ApiError;
use setpoint_proto::custom_metrics::{MetricValue, MetricValueList};
use setpoint_proto::meta::LabelSelector;
use setpoint_proto::metrics::{ContainerMetrics, PodMetrics};

use crate::autoscaler::millis;

/// The value of a metric of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// In thousandths.
    pub value: i64,
    /// The end of the interval in which it was measured.
    pub at: Timestamp,
    /// The length of that interval.
    pub window: Duration,
}

/// The samples of Pods, by the names of the Pods.
pub type Samples = BTreeMap<String, Sample>;

/// What was read for a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A sample of each Pod that has one.
    Pods(Result<Samples, String>),
    /// Values of no Pod, in thousandths. The metric of an object has one.
    Values(Result<Vec<i64>, String>),
}

/// Reads the usage of resources by Pods.
pub trait ResourceMetrics: Send + Sync + 'static {
    /// Returns the usage of the selected Pods of a namespace.
    fn of_pods<'a>(
        &'a self,
        client: &'a Client,
        namespace: &'a str,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<PodMetrics>, ApiError>>;
}

/// The metrics that the gateway collects.
#[derive(Clone, Copy, Debug, Default)]
pub struct GatewayMetrics;

impl ResourceMetrics for GatewayMetrics {
    fn of_pods<'a>(
        &'a self,
        client: &'a Client,
        namespace: &'a str,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<PodMetrics>, ApiError>> {
        let options = ListOptions {
            namespace: namespace.to_owned(),
            labels: selector.to_string(),
            ..ListOptions::default()
        };
        let list = async move { Ok(client.list(&options).await?.items) };
        list.boxed()
    }
}

/// The window of a value that has none, as upstream's.
const WINDOW: Duration = Duration::from_secs(60);

/// Returns the samples of a custom metric of Pods.
pub fn pods_samples(list: &MetricValueList) -> Samples {
    let sample = |value: &MetricValue| {
        let seconds = value
            .window_seconds
            .and_then(|window| u64::try_from(window).ok());
        let sample = Sample {
            value: millis(&value.value),
            at: value.timestamp.timestamp().unwrap_or(Timestamp::MIN),
            window: seconds.map_or(WINDOW, Duration::from_secs),
        };
        (value.described_object.name.clone(), sample)
    };
    list.items.iter().map(sample).collect()
}

/// Returns the samples of a resource: of whole Pods, or of the containers of a name. A Pod has none if the usage of one
/// of its containers is not known.
pub fn resource_samples(pods: &[PodMetrics], resource: &str, container: Option<&str>) -> Samples {
    let sample = |pod: &PodMetrics| {
        let value = match container {
            None => sum(&pod.containers, resource),
            Some(name) => {
                let mut all = pod.containers.iter();
                usage(all.find(|container| container.name == name)?, resource)
            }
        };
        let window = pod.window.duration.max(0).unsigned_abs();
        let sample = Sample {
            value: value?,
            at: pod.timestamp.timestamp().unwrap_or(Timestamp::MIN),
            window: Duration::from_nanos(window),
        };
        Some((pod.metadata.name.clone(), sample))
    };
    pods.iter().filter_map(sample).collect()
}

fn sum(containers: &[ContainerMetrics], resource: &str) -> Option<i64> {
    let mut all = containers.iter();
    let first = usage(all.next()?, resource)?;
    all.try_fold(first, |sum, container| {
        Some(sum.saturating_add(usage(container, resource)?))
    })
}

fn usage(container: &ContainerMetrics, resource: &str) -> Option<i64> {
    let quantity = container.usage.get(resource)?;
    Some(Amount::parse(&quantity.string).ok()?.millis())
}

/// Returns a selector as upstream prints it in names of metrics.
pub(crate) fn describe(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else {
        return "nil".to_owned();
    };
    let mut text = "&LabelSelector{MatchLabels:map[string]string{".to_owned();
    for (key, value) in &selector.match_labels {
        let _ = write!(text, "{key}: {value},");
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for expression in &selector.match_expressions {
        let _ = write!(
            text,
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            expression.key,
            expression.operator,
            expression.values.join(" ")
        );
    }
    text.push_str("},}");
    text
}
