//! The custom kinds of the cache. They follow the CustomResourceDefinitions in its log.

use std::sync::Arc;

use setpoint_codec::{CustomKinds, Kind, KindTable, kind_of};
use setpoint_model::Key;
use setpoint_proto::apiextensions::CustomResourceDefinition;

use super::Cached;
use super::decode::DecodedChange;
use super::decode::Stored;

/// The custom kinds at the revision that is being decoded, which is ahead of the state of the cache.
pub(super) struct Definitions {
    table: Arc<KindTable>,
    custom: Arc<CustomKinds>,
    /// The stored kinds of the definitions that were not known before.
    added: Vec<&'static Kind>,
}

impl Definitions {
    pub fn new(table: &Arc<KindTable>) -> Self {
        Self {
            custom: table.custom(),
            table: table.clone(),
            added: Vec::new(),
        }
    }

    /// Returns definitions that declare nothing yet, for a list from the start.
    pub fn empty(table: &Arc<KindTable>) -> Self {
        Self {
            custom: Arc::default(),
            table: table.clone(),
            added: Vec::new(),
        }
    }

    /// Returns the kinds that were added since the last call.
    pub fn take_added(&mut self) -> Vec<&'static Kind> {
        std::mem::take(&mut self.added)
    }

    /// Returns the custom kinds.
    pub fn custom(&self) -> &Arc<CustomKinds> {
        &self.custom
    }

    /// Follows a change if it is one of a definition. Returns whether it is.
    pub fn follow(&mut self, change: &DecodedChange) -> bool {
        if change.kind != kind_of::<CustomResourceDefinition>() {
            return false;
        }
        match &change.new {
            Stored::Object(object) => self.declare(object),
            Stored::Nothing => Arc::make_mut(&mut self.custom).remove(&change.key.name),
            // The objects of a definition that cannot be read are still served as before.
            Stored::Unreadable(_) => {}
        }
        true
    }

    pub fn declare(&mut self, object: &Cached) {
        let Ok(decoded) = object.decode() else { return };
        let Some(definition) = decoded.downcast_ref() else {
            return;
        };
        let custom = Arc::make_mut(&mut self.custom);
        let is_known = custom.has(&object.key.name);
        match self.table.declare(custom, definition) {
            Ok(resource) if !is_known => self.added.extend(resource.stored()),
            Ok(_) => {}
            Err(error) => {
                let Key { name, .. } = &object.key;
                tracing::error!(name, %error, "a custom resource is not served");
            }
        }
    }
}
