//! The replicas that the metrics ask for: those of the metric that asks for the most.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_model::Selector;
use setpoint_model::quantity::Amount;
use setpoint_proto::autoscaling_v2::{
    ContainerResourceMetricStatus, CrossVersionObjectReference, ExternalMetricStatus,
    MetricIdentifier, MetricStatus, MetricValueStatus, ObjectMetricStatus, PodsMetricStatus,
    ResourceMetricStatus,
};
use setpoint_proto::meta::Quantity;

use crate::metrics::describe;
use crate::{Metric, Reading, Samples, ScaleView, Source, TargetValue, Usage, World};

/// The replicas that the metrics ask for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Computed {
    /// The replicas, and the metric that asks for them; `None` if nothing may be done.
    pub proposal: Option<(i32, String)>,
    /// The status of each metric. Empty for those that failed, as upstream.
    pub statuses: Vec<MetricStatus>,
    /// The metrics that failed, in their order.
    pub failures: Vec<Failure>,
}

/// A metric that could not be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The reason of the Event and of the condition.
    pub reason: &'static str,
    /// The message of the Event.
    pub message: String,
    /// The error, with its metric.
    pub error: String,
}

impl Computed {
    /// Returns the error that names the first failure.
    pub fn error(&self) -> Option<String> {
        let (failed, all) = (self.failures.len(), self.statuses.len());
        let first = self.failures.first()?;
        Some(format!(
            "invalid metrics ({failed} invalid out of {all}), first error is: {}",
            first.error
        ))
    }
}

/// Computes the replicas for all metrics. While one of them fails, the others cannot ask for fewer replicas.
pub(crate) fn compute(world: &World, scale: &ScaleView) -> Computed {
    let mut computed = Computed::default();
    let metrics = &world.autoscaler.spec.metrics;
    for (metric, reading) in metrics.iter().zip(&world.readings) {
        match propose(world, scale, metric, reading) {
            Ok((usage, name, status)) => {
                let most = computed.proposal.as_ref().map(|(replicas, _)| *replicas);
                // As upstream, a proposal of no replicas gives way to any other.
                if most.is_none_or(|most| most == 0 || usage.replicas > most) {
                    computed.proposal = Some((usage.replicas, name));
                }
                computed.statuses.push(status);
            }
            Err(failure) => {
                computed.failures.push(failure);
                computed.statuses.push(MetricStatus::default());
            }
        }
    }
    let asks_for_less = |(replicas, _): &(i32, String)| *replicas < scale.replicas();
    if !computed.failures.is_empty() && computed.proposal.as_ref().is_some_and(asks_for_less) {
        computed.proposal = None;
    }
    computed
}

type Proposal = (Usage, String, MetricStatus);

fn propose(
    world: &World,
    scale: &ScaleView,
    metric: &Metric,
    reading: &Reading,
) -> Result<Proposal, Failure> {
    let about = About {
        world,
        scale,
        target: metric.target,
        reading,
    };
    match &metric.source {
        Source::Resource(name) => about.resource(name, None).map_err(|message| Failure {
            reason: "FailedGetResourceMetric",
            error: format!("failed to get {name} resource metric value: {message}"),
            message,
        }),
        Source::Container {
            resource,
            container,
        } => about
            .resource(resource, Some(container))
            .map_err(|message| Failure {
                reason: "FailedGetContainerResourceMetric",
                error: format!("failed to get {container} container metric value: {message}"),
                message,
            }),
        Source::Pods(metric) => about.pods(metric).map_err(|message| Failure {
            reason: "FailedGetPodsMetric",
            error: format!("failed to get pods metric value: {message}"),
            message,
        }),
        Source::Object { object, metric } => {
            about.object(object, metric).map_err(|message| Failure {
                reason: "FailedGetObjectMetric",
                error: match about.target {
                    TargetValue::AverageValue(_) => format!(
                        "failed to get object metric value: failed to get {} object metric: {message}",
                        metric.name
                    ),
                    _ => format!("failed to get object metric value: {message}"),
                },
                message,
            })
        }
        Source::External(metric) => about.external(metric).map_err(|message| {
            let name = &metric.name;
            let inner = match about.target {
                TargetValue::AverageValue(_) => format!("failed to get {name} external metric: "),
                TargetValue::Value(_) => format!("failed to get external metric {name}: "),
                _ => String::new(),
            };
            Failure {
                reason: "FailedGetExternalMetric",
                error: format!("failed to get {name} external metric value: {inner}{message}"),
                message,
            }
        }),
        Source::Unknown(of) => {
            let message = format!("unknown metric source type {of:?}");
            Err(Failure {
                reason: "InvalidMetricSourceType",
                error: message.clone(),
                message,
            })
        }
    }
}

