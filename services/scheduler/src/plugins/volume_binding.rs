//! VolumeBinding: the volumes of a Pod can be used on its node; claims that wait for their first Pod get a volume
//! there.

use std::sync::Arc;

use setpoint_model::Key;
use setpoint_model::volume::{LOCAL_PATH, Site, best, local_folder};

use super::volume_zone;
use crate::claim_use::ClaimUse;
use crate::cluster::Cluster;
use crate::cluster_event::ClusterEvent;
use crate::node::NodeView;
use crate::pod::PodView;
use crate::reason::FilterReason;
use crate::storage::{Choice, ClaimView, ClassView, VolumeView};

/// The claims of a Pod.
#[derive(Debug, Default)]
pub struct State {
    /// The reason for which all nodes are rejected, if there is one.
    problem: Option<FilterReason>,
    /// The volumes of bound claims.
    bound: Vec<Arc<VolumeView>>,
    /// The claims that wait for their first Pod.
    delayed: Vec<Delayed>,
}

#[derive(Debug)]
struct Delayed {
    claim: Arc<ClaimView>,
    class: Arc<ClassView>,
    candidates: Vec<Arc<VolumeView>>,
}

/// A claim as a Pod finds it.
enum Found {
    Bound(Arc<VolumeView>),
    Delayed(Delayed),
}

impl State {
    /// Returns the state of a Pod's claims.
    pub fn of(cluster: &Cluster<'_>, pod: &PodView) -> Self {
        let mut state = Self::default();
        let mut is_immediate = false;
        for used in &pod.claims {
            match find(cluster, pod, used) {
                Ok(Some(Found::Bound(volume))) => state.bound.push(volume),
                Ok(Some(Found::Delayed(delayed))) => state.delayed.push(delayed),
                Ok(None) => is_immediate = true,
                Err(problem) => {
                    state.problem = Some(problem);
                    return state;
                }
            }
        }
        if is_immediate {
            let problem = "pod has unbound immediate PersistentVolumeClaims".to_owned();
            state.problem = Some(FilterReason::Claims(problem));
        }
        state
    }

    /// Returns what rejects all nodes.
    pub const fn problem(&self) -> Option<&FilterReason> {
        self.problem.as_ref()
    }

    /// Returns why the node cannot take the Pod.
    pub fn filter(&self, cluster: &Cluster<'_>, node: &NodeView) -> Option<FilterReason> {
        let site = site(node);
        if !self.bound.iter().all(|view| view.volume.is_usable_on(site)) {
            return Some(FilterReason::VolumeNodeAffinity);
        }
        let choices = self.choices(cluster, node);
        choices.is_none().then_some(FilterReason::NoVolume)
    }

    /// Returns whether a volume is in another zone than the node.
    pub fn filter_zone(&self, node: &NodeView) -> Option<FilterReason> {
        let mut bound = self.bound.iter();
        bound.find_map(|view| volume_zone::filter(view, node))
    }

    /// Returns the volumes of the claims that wait for their first Pod, on this node; `None` if one cannot have any.
    pub fn choices(&self, cluster: &Cluster<'_>, node: &NodeView) -> Option<Vec<Choice>> {
        let mut choices: Vec<Choice> = Vec::new();
        for delayed in &self.delayed {
            let choice = delayed.choose(cluster, node, &choices)?;
            choices.push(choice);
        }
        Some(choices)
    }
}

fn site(node: &NodeView) -> Site<'_> {
    Site {
        node: node.name(),
        labels: node.labels(),
    }
}

