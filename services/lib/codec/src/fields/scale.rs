//! The managers of an object as those of its subresource `scale`, and back.

use super::managers::{ManagerId, Managers, Operation, Owned};
use super::set::FieldSet;
use crate::Kind;

/// The path of the replicas, in a `Scale` and in all kinds that have one.
const REPLICAS: &[&str] = &["spec", "replicas"];

/// Returns the managers of the `Scale` of an object: those that own its replicas.
pub fn of_scale(parent: &Managers, scale: &Kind) -> Managers {
    let owners = parent.all.iter();
    let owners = owners.filter(|(_, owned)| owned.set.has_field(REPLICAS));
    let owners = owners.map(|(id, owned)| {
        let owned = Owned {
            set: FieldSet::of_fields(&[REPLICAS]),
            api_version: scale.api_version(),
            time: owned.time,
        };
        (in_version(id, scale), owned)
    });
    Managers {
        all: owners.collect(),
    }
}

/// Returns the managers of an object whose `Scale` has these managers now.
pub fn to_parent(parent: &Managers, scale: &Managers, scale_kind: &Kind, kind: &Kind) -> Managers {
    let mut all = parent.all.clone();
    let replicas = FieldSet::of_fields(&[REPLICAS]);
    all.retain(|id, owned| {
        if !scale.all.contains_key(&in_version(id, scale_kind)) {
            owned.set = owned.set.difference(&replicas);
        }
        !owned.set.is_empty()
    });
    for (id, owned) in &scale.all {
        let id = in_version(id, kind);
        if !owned.set.has_field(REPLICAS) {
            continue;
        }
        let known = all.entry(id).or_insert_with(|| Owned {
            set: replicas.clone(),
            api_version: kind.api_version(),
            time: owned.time,
        });
        known.set = known.set.union(&replicas);
    }
    Managers { all }
}

/// Returns the same manager in the version of another kind.
fn in_version(id: &ManagerId, kind: &Kind) -> ManagerId {
    ManagerId {
        api_version: match id.operation {
            Operation::Apply => String::new(),
            Operation::Update => kind.api_version(),
        },
        ..id.clone()
    }
}
