//! One kind: its names, what may be done with it, and how its bytes become an object.

use prost_reflect::MessageDescriptor;
use setpoint_proto::options::{self, KindRules, Scope};

use crate::object::Codec;
use crate::{Error, Object};

/// A kind of object, or of request body, as the `.proto` files describe it.
#[derive(Debug)]
pub struct Kind {
    /// Empty for the core group.
    pub group: String,
    /// For example `v1`.
    pub version: String,
    /// As in `kind:`, for example `Deployment`.
    pub kind: String,
    /// As in a URL, for example `deployments`; empty for a body that is never stored.
    pub plural: String,
    /// The kind in lower case.
    pub singular: String,
    /// The short names, for example `deploy`.
    pub short_names: Vec<String>,
    /// Groups of kinds, for example `all`.
    pub categories: Vec<String>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// For example `status` and `scale`.
    pub subresources: Vec<String>,
    /// The table that kubectl prints, its Name column left out.
    pub columns: Vec<Column>,
    /// The fields that field selectors may name, besides the name and the namespace.
    pub selectable: Vec<Selectable>,
    /// The selectable field by which the cache indexes the objects, if any.
    pub indexed: Option<String>,
    /// The field that names the holder, for kinds that elect leaders.
    pub holder: Option<String>,
    /// The name in the keys of the store.
    pub stored_as: String,
    /// Its fields.
    pub message: MessageDescriptor,
    /// Its name in an `Any`.
    pub type_url: String,
    /// The attribute that names one in a trace, for example `k8s.pod.name`.
    pub traced: String,
    codec: Codec,
    json_head: String,
}

/// A column of the table that kubectl prints.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// OpenAPI type.
    pub r#type: String,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i32,
    /// Where the cell stands in the object's JSON, for example `.spec.nodeName`; `None` when it is computed.
    pub path: Option<String>,
}

/// A field that selectors may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selectable {
    /// As in a selector, for example `spec.nodeName`.
    pub name: String,
    /// The paths of its fields by JSON names; the first that is set counts.
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
            message,
            codec,
        }
    }

    /// As in `apiVersion:`, for example `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The plural with its group, for example `deployments.apps`.
    pub fn resource(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// The kind of a list of these.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// Whether it is stored, rather than only sent.
    pub fn is_stored(&self) -> bool {
        !self.plural.is_empty()
    }

    /// Whether it is a request body of every group.
    pub(crate) fn is_universal(&self) -> bool {
        !self.is_stored() && self.message.package_name() == "k8s.meta.v1"
    }

    /// Whether it has a subresource.
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|known| known == name)
    }

    /// The object, from its protobuf encoding.
    ///
    /// # Errors
    /// When the bytes are no such message.
    pub fn decode(&'static self, raw: &[u8]) -> Result<Box<dyn Object>, Error> {
        (self.codec.decode)(raw).map_err(|source| Error::Malformed { kind: self, source })
    }

    /// The object, from JSON. `kind` and `apiVersion` are not looked at; unknown fields are passed over.
    ///
    /// # Errors
    /// When the text is no JSON, or a value has the wrong type: in Kubernetes' words, naming the field.
    pub fn from_json(&'static self, json: &[u8]) -> Result<Box<dyn Object>, Error> {
        (self.codec.from_json)(json).or_else(|error| self.forgive_duplicates(json, error))
    }

    /// Derived code refuses a repeated key; Kubernetes takes the last unless asked to be strict.
    fn forgive_duplicates(
        &'static self,
        json: &[u8],
        error: serde_json::Error,
    ) -> Result<Box<dyn Object>, Error> {
        let last_wins = serde_json::from_slice::<serde_json::Value>(json)
            .map_err(|_| Error::json(self, crate::explain::syntax(json, &error)))?;
        (self.codec.from_json)(last_wins.to_string().as_bytes())
            .map_err(|error| Error::json(self, crate::explain::mismatch(self, &last_wins, &error)))
    }

    /// Returns the beginning of an object's JSON: its type.
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
    /// There is one of each.
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
