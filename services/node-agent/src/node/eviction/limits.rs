//! Decides whether a Pod holds more space than its spec allows, in the kubelet's order and words. Pure.

use setpoint_model::Resources;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{Container, PodSpec};
use setpoint_proto::meta::Quantity;

use crate::node::usage::Held;

/// The resource.
const STORAGE: &str = "ephemeral-storage";

/// Returns whether a Pod has a limit of space.
pub fn has_any(spec: &PodSpec) -> bool {
    let mut containers = spec.containers.iter().chain(&spec.init_containers);
    volumes(spec).next().is_some() || containers.any(|one| limit(one).is_some())
}

/// Returns the message of the first limit that a Pod exceeds: that of an emptyDir volume, of the whole Pod, or of a
/// container.
pub fn exceeded(spec: &PodSpec, held: &Held) -> Option<String> {
    volume(spec, held)
        .or_else(|| whole(spec, held))
        .or_else(|| container(spec, held))
}

fn volume(spec: &PodSpec, held: &Held) -> Option<String> {
    let used = |name: &str| held.volumes.get(name).map_or(0, |space| space.bytes);
    let (name, limit) = volumes(spec).find(|(name, limit)| is_more(used(name), *limit))?;
    let limit = limit.canonical();
    Some(format!(
        "Usage of EmptyDir volume {name:?} exceeds the limit {limit:?}. "
    ))
}

/// The limit of a Pod is the sum of those of its containers, even if some of them have none.
fn whole(spec: &PodSpec, held: &Held) -> Option<String> {
    let mut containers = spec.containers.iter().chain(&spec.init_containers);
    let first = containers.find_map(limit)?;
    let mut sum = Resources::of_containers(spec, |one| Resources::of_list(&one.resources.limits));
    sum.add(&Resources::of_list(&spec.overhead));
    let sum = Amount::from_value(sum.others.get(STORAGE).copied().unwrap_or_default());
    let sum = match first.is_binary() {
        true => sum.in_binary(),
        false => sum,
    };
    is_more(held.total(spec).bytes, sum).then(|| {
        let limit = sum.canonical();
        format!("Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ")
    })
}

fn container(spec: &PodSpec, held: &Held) -> Option<String> {
    let limited = spec
        .containers
        .iter()
        .filter_map(|container| Some((&container.name, limit(container)?)));
    let used = |name: &String| held.containers.get(name).map_or(0, |one| one.total().bytes);
    let (name, limit) = limited
        .filter(|(_, limit)| limit.value() > 0)
        .find(|(name, limit)| is_more(used(name), *limit))?;
    let limit = limit.canonical();
    Some(format!(
        "Container {name} exceeded its local ephemeral storage limit {limit:?}. "
    ))
}

/// Returns the emptyDir volumes with a limit.
fn volumes(spec: &PodSpec) -> impl Iterator<Item = (&str, Amount)> {
    spec.volumes.iter().filter_map(|volume| {
        let empty = volume.volume_source.empty_dir.as_ref()?;
        let limit = amount(empty.size_limit.as_ref()?)?;
        (limit.value() > 0).then_some((volume.name.as_str(), limit))
    })
}

fn limit(container: &Container) -> Option<Amount> {
    amount(container.resources.limits.get(STORAGE)?)
}

fn amount(quantity: &Quantity) -> Option<Amount> {
    Amount::parse(&quantity.string).ok()
}

