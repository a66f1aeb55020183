//! The part of a kind's declaration that may change while the gateway runs.

use setpoint_proto::options::{self, KindRules};
use setpoint_schema::Node;

use crate::Kind;
use crate::custom::Version;
use crate::kind::Names;

/// Names, subresources, columns and selectable fields of a kind. Those of the messages in the `.proto` files never
/// change; those of a custom kind are replaced when its CustomResourceDefinition is.
#[derive(Debug)]
pub struct Definition {
    /// The singular, for example `deployment`.
    pub singular: String,
    /// The name of the list kind, for example `DeploymentList`.
    pub list_kind: String,
    /// The short names, for example `deploy`.
    pub short_names: Vec<String>,
    /// The categories, for example `all`.
    pub categories: Vec<String>,
    /// The subresources, for example `status` and `scale`.
    pub subresources: Vec<String>,
    /// The columns that kubectl prints after Name.
    pub columns: Vec<Column>,
    /// The fields that field selectors support, in addition to name and namespace.
    pub selectable: Vec<Selectable>,
    /// The version of the custom resource, for a custom kind.
    pub custom: Option<Version>,
}

/// A column of the table that kubectl prints.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The OpenAPI type.
    pub r#type: String,
    /// The OpenAPI format; may be empty.
    pub format: String,
    /// The description; may be empty.
    pub description: String,
    /// 0 for columns that are always shown, others for those of `-o wide`.
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

impl Definition {
    /// Returns the definition of a message.
    pub(crate) fn of_message(name: &str, rules: &KindRules) -> Self {
        let selectable = rules.selectable.iter();
        Self {
            singular: name.to_lowercase(),
            list_kind: format!("{name}List"),
            short_names: rules.short_name.clone(),
            categories: rules.category.clone(),
            subresources: rules.subresource.clone(),
            columns: rules.column.iter().cloned().map(Column::from).collect(),
            selectable: selectable.map(|text| Selectable::parse(text)).collect(),
            custom: None,
        }
    }

    /// Returns the definition of a custom kind that is not defined yet.
    pub(crate) fn undefined(names: &Names) -> Self {
        Self {
            singular: names.kind.to_lowercase(),
            list_kind: format!("{}List", names.kind),
            short_names: Vec::new(),
            categories: Vec::new(),
            subresources: Vec::new(),
            columns: Vec::new(),
            selectable: Vec::new(),
            custom: None,
        }
    }

    /// Returns the schema of the objects of a custom kind; `None` for other kinds, or without a schema.
    pub(crate) fn schema_root(&self) -> Option<&Node> {
        Some(self.custom.as_ref()?.schema()?.root())
    }

    /// Returns the version of a custom resource that is stored.
    pub(crate) fn stored(&self) -> Option<&'static Kind> {
        self.custom.as_ref()?.resource().stored()
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

impl From<options::Column> for Column {
    fn from(column: options::Column) -> Self {
        let some = |text: String| (!text.is_empty()).then_some(text);
        Self {
            name: column.name,
            r#type: some(column.r#type).unwrap_or_else(|| "string".to_owned()),
            format: String::new(),
            description: String::new(),
            priority: column.priority,
            path: some(column.path),
        }
    }
}
