//! The table of all kinds that a gateway serves: those of the `.proto` files, and the custom ones.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use prost::Message as _;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::setpoint;

use super::{Resource, Version};
use crate::kind::Names;
use crate::{Definition, Kind, kinds};

/// The maximum number of custom kinds, each a version of a resource, that a process can have known. Kinds are not freed, so that
/// it bounds their memory to some 64 MiB.
const MAX_KINDS: usize = 1 << 16;

/// More custom kinds were declared than a process can know.
#[derive(Debug, thiserror::Error)]
#[error("more than {MAX_KINDS} custom kinds have been defined since the process started")]
pub struct TooManyKinds;

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
    /// Adds the resource of a definition to `custom`, or replaces it. It is served once `custom` is published.
    ///
    /// # Errors
    /// If too many different kinds have been declared since the process started.
    pub fn declare(
        &self,
        custom: &mut CustomKinds,
        definition: &CustomResourceDefinition,
    ) -> Result<(), TooManyKinds> {
        let mut known = self.known.lock();
        if known.len() >= MAX_KINDS {
            return Err(TooManyKinds);
        }
        let resource = Arc::new(Resource::of(definition, |names| intern(&mut known, names)));
        let versions = definition.spec.versions.iter();
        let definitions = versions.map(|of| Version::definition(&resource, definition, of).into());
        let declared = Declared {
            definitions: definitions.collect(),
            resource: resource.clone(),
        };
        let name = definition.metadata.name.clone();
        custom
            .by_folder
            .insert(resource.stored_as.clone(), resource);
        custom.by_name.insert(name, declared);
        Ok(())
    }

    /// Replaces the custom kinds.
    pub fn publish(&self, custom: Arc<CustomKinds>) {
        for declared in custom.by_name.values() {
            let kinds = declared.resource.versions.iter().map(|(kind, _)| kind);
            for (kind, definition) in kinds.zip(&declared.definitions) {
                kind.redefine(definition.clone());
            }
        }
        *self.published.write() = custom;
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

/// Returns the kind with these names, which is made when they appear first.
fn intern(known: &mut HashMap<Names, &'static Kind>, names: Names) -> &'static Kind {
    known.entry(names).or_insert_with_key(|names| {
        let definition = Definition::undefined(names);
        Box::leak(Box::new(Kind::custom(names.clone(), definition)))
    })
}
