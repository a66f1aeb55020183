//! A kind: its names, options and decoders.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::RwLock;
use prost_reflect::MessageDescriptor;
use serde_json::Value;
use setpoint_proto::options::{KindRules, Scope};

use crate::custom::{self, CustomObject, Resource};
use crate::object::Codec;
use crate::{Definition, Error, Object, kinds, nesting};

/// A kind of object or of request body: a message of the `.proto` files, or a version of a custom resource.
#[derive(Debug)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, for example `v1`.
    pub version: String,
    /// The name in `kind:`, for example `Deployment`.
    pub kind: String,
    /// The name in URLs, for example `deployments`; empty for bodies, which are not stored.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// The selectable field that the cache has an index for.
    pub indexed: Option<String>,
    /// The field with the holder's identity, for kinds used in leader election.
    pub holder: Option<String>,
    /// The name in storage keys.
    pub stored_as: String,
    /// The full name of the message that is stored instead, if this is another version of it.
    pub version_of: Option<String>,
    /// The fields of a valid object, as JSON; empty if none is required.
    pub example: String,
    /// Whether its objects are answered and never stored.
    pub is_review: bool,
    /// Whether its objects are computed at each read and never stored.
    pub is_computed: bool,
    /// Whether a collection of its objects can be deleted with one request.
    pub deletes_collection: bool,
    /// The descriptor of its message.
    pub message: MessageDescriptor,
    /// The type URL in an `Any`.
    pub type_url: String,
    /// The span attribute for the names of its objects, for example `k8s.pod.name`.
    pub traced: String,
    /// `None` for custom kinds.
    codec: Option<Codec>,
    json_head: String,
    empty: OnceLock<Value>,
    empty_encoding: OnceLock<Bytes>,
    is_bounded: OnceLock<bool>,
    definition: RwLock<Arc<Definition>>,
}

/// The names by which a kind is identified, for good.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Names {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

impl Kind {
    pub(crate) fn new(message: MessageDescriptor, rules: KindRules, codec: Codec) -> Self {
        let definition = Definition::of_message(message.name(), &rules);
        let namespaced = rules.scope() == Scope::Namespaced;
        Self {
            stored_as: optional(rules.stored_as).unwrap_or_else(|| rules.plural.clone()),
            indexed: optional(rules.indexed),
            holder: optional(rules.holder),
            version_of: optional(rules.version_of),
            example: rules.example,
            is_review: rules.review,
            is_computed: rules.computed,
            deletes_collection: !rules.keeps_collection,
            codec: Some(codec),
            ..Self::named(
                Names {
                    namespaced,
                    group: rules.group,
                    version: rules.version,
                    kind: message.name().to_owned(),
                    plural: rules.plural,
                },
                message,
                definition,
            )
        }
    }

    /// Returns a version of a custom resource.
    pub(crate) fn custom(names: Names, definition: Definition) -> Self {
        let stored_as = format!("{}/{}", names.group, names.plural);
        Self {
            stored_as,
            ..Self::named(names, custom::message(), definition)
        }
    }

