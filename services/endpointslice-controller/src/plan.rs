//! Plan: computes which EndpointSlices and Endpoints to write.

use setpoint_controller::{Plan, reference};
use setpoint_model::Target;
use setpoint_model::endpointslice::MANAGED_BY;
use setpoint_model::owner::controller_of;
use setpoint_proto::core::{Endpoints, Service};
use setpoint_proto::meta::ObjectMeta;

use crate::labels::{self, FROM_ENDPOINTS};
use crate::slices::Wanted;
use crate::subsets::{self, OVER_CAPACITY};
use crate::{Action, World, mirror, pods};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const LAST_CHANGE: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Computes the writes. A Service of the type `ExternalName` has no endpoints, and one without a selector keeps what
/// was written while it had one.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let service = &world.service;
    if service.meta.deleting || service.object.spec.r#type == "ExternalName" {
        return plan;
    }
    match service.object.spec.selector.is_empty() {
        true => mirror(world, &mut plan),
        false => follow_pods(world, &mut plan),
    }
    plan
}

fn follow_pods(world: &World, plan: &mut Plan<Action>) {
    let service = &world.service.object;
    let mut selected: Vec<_> = world.pods.iter().map(|pod| &**pod).collect();
    selected.sort_by(|a, b| a.meta.key.name.cmp(&b.meta.key.name));
    let refused = pods::refused(selected.iter().copied());
    if let Some(problem) = refused.filter(|_| !world.is_reported) {
        let because = "the Service may not forward to an address of its Pods";
        plan.step(Action::Report(problem), because);
    }
    let wanted = Wanted {
        groups: pods::groups(service, selected, &world.zones),
        labels: labels::of_slices(service),
        annotations: Default::default(),
        placeholder: true,
    };
    wanted.add_to(plan, world);
    delete_mirrors(world, plan);
    write_endpoints(world, &wanted, plan);
}

fn write_endpoints(world: &World, wanted: &Wanted, plan: &mut Plan<Action>) {
    let service = &world.service.object;
    let (subsets, over_capacity) = subsets::of(service, &wanted.groups);
    let labels = labels::of_endpoints(service);
    let Some(now) = &world.endpoints else {
        let meta = &world.service.meta;
        let mut new = Endpoints {
            metadata: ObjectMeta {
                namespace: meta.key.namespace.clone(),
                name: meta.key.name.clone(),
                labels,
                owner_references: vec![reference::<Service>(meta)],
                ..Default::default()
            },
            subsets,
        };
        set_over_capacity(&mut new, over_capacity);
        let because = "the Service has no Endpoints";
        return plan.step(Action::CreateEndpoints(Box::new(new)), because);
    };
    let mut new = now.object.clone();
    new.subsets = subsets;
    new.metadata.labels = labels;
    set_over_capacity(&mut new, over_capacity);
    if !now.meta.deleting && new != now.object {
        let because = "the addresses or the labels of the Service have changed";
        plan.step(Action::UpdateEndpoints(Box::new(new)), because);
    }
}

fn set_over_capacity(endpoints: &mut Endpoints, over_capacity: bool) {
    let annotations = &mut endpoints.metadata.annotations;
    match over_capacity {
        true => annotations.insert(OVER_CAPACITY.to_owned(), "truncated".to_owned()),
        false => annotations.remove(OVER_CAPACITY),
    };
}

fn mirror(world: &World, plan: &mut Plan<Action>) {
    let endpoints = world.endpoints.iter().map(|endpoints| &endpoints.object);
    let mut mirrored = endpoints.filter(|one| {
        let meta = &one.metadata;
        labels::is_mirrored(&meta.labels, &meta.annotations)
    });
    let Some(endpoints) = mirrored.next() else {
        return delete_mirrors(world, plan);
    };
    own(world, endpoints, plan);
    let meta = &endpoints.metadata;
    let mut annotations = meta.annotations.clone();
    annotations.retain(|key, _| ![LAST_APPLIED, LAST_CHANGE].contains(&key.as_str()));
    let wanted = Wanted {
        groups: mirror::groups(&endpoints.subsets),
        labels: labels::of_mirrors(&meta.labels, &meta.name),
        annotations,
        placeholder: false,
    };
    wanted.add_to(plan, world);
}

/// Makes the Service the owner of Endpoints that a user wrote: they are deleted with it, as upstream.
fn own(world: &World, endpoints: &Endpoints, plan: &mut Plan<Action>) {
    if controller_of(&endpoints.metadata).is_none() {
        let mut owned = endpoints.clone();
        let owner = reference::<Service>(&world.service.meta);
        owned.metadata.owner_references.push(owner);
        let because = "they have the name of the Service";
        plan.step(Action::UpdateEndpoints(Box::new(owned)), because);
    }
}

fn delete_mirrors(world: &World, plan: &mut Plan<Action>) {
    for slice in &world.slices {
        let manager = slice.meta.labels.get(MANAGED_BY);
        if manager.is_some_and(|manager| manager == FROM_ENDPOINTS) && !slice.meta.deleting {
            let because = "there are no Endpoints to mirror";
            plan.step(Action::Delete(Target::of(&slice.meta)), because);
        }
    }
}
