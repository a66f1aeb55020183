//! The resources and ports that a Pod takes from its node, and those that it would take after a resize. Pure.

use std::collections::BTreeMap;

use setpoint_model::pod::{DEFERRED, INFEASIBLE, is_sidecar};
use setpoint_model::{HostPort, Resources};
use setpoint_proto::core::{Container, Pod, PodSpec, ResourceRequirements};

use crate::pod::rejection::InsufficientResource;

/// The resources and ports that a Pod takes from its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// The resources that it requests.
    pub requests: Resources,
    /// Host ports.
    pub ports: Vec<HostPort>,
    /// The resources of its containers.
    pub allocation: Allocation,
}

impl Demand {
    /// Returns the demand of a Pod with this spec.
    pub fn of(spec: &PodSpec) -> Self {
        Self {
            requests: Resources::of_pod(spec),
            ports: HostPort::of_pod(spec),
            allocation: Allocation::of(spec),
        }
    }
}

/// The resources that a node has allocated to a Pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    /// The resources of containers and sidecars, by name. Other init containers are not resized, as in the kubelet.
    containers: BTreeMap<String, ResourceRequirements>,
    /// The resources of the Pod as a whole.
    pod: Option<ResourceRequirements>,
}

impl Allocation {
    /// Returns the resources that a spec asks for.
    pub fn of(spec: &PodSpec) -> Self {
        let all = resizable(spec);
        let all = all.map(|container| (container.name.clone(), container.resources.clone()));
        Self {
            containers: all.collect(),
            pod: spec.resources.clone(),
        }
    }

    /// Returns the resources that were last reported for the containers of a Pod; those of the spec where none were.
    pub fn reported(pod: &Pod) -> Self {
        let status = &pod.status;
        let all = status
            .init_container_statuses
            .iter()
            .chain(&status.container_statuses);
        let reported = all.filter_map(|status| Some((&status.name, status.resources.as_ref()?)));
        let mut allocation = Self::of(&pod.spec);
        if let (Some(own), Some(reported)) = (&mut allocation.pod, &status.resources) {
            own.clone_from(reported);
        }
        for (name, resources) in reported {
            if let Some(allocated) = allocation.containers.get_mut(name) {
                allocated.clone_from(resources);
            }
        }
        allocation
    }

    /// Returns whether a spec asks for these resources.
    pub fn is_of(&self, spec: &PodSpec) -> bool {
        self.pod == spec.resources
            && resizable(spec)
                .all(|wanted| self.containers.get(&wanted.name) == Some(&wanted.resources))
    }

    /// Replaces the resources of a spec.
    pub fn apply(&self, spec: &mut PodSpec) {
        spec.resources.clone_from(&self.pod);
        let all = spec.init_containers.iter_mut().chain(&mut spec.containers);
        for container in all {
            if let Some(allocated) = self.containers.get(&container.name) {
                container.resources.clone_from(allocated);
            }
        }
    }
}

/// Returns the containers of a Pod that can be resized.
pub fn resizable(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    let sidecars = spec.init_containers.iter().filter(|init| is_sidecar(init));
    sidecars.chain(&spec.containers)
}

/// A resize that the node of the Pod has not allocated.
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    /// The resources that the Pod would take from the node.
    pub demand: Demand,
    /// Whether the node can allocate it.
    pub verdict: Result<(), Pending>,
}

/// The reason and message of a resize that cannot be allocated, in the kubelet's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// `Deferred` or `Infeasible`.
    pub reason: &'static str,
    /// Human-readable details.
    pub message: String,
}

impl Pending {
    /// Returns why a node that lacks a resource does not allocate a resize.
    pub fn of(lack: &InsufficientResource) -> Self {
        let InsufficientResource {
            resource,
            requested,
            capacity,
            ..
        } = lack;
        if requested <= capacity {
            return Self {
                reason: DEFERRED,
                message: lack.message(),
            };
        }
        let message = format!(
            "Node didn't have enough capacity: {resource}, requested: {requested}, capacity: {capacity}"
        );
        Self {
            reason: INFEASIBLE,
            message,
        }
    }
}
