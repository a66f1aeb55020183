//! A cluster in memory that does what the gateway does: deletions with policies, removals of metadata, events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use setpoint_garbage_collector_controller::{Action, Item, Live, Owner, OwnerState};
use setpoint_model::{Key, Revision};
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::setpoint::{MetadataEvent, ObjectMetadata};

pub const FOREGROUND: &str = "foregroundDeletion";
pub const ORPHAN: &str = "orphan";
/// A finalizer of others.
pub const HELD: &str = "example.com/held";

/// All objects by uid, and the events of their changes.
#[derive(Default)]
pub struct Cluster {
    pub objects: BTreeMap<String, Item>,
    pub events: Vec<MetadataEvent>,
    /// The uids of objects that a user has deleted, with the policy `Orphan` if so.
    pub deleted: BTreeMap<String, bool>,
    /// The uids of objects that the collector has deleted.
    pub collected: BTreeSet<String>,
    revision: u64,
}

pub fn config_map(uid: &str, owners: Vec<OwnerReference>) -> Item {
    Item {
        resource: "configmaps".into(),
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        key: Key::new("shop", uid),
        uid: uid.into(),
        owners,
        ..Item::default()
    }
}

/// Returns a reference to the ConfigMap whose name is its uid.
pub fn reference(uid: &str, blocks: bool) -> OwnerReference {
    OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: uid.into(),
        uid: uid.into(),
        block_owner_deletion: Some(blocks),
        ..OwnerReference::default()
    }
}

pub fn event_of(item: &Item, deleted: bool) -> MetadataEvent {
    MetadataEvent {
        object: Some(ObjectMetadata {
            resource: item.resource.clone(),
            api_version: item.api_version.clone(),
            kind: item.kind.clone(),
            metadata: ObjectMeta {
                namespace: item.key.namespace.clone(),
                name: item.key.name.clone(),
                uid: item.uid.clone(),
                resource_version: item.revision.to_string(),
                deletion_timestamp: item.deleting.then(Default::default),
                owner_references: item.owners.clone(),
                finalizers: item.finalizers.clone(),
                ..ObjectMeta::default()
            },
        }),
        deleted,
        revision: item.revision.to_string(),
        ..MetadataEvent::default()
    }
}

/// Returns a bookmark; at the end of the initial state if so.
pub fn bookmark(revision: Revision, initial_events_end: bool) -> MetadataEvent {
    MetadataEvent {
        revision: revision.to_string(),
        initial_events_end,
        ..MetadataEvent::default()
    }
}

impl Cluster {
    pub fn revision(&self) -> Revision {
        Revision::from_raw(self.revision)
    }

    /// Returns the initial state of a watch.
    pub fn initial(&self) -> Vec<MetadataEvent> {
        let objects = self.objects.values().map(|item| event_of(item, false));
        objects.chain([bookmark(self.revision(), true)]).collect()
    }

    /// Writes an object; removes it if its deletion is complete.
    pub fn put(&mut self, mut item: Item) {
        self.revision += 1;
        item.revision = self.revision();
        let gone = item.deleting && item.finalizers.is_empty();
        self.events.push(event_of(&item, gone));
        match gone {
            true => _ = self.objects.remove(&item.uid),
            false => _ = self.objects.insert(item.uid.clone(), item),
        }
    }

    fn change(&mut self, uid: &str, change: impl FnOnce(&mut Item)) {
        if let Some(mut item) = self.objects.get(uid).cloned() {
            change(&mut item);
            self.put(item);
        }
    }

    /// Deletes an object as a user does.
    pub fn delete(&mut self, uid: &str, policy: &str) {
        if self.objects.contains_key(uid) {
            self.deleted.insert(uid.to_owned(), policy == ORPHAN_POLICY);
        }
        self.begin_deletion(uid, policy);
    }

    fn begin_deletion(&mut self, uid: &str, policy: &str) {
        self.change(uid, |item| {
            item.deleting = true;
            item.finalizers
                .retain(|held| ![FOREGROUND, ORPHAN].contains(&held.as_str()));
            match policy {
                "Foreground" => item.finalizers.push(FOREGROUND.into()),
                ORPHAN_POLICY => item.finalizers.push(ORPHAN.into()),
                _ => {}
            }
        });
    }

    pub fn owners_of(&self, item: &Item) -> Vec<Owner> {
        let state = |reference: &OwnerReference| {
            let found = self.objects.get(&reference.uid);
            let found = found.filter(|owner| {
                owner.key.name == reference.name && owner.key.namespace == item.key.namespace
            });
            match found {
                None => OwnerState::Dangling,
                Some(owner) if owner.waits_for_dependants() => OwnerState::Waiting,
                Some(_) => OwnerState::Solid,
            }
        };
        let owners = item.owners.iter().map(|reference| Owner {
            uid: reference.uid.clone(),
            state: state(reference),
        });
        owners.collect()
    }

    /// Reads an object as the controller does.
    pub fn live(&self, uid: &str, is_blocked: bool) -> Live {
        let Some(item) = self.objects.get(uid) else {
            return Live::Gone;
        };
        let orphans = item.deleting && item.has_finalizer(ORPHAN);
        let reads = orphans || (item.waits_for_dependants() && !is_blocked);
        let refers = |one: &&Item| one.owners.iter().any(|owner| owner.uid == uid);
        Live::Present {
            item: Arc::new(item.clone()),
            owners: self.owners_of(item),
            dependants: reads.then(|| self.objects.values().filter(refers).cloned().collect()),
        }
    }

    /// Executes an action, and checks that it does no harm. Returns `false` after a conflict.
    pub fn act(&mut self, action: &Action) -> bool {
        let uid = action.item().uid.clone();
        let Some(now) = self.objects.get(&uid).cloned() else {
            return true;
        };
        match action {
            Action::Delete(item, policy) => {
                if now.revision != item.revision {
                    return false;
                }
                self.check_deletion(&now);
                self.collected.insert(uid.clone());
                self.begin_deletion(&uid, policy);
            }
            Action::RemoveOwners(_, owners) => self.change(&uid, |item| {
                item.owners.retain(|owner| !owners.contains(&owner.uid));
            }),
            Action::Unblock(_) => self.change(&uid, |item| {
                for owner in &mut item.owners {
                    owner.block_owner_deletion = Some(false);
                }
            }),
            Action::RemoveFinalizer(_, finalizer) => {
                if *finalizer == FOREGROUND {
                    self.check_unblocked(&uid);
                }
                self.change(&uid, |item| {
                    item.finalizers.retain(|held| held != finalizer)
                });
            }
            Action::Report(..) => {}
        }
        true
    }

    /// Checks that no owner of a collected object is solid, and that none was deleted without its dependants.
    fn check_deletion(&self, item: &Item) {
        let owners = self.owners_of(item);
        assert!(!owners.is_empty(), "{item:?} has no owner");
        for owner in owners {
            assert_ne!(owner.state, OwnerState::Solid, "of {item:?}");
            let orphaned = self.deleted.get(&owner.uid) == Some(&true);
            assert!(!orphaned, "{item:?} of {owner:?}");
        }
    }

    fn check_unblocked(&self, uid: &str) {
        let blocking = self.objects.values().filter(|item| item.blocks(uid));
        assert_eq!(blocking.count(), 0, "{uid} is blocked");
    }
}

pub const ORPHAN_POLICY: &str = "Orphan";
