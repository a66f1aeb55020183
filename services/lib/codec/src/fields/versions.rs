//! The managers of an object of a custom kind that have recorded its fields in other versions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::compare::Comparison;
use super::conflict::ApplyError;
use super::managers::{ManagerId, Managers, Owned};
use super::shape::Structure;
use crate::Kind;

impl Managers {
    /// Forgets the managers of versions that the kind does not have. Returns those whose fields a webhook would have to
    /// convert: see [`Self::settle`].
    pub(super) fn take_other_versions(&mut self, kind: &Kind) -> BTreeMap<ManagerId, Owned> {
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
    pub(super) fn put_back(&mut self, others: BTreeMap<ManagerId, Owned>) {
        for (id, owned) in others {
            self.all.entry(id).or_insert(owned);
        }
    }

    /// Returns the versions, other than this one, that managers have recorded fields in and that a webhook has to
    /// convert.
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

    /// Takes the fields that a write has changed from the managers of the version `kind`, in which `live` and `new` are
    /// the object before and after the write.
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
}
