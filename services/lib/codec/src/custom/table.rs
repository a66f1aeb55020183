//! The table of all kinds that a gateway serves: those of the `.proto` files, and the custom ones.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use prost::Message as _;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::setpoint;

use super::{Resource, Version};
use crate::kind::Names;
use crate::{Definition, Kind, kinds};

/// The maximum number of custom kinds, each a version of a resource, that a process can have known. Kinds are not
/// freed, so that it bounds their memory to some 64 MiB.
const MAX_KINDS: usize = 1 << 16;

/// The reason why a definition declares no kinds.
#[derive(Debug, thiserror::Error)]
pub enum Undeclarable {
    /// It has the names of a kind of the `.proto` files, whose objects would be its own.
    #[error("its group and its plural or kind are those of a built-in resource")]
    BuiltIn,
    /// More custom kinds were declared than a process can know.
    #[error("more than {MAX_KINDS} custom kinds have been defined since the process started")]
    TooManyKinds,
}

/// A resource, and the definitions of its versions in their order.
#[derive(Clone, Debug)]
struct Declared {
    resource: Arc<Resource>,
    definitions: Vec<Arc<Definition>>,
}

/// The custom resources at one revision of the store.
#[derive(Clone, Debug, Default)]
pub struct CustomKinds {
    by_name: BTreeMap<String, Declared>,
    by_folder: HashMap<String, Arc<Resource>>,
}

impl CustomKinds {
    /// Returns all resources, by the names of their definitions.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.by_name.values().map(|declared| &declared.resource)
    }

    /// Returns whether a definition of this name has declared a resource.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns all versions of all resources.
    fn versions(&self) -> impl Iterator<Item = &'static Kind> {
        let versions = self.resources().flat_map(|of| &of.versions);
        versions.map(|(kind, _)| *kind)
    }

    /// Returns the resource whose objects are in this folder of the store.
    pub fn by_folder(&self, folder: &str) -> Option<&Arc<Resource>> {
        self.by_folder.get(folder)
    }

    /// Returns the served versions with their definitions.
    pub fn served(&self) -> impl Iterator<Item = (&'static Kind, &Arc<Definition>)> {
        self.by_name.values().flat_map(|declared| {
            let served: Vec<_> = declared.resource.served().collect();
            let kinds = declared.resource.versions.iter().map(|(kind, _)| *kind);
            let versions = kinds.zip(&declared.definitions);
            versions.filter(move |(kind, _)| served.contains(kind))
        })
    }

    /// Removes the resource of a definition.
    pub fn remove(&mut self, name: &str) {
        if let Some(removed) = self.by_name.remove(name) {
            self.by_folder.remove(&removed.resource.stored_as);
        }
    }
}

/// All kinds that requests can name. Custom kinds appear and go with their definitions.
#[derive(Debug, Default)]
pub struct KindTable {
    published: RwLock<Arc<CustomKinds>>,
    known: Mutex<HashMap<Names, &'static Kind>>,
}

impl KindTable {
    /// Adds the resource of a definition to `custom`, or replaces it, and returns it. It is served once `custom` is
    /// published.
    ///
    /// # Errors
    /// If it has the names of a built-in kind, or too many different kinds have been declared since the process
    /// started.
    pub fn declare(
        &self,
        custom: &mut CustomKinds,
        definition: &CustomResourceDefinition,
    ) -> Result<Arc<Resource>, Undeclarable> {
        let names = &definition.spec.names;
        if is_built_in(&definition.spec.group, &names.plural, &names.kind) {
            return Err(Undeclarable::BuiltIn);
        }
        let mut known = self.known.lock();
        let kind_of = |names| intern(&mut known, MAX_KINDS, names);
        let resource = Arc::new(Resource::of(definition, kind_of)?);
        let versions = definition.spec.versions.iter();
        let definitions = versions.map(|of| Version::definition(&resource, definition, of).into());
        let declared = Declared {
            definitions: definitions.collect(),
            resource: resource.clone(),
        };
        let name = definition.metadata.name.clone();
        let folder = resource.stored_as.clone();
        custom.by_folder.insert(folder, resource.clone());
        custom.by_name.insert(name, declared);
        Ok(resource)
    }

    /// Replaces the custom kinds. The definitions of those that are gone are freed.
    pub fn publish(&self, custom: Arc<CustomKinds>) {
        for declared in custom.by_name.values() {
            let kinds = declared.resource.versions.iter().map(|(kind, _)| kind);
            for (kind, definition) in kinds.zip(&declared.definitions) {
                kind.redefine(definition.clone());
            }
        }
        let before = std::mem::replace(&mut *self.published.write(), custom.clone());
        // There is one value of each kind.
        let present: HashSet<_> = custom.versions().map(std::ptr::from_ref).collect();
        let is_gone = |kind: &&Kind| !present.contains(&std::ptr::from_ref(*kind));
        for kind in before.versions().filter(is_gone) {
            kind.redefine(Definition::undefined(&kind.names()).into());
        }
    }

    /// Returns the present custom kinds.
    pub fn custom(&self) -> Arc<CustomKinds> {
        self.published.read().clone()
    }

