//! Plans the writes of a mirror Pod, and its status. Pure.

use setpoint_controller::Plan;
use setpoint_model::condition;
use setpoint_proto::core::PodStatus;

/// The static Pod of a name on the node, and the Pod of that name in the API.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The static Pod, if there is one.
    pub wanted: Option<Wanted>,
    /// The Pod of the API that is bound to the node, if there is one.
    pub found: Option<Found>,
    /// Whether the API has the node, which owns its mirror Pods.
    pub is_registered: bool,
}

/// A static Pod.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The hash of its manifest.
    pub hash: String,
    /// Whether it ends.
    pub ends: bool,
    /// Its status.
    pub status: PodStatus,
}

/// A Pod of the API.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The hash of the manifest that it mirrors; `None` if it is no mirror Pod.
    pub hash: Option<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Its status.
    pub status: PodStatus,
}

/// A write of a mirror Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the mirror Pod.
    Create,
    /// Delete the Pod of the API without a grace period. No container is its.
    Delete,
}

/// Plans the next write.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    match (&world.wanted, &world.found) {
        (Some(wanted), None) if !wanted.ends && world.is_registered => {
            plan.step(Action::Create, "the static Pod has no mirror Pod");
        }
        (_, None) => {}
        (None, Some(found)) => {
            if found.hash.is_some() {
                plan.step(
                    Action::Delete,
                    "no static Pod has the name of the mirror Pod",
                );
            }
        }
        (Some(_), Some(found)) if found.is_deleting => {
            plan.step(
                Action::Delete,
                "no containers are those of the Pod that is deleted",
            );
        }
        (Some(wanted), Some(found)) => {
            if found.hash.as_ref().is_some_and(|hash| *hash != wanted.hash) {
                plan.step(Action::Delete, "it mirrors another manifest");
            }
        }
    }
    plan
}

/// Returns the status of the mirror Pod if it differs from that of the static Pod. Conditions set by others are kept.
pub fn status(world: &World) -> Option<PodStatus> {
    let (wanted, found) = (world.wanted.as_ref()?, world.found.as_ref()?);
    if found.is_deleting || found.hash.as_ref() != Some(&wanted.hash) {
        return None;
    }
    let mut status = wanted.status.clone();
    let known = &found.status.conditions;
    let foreign = known
        .iter()
        .filter(|one| condition::get(&wanted.status.conditions, &one.r#type).is_none());
    status.conditions.extend(foreign.cloned());
    (status != found.status).then_some(status)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::PodCondition;

    use super::*;

    fn wanted(hash: &str, ends: bool) -> Option<Wanted> {
        Some(Wanted {
            hash: hash.into(),
            ends,
            ..Wanted::default()
        })
    }

    fn found(hash: Option<&str>, is_deleting: bool) -> Option<Found> {
        Some(Found {
            hash: hash.map(str::to_owned),
            is_deleting,
            ..Found::default()
        })
    }

    fn actions(wanted: Option<Wanted>, found: Option<Found>) -> Vec<Action> {
        let world = World {
            wanted,
            found,
            is_registered: true,
        };
        plan(&world).steps.iter().map(|step| step.action).collect()
    }

    #[test]
    fn a_static_pod_has_one_mirror_pod_of_its_manifest() {
        use Action::{Create, Delete};
        for (wanted, found, expected) in [
            (wanted("1", false), None, &[Create][..]),
            (wanted("1", false), found(Some("1"), false), &[]),
            // It is created again when it is gone.
            (wanted("1", false), found(Some("2"), false), &[Delete]),
            (wanted("1", false), found(Some("1"), true), &[Delete]),
            // The mirror Pod goes after the static Pod.
            (wanted("1", true), found(Some("1"), false), &[]),
            (wanted("1", true), found(Some("1"), true), &[Delete]),
            (wanted("1", true), None, &[]),
            (None, found(Some("1"), false), &[Delete]),
            (None, None, &[]),
            // Pods that others have created are theirs to delete.
            (wanted("1", false), found(None, false), &[]),
            (wanted("1", false), found(None, true), &[Delete]),
            (None, found(None, true), &[]),
        ] {
            let told = format!("{wanted:?} {found:?}");
            assert_eq!(actions(wanted, found), expected, "{told}");
        }
    }

    #[test]
    fn a_mirror_pod_waits_for_the_node_that_owns_it() {
        let world = World {
            wanted: wanted("1", false),
            ..World::default()
        };
        assert_eq!(plan(&world), Plan::default());
    }

    #[test]
    fn the_mirror_pod_has_the_status_of_the_static_pod_and_the_conditions_of_others() {
        let of = |phase: &str, types: &[&str]| PodStatus {
            phase: phase.into(),
            conditions: types
                .iter()
                .map(|kind| PodCondition {
                    r#type: (*kind).to_owned(),
                    ..PodCondition::default()
                })
                .collect(),
            ..PodStatus::default()
        };
        let mut world = World {
            wanted: wanted("1", false),
            found: found(Some("1"), false),
            is_registered: true,
        };
        world.wanted.as_mut().unwrap().status = of("Running", &["Ready"]);
        world.found.as_mut().unwrap().status = of("Pending", &["Ready", "Other"]);
        let next = status(&world).unwrap();
        assert_eq!(next, of("Running", &["Ready", "Other"]));
        world.found.as_mut().unwrap().status = next;
        assert_eq!(status(&world), None);
        world.found.as_mut().unwrap().status = of("Pending", &[]);
        world.wanted.as_mut().unwrap().hash = "2".into();
        assert_eq!(status(&world), None, "it is not its mirror Pod");
    }
}
