//! The resources that the Pods of a node request together.

use std::collections::BTreeMap;
use std::iter::once;

use setpoint_model::Resources;

/// The name of the resource that the kubelet checks before others than CPU and memory.
const STORAGE: &str = "ephemeral-storage";

/// Sums of requests by resource. A request may be any 64-bit number; 128 bits hold any sum of them, so that a
/// subtraction exactly reverses its addition.
#[derive(Clone, Default)]
pub struct Used(BTreeMap<String, i128>);

impl Used {
    /// Returns the sum of the requests of a resource.
    pub fn of(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Adds the requests of a Pod.
    pub fn add(&mut self, requests: &Resources) {
        self.combine(requests, i128::saturating_add);
    }

    /// Subtracts the requests of a Pod, which were added before.
    pub fn subtract(&mut self, requests: &Resources) {
        self.combine(requests, i128::saturating_sub);
    }

    fn combine(&mut self, requests: &Resources, with: fn(i128, i128) -> i128) {
        for (name, amount) in amounts(requests).filter(|(_, amount)| *amount != 0) {
            match self.0.get_mut(name) {
                Some(sum) => *sum = with(*sum, amount.into()),
                None => drop(self.0.insert(name.to_owned(), with(0, amount.into()))),
            }
        }
        self.0.retain(|_, sum| *sum != 0);
    }
}

/// Returns amounts by the name of their resource, in the order in which the kubelet checks them.
pub fn amounts(resources: &Resources) -> impl Iterator<Item = (&str, i64)> {
    let others = &resources.others;
    let storage = others.get_key_value(STORAGE).into_iter();
    let rest = others.iter().filter(|(name, _)| *name != STORAGE);
    let others = storage.chain(rest);
    let others = others.map(|(name, amount)| (name.as_str(), *amount));
    once(("cpu", resources.millicpu))
        .chain(once(("memory", resources.memory)))
        .chain(others)
}
