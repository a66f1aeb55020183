//! The managers of an object and the fields that each of them owns.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;
use setpoint_proto::meta::Time;

use super::compare::Comparison;
use super::conflict::{ApplyError, Conflicts};
use super::encoded::Unclear;
use super::remove::{remove, with_parents};
use super::set::FieldSet;
use super::shape::{Shape, Structure};
use super::{document, merge, object_set, validate};
use crate::{Kind, Object};

/// The number of managers that may have updated an object; older ones are merged (upstream:
/// `DefaultMaxUpdateManagers`).
pub(super) const MAX_UPDATERS: usize = 10;
/// The manager of the fields of merged managers.
const ANCIENT: &str = "ancient-changes";
/// The manager of the fields that an object had before it was first applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The fields of the metadata that nobody owns (upstream: `stripMetaManager`).
const NOT_OWNED: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

/// The way in which a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By applying them.
    Apply,
    /// By setting them in any other way.
    Update,
}

/// The identity of a manager. One that applies and updates counts as two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManagerId {
    /// The name.
    pub manager: String,
    /// The operation.
    pub operation: Operation,
    /// The version of the API; empty for those that apply.
    pub api_version: String,
    /// The subresource; empty for the whole object.
    pub subresource: String,
}

/// The fields of a manager.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owned {
    pub(super) set: FieldSet,
    pub(super) api_version: String,
    pub(super) time: Option<Time>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Managers {
    pub(super) all: BTreeMap<ManagerId, Owned>,
}

/// A write by a manager.
#[derive(Clone, Copy, Debug)]
pub struct Edit<'a> {
    /// The kind of the document.
    pub kind: &'static Kind,
    /// The name of the manager.
    pub manager: &'a str,
    /// The subresource; empty for the whole object.
    pub subresource: &'a str,
    /// The time.
    pub now: Time,
    /// The fields that such a write cannot change.
    pub reset: &'a FieldSet,
}

impl Edit<'_> {
    /// Returns the name under which the manager is recorded.
    pub(super) fn recorded_name(&self) -> &str {
        match self.manager {
            "" => "unknown",
            name => name,
        }
    }

    fn id(&self, operation: Operation) -> ManagerId {
        ManagerId {
            manager: self.recorded_name().to_owned(),
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => self.kind.api_version(),
            },
            subresource: self.subresource.to_owned(),
        }
    }

    /// Returns the structure of the document.
    pub(super) fn structure(&self) -> Structure<'static> {
        Structure::of(self.kind)
    }

    /// Returns the fields of a set that the manager can own.
    fn owned(&self, mut set: FieldSet) -> FieldSet {
        static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(NOT_OWNED));
        set.remove_recursively(self.reset);
        set.remove(&UNOWNED);
        set
    }
}

impl Managers {
    /// Returns whether no manager is known.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Records that a write changed `live` to `new`: the manager owns what it added and changed, and nobody else does.
    ///
    /// # Errors
    /// If an entry of a list has no key.
    pub fn update(&mut self, edit: &Edit<'_>, live: &Value, new: &Value) -> Result<(), String> {
        let comparison = Comparison::of(edit.structure().shape(), live, new)?;
        self.record(edit, comparison);
        Ok(())
    }

    /// Records a write with these changes.
    pub(super) fn record(&mut self, edit: &Edit<'_>, changes: Comparison) {
        let others = self.take_other_versions(edit.kind);
        let changes = changes.without(edit.reset);
        self.disown(&changes, None);
        let mut changed = changes.added;
        changed.extend(changes.modified);
        self.own(edit, changed);
        self.merge_oldest_updaters();
        self.put_back(others);
    }

    /// Adds the fields that an update has set to those of its manager.
    fn own(&mut self, edit: &Edit<'_>, changed: FieldSet) {
        let changed = edit.owned(changed);
        if changed.is_empty() {
            return;
        }
        let owned = self.all.entry(edit.id(Operation::Update));
        let owned = owned.or_insert_with(|| Owned {
            set: FieldSet::default(),
            api_version: edit.kind.api_version(),
            time: None,
        });
        owned.set.extend(changed);
        owned.time = Some(edit.now);
    }

