//! The world of a decision: an autoscaler, its target, the Pods of that, and readings of the metrics.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_model::{Key, Selector};
use setpoint_proto::autoscaling::{Scale, ScaleSpec};

use crate::{
    AutoscalerView, Autoscaling, Calculator, History, Limits, PodView, Reading, Tolerances,
};

/// Everything that plan and status depend on.
#[derive(Clone, Debug)]
pub struct World {
    /// The autoscaler.
    pub autoscaler: Arc<AutoscalerView>,
    /// The scale of its target, or why it cannot be read.
    pub scale: Result<ScaleView, String>,
    /// The Pods that the target selects.
    pub pods: Vec<Arc<PodView>>,
    /// The selectors of the other autoscalers of the namespace.
    pub rivals: Vec<(Key, Arc<Selector>)>,
    /// A reading of each metric of the autoscaler, in their order; empty if none is needed.
    pub readings: Vec<Reading>,
    /// What was recommended and changed before.
    pub history: History,
    /// The settings of the controller.
    pub settings: Arc<Autoscaling>,
    /// The time.
    pub now: Timestamp,
}

/// The scale of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScaleView {
    /// The kind of the object, as the plural with the group.
    pub resource: String,
    /// The scale as it was read.
    pub scale: Scale,
}

impl ScaleView {
    /// Returns the replicas that the object is set to.
    pub fn replicas(&self) -> i32 {
        self.scale.spec.replicas
    }

    /// Returns the scale with other replicas. Its resourceVersion is that of the version that was read.
    pub fn with(&self, replicas: i32) -> Scale {
        Scale {
            spec: ScaleSpec { replicas },
            ..self.scale.clone()
        }
    }

    /// Parses the selector of the Pods.
    ///
    /// # Errors
    /// If there is none, or it is invalid; in upstream's words.
    pub fn selector(&self) -> Result<Selector, InvalidSelector> {
        let text = &self.scale.status.selector;
        if text.is_empty() {
            return Err(InvalidSelector::Missing);
        }
        Selector::parse(text).map_err(|error| {
            InvalidSelector::Malformed(format!(
                "couldn't convert selector into a corresponding internal selector object: {error}"
            ))
        })
    }
}

/// The reason for which the Pods of a target are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidSelector {
    /// It has no selector.
    Missing,
    /// Its selector cannot be parsed.
    Malformed(String),
}

impl World {
    /// Returns the limits of a change from the current replicas.
    pub fn limits(&self, current: i32) -> Limits<'_> {
        let spec = &self.autoscaler.spec;
        Limits {
            current,
            min: spec.min,
            max: spec.max,
            behavior: spec.behavior.as_ref(),
            window: self.settings.downscale_stabilization,
            history: &self.history,
            now: self.now,
        }
    }

    /// Returns the calculator of the replicas of a target.
    pub fn calculator(&self, scale: &ScaleView) -> Calculator<'_> {
        Calculator {
            pods: &self.pods,
            current: scale.replicas(),
            observed: scale.scale.status.replicas,
            tolerances: self.tolerances(),
            settings: &self.settings,
            now: self.now,
        }
    }

    fn tolerances(&self) -> Tolerances {
        let behavior = self.autoscaler.spec.behavior.as_ref();
        let default = self.settings.tolerance;
        Tolerances {
            down: behavior
                .and_then(|both| both.down.tolerance)
                .unwrap_or(default),
            up: behavior
                .and_then(|both| both.up.tolerance)
                .unwrap_or(default),
        }
    }
}
