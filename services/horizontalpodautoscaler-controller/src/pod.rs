//! A view of a Pod: its readiness and its requests.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::mem;

use jiff::Timestamp;
use setpoint_controller::View;
use setpoint_model::condition::{self, FALSE, TRUE};
use setpoint_model::quantity::Amount;
use setpoint_model::{Labels, Meta, Resources, pod};
use setpoint_proto::core;
use setpoint_proto::meta::Quantity;

/// Thousandths of resources, by their names.
pub type Millis = Box<[(Box<str>, i64)]>;

/// The phase of a Pod, as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not started.
    Pending,
    /// Started.
    Running,
    /// Failed.
    Failed,
    /// Succeeded, or unknown.
    #[default]
    Other,
}

/// The condition `Ready` of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// `None` if it is not known.
    pub ready: Option<bool>,
    /// The last change of the status.
    pub since: Timestamp,
}

/// The requests of a container that runs as long as its Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerRequests {
    /// The name of the container.
    pub name: Box<str>,
    /// Thousandths of each resource.
    pub requests: Millis,
}

/// The fields of a Pod that the controller reads. Kept small, since all Pods of the cluster are cached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The labels in a compact form.
    pub labels: Labels,
    /// The phase.
    pub phase: Phase,
    /// The condition `Ready`, if it is set.
    pub readiness: Option<Readiness>,
    /// When the node has accepted it.
    pub started: Option<Timestamp>,
    /// The requests of its containers and sidecars.
    pub containers: Box<[ContainerRequests]>,
    /// The requests of the whole Pod in thousandths, if its spec sets any.
    pub whole: Option<Millis>,
}

impl View for PodView {
    type Object = core::Pod;

    fn of(pod: core::Pod) -> Self {
        let mut meta = Meta::of(&pod.metadata);
        meta.annotations.clear();
        Self {
            labels: mem::take(&mut meta.labels).into(),
            meta,
            phase: phase(&pod.status.phase),
            readiness: readiness(&pod.status),
            started: pod.status.start_time.and_then(|time| time.timestamp()),
            containers: containers(&pod.spec),
            whole: whole(&pod.spec),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl PodView {
    /// Returns whether it runs and is ready.
    pub fn is_ready(&self) -> bool {
        let ready = self.readiness.is_some_and(|is| is.ready == Some(true));
        self.phase == Phase::Running && ready
    }

    /// Returns thousandths of a resource that the Pod requests, or one of its containers.
    ///
    /// # Errors
    /// If a container has no request, or does not exist; in upstream's words.
    pub fn request(&self, resource: &str, container: Option<&str>) -> Result<i64, String> {
        let pod = &self.meta.key.name;
        if let (Some(whole), None) = (&self.whole, container) {
            let missing = || format!("missing pod-level request for {resource} in Pod {pod}");
            return find(whole, resource).ok_or_else(missing);
        }
        let mut sum = 0_i64;
        for each in &self.containers {
            if container.is_some_and(|name| *name != *each.name) {
                continue;
            }
            let name = &each.name;
            let missing =
                || format!("missing request for {resource} in container {name} of Pod {pod}");
            let request = find(&each.requests, resource).ok_or_else(missing)?;
            sum = sum.saturating_add(request);
            if container.is_some() {
                return Ok(sum);
            }
        }
        match container {
            None => Ok(sum),
            Some(name) => Err(format!("container {name} not found in Pod {pod}")),
        }
    }
}

fn phase(phase: &str) -> Phase {
    match phase {
        "Pending" => Phase::Pending,
        "Running" => Phase::Running,
        "Failed" => Phase::Failed,
        _ => Phase::Other,
    }
}

fn readiness(status: &core::PodStatus) -> Option<Readiness> {
    let ready = condition::get(&status.conditions, "Ready")?;
    Some(Readiness {
        ready: match ready.status.as_str() {
            TRUE => Some(true),
            FALSE => Some(false),
            _ => None,
        },
        since: ready
            .last_transition_time
            .timestamp()
            .unwrap_or(Timestamp::MIN),
    })
}

fn containers(spec: &core::PodSpec) -> Box<[ContainerRequests]> {
    let requests = |container: &core::Container| ContainerRequests {
        name: container.name.as_str().into(),
        requests: millis(&container.resources.requests),
    };
    pod::running_containers(spec).map(requests).collect()
}

/// Returns the requests of a Pod whose spec sets any for the whole Pod. Of other resources, those of its containers
/// count.
fn whole(spec: &core::PodSpec) -> Option<Millis> {
    let of_pod = &spec.resources.as_ref()?.requests;
    let is_supported = |name: &String| {
        ["cpu", "memory"].contains(&name.as_str()) || name.starts_with("hugepages-")
    };
    if !of_pod.keys().any(is_supported) {
        return None;
    }
    let Resources {
        millicpu,
        memory,
        others,
    } = Resources::of_pod(spec);
    let known = [("cpu", millicpu), ("memory", memory.saturating_mul(1_000))];
    let known = known.map(|(name, value)| (Box::from(name), value));
    let others = others
        .into_iter()
        .map(|(name, value)| (name.into(), value.saturating_mul(1_000)));
    let requested = known.into_iter().chain(others);
    Some(requested.filter(|(_, value)| *value > 0).collect())
}

fn millis(list: &BTreeMap<String, Quantity>) -> Millis {
    let millis = |quantity: &Quantity| Amount::parse(&quantity.string).map(Amount::millis);
    list.iter()
        .filter_map(|(name, quantity)| Some((name.as_str().into(), millis(quantity).ok()?)))
        .collect()
}

fn find(requests: &[(Box<str>, i64)], resource: &str) -> Option<i64> {
    let found = requests.iter().find(|(name, _)| **name == *resource);
    found.map(|(_, value)| *value)
}
