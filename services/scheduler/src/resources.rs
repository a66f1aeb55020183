//! Amounts of what a node has and a Pod takes.

use std::collections::BTreeMap;

use setpoint_model::quantity::Amount;
use setpoint_proto::core::{Container, PodSpec};
use setpoint_proto::meta::Quantity;

/// What a Pod that asks for nothing is taken to use when nodes are compared (upstream's non-zero requests).
const ASSUMED_MILLICPU: i64 = 100;
const ASSUMED_MEMORY: i64 = 200 * 1024 * 1024;

/// CPU in thousandths, memory in bytes, everything else by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Thousandths of a CPU.
    pub millicpu: i64,
    /// Bytes.
    pub memory: i64,
    /// Ephemeral storage, huge pages, devices; in whole units.
    pub others: BTreeMap<String, i64>,
    /// As `millicpu`, but never zero for a Pod: only for comparing nodes.
    pub assumed_millicpu: i64,
    /// As `memory`, but never zero for a Pod: only for comparing nodes.
    pub assumed_memory: i64,
}

impl Resources {
    /// A Pod's requests: its containers together, or its largest init container where that is more, and the overhead.
    pub fn of_pod(spec: &PodSpec) -> Self {
        let requests = |container: &Container| Self::of_list(&container.resources.requests);
        let mut total = Self::default();
        spec.containers
            .iter()
            .for_each(|container| total.add(&requests(container)));
        let (sidecars, starters): (Vec<_>, Vec<_>) = spec
            .init_containers
            .iter()
            .partition(|container| container.restart_policy.as_deref() == Some("Always"));
        sidecars
            .into_iter()
            .for_each(|container| total.add(&requests(container)));
        starters
            .into_iter()
            .for_each(|container| total.raise_to(&requests(container)));
        total.add(&Self::of_list(&spec.overhead));
        total.assumed_millicpu = nonzero_or(total.millicpu, ASSUMED_MILLICPU);
        total.assumed_memory = nonzero_or(total.memory, ASSUMED_MEMORY);
        total
    }

    /// Amounts as an API object lists them. What cannot be read counts as none: the gateway let it in no such object.
    pub fn of_list(list: &BTreeMap<String, Quantity>) -> Self {
        let mut resources = Self::default();
        for (name, quantity) in list {
            let Ok(amount) = Amount::parse(&quantity.string) else {
                continue;
            };
            match name.as_str() {
                "cpu" => resources.millicpu = amount.millis(),
                "memory" => resources.memory = amount.value(),
                "pods" => {}
                _ => drop(resources.others.insert(name.clone(), amount.value())),
            }
        }
        resources
    }

    /// Adds `more` to this.
    pub fn add(&mut self, more: &Self) {
        self.millicpu += more.millicpu;
        self.memory += more.memory;
        self.assumed_millicpu += more.assumed_millicpu;
        self.assumed_memory += more.assumed_memory;
        for (name, amount) in &more.others {
            *self.others.entry(name.clone()).or_default() += amount;
        }
    }

    fn raise_to(&mut self, other: &Self) {
        self.millicpu = self.millicpu.max(other.millicpu);
        self.memory = self.memory.max(other.memory);
        for (name, &amount) in &other.others {
            let mine = self.others.entry(name.clone()).or_default();
            *mine = amount.max(*mine);
        }
    }

    /// Names of what `wanted` asks for and is not there beside what is `used` already.
    pub fn lacking<'a>(
        &'a self,
        used: &'a Self,
        wanted: &'a Self,
    ) -> impl Iterator<Item = &'a str> {
        let short = |have: i64, used: i64, want: i64| want > 0 && used + want > have;
        let cpu = short(self.millicpu, used.millicpu, wanted.millicpu).then_some("cpu");
        let memory = short(self.memory, used.memory, wanted.memory).then_some("memory");
        let others = wanted.others.iter().filter(move |(name, want)| {
            let of = |side: &Self| side.others.get(*name).copied().unwrap_or_default();
            short(of(self), of(used), **want)
        });
        cpu.into_iter()
            .chain(memory)
            .chain(others.map(|(name, _)| name.as_str()))
    }
}

fn nonzero_or(amount: i64, assumed: i64) -> i64 {
    match amount {
        0 => assumed,
        amount => amount,
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::ResourceRequirements;

    use super::*;

    fn container(cpu: &str) -> Container {
        Container {
            resources: ResourceRequirements {
                requests: [("cpu".to_owned(), Quantity::new(cpu))].into(),
                ..Default::default()
            },
            ..Default::default()
        }
    }

    #[test]
    fn a_pod_takes_the_sum_of_its_containers_or_its_largest_init_container() {
        let mut spec = PodSpec {
            containers: vec![container("100m"), container("0.2")],
            ..Default::default()
        };
        assert_eq!(Resources::of_pod(&spec).millicpu, 300);
        spec.init_containers = vec![container("1"), container("500m")];
        assert_eq!(Resources::of_pod(&spec).millicpu, 1000);
    }

    #[test]
    fn a_request_of_zero_is_never_lacking() {
        let nothing = Resources::default();
        let full = Resources {
            millicpu: 5,
            ..Default::default()
        };
        assert_eq!(nothing.lacking(&full, &nothing).count(), 0);
        let gpu = Resources {
            others: [("gpu".to_owned(), 1)].into(),
            ..Default::default()
        };
        assert_eq!(nothing.lacking(&nothing, &gpu).collect::<Vec<_>>(), ["gpu"]);
    }
}
