//! A view of a HorizontalPodAutoscaler, with its metrics and rules parsed.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_model::quantity::Amount;
use setpoint_proto::autoscaling_v2::{
    CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus, HpaScalingPolicy, HpaScalingRules,
    MetricIdentifier, MetricSpec, MetricTarget,
};
use setpoint_proto::meta::Quantity;

/// A HorizontalPodAutoscaler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AutoscalerView {
    /// The metadata.
    pub meta: Meta,
    /// The spec.
    pub spec: Spec,
    /// The status that was last written.
    pub status: HorizontalPodAutoscalerStatus,
}

/// What an autoscaler scales, by which metrics, and how fast.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// The object whose replicas are set.
    pub target: CrossVersionObjectReference,
    /// The lower bound.
    pub min: i32,
    /// The upper bound.
    pub max: i32,
    /// The metrics; the one that asks for the most replicas counts.
    pub metrics: Vec<Metric>,
    /// The rules of both directions; `None` for those of autoscaling/v1.
    pub behavior: Option<Behavior>,
}

/// A metric and its target.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Where it is read.
    pub source: Source,
    /// What it should be.
    pub target: TargetValue,
}

/// The source of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The usage of a resource by Pods.
    Resource(String),
    /// The usage of a resource by the containers of a name.
    Container {
        /// The name of the resource.
        resource: String,
        /// The name of the container.
        container: String,
    },
    /// A custom metric of each Pod.
    Pods(MetricIdentifier),
    /// A custom metric of one object.
    Object {
        /// The object.
        object: CrossVersionObjectReference,
        /// The metric.
        metric: MetricIdentifier,
    },
    /// A metric of no object.
    External(MetricIdentifier),
    /// A source of this type, which is not known.
    Unknown(String),
}

/// The target of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetValue {
    /// The usage in percent of the requests.
    Utilization(i32),
    /// Thousandths.
    Value(i64),
    /// Thousandths for each Pod.
    AverageValue(i64),
    /// None that the source can have.
    Missing,
}

/// The rules of both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Behavior {
    /// The rules for more replicas.
    pub up: Rules,
    /// The rules for fewer replicas.
    pub down: Rules,
}

/// The rules of a direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// For how long recommendations are remembered; `None` for the default of the controller.
    pub window: Option<Duration>,
    /// Which policy counts.
    pub select: Select,
    /// The largest changes within a time.
    pub policies: Vec<Policy>,
    /// The deviation of a metric that changes nothing, as a fraction; `None` for the default of the controller.
    pub tolerance: Option<f64>,
}

/// The policy that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Select {
    /// The one that permits the largest change.
    #[default]
    Max,
    /// The one that permits the smallest change.
    Min,
    /// None: replicas are not changed in this direction.
    Disabled,
}

/// A bound of changes within a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The unit of the value.
    pub kind: PolicyKind,
    /// The largest change.
    pub value: i32,
    /// The period.
    pub period: Duration,
}

/// The unit of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// Replicas.
    Pods,
    /// Percent of the replicas at the start of the period.
    Percent,
}

impl View for AutoscalerView {
    type Object = HorizontalPodAutoscaler;

