//! Distributes endpoints over EndpointSlices so that few of them are written.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use setpoint_controller::{Plan, Whole, reference};
use setpoint_model::Target;
use setpoint_model::endpointslice::MANAGED_BY;
use setpoint_proto::core::Service;
use setpoint_proto::discovery::{Endpoint, EndpointSlice};
use setpoint_proto::meta::ObjectMeta;
use setpoint_workload::unused_name;

use crate::{Action, Family, Group, World};

/// The endpoints that a slice has at most, as upstream's default.
pub const SLICE_MAX: usize = 100;

type Slice = Arc<Whole<EndpointSlice>>;

/// The slices that a Service should have.
pub(crate) struct Wanted {
    pub groups: Vec<Group>,
    /// The labels of each slice. They name the controller, whose slices are the ones that are changed.
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// Whether there is an empty slice if there are no endpoints.
    pub placeholder: bool,
}

impl Wanted {
    /// Adds the writes after which the slices are as wanted.
    pub fn add_to(&self, plan: &mut Plan<Action>, world: &World) {
        let names = world.slices.iter().map(|slice| slice.meta.key.name.clone());
        let mut names = Names {
            seed: world.seed,
            used: names.collect(),
        };
        let mut left = self.own(world);
        let mut kept = 0_usize;
        for group in &self.groups {
            let (same, others) = left.into_iter().partition(|slice| is_of(slice, group));
            left = others;
            kept = kept.saturating_add(self.fill(group, same, &mut names, plan, world));
        }
        if kept == 0 && self.placeholder {
            let family = match world.service.object.spec.ip_families.first() {
                Some(first) if first == Family::V6.name() => Family::V6,
                _ => Family::V4,
            };
            let empty = Group {
                family,
                ports: Vec::new(),
                endpoints: Vec::new(),
            };
            let is_placeholder =
                |slice: &Slice| is_of(slice, &empty) && slice.object.endpoints.is_empty();
            match left.iter().position(is_placeholder) {
                Some(placeholder) => self.update(&left.remove(placeholder), Vec::new(), plan),
                None => {
                    let slice = self.new_slice(&empty, Vec::new(), &mut names, world);
                    plan.step(Action::Create(slice), "the Service has no endpoints");
                }
            }
        }
        for slice in left {
            let because = "the Service has no endpoints with these ports";
            plan.step(Action::Delete(Target::of(&slice.meta)), because);
        }
    }

    fn own(&self, world: &World) -> Vec<Slice> {
        let manager = self.labels.get(MANAGED_BY);
        let mut own = world.slices.clone();
        own.retain(|slice| slice.meta.labels.get(MANAGED_BY) == manager && !slice.meta.deleting);
        own.sort_by(|a, b| a.meta.key.name.cmp(&b.meta.key.name));
        own
    }

    /// Distributes the endpoints of a group; returns the number of slices that it has then.
    fn fill(
        &self,
        group: &Group,
        slices: Vec<Slice>,
        names: &mut Names,
        plan: &mut Plan<Action>,
        world: &World,
    ) -> usize {
        let now: Vec<_> = slices
            .iter()
            .map(|slice| &*slice.object.endpoints)
            .collect();
        let mut filled = distribute(&now, &group.endpoints);
        let new = filled.split_off(slices.len());
        let mut kept = new.len();
        for (slice, endpoints) in slices.iter().zip(filled) {
            if endpoints.is_empty() {
                let because = "its endpoints are gone";
                plan.step(Action::Delete(Target::of(&slice.meta)), because);
            } else {
                kept = kept.saturating_add(1);
                self.update(slice, endpoints, plan);
            }
        }
        for endpoints in new {
            let slice = self.new_slice(group, endpoints, names, world);
            plan.step(Action::Create(slice), "endpoints are in no slice");
        }
        kept
    }

    fn update(&self, slice: &Slice, endpoints: Vec<Endpoint>, plan: &mut Plan<Action>) {
        let because = match &slice.object {
            now if now.endpoints != endpoints => "its endpoints have changed",
            now if now.metadata.labels != self.labels => "the labels of the Service have changed",
            now if now.metadata.annotations != self.annotations => "the annotations have changed",
            _ => return,
        };
        let mut slice = slice.object.clone();
        slice.endpoints = endpoints;
        slice.metadata.labels.clone_from(&self.labels);
        slice.metadata.annotations.clone_from(&self.annotations);
        plan.step(Action::Update(Box::new(slice)), because);
    }

    fn new_slice(
        &self,
        group: &Group,
        endpoints: Vec<Endpoint>,
        names: &mut Names,
        world: &World,
    ) -> Box<EndpointSlice> {
        let meta = &world.service.meta;
        let prefix = format!("{}-", meta.key.name);
        Box::new(EndpointSlice {
            metadata: ObjectMeta {
                namespace: meta.key.namespace.clone(),
                name: unused_name(&prefix, &mut names.seed, &mut names.used),
                generate_name: prefix,
                labels: self.labels.clone(),
                annotations: self.annotations.clone(),
                owner_references: vec![reference::<Service>(meta)],
                ..Default::default()
            },
            endpoints,
            ports: group.ports.clone(),
            address_type: group.family.name().to_owned(),
        })
    }
}

/// The names of new slices.
struct Names {
    seed: u64,
    used: HashSet<String>,
}

fn is_of(slice: &Slice, group: &Group) -> bool {
    slice.object.address_type == group.family.name() && slice.object.ports == group.ports
}

/// Returns the endpoints that each of the slices should have, in their order, and then those of new slices. An endpoint
/// stays where it is; new ones are added to slices that change anyway, then to others with room.
fn distribute(slices: &[&[Endpoint]], wanted: &[Endpoint]) -> Vec<Vec<Endpoint>> {
    let mut left: HashMap<_, _> = wanted.iter().map(|one| (identity(one), one)).collect();
    let mut filled: Vec<Vec<Endpoint>> = Vec::with_capacity(slices.len());
    let mut changes = Vec::with_capacity(slices.len());
    for slice in slices {
        let kept = slice.iter().take(SLICE_MAX);
        let kept: Vec<_> = kept
            .filter_map(|old| left.remove(&identity(old)).cloned())
            .collect();
        changes.push(*kept != **slice);
        filled.push(kept);
    }
    for endpoint in wanted {
        if left.remove(&identity(endpoint)).is_none() {
            continue;
        }
        let has_room = |index: &usize| filled.get(*index).is_some_and(|one| one.len() < SLICE_MAX);
        let mut changing = (0..filled.len()).filter(|index| changes[*index]);
        let index = changing.find(has_room);
        let index = index.or_else(|| (0..filled.len()).find(has_room));
        let index = index.unwrap_or_else(|| {
            filled.push(Vec::new());
            changes.push(true);
            filled.len().saturating_sub(1)
        });
        filled[index].push(endpoint.clone());
        changes[index] = true;
    }
    filled
}

/// Returns what makes an endpoint the same one after a change of its conditions.
fn identity(endpoint: &Endpoint) -> (&str, &str) {
    let address = endpoint.addresses.first().map_or("", String::as_str);
    let uid = endpoint.target_ref.as_ref();
    (address, uid.map_or("", |target| &target.uid))
}
