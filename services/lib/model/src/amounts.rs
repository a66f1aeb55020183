//! Amounts of resources by name, and those of a Pod, as quotas and limit ranges compare them.

use std::collections::BTreeMap;

use setpoint_proto::core::{Container, PodSpec, ResourceRequirements};
use setpoint_proto::meta::Quantity;

use crate::pod::is_sidecar;
use crate::quantity::Amount;

/// Exact amounts by the name of the resource.
pub type Amounts = BTreeMap<String, Amount>;
/// Amounts as an object has them.
pub type Quantities = BTreeMap<String, Quantity>;

/// Returns the amounts of a list. Ignores invalid quantities, which validation refuses.
pub fn of_list(list: &Quantities) -> Amounts {
    let parsed = list.iter().filter_map(|(name, quantity)| {
        let amount = Amount::parse(&quantity.string).ok()?;
        Some((name.clone(), amount))
    });
    parsed.collect()
}

/// Returns the list with the canonical forms of the amounts.
pub fn to_list(amounts: &Amounts) -> Quantities {
    let written = amounts.iter();
    let written = written.map(|(name, amount)| (name.clone(), Quantity::new(amount.canonical())));
    written.collect()
}

/// Adds `more`.
pub fn add(amounts: &mut Amounts, more: &Amounts) {
    for (name, more) in more {
        let sum = amounts.get(name).map_or(*more, |amount| *amount + *more);
        amounts.insert(name.clone(), sum);
    }
}

/// Returns the sum over the containers of a Pod of one of their lists: that of the containers and sidecars, or if
/// greater, that of an init container and the sidecars started before it.
pub fn of_containers(
    spec: &PodSpec,
    list: impl Fn(&ResourceRequirements) -> &Quantities,
) -> Amounts {
    let of = |container: &Container| of_list(list(&container.resources));
    let mut total = Amounts::new();
    for container in &spec.containers {
        add(&mut total, &of(container));
    }
    let (mut sidecars, mut largest) = (Amounts::new(), Amounts::new());
    for container in &spec.init_containers {
        let mut concurrent = of(container);
        if is_sidecar(container) {
            add(&mut total, &concurrent);
            add(&mut sidecars, &concurrent);
            concurrent.clone_from(&sidecars);
        } else {
            add(&mut concurrent, &sidecars);
        }
        raise_to(&mut largest, &concurrent);
    }
    raise_to(&mut total, &largest);
    total
}

fn raise_to(amounts: &mut Amounts, other: &Amounts) {
    for (name, other) in other {
        let raised = amounts
            .get(name)
            .map_or(*other, |amount| *amount.max(other));
        amounts.insert(name.clone(), raised);
    }
}