fn is_more(used: u64, limit: Amount) -> bool {
    i64::try_from(used).unwrap_or(i64::MAX) > limit.value()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use setpoint_proto::core::{EmptyDirVolumeSource, Volume};

    use super::*;
    use setpoint_runtime::{ContainerSpace, Space};

    fn container(name: &str, limit: &str) -> Container {
        let mut container = Container {
            name: name.into(),
            ..Container::default()
        };
        if !limit.is_empty() {
            let limits = &mut container.resources.limits;
            limits.insert(STORAGE.into(), Quantity::new(limit));
        }
        container
    }

    fn empty_dir(name: &str, medium: &str, limit: &str) -> Volume {
        let mut volume = Volume {
            name: name.into(),
            ..Volume::default()
        };
        volume.volume_source.empty_dir = Some(EmptyDirVolumeSource {
            medium: medium.into(),
            size_limit: (!limit.is_empty()).then(|| Quantity::new(limit)),
            ..EmptyDirVolumeSource::default()
        });
        volume
    }

    fn held(containers: &[(&str, u64)], volumes: &[(&str, u64)]) -> Held {
        let spaces = |all: &[(&str, u64)]| {
            let spaces = all.iter().map(|(name, bytes)| {
                let space = Space {
                    bytes: *bytes,
                    inodes: 1,
                };
                ((*name).to_owned(), space)
            });
            spaces.collect::<BTreeMap<_, _>>()
        };
        Held {
            containers: spaces(containers)
                .into_iter()
                .map(|(name, space)| {
                    (
                        name,
                        ContainerSpace {
                            layer: None,
                            log: Some(space),
                        },
                    )
                })
                .collect(),
            volumes: spaces(volumes),
            ..Held::default()
        }
    }

    /// Checks K13.
    #[test]
    fn a_pod_is_evicted_for_the_first_limit_that_it_exceeds() {
        let spec = PodSpec {
            containers: vec![container("web", "2Ki"), container("log", "")],
            volumes: vec![
                empty_dir("cache", "", "1Ki"),
                empty_dir("shared", "Memory", "1k"),
                empty_dir("free", "", ""),
            ],
            ..PodSpec::default()
        };
        for (containers, volumes, expected) in [
            (&[("web", 1024)][..], &[("cache", 1024)][..], ""),
            (
                &[("web", 9999)],
                &[("cache", 1025)],
                "Usage of EmptyDir volume \"cache\" exceeds the limit \"1Ki\". ",
            ),
            (
                &[],
                &[("shared", 1001)],
                "Usage of EmptyDir volume \"shared\" exceeds the limit \"1k\". ",
            ),
            (&[], &[("shared", 1000), ("free", 2048)], ""),
            (
                &[("web", 1024), ("log", 1000)],
                &[("free", 25)],
                "Pod ephemeral local storage usage exceeds the total limit of containers 2Ki. ",
            ),
        ] {
            let message = exceeded(&spec, &held(containers, volumes));
            assert_eq!(message.unwrap_or_default(), expected);
        }
    }

    /// Checks K13.
    #[test]
    fn a_container_has_a_limit_of_its_own_within_that_of_its_pod() {
        let spec = PodSpec {
            containers: vec![container("web", "2Ki"), container("log", "100Ki")],
            ..PodSpec::default()
        };
        let message = exceeded(&spec, &held(&[("web", 2049)], &[]));
        let expected = "Container web exceeded its local ephemeral storage limit \"2Ki\". ";
        assert_eq!(message.unwrap_or_default(), expected);
        assert_eq!(exceeded(&spec, &held(&[("log", 100 << 10)], &[])), None);
    }

    #[test]
    fn a_pod_without_limits_may_hold_any_space() {
        let spec = PodSpec {
            containers: vec![container("web", "")],
            volumes: vec![empty_dir("cache", "", ""), empty_dir("zero", "", "0")],
            ..PodSpec::default()
        };
        assert!(!has_any(&spec));
        let all = held(&[("web", u64::MAX)], &[("cache", u64::MAX), ("zero", 1)]);
        assert_eq!(exceeded(&spec, &all), None);
        for limited in [
            PodSpec {
                init_containers: vec![container("init", "1Gi")],
                ..spec.clone()
            },
            PodSpec {
                volumes: vec![empty_dir("cache", "", "1Gi")],
                ..spec
            },
        ] {
            assert!(has_any(&limited));
        }
    }
}