/// A metric, its target and its reading.
struct About<'a> {
    world: &'a World,
    scale: &'a ScaleView,
    target: TargetValue,
    reading: &'a Reading,
}

impl About<'_> {
    fn samples(&self) -> Result<Samples, String> {
        match self.reading {
            Reading::Pods(read) => read.clone(),
            Reading::Values(_) => Err(String::new()),
        }
    }

    /// Returns the values, or upstream's error with that of the reading at its end.
    fn values(&self, error: impl Fn(&str) -> String) -> Result<i64, String> {
        match self.reading {
            Reading::Values(Ok(values)) => {
                let sum = values.iter().map(|value| i128::from(*value));
                let sum = sum.fold(0, i128::saturating_add);
                Ok(i64::try_from(sum).unwrap_or(i64::MAX))
            }
            Reading::Values(Err(read)) => Err(error(read)),
            Reading::Pods(_) => Err(error("")),
        }
    }

    fn resource(&self, resource: &str, container: Option<&str>) -> Result<Proposal, String> {
        let samples = || {
            let read = self.samples();
            read.map_err(|error| format!("unable to get metrics for resource {resource}: {error}"))
        };
        let calculator = self.world.calculator(self.scale);
        let (usage, name, percent) = match self.target {
            TargetValue::AverageValue(target) => {
                let usage = samples().and_then(|all| calculator.average(all, resource, target));
                let usage =
                    usage.map_err(|error| format!("failed to get {resource} usage: {error}"))?;
                (usage, format!("{resource} resource"), None)
            }
            TargetValue::Utilization(target) => {
                let usage = samples()
                    .and_then(|all| calculator.utilization(all, resource, container, target));
                let usage = usage
                    .map_err(|error| format!("failed to get {resource} utilization: {error}"))?;
                let of = container.map_or("", |_| " container");
                let name = format!("{resource}{of} resource utilization (percentage of request)");
                (usage, name, Some(usage.percent))
            }
            _ => {
                let message = "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set";
                return Err(message.to_owned());
            }
        };
        let current = MetricValueStatus {
            average_value: Some(quantity(usage.value, resource == "memory")),
            average_utilization: percent,
            ..Default::default()
        };
        Ok((usage, name, resource_status(resource, container, current)))
    }

    fn pods(&self, metric: &MetricIdentifier) -> Result<Proposal, String> {
        let name = &metric.name;
        let TargetValue::AverageValue(target) = self.target else {
            return Err("invalid pods metric source: no average value target was set".to_owned());
        };
        let samples = self.samples();
        let samples = samples.map_err(|error| format!("unable to get metric {name}: {error}"))?;
        let calculator = self.world.calculator(self.scale);
        let usage = calculator.average(samples, "", target)?;
        let status = MetricStatus {
            r#type: "Pods".to_owned(),
            pods: Some(PodsMetricStatus {
                metric: metric.clone(),
                current: average_value(usage),
            }),
            ..Default::default()
        };
        Ok((usage, format!("pods metric {name}"), status))
    }

    fn object(
        &self,
        object: &CrossVersionObjectReference,
        metric: &MetricIdentifier,
    ) -> Result<Proposal, String> {
        let (name, kind) = (&metric.name, &object.kind);
        let namespace = &self.world.autoscaler.meta.key.namespace;
        let value = || {
            self.values(|error| {
                let on = format!("{kind} on {namespace} {}", object.name);
                format!("unable to get metric {name}: {on}/{error}")
            })
        };
        let calculator = self.world.calculator(self.scale);
        let (usage, named, current) = match self.target {
            TargetValue::Value(target) => {
                let usage = calculator.value(value()?, target)?;
                (usage, format!("{kind} metric {name}"), whole_value(usage))
            }
            TargetValue::AverageValue(target) => {
                let usage = calculator.value_per_replica(value()?, target);
                (usage, external_name(metric), average_value(usage))
            }
            _ => {
                let message = "invalid object metric source: neither a value target nor an average value target was set";
                return Err(message.to_owned());
            }
        };
        let status = MetricStatus {
            r#type: "Object".to_owned(),
            object: Some(ObjectMetricStatus {
                metric: metric.clone(),
                current,
                described_object: object.clone(),
            }),
            ..Default::default()
        };
        Ok((usage, named, status))
    }

    fn external(&self, metric: &MetricIdentifier) -> Result<Proposal, String> {
        if let Some(selector) = &metric.selector {
            Selector::from_label_selector(selector).map_err(|error| error.to_string())?;
        }
        let value = || {
            self.values(|error| {
                let (namespace, name) = (&self.world.autoscaler.meta.key.namespace, &metric.name);
                let selector = describe(metric.selector.as_ref());
                format!("unable to get external metric {namespace}/{name}/{selector}: {error}")
            })
        };
        let calculator = self.world.calculator(self.scale);
        let (usage, current) = match self.target {
            TargetValue::AverageValue(target) => {
                let usage = calculator.value_per_replica(value()?, target);
                (usage, average_value(usage))
            }
            TargetValue::Value(target) => {
                let usage = calculator.value(value()?, target)?;
                (usage, whole_value(usage))
            }
            _ => {
                let message = "invalid external metric source: neither a value target nor an average value target was set";
                return Err(message.to_owned());
            }
        };
        let status = MetricStatus {
            r#type: "External".to_owned(),
            external: Some(ExternalMetricStatus {
                metric: metric.clone(),
                current,
            }),
            ..Default::default()
        };
        Ok((usage, external_name(metric), status))
    }
}