    fn named(names: Names, message: MessageDescriptor, definition: Definition) -> Self {
        let api_version = api_version(&names.group, &names.version);
        Self {
            traced: format!("k8s.{}.name", names.kind.to_lowercase()),
            type_url: format!("type.googleapis.com/{}", message.full_name()),
            json_head: format!(r#"{{"kind":"{}","apiVersion":"{api_version}""#, names.kind),
            group: names.group,
            version: names.version,
            kind: names.kind,
            plural: names.plural,
            namespaced: names.namespaced,
            indexed: None,
            holder: None,
            stored_as: String::new(),
            version_of: None,
            example: String::new(),
            is_review: false,
            is_computed: false,
            deletes_collection: true,
            message,
            codec: None,
            empty: OnceLock::new(),
            empty_encoding: OnceLock::new(),
            is_bounded: OnceLock::new(),
            definition: RwLock::new(Arc::new(definition)),
        }
    }

    /// Returns the part of its declaration that may change: names, subresources, columns, selectable fields and, for a
    /// custom kind, its schema.
    pub fn definition(&self) -> Arc<Definition> {
        self.definition.read().clone()
    }

    /// Returns the names by which it is identified.
    pub(crate) fn names(&self) -> Names {
        Names {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
            namespaced: self.namespaced,
        }
    }

    /// Replaces the definition of a custom kind.
    pub(crate) fn redefine(&self, definition: Arc<Definition>) {
        *self.definition.write() = definition;
    }

    /// Returns whether it is a version of a custom resource.
    pub fn is_custom(&self) -> bool {
        self.codec.is_none()
    }

    /// Returns the `apiVersion`, for example `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Returns the plural with the group, for example `deployments.apps`.
    pub fn resource(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// Returns the name of the list kind.
    pub fn list_kind(&self) -> String {
        self.definition().list_kind.clone()
    }

    /// Returns whether objects of this kind are stored in its form; bodies, reviews, computed kinds, and other versions
    /// of a stored kind are not.
    pub fn is_stored(&self) -> bool {
        let is_version = self.version_of.is_some() || (self.is_custom() && self.stored() != self);
        !self.plural.is_empty() && !is_version && !self.is_review && !self.is_computed
    }

    /// Returns whether requests can name it: it is stored, computed, another version of a stored kind, or a review.
    pub fn is_served(&self) -> bool {
        !self.plural.is_empty()
    }

    /// Returns the kind in whose form objects are stored: the kind itself, unless it is another version of a stored
    /// one.
    pub fn stored(&self) -> &Self {
        let stored = match &self.version_of {
            Some(name) => kinds().by_message(name),
            None if self.is_custom() => self.definition().stored(),
            None => None,
        };
        stored.unwrap_or(self)
    }

    /// Returns the version of the same custom resource with this apiVersion; the kind itself if there is none.
    pub fn in_version(&'static self, api_version: &str) -> &'static Self {
        let definition = self.definition();
        let named = (definition.custom.as_ref())
            .and_then(|version| version.resource().version(api_version));
        named.unwrap_or(self)
    }

    /// Returns the custom resource that it is a version of, if it is one.
    pub fn custom_resource(&self) -> Option<Arc<Resource>> {
        let definition = self.definition.read();
        Some(definition.custom.as_ref()?.resource().clone())
    }

    /// Returns whether it is a body that every API group accepts, such as `DeleteOptions`.
    pub(crate) fn is_universal(&self) -> bool {
        !self.is_stored() && self.message.package_name() == "k8s.meta.v1"
    }

    /// Returns whether it has this subresource.
    pub fn has_subresource(&self, name: &str) -> bool {
        let definition = self.definition.read();
        definition.subresources.iter().any(|known| known == name)
    }

    /// Returns whether kubectl accepts this name, in lower case, for the kind: `deploy`, `deployment`,
    /// `deployments.apps`.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let (name, group) = match name.split_once('.') {
            Some((name, group)) => (name, Some(group)),
            None => (name, None),
        };
        let definition = self.definition();
        let is_name = self.plural == name
            || definition.singular == name
            || definition.short_names.iter().any(|short| short == name);
        is_name && group.is_none_or(|group| self.group == group)
    }

    /// Decodes an object from protobuf.
    ///
    /// # Errors
    /// If the bytes are malformed.
    pub fn decode(&'static self, raw: &[u8]) -> Result<Box<dyn Object>, Error> {
        let malformed = |source| Error::Malformed { kind: self, source };
        match self.codec {
            Some(codec) => (codec.decode)(raw).map_err(malformed),
            None => CustomObject::decode(self, raw).map(CustomObject::boxed),
        }
    }

    /// Returns whether each encoded object of this kind can be decoded again. JSON, and messages that contain
    /// themselves, may be nested deeper than can be read.
    pub fn is_always_decodable(&self) -> bool {
        let is_bounded = || nesting::is_bounded(&self.message);
        self.codec.is_some() && *self.is_bounded.get_or_init(is_bounded)
    }

    /// Decodes an object from JSON. Ignores `kind`, `apiVersion` and unknown fields; of duplicate keys the last one
    /// applies.
    ///
    /// # Errors
    /// If the text is not JSON, or a value has the wrong type. The message is that of Kubernetes and names the field.
    pub fn from_json(&'static self, json: &[u8]) -> Result<Box<dyn Object>, Error> {
        match self.codec {
            Some(codec) => {
                (codec.from_json)(json).or_else(|error| self.accept_duplicates(codec, json, &error))
            }
            None => CustomObject::from_json(self, json).map(CustomObject::boxed),
        }
    }

    /// Decodes JSON with duplicate keys, which code derived by serde rejects.
    fn accept_duplicates(
        &'static self,
        codec: Codec,
        json: &[u8],
        error: &serde_json::Error,
    ) -> Result<Box<dyn Object>, Error> {
        let last_wins = serde_json::from_slice::<serde_json::Value>(json)
            .map_err(|_| Error::json(self, crate::json_error::syntax(json, error)))?;
        (codec.from_json)(last_wins.to_string().as_bytes()).map_err(|error| {
            Error::json(
                self,
                crate::json_error::wrong_type(self, &last_wins, &error),
            )
        })
    }

    /// Returns the JSON of an object of this kind that has no field set.
    pub fn empty_document(&'static self) -> &'static Value {
        self.empty.get_or_init(|| self.empty_object().to_document())
    }

    /// Returns the encoding of an object of this kind that has no field set.
    pub(crate) fn empty_encoding(&'static self) -> &'static [u8] {
        self.empty_encoding
            .get_or_init(|| self.empty_object().encode())
    }

    fn empty_object(&'static self) -> Box<dyn Object> {
        self.decode(&[])
            .expect("no bytes are the encoding of an empty message")
    }

    /// Returns the start of an object's JSON, with its kind and apiVersion.
    pub(crate) fn json_head(&self) -> &str {
        &self.json_head
    }
}

fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

fn optional(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

impl PartialEq for Kind {
    /// Compares by address: there is one value of each kind.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
impl Eq for Kind {}