/// Returns the volume of a claim, or the claim if it waits for its first Pod; `None` if the controller has to bind it.
fn find(
    cluster: &Cluster<'_>,
    pod: &PodView,
    used: &ClaimUse,
) -> Result<Option<Found>, FilterReason> {
    let (name, storage) = (&*used.name, &cluster.snapshot.storage);
    let key = Key::new(&pod.meta.key.namespace, name);
    let problem = |problem: String| Err(FilterReason::Claims(problem));
    let Some((view, candidates)) = storage.claims.get(&key) else {
        return problem(match used.is_ephemeral {
            true => format!(
                "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
            ),
            false => format!("persistentvolumeclaim {name:?} not found"),
        });
    };
    let claim = &view.claim;
    if used.is_ephemeral && !claim.meta.is_owned_by(&pod.meta.uid) {
        let pod = &pod.meta.key;
        return problem(format!(
            "PVC {key} was not created for pod {pod} (pod is not owner)"
        ));
    }
    if claim.meta.deleting {
        return problem(format!("persistentvolumeclaim {name:?} is being deleted"));
    }
    if claim.phase == "Lost" {
        let volume = &claim.volume;
        return problem(format!(
            "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
        ));
    }
    if claim.is_bound() && !claim.volume.is_empty() {
        return match storage.volumes.get(&claim.volume) {
            Some(volume) => Ok(Some(Found::Bound(volume.clone()))),
            None => Err(FilterReason::MissingVolume),
        };
    }
    let class = storage.classes.get(claim.class());
    let Some(class) = class.filter(|class| class.is_delayed && claim.volume.is_empty()) else {
        return Ok(None);
    };
    Ok(Some(Found::Delayed(Delayed {
        claim: view.clone(),
        class: class.clone(),
        candidates: candidates.clone(),
    })))
}

impl Delayed {
    /// Returns the volume on a node, given those of the Pod's other claims.
    fn choose(&self, cluster: &Cluster<'_>, node: &NodeView, others: &[Choice]) -> Option<Choice> {
        let claim = &self.claim.claim;
        let selected = cluster.selected_nodes.get(&claim.meta.key);
        let selected = selected.map(String::as_str).or(claim.selected_node());
        let choice = |volume: Option<&Arc<VolumeView>>| Choice {
            claim: self.claim.clone(),
            volume: volume.cloned(),
        };
        if let Some(selected) = selected {
            return (selected == node.name()).then(|| choice(None));
        }
        let is_free = |view: &&Arc<VolumeView>| {
            let name = view.volume.name();
            let chosen = |other: &Choice| {
                let volume = other.volume.as_ref();
                volume.is_some_and(|volume| volume.volume.name() == name)
            };
            !cluster.taken_volumes.contains(name) && !others.iter().any(chosen)
        };
        let free: Vec<_> = self.candidates.iter().filter(is_free).collect();
        let volumes = free.iter().map(|view| &***view);
        if let Some(best) = best(claim, volumes, Some(site(node)), true) {
            let found = free.into_iter().find(|view| view.volume == best.volume);
            return Some(choice(found));
        }
        self.is_provisioned_on(node).then(|| choice(None))
    }

    /// Returns whether the provisioner has volumes on a node, as far as it is known.
    fn is_provisioned_on(&self, node: &NodeView) -> bool {
        let class = &self.class;
        let provisioner = &*class.provisioner;
        let fits = |term: &setpoint_proto::core::TopologySelectorTerm| {
            term.match_label_expressions.iter().all(|wanted| {
                let label = node.labels().get(&wanted.key);
                label.is_some_and(|label| wanted.values.contains(label))
            })
        };
        let topologies = &class.topologies;
        !provisioner.starts_with("kubernetes.io/")
            && (provisioner != LOCAL_PATH || local_folder(&node.meta).is_some())
            && (topologies.is_empty() || topologies.iter().any(fits))
    }
}

/// Returns whether a change may let the Pod fit, or lets it be bound: one of its claims appears, is bound or may go to
/// another node; a volume becomes available; a class or a node appears, or a node changes.
pub fn hint(pod: &PodView, change: &ClusterEvent) -> bool {
    match change {
        ClusterEvent::Claim { old, new } => {
            let uses = |used: &ClaimUse| *used.name == *new.claim.meta.key.name;
            let (new, old) = (&new.claim, old.as_ref().map(|old| &old.claim));
            let helps = old.is_none_or(|old| {
                old.meta.uid != new.meta.uid
                    || !old.is_bound() && new.is_bound()
                    || old.selected_node().is_some() && new.selected_node().is_none()
                    || old.class.is_none() && new.class.is_some()
            });
            helps && new.meta.key.namespace == pod.meta.key.namespace && pod.claims.iter().any(uses)
        }
        ClusterEvent::Volume(volume) => {
            volume.volume.claim.is_none() || volume.volume.phase == "Bound"
        }
        ClusterEvent::Class => true,
        ClusterEvent::Node { new, .. } => new.is_some(),
        ClusterEvent::Pod { .. } | ClusterEvent::Namespace | ClusterEvent::VolumeLimits => false,
    }
}
