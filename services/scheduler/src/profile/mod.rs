//! Profiles: the plugins that schedule the Pods of one scheduler name, and their arguments.

mod args;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_proto::core::{NodeSelectorTerm, PreferredSchedulingTerm, TopologySpreadConstraint};

use crate::plugin::{Plugin, PluginSet};
use crate::pod::{PodView, Wants};
use crate::spread;
use crate::strategy::Strategy;

pub use settings::Settings;

/// The name of the profile that there is by default.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The plugins for the Pods of a scheduler name, with their arguments (upstream: `KubeSchedulerProfile`).
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The `spec.schedulerName` of its Pods.
    pub name: String,
    /// The plugins that filter.
    pub filters: PluginSet,
    /// The plugins that score, with their weights.
    pub weights: BTreeMap<Plugin, i64>,
    /// Whether Pods of lower priority may be preempted.
    pub preempts: bool,
    /// NodeResourcesFit: the scores of nodes by their resources.
    pub strategy: Strategy,
    /// PodTopologySpread: the constraints of Pods without any.
    pub spread: SpreadDefaults,
    /// InterPodAffinity: the weight of the required affinity of Pods on nodes, as if it were preferred.
    pub hard_pod_affinity: i64,
    /// NodeAffinity: the affinity of all Pods, in addition to their own.
    pub added: AddedAffinity,
}

/// The topology spread constraints of Pods without any.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadDefaults {
    /// The constraints, without selectors.
    pub constraints: Vec<TopologySpreadConstraint>,
    /// Whether they are upstream's own (`defaultingType: System`): nodes without their labels count, too.
    pub is_system: bool,
}

impl Default for SpreadDefaults {
    fn default() -> Self {
        Self {
            constraints: spread::system_defaults().into(),
            is_system: true,
        }
    }
}

/// The node affinity of all Pods of a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddedAffinity {
    /// Terms of required affinity, one of which must match; `None` matches every node.
    pub required: Option<Vec<NodeSelectorTerm>>,
    /// Terms of preferred affinity.
    pub preferred: Vec<PreferredSchedulingTerm>,
}

impl Default for Profile {
    fn default() -> Self {
        let scoring = |plugin: Plugin| Some((plugin, plugin.default_weight()?));
        Self {
            name: DEFAULT_SCHEDULER.to_owned(),
            filters: Plugin::ALL
                .into_iter()
                .filter(|one| one.filters())
                .collect(),
            weights: Plugin::ALL.into_iter().filter_map(scoring).collect(),
            preempts: true,
            strategy: Strategy::default(),
            spread: SpreadDefaults::default(),
            hard_pod_affinity: 1,
            added: AddedAffinity::default(),
        }
    }
}

/// The profiles of a scheduler. A Pod whose scheduler name none has belongs to another scheduler.
#[derive(Clone, Debug)]
pub struct Profiles(Vec<Arc<Profile>>);

/// A Pod that needs a decision.
#[derive(Clone, Copy, Debug)]
pub struct Pending<'p> {
    /// The Pod.
    pub pod: &'p Arc<PodView>,
    /// Its requirements.
    pub wants: &'p Wants,
    /// The profile that schedules it.
    pub profile: &'p Profile,
}

impl Default for Profiles {
    fn default() -> Self {
        Self(vec![Arc::default()])
    }
}

impl FromIterator<Profile> for Profiles {
    fn from_iter<I: IntoIterator<Item = Profile>>(profiles: I) -> Self {
        Self(profiles.into_iter().map(Arc::new).collect())
    }
}

impl Profiles {
    /// Returns the profiles of the settings.
    ///
    /// # Errors
    /// The first invalid setting, with its path.
    pub fn of(settings: &[Settings]) -> Result<Self, String> {
        settings::parse(settings)
    }

    /// Returns the profile of a waiting Pod; `None` if it has a node or is another scheduler's.
    pub fn get(&self, pod: &PodView) -> Option<&Arc<Profile>> {
        let wants = pod.wants.as_deref()?;
        let mut profiles = self.0.iter();
        profiles.find(|profile| profile.name == wants.scheduler)
    }

    /// Returns a Pod with its requirements and its profile, if it needs a decision.
    pub fn pending<'p>(&'p self, pod: &'p Arc<PodView>) -> Option<Pending<'p>> {
        Some(Pending {
            pod,
            wants: pod.schedulable()?,
            profile: self.get(pod)?,
        })
    }
}
