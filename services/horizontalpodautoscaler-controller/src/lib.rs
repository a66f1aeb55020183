//! The HorizontalPodAutoscaler controller: sets the replicas of workloads from metrics.
//!
//! ```text
//! every sync period, for each autoscaler:
//! fetch:    scale of the target, its Pods, a reading for each metric ─▶ World, history
//! plan:     metrics ─▶ proposals ─▶ the largest ─▶ stabilization ─▶ policies, minimum, maximum ─▶ Scale
//! status:   replicas, metrics, conditions
//! ```
//! It writes the subresource `scale` of its targets and nothing else of them, in the version that it has read.

mod act;
mod autoscaler;
mod calculator;
mod computed;
mod decision;
mod fetch;
mod history;
mod limits;
mod metrics;
mod plan;
mod pod;
mod reconciler;
mod settings;
mod status;
mod world;

pub use autoscaler::{
    AutoscalerView, Behavior, Metric, Policy, PolicyKind, Rules, Select, Source, Spec, TargetValue,
};
pub use calculator::{Calculator, Groups, Tolerances, Usage};
pub use decision::{Decision, Rescale, decide};
pub use history::{History, MAX_RECOMMENDATIONS, MAX_SCALE_EVENTS};
pub use limits::{Limited, Limits, Stabilized};
pub use metrics::{
    GatewayMetrics, Reading, ResourceMetrics, Sample, Samples, pods_samples, resource_samples,
};
pub use plan::{Action, plan};
pub use pod::{ContainerRequests, Millis, Phase, PodView, Readiness};
pub use reconciler::{Autoscalers, CONTROLLER};
pub use settings::Autoscaling;
pub use status::status;
pub use world::{InvalidSelector, ScaleView, World};
