//! Amounts of resources by name, and those of a Pod, as quotas and limit ranges compare them.

use std::collections::BTreeMap;

use setpoint_model::quantity::Amount;
use setpoint_proto::core::{Container, PodSpec, ResourceRequirements};
use setpoint_proto::meta::Quantity;

/// Exact amounts by the name of the resource.
pub(crate) type Amounts = BTreeMap<String, Amount>;
/// Amounts as an object has them.
pub(crate) type Quantities = BTreeMap<String, Quantity>;

/// Returns the amounts of a list. Ignores invalid quantities, which validation refuses.
pub(crate) fn of_list(list: &Quantities) -> Amounts {
    let parsed = list.iter().filter_map(|(name, quantity)| {
        let amount = Amount::parse(&quantity.string).ok()?;
        Some((name.clone(), amount))
    });
    parsed.collect()
}

/// Returns the list with the canonical forms of the amounts.
pub(crate) fn to_list(amounts: &Amounts) -> Quantities {
    let written = amounts.iter();
    let written = written.map(|(name, amount)| (name.clone(), Quantity::new(amount.canonical())));
    written.collect()
}

/// Adds `more`.
pub(crate) fn add(amounts: &mut Amounts, more: &Amounts) {
    for (name, more) in more {
        let sum = amounts.get(name).map_or(*more, |amount| *amount + *more);
        amounts.insert(name.clone(), sum);
    }
}

/// Returns the sum over the containers of a Pod of one of their lists: that of the containers and sidecars, or if greater,
/// that of an init container and the sidecars started before it.
pub(crate) fn of_containers(
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
        if container.restart_policy.as_deref() == Some("Always") {
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

/// Returns the texts of several errors as upstream's aggregate: one as it is, several in brackets, each once.
pub(crate) fn aggregate(errors: Vec<String>) -> Option<String> {
    let mut unique = Vec::<String>::new();
    for error in errors {
        if !unique.contains(&error) {
            unique.push(error);
        }
    }
    match unique.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}
