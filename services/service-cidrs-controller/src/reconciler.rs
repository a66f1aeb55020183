//! The controller: its informers, and its implementation of [`Reconciler`].

use setpoint_controller::{
    Client, Controller, Delta, Hosted, Informer, Inputs, Outcome, Plan, Reader, Receipt,
    Reconciler, StatusOf, View, Whole,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::networking::ServiceCidr;
use setpoint_proto::{ApiError, Resource as _};

use crate::plan::{is_protected, ranges};
use crate::{Action, AddressView, World, act, blocks, plan, status};

/// A ServiceCIDR. There are few.
pub type RangeView = Whole<ServiceCidr>;

/// The reconciler of ServiceCIDRs.
pub struct Ranges {
    ranges: Reader<RangeView>,
    services: Reader<AddressView>,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "service-cidrs-controller",
    resource: ServiceCidr::RESOURCE,
    run: |replica, settings, ()| {
        Box::pin(async move {
            let (ranges, services) = (replica.informer(), replica.informer());
            let controller = controller(ranges, services, |it| replica.controller(it));
            replica.run(controller, settings).await
        })
    },
};

/// Returns the controller over these informers; `new` makes it of the reconciler.
pub fn controller(
    ranges: Informer<RangeView>,
    services: Informer<AddressView>,
    new: impl FnOnce(Ranges) -> Controller<Ranges>,
) -> Controller<Ranges> {
    let reconciler = Ranges {
        ranges: ranges.reader(),
        services: services.reader(),
    };
    let (on_range, on_service) = (ranges.reader(), ranges.reader());
    let others = ranges.share();
    new(reconciler)
        .for_(ranges)
        .depends_on(others, move |_| terminating(&on_range))
        .depends_on(services, move |delta| match has_moved(delta) {
            true => terminating(&on_service),
            false => Vec::new(),
        })
}

/// Returns the ServiceCIDRs whose deletion may wait for Services or for others that cover them.
fn terminating(ranges: &Reader<RangeView>) -> Vec<Key> {
    let mut all = ranges.list();
    all.retain(|range| range.meta.deleting);
    all.iter().map(|range| range.meta.key.clone()).collect()
}

/// Returns whether the addresses of a Service have changed.
fn has_moved(delta: &Delta<AddressView>) -> bool {
    let addresses = |view: &std::sync::Arc<AddressView>| view.addresses.clone();
    delta.old.as_ref().map(addresses) != delta.new.as_ref().map(addresses)
}

impl Reconciler for Ranges {
    type Object = ServiceCidr;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        let range = self.ranges.get(key)?;
        let mut others = self.ranges.list();
        // One without the finalizer may be gone the moment after.
        others.retain(|one| one.meta.key != *key && !one.meta.deleting && is_protected(one));
        let others: Vec<_> = others.iter().flat_map(|one| ranges(one)).collect();
        let own: Vec<_> = ranges(&range).collect();
        let mut in_use = None;
        if range.meta.deleting {
            self.services.for_each(|service, _| {
                let mut addresses = service.addresses.iter().copied();
                in_use = in_use.or_else(|| addresses.find(|it| blocks(&own, &others, *it)));
            });
        }
        Some(World {
            range,
            others,
            in_use,
            now: inputs.now,
        })
    }

    fn meta(world: &World) -> &Meta {
        world.range.meta()
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, world, *action).await
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<StatusOf<Self>> {
        status(world, outcome)
    }
}