    /// Records a new object.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn create(&mut self, edit: &Edit<'_>, new: &Value) -> Result<(), String> {
        self.update(edit, edit.kind.empty_document(), new)
    }

    /// Like [`Self::create`], of an object that names no managers.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub(super) fn created(edit: &Edit<'_>, object: &dyn Object) -> Result<Self, String> {
        let mut managers = Self::default();
        match Comparison::of_encoded(edit.kind, edit.kind.empty_encoding(), &object.encode()) {
            Ok(comparison) => managers.record(edit, comparison),
            Err(Unclear) => managers.create(edit, &document(object))?,
        }
        Ok(managers)
    }

    /// Applies a configuration to the live object, and records its ownership. Returns the new object, or `None` if it
    /// equals the live one.
    ///
    /// # Errors
    /// If the configuration does not fit the kind or, without `force`, changes a field of another manager.
    pub fn apply(
        &mut self,
        edit: &Edit<'_>,
        live: &Value,
        config: &Value,
        force: bool,
    ) -> Result<Option<Value>, ApplyError> {
        let malformed = ApplyError::Malformed;
        validate::validate(edit.kind, config).map_err(ApplyError::Unfit)?;
        if self.is_empty() {
            let former = Edit {
                manager: BEFORE_FIRST_APPLY,
                ..*edit
            };
            self.create(&former, live).map_err(malformed)?;
        }
        let others = self.take_other_versions(edit.kind);
        let structure = edit.structure();
        let shape = structure.shape();
        let failed = |error| malformed(format!("failed to merge config: {error}"));
        let merged = merge::merge(shape, live, config).map_err(failed)?;
        let set = object_set::of(shape, config).map_err(malformed)?;
        let id = edit.id(Operation::Apply);
        let former = self.all.get(&id).cloned();
        let owned = Owned {
            set: set.recursive_difference(edit.reset),
            api_version: edit.kind.api_version(),
            time: former.as_ref().and_then(|former| former.time),
        };
        self.all.insert(id.clone(), owned);
        let new = match &former {
            Some(former) => self.prune(shape, merged, &former.set).map_err(malformed)?,
            None => merged,
        };
        let comparison = Comparison::of(shape, live, &new).map_err(malformed)?;
        let comparison = comparison.without(edit.reset);
        if !force {
            self.check_conflicts(&comparison, Some(&id))?;
        }
        self.disown(&comparison, Some(&id));
        let is_changed = new != *live;
        self.strip(&id, edit, former.as_ref(), is_changed);
        self.put_back(others);
        Ok(is_changed.then_some(new))
    }

    /// Removes what nobody owns from the set of a manager that has just applied, and sets its time if it changed
    /// anything.
    fn strip(&mut self, id: &ManagerId, edit: &Edit<'_>, former: Option<&Owned>, is_changed: bool) {
        let Some(owned) = self.all.get_mut(id) else {
            return;
        };
        owned.set = edit.owned(std::mem::take(&mut owned.set));
        if is_changed || former.is_none_or(|former| former.set != owned.set) {
            owned.time = Some(edit.now);
        }
        if owned.set.is_empty() {
            self.all.remove(id);
        }
    }

    /// Takes changed and removed fields from all managers but one.
    pub(super) fn disown(&mut self, comparison: &Comparison, except: Option<&ManagerId>) {
        let lost = [&comparison.added, &comparison.modified, &comparison.removed];
        if lost.into_iter().all(FieldSet::is_empty) {
            return;
        }
        for (_, owned) in self.all.iter_mut().filter(|(id, _)| Some(*id) != except) {
            for set in lost {
                owned.set.remove(set);
            }
        }
        self.all
            .retain(|id, owned| Some(id) == except || !owned.set.is_empty());
    }

    pub(super) fn check_conflicts(
        &self,
        comparison: &Comparison,
        except: Option<&ManagerId>,
    ) -> Result<(), ApplyError> {
        let changed = comparison.added.union(&comparison.modified);
        let others = self.all.iter().filter(|(other, _)| Some(*other) != except);
        let sets = others.map(|(other, owned)| (other.clone(), owned.set.intersection(&changed)));
        let sets: BTreeMap<_, _> = sets.filter(|(_, set)| !set.is_empty()).collect();
        match sets.is_empty() {
            true => Ok(()),
            false => Err(ApplyError::Conflicts(Conflicts::of(&sets))),
        }
    }

    /// Removes the fields that the manager applied last and that nobody owns now.
    fn prune(&self, shape: Shape<'_>, merged: Value, last: &FieldSet) -> Result<Value, String> {
        if last.is_empty() {
            return Ok(merged);
        }
        let parents = |set: &FieldSet| with_parents(Some(shape), set);
        let last = parents(last);
        let set = parents(&object_set::of(shape, &merged)?);
        let pruned = remove(shape, &merged, &last);
        // What a manager owns is kept.
        let managed = FieldSet::union_of(self.all.values().map(|owned| &owned.set));
        let kept = parents(&object_set::of(shape, &pruned)?).union(&parents(&managed));
        let pruned = remove(shape, &merged, &set.difference(&kept));
        // What is in a removed entry, and was not applied last, is kept.
        let kept = parents(&object_set::of(shape, &pruned)?);
        Ok(remove(
            shape,
            &merged,
            &set.difference(&kept).intersection(&last),
        ))
    }

    /// Merges the managers that updated the object longest ago, if there are too many (upstream: `capManagersManager`).
    fn merge_oldest_updaters(&mut self) {
        let is_updater = |(id, _): &(&ManagerId, &Owned)| id.operation == Operation::Update;
        let mut updaters: Vec<_> = self.all.iter().filter(is_updater).collect();
        let Some(excess) = updaters
            .len()
            .checked_sub(MAX_UPDATERS)
            .filter(|one| *one > 0)
        else {
            return;
        };
        updaters.sort_by_key(|(id, owned)| (seconds(owned.time), *id));
        // Merging one more than the excess leaves one entry for all of them.
        let oldest = updaters.into_iter().take(excess + 1);
        let oldest: Vec<_> = oldest.map(|(id, _)| id.clone()).collect();
        let merged: Vec<_> = oldest.iter().filter_map(|id| self.all.remove(id)).collect();
        let Some(newest) = merged.last() else {
            return;
        };
        let bucket = ManagerId {
            manager: ANCIENT.to_owned(),
            operation: Operation::Update,
            api_version: newest.api_version.clone(),
            subresource: String::new(),
        };
        let known = self.all.get(&bucket).into_iter();
        let ancient = Owned {
            set: FieldSet::union_of(known.chain(&merged).map(|owned| &owned.set)),
            ..newest.clone()
        };
        self.all.insert(bucket, ancient);
    }
}

/// Returns the seconds of a time; 0 if there is none.
pub(super) fn seconds(time: Option<Time>) -> i64 {
    time.and_then(|time| time.seconds).unwrap_or_default()
}
