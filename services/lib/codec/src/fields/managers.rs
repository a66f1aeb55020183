//! The managers of an object and the fields that each of them owns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;
use setpoint_proto::meta::{FieldsV1, ManagedFieldsEntry, Time};

use super::compare::Comparison;
use super::conflict::{ApplyError, Conflicts};
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
const FIELDS_V1: &str = "FieldsV1";

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
    /// Reads the managed fields of an object.
    ///
    /// # Errors
    /// If an entry is malformed.
    pub fn decode(entries: &[ManagedFieldsEntry]) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate() {
            let operation = match entry.operation.as_str() {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".into()),
            };
            if entry.api_version.is_empty() {
                return Err("apiVersion must not be empty".into());
            }
            match entry.fields_type.as_str() {
                FIELDS_V1 => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
                other => {
                    return Err(format!(
                        "invalid fieldsType {other:?} in managed fields entry {at}"
                    ));
                }
            }
            let fields = entry.fields_v1.as_ref().map(|fields| fields.raw.as_ref());
            let id = ManagerId {
                manager: entry.manager.clone(),
                operation,
                api_version: match operation {
                    Operation::Apply => String::new(),
                    Operation::Update => entry.api_version.clone(),
                },
                subresource: entry.subresource.clone(),
            };
            let owned = Owned {
                set: FieldSet::from_json(fields.filter(|raw| !raw.is_empty()).unwrap_or(b"{}"))?,
                api_version: entry.api_version.clone(),
                time: entry.time,
            };
            all.insert(id, owned);
        }
        Ok(Self { all })
    }

    /// Returns the managed fields of an object, sorted as Kubernetes does.
    pub fn encode(&self) -> Vec<ManagedFieldsEntry> {
        self.encode_with(Vec::new())
    }

    /// Is [`Self::encode`] with entries of other managers.
    pub(super) fn encode_with(&self, others: Vec<ManagedFieldsEntry>) -> Vec<ManagedFieldsEntry> {
        let entries = self.all.iter().map(|(id, owned)| ManagedFieldsEntry {
            manager: id.manager.clone(),
            operation: format!("{:?}", id.operation),
            api_version: owned.api_version.clone(),
            time: owned.time,
            fields_type: FIELDS_V1.to_owned(),
            fields_v1: Some(FieldsV1 {
                raw: owned.set.to_json().into(),
            }),
            subresource: id.subresource.clone(),
        });
        let mut entries: Vec<_> = others.into_iter().chain(entries).collect();
        entries.sort_by(|one, two| rank(one).cmp(&rank(two)));
        entries
    }

    /// Returns whether no manager is known.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Records that a write changed `live` to `new`: the manager owns what it added and changed, and nobody else does.
    ///
    /// # Errors
    /// If an entry of a list has no key.
    pub fn update(&mut self, edit: &Edit<'_>, live: &Value, new: &Value) -> Result<(), String> {
        let others = self.take_other_versions(edit.kind);
        let comparison = Comparison::of(edit.structure().shape(), live, new)?.without(edit.reset);
        self.disown(&comparison, None);
        let mut changed = comparison.added;
        changed.extend(comparison.modified);
        self.own(edit, changed);
        self.merge_oldest_updaters();
        self.put_back(others);
        Ok(())
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
        match object.added_fields() {
            Some(added) => managers.own(edit, added),
            None => managers.create(edit, &document(object))?,
        }
        Ok(managers)
    }

    /// Applies a configuration to the live object, and records its ownership. Returns the new object, or `None` if it equals
    /// the live one.
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

    /// Removes what nobody owns from the set of a manager that has just applied, and sets its time if it changed anything.
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

    /// Forgets the managers of versions that the kind does not have. Returns those whose fields a webhook would have to convert:
    /// see [`Self::settle`].
    fn take_other_versions(&mut self, kind: &Kind) -> BTreeMap<ManagerId, Owned> {
        let version = kind.api_version();
        let resource = kind.custom_resource();
        let mut others = BTreeMap::new();
        for (id, owned) in std::mem::take(&mut self.all) {
            let other = resource
                .as_ref()
                .filter(|resource| resource.version(&owned.api_version).is_some());
            match other {
                _ if owned.api_version == version => drop(self.all.insert(id, owned)),
                // Versions that differ in nothing but the name have the same fields.
                Some(resource) if resource.webhook().is_none() => drop(self.all.insert(id, owned)),
                Some(_) => drop(others.insert(id, owned)),
                None => {}
            }
        }
        others
    }

    /// Adds the managers of other versions, except for one that has just applied in this version.
    fn put_back(&mut self, others: BTreeMap<ManagerId, Owned>) {
        for (id, owned) in others {
            self.all.entry(id).or_insert(owned);
        }
    }

    /// Returns the versions, other than this one, that managers have recorded fields in and that a webhook has to convert.
    pub(super) fn other_versions(&self, kind: &Kind) -> Vec<&'static Kind> {
        let resource = kind.custom_resource();
        let Some(resource) = resource.filter(|resource| resource.webhook().is_some()) else {
            return Vec::new();
        };
        let versions = self.all.values().map(|owned| owned.api_version.as_str());
        let versions: BTreeSet<&str> = versions.collect();
        let found = versions
            .into_iter()
            .filter_map(|version| resource.version(version));
        found.filter(|found| *found != kind).collect()
    }

    /// Takes the fields that a write has changed from the managers of the version `kind`, in which `live` and `new` are the object
    /// before and after the write.
    ///
    /// # Errors
    /// With `checks`, if any of them owns such a field.
    pub(super) fn settle(
        &mut self,
        kind: &'static Kind,
        live: &Value,
        new: &Value,
        checks: bool,
    ) -> Result<(), ApplyError> {
        let structure = Structure::of(kind);
        let comparison = Comparison::of(structure.shape(), live, new);
        let comparison = comparison.map_err(ApplyError::Malformed)?;
        let version = kind.api_version();
        let all = std::mem::take(&mut self.all).into_iter();
        let (of_version, others) = all.partition(|(_, owned)| owned.api_version == version);
        self.all = of_version;
        if checks {
            self.check_conflicts(&comparison, None)?;
        }
        self.disown(&comparison, None);
        self.put_back(others);
        Ok(())
    }

    /// Takes changed and removed fields from all managers but one.
    fn disown(&mut self, comparison: &Comparison, except: Option<&ManagerId>) {
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

    fn check_conflicts(
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

/// Returns the keys by which entries are sorted.
fn rank(entry: &ManagedFieldsEntry) -> (&str, i64, [&str; 3]) {
    let id = [&*entry.manager, &entry.api_version, &entry.subresource];
    (&entry.operation, seconds(entry.time), id)
}

fn seconds(time: Option<Time>) -> i64 {
    time.and_then(|time| time.seconds).unwrap_or_default()
}