    fn of(autoscaler: HorizontalPodAutoscaler) -> Self {
        Self {
            meta: Meta::of(&autoscaler.metadata),
            spec: Spec::of(autoscaler.spec),
            status: autoscaler.status,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Spec {
    fn of(spec: HorizontalPodAutoscalerSpec) -> Self {
        Self {
            target: spec.scale_target_ref,
            min: spec.min_replicas.unwrap_or(1),
            max: spec.max_replicas,
            metrics: spec.metrics.into_iter().map(Metric::of).collect(),
            behavior: spec.behavior.map(Behavior::of),
        }
    }

    /// Returns whether a metric exists without Pods.
    pub fn has_metrics_without_pods(&self) -> bool {
        let exists =
            |metric: &Metric| matches!(metric.source, Source::Object { .. } | Source::External(_));
        self.metrics.iter().any(exists)
    }
}

impl Metric {
    fn of(spec: MetricSpec) -> Self {
        Self::parse(&spec).unwrap_or(Self {
            source: Source::Unknown(spec.r#type),
            target: TargetValue::Missing,
        })
    }

    fn parse(spec: &MetricSpec) -> Option<Self> {
        let (source, target) = match spec.r#type.as_str() {
            "Resource" => {
                let resource = spec.resource.as_ref()?;
                let source = Source::Resource(resource.name.clone());
                (source, usage(&resource.target))
            }
            "ContainerResource" => {
                let resource = spec.container_resource.as_ref()?;
                let source = Source::Container {
                    resource: resource.name.clone(),
                    container: resource.container.clone(),
                };
                (source, usage(&resource.target))
            }
            "Pods" => {
                let pods = spec.pods.as_ref()?;
                (Source::Pods(pods.metric.clone()), average(&pods.target)?)
            }
            "Object" => {
                let object = spec.object.as_ref()?;
                let source = Source::Object {
                    object: object.described_object.clone(),
                    metric: object.metric.clone(),
                };
                (source, of_type(&object.target))
            }
            "External" => {
                let external = spec.external.as_ref()?;
                let target = average(&external.target).or_else(|| value(&external.target));
                let source = Source::External(external.metric.clone());
                (source, target.unwrap_or(TargetValue::Missing))
            }
            _ => return None,
        };
        Some(Self { source, target })
    }
}

/// Returns the target of a resource: that of the usage before that in percent.
fn usage(target: &MetricTarget) -> TargetValue {
    let utilization = || target.average_utilization.map(TargetValue::Utilization);
    let target = average(target).or_else(utilization);
    target.unwrap_or(TargetValue::Missing)
}

fn of_type(target: &MetricTarget) -> TargetValue {
    let target = match target.r#type.as_str() {
        "Value" => value(target),
        "AverageValue" => average(target),
        _ => None,
    };
    target.unwrap_or(TargetValue::Missing)
}

fn value(target: &MetricTarget) -> Option<TargetValue> {
    target.value.as_ref().map(millis).map(TargetValue::Value)
}

fn average(target: &MetricTarget) -> Option<TargetValue> {
    let average = target.average_value.as_ref();
    average.map(millis).map(TargetValue::AverageValue)
}

/// Returns a quantity in thousandths. The gateway neither accepts nor sends what is no quantity.
pub(crate) fn millis(quantity: &Quantity) -> i64 {
    Amount::parse(&quantity.string).map_or(0, Amount::millis)
}

impl Behavior {
    fn of(behavior: HorizontalPodAutoscalerBehavior) -> Self {
        Self {
            up: behavior.scale_up.map_or_else(Rules::default_up, Rules::of),
            down: behavior
                .scale_down
                .map_or_else(Rules::default_down, Rules::of),
        }
    }
}

impl Rules {
    /// Returns the default for more replicas: at most four more or twice as many within 15 s, without a window.
    pub fn default_up() -> Self {
        Self {
            window: Some(Duration::ZERO),
            policies: vec![
                policy(PolicyKind::Pods, 4),
                policy(PolicyKind::Percent, 100),
            ],
            ..Self::default()
        }
    }

    /// Returns the default for fewer replicas: any number of them.
    pub fn default_down() -> Self {
        Self {
            policies: vec![policy(PolicyKind::Percent, 100)],
            ..Self::default()
        }
    }

    fn of(rules: HpaScalingRules) -> Self {
        Self {
            window: rules.stabilization_window_seconds.map(seconds),
            select: match rules.select_policy.as_deref() {
                Some("Min") => Select::Min,
                Some("Disabled") => Select::Disabled,
                _ => Select::Max,
            },
            policies: rules.policies.iter().filter_map(Policy::of).collect(),
            tolerance: rules
                .tolerance
                .and_then(|tolerance| Amount::parse(&tolerance.string).ok().map(Amount::as_f64)),
        }
    }

    /// Returns the longest period of the policies.
    pub fn longest_period(&self) -> Duration {
        let periods = self.policies.iter().map(|policy| policy.period);
        periods.max().unwrap_or_default()
    }
}

impl Policy {
    fn of(policy: &HpaScalingPolicy) -> Option<Self> {
        Some(Self {
            kind: match policy.r#type.as_str() {
                "Pods" => PolicyKind::Pods,
                "Percent" => PolicyKind::Percent,
                _ => return None,
            },
            value: policy.value,
            period: seconds(policy.period_seconds),
        })
    }
}

fn policy(kind: PolicyKind, value: i32) -> Policy {
    Policy {
        kind,
        value,
        period: Duration::from_secs(15),
    }
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}