    /// Returns the stored kinds.
    pub fn iter(&self) -> impl Iterator<Item = &'static Kind> {
        let custom = self.custom();
        let stored: Vec<_> = custom.resources().filter_map(|of| of.stored()).collect();
        kinds().iter().chain(stored)
    }

    /// Returns the kinds that requests can name: the stored ones, their other versions, and reviews.
    pub fn served(&self) -> impl Iterator<Item = &'static Kind> {
        kinds().served().chain(self.served_custom())
    }

    fn served_custom(&self) -> Vec<&'static Kind> {
        let custom = self.custom();
        custom.resources().flat_map(|of| of.served()).collect()
    }

    /// Returns a served kind by plural and group, as [`Kinds::by_resource`](crate::Kinds::by_resource).
    pub fn by_resource(&self, resource: &str) -> Option<&'static Kind> {
        kinds().by_resource(resource).or_else(|| {
            let served = self.served_custom();
            let named = |kind: &&&Kind| {
                let (plural, version, group) = (&kind.plural, &kind.version, &kind.group);
                resource == format!("{plural}.{version}.{group}")
            };
            let preferred = served
                .iter()
                .filter(|kind| resource == kind.resource())
                .min_by_key(|kind| !kind.is_stored());
            preferred.or_else(|| served.iter().find(named)).copied()
        })
    }

    /// Returns a served kind by the parts of a URL.
    pub fn by_plural(&self, group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
        kinds().by_plural(group, version, plural).or_else(|| {
            let custom = self.custom();
            let resource = custom.by_folder(&format!("{group}/{plural}"))?;
            resource.served().find(|kind| kind.version == version)
        })
    }

    /// Returns a served kind by apiVersion and kind, as [`Kinds::by_kind`](crate::Kinds::by_kind).
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&'static Kind> {
        kinds().by_kind(api_version, kind).or_else(|| {
            let mut served = self.served_custom().into_iter();
            served.find(|known| known.kind == kind && known.api_version() == api_version)
        })
    }

    /// Returns a kind by the type URL of a message; that of a custom object names its kind.
    pub fn by_message(&self, type_url: &str, raw: &[u8]) -> Option<&'static Kind> {
        kinds().by_type_url(type_url).or_else(|| {
            if type_url.rsplit('/').next() != Some(super::MESSAGE) {
                return None;
            }
            let message = setpoint::CustomObject::decode(raw).ok()?;
            let custom = self.by_kind(&message.api_version, &message.kind);
            custom.filter(|kind| kind.is_custom())
        })
    }

    /// Returns a stored kind by any name that kubectl accepts, as [`Kinds::by_any_name`](crate::Kinds::by_any_name).
    pub fn by_any_name(&self, name: &str) -> Option<&'static Kind> {
        kinds().by_any_name(name).or_else(|| {
            let name = name.to_lowercase();
            let mut stored = self.iter().filter(|kind| kind.is_custom());
            stored.find(|kind| kind.is_called(&name))
        })
    }
}

/// Returns whether a built-in kind has this group, and this plural or kind.
fn is_built_in(group: &str, plural: &str, kind: &str) -> bool {
    let mut of_group = kinds().served().filter(|known| known.group == group);
    of_group.any(|known| known.plural == plural || known.kind == kind)
}

/// Returns the kind with these names, which is made when they appear first.
///
/// # Errors
/// If they are new, and as many as may be are known.
fn intern(
    known: &mut HashMap<Names, &'static Kind>,
    limit: usize,
    names: Names,
) -> Result<&'static Kind, Undeclarable> {
    if let Some(kind) = known.get(&names) {
        return Ok(kind);
    }
    if known.len() >= limit {
        return Err(Undeclarable::TooManyKinds);
    }
    let definition = Definition::undefined(&names);
    let kind = Box::leak(Box::new(Kind::custom(names.clone(), definition)));
    known.insert(names, kind);
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(group: &str, plural: &str, kind: &str) -> CustomResourceDefinition {
        let json = serde_json::json!({
            "metadata": { "name": format!("{plural}.{group}") },
            "spec": {
                "group": group,
                "names": { "plural": plural, "kind": kind },
                "scope": "Namespaced",
                "versions": [{ "name": "v1", "served": true, "storage": true }],
            },
        });
        serde_json::from_value(json).unwrap()
    }

    fn names(kind: &str) -> Names {
        Names {
            group: "example.com".into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: kind.to_lowercase(),
            namespaced: true,
        }
    }

    /// Checks DG3.
    #[test]
    fn a_definition_with_the_names_of_a_built_in_kind_declares_nothing() {
        let table = KindTable::default();
        let mut custom = CustomKinds::default();
        for (group, plural, kind) in [
            ("apiextensions.k8s.io", "customresourcedefinitions", "Other"),
            ("apiregistration.k8s.io", "others", "APIService"),
            ("networking.k8s.io", "ingresses", "Ingress"),
        ] {
            let declared = table.declare(&mut custom, &definition(group, plural, kind));
            assert!(matches!(declared, Err(Undeclarable::BuiltIn)), "{plural}");
        }
        assert_eq!(custom.resources().count(), 0);
        let other = definition("example.com", "ingresses", "Ingress");
        assert!(table.declare(&mut custom, &other).is_ok());
    }

    /// Checks DG24.
    #[test]
    fn a_known_kind_is_found_although_as_many_as_may_be_are_known() {
        let mut known = HashMap::new();
        let first = intern(&mut known, 1, names("Tab")).unwrap();
        assert_eq!(intern(&mut known, 1, names("Tab")).unwrap(), first);
        let refused = intern(&mut known, 1, names("Sheet"));
        assert!(matches!(refused, Err(Undeclarable::TooManyKinds)));
    }

    /// Checks DG24.
    #[test]
    fn the_definition_of_a_kind_that_is_gone_is_freed() {
        let table = KindTable::default();
        let mut custom = CustomKinds::default();
        let tabs = definition("example.com", "tabs", "Tab");
        let resource = table.declare(&mut custom, &tabs).unwrap();
        let kind = resource.stored().unwrap();
        drop(resource);
        table.publish(custom.into());
        let defined = Arc::downgrade(&kind.definition());
        assert!(defined.upgrade().unwrap().custom.is_some());
        table.publish(Arc::default());
        assert!(defined.upgrade().is_none());
        assert!(kind.definition().custom.is_none());
    }
}
