//! A kind: its names, options and decoders.

use std::sync::OnceLock;

use prost_reflect::MessageDescriptor;
use serde_json::Value;
use setpoint_proto::options::{self, KindRules, Scope};

use crate::object::Codec;
use crate::{Error, Object, kinds};

/// A kind of object or of request body, as declared in the `.proto` files.
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
    /// The kind in lower case.
    pub singular: String,
    /// The short names, for example `deploy`.
    pub short_names: Vec<String>,
    /// The categories, for example `all`.
    pub categories: Vec<String>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// The subresources, for example `status` and `scale`.
    pub subresources: Vec<String>,
    /// The columns that kubectl prints after Name.
    pub columns: Vec<Column>,
    /// The fields that field selectors support, in addition to name and namespace.
    pub selectable: Vec<Selectable>,
    /// The selectable field that the cache has an index for.
    pub indexed: Option<String>,
    /// The field with the holder's identity, for kinds used in leader election.
    pub holder: Option<String>,
    /// The name in storage keys.
    pub stored_as: String,
    /// The full name of the message that is stored instead, if this is another version of it.
    pub view_of: Option<String>,
    /// Whether its objects are answered and never stored.
    pub is_review: bool,
    /// The descriptor of its message.
    pub message: MessageDescriptor,
    /// The type URL in an `Any`.
    pub type_url: String,
    /// The span attribute for the names of its objects, for example `k8s.pod.name`.
    pub traced: String,
    codec: Codec,
    json_head: String,
    empty: OnceLock<Value>,
}

/// A column of the table that kubectl prints.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The OpenAPI type.
    pub r#type: String,
    /// 0 for columns that are always shown, 1 for those of `-o wide`.
    pub priority: i32,
    /// The JSON path of the cell, for example `.spec.nodeName`; `None` if the cell is computed.
    pub path: Option<String>,
}

/// A field that field selectors support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selectable {
    /// The name in selectors, for example `spec.nodeName`.
    pub name: String,
    /// The JSON paths of its fields; the first that is set is compared.
    pub paths: Vec<String>,
}

impl Kind {
    pub(crate) fn new(message: MessageDescriptor, rules: KindRules, codec: Codec) -> Self {
        let name = message.name();
        let singular = name.to_lowercase();
        let api_version = api_version(&rules.group, &rules.version);
        Self {
            kind: name.to_owned(),
            traced: format!("k8s.{singular}.name"),
            singular,
            type_url: format!("type.googleapis.com/{}", message.full_name()),
            json_head: format!(r#"{{"kind":"{name}","apiVersion":"{api_version}""#),
            namespaced: rules.scope() == Scope::Namespaced,
            group: rules.group,
            version: rules.version,
            stored_as: optional(rules.stored_as).unwrap_or_else(|| rules.plural.clone()),
            plural: rules.plural,
            short_names: rules.short_name,
            categories: rules.category,
            subresources: rules.subresource,
            columns: rules.column.into_iter().map(Column::from).collect(),
            selectable: rules
                .selectable
                .iter()
                .map(|text| Selectable::parse(text))
                .collect(),
            indexed: optional(rules.indexed),
            holder: optional(rules.holder),
            view_of: optional(rules.view_of),
            is_review: rules.review,
            message,
            codec,
            empty: OnceLock::new(),
        }
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
        format!("{}List", self.kind)
    }

    /// Returns whether objects of this kind are stored as its message; bodies, reviews, and other versions of a stored
    /// kind are not.
    pub fn is_stored(&self) -> bool {
        !self.plural.is_empty() && self.view_of.is_none() && !self.is_review
    }

    /// Returns whether requests can name it: it is stored, another version of a stored kind, or a review.
    pub fn is_served(&self) -> bool {
        !self.plural.is_empty()
    }

    /// Returns the kind whose message is stored: the kind itself, unless it is another version of a stored one.
    pub fn stored(&self) -> &Self {
        let stored = self
            .view_of
            .as_ref()
            .and_then(|name| kinds().by_message(name));
        stored.unwrap_or(self)
    }

    /// Returns whether it is a body that every API group accepts, such as `DeleteOptions`.
    pub(crate) fn is_universal(&self) -> bool {
        !self.is_stored() && self.message.package_name() == "k8s.meta.v1"
    }

    /// Returns whether it has this subresource.
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|known| known == name)
    }

    /// Decodes an object from protobuf.
    ///
    /// # Errors
    /// If the bytes are malformed.
    pub fn decode(&'static self, raw: &[u8]) -> Result<Box<dyn Object>, Error> {
        (self.codec.decode)(raw).map_err(|source| Error::Malformed { kind: self, source })
    }

    /// Decodes an object from JSON. Ignores `kind`, `apiVersion` and unknown fields; of duplicate keys the last one applies.
    ///
    /// # Errors
    /// If the text is not JSON, or a value has the wrong type. The message is that of Kubernetes and names the field.
    pub fn from_json(&'static self, json: &[u8]) -> Result<Box<dyn Object>, Error> {
        (self.codec.from_json)(json).or_else(|error| self.accept_duplicates(json, error))
    }

    /// Decodes JSON with duplicate keys, which code derived by serde rejects.
    fn accept_duplicates(
        &'static self,
        json: &[u8],
        error: serde_json::Error,
    ) -> Result<Box<dyn Object>, Error> {
        let last_wins = serde_json::from_slice::<serde_json::Value>(json)
            .map_err(|_| Error::json(self, crate::json_error::syntax(json, &error)))?;
        (self.codec.from_json)(last_wins.to_string().as_bytes()).map_err(|error| {
            Error::json(
                self,
                crate::json_error::wrong_type(self, &last_wins, &error),
            )
        })
    }

    /// Returns the JSON of an object of this kind that has no field set.
    pub fn empty_document(&'static self) -> &'static Value {
        self.empty.get_or_init(|| {
            let object = self.decode(&[]);
            let object = object.expect("no bytes are the encoding of an empty message");
            serde_json::from_slice(&object.to_json()).expect("an object is written as JSON")
        })
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

impl Selectable {
    /// Parses `field` or `alias=field,field`.
    fn parse(text: &str) -> Self {
        let (name, paths) = text.split_once('=').unwrap_or((text, text));
        Self {
            name: name.to_owned(),
            paths: paths.split(',').map(str::to_owned).collect(),
        }
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

impl From<options::Column> for Column {
    fn from(column: options::Column) -> Self {
        Self {
            name: column.name,
            r#type: optional(column.r#type).unwrap_or_else(|| "string".to_owned()),
            priority: column.priority,
            path: optional(column.path),
        }
    }
}
