//! The arguments of plugins, in upstream's form.

mod node_affinity;
mod node_resources_fit;
mod pod_topology_spread;

use serde::{Deserialize, Serialize};

use super::Profile;

/// The arguments of a plugin.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "name", content = "args")]
pub enum PluginConfig {
    NodeResourcesFit(node_resources_fit::Args),
    PodTopologySpread(pod_topology_spread::Args),
    InterPodAffinity(InterPodAffinityArgs),
    NodeAffinity(node_affinity::Args),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct InterPodAffinityArgs {
    hard_pod_affinity_weight: i64,
}

impl Default for InterPodAffinityArgs {
    fn default() -> Self {
        let weight = Profile::default().hard_pod_affinity;
        Self {
            hard_pod_affinity_weight: weight,
        }
    }
}

impl PluginConfig {
    /// Returns the name of the plugin.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NodeResourcesFit(_) => "NodeResourcesFit",
            Self::PodTopologySpread(_) => "PodTopologySpread",
            Self::InterPodAffinity(_) => "InterPodAffinity",
            Self::NodeAffinity(_) => "NodeAffinity",
        }
    }

    /// Checks the arguments at a path, and sets those of the profile.
    pub fn apply(&self, profile: &mut Profile, path: &str) -> Result<(), String> {
        match self {
            Self::NodeResourcesFit(args) => profile.strategy = args.parse(path)?,
            Self::PodTopologySpread(args) => profile.spread = args.parse(path)?,
            Self::InterPodAffinity(args) => {
                let weight = args.hard_pod_affinity_weight;
                let path = format!("{path}.hardPodAffinityWeight");
                in_range(weight, &path)?;
                profile.hard_pod_affinity = weight;
            }
            Self::NodeAffinity(args) => profile.added = args.parse(path)?,
        }
        Ok(())
    }
}

fn in_range(value: i64, path: &str) -> Result<(), String> {
    match value {
        0..=100 => Ok(()),
        _ => Err(format!(
            "{path}: Invalid value: {value}: not in valid range [0, 100]"
        )),
    }
}