/// Returns the name of an external metric. Upstream gives it to averages of objects, too.
fn external_name(metric: &MetricIdentifier) -> String {
    let selector = describe(metric.selector.as_ref());
    format!("external metric {}({selector})", metric.name)
}

fn resource_status(
    resource: &str,
    container: Option<&str>,
    current: MetricValueStatus,
) -> MetricStatus {
    let name = resource.to_owned();
    match container {
        None => MetricStatus {
            r#type: "Resource".to_owned(),
            resource: Some(ResourceMetricStatus { name, current }),
            ..Default::default()
        },
        Some(container) => MetricStatus {
            r#type: "ContainerResource".to_owned(),
            container_resource: Some(ContainerResourceMetricStatus {
                name,
                current,
                container: container.to_owned(),
            }),
            ..Default::default()
        },
    }
}

fn average_value(usage: Usage) -> MetricValueStatus {
    MetricValueStatus {
        average_value: Some(quantity(usage.value, false)),
        ..Default::default()
    }
}

fn whole_value(usage: Usage) -> MetricValueStatus {
    MetricValueStatus {
        value: Some(quantity(usage.value, false)),
        ..Default::default()
    }
}

fn quantity(millis: i64, binary: bool) -> Quantity {
    let amount = Amount::from_millis(millis);
    let amount = if binary { amount.in_binary() } else { amount };
    Quantity {
        string: amount.canonical(),
    }
}
