//! Custom resources: what a CustomResourceDefinition declares, in the form that the gateway serves it by.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use prost::Message as _;
use serde_json::Value;
use setpoint_proto::apiextensions::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionVersion, JsonSchemaProps, WebhookConversion,
};
use setpoint_schema::Schema;

use crate::kind::Names;
use crate::{Column, Definition, Kind, Selectable};

/// A custom resource: the identity and the versions of its objects.
#[derive(Debug)]
pub struct Resource {
    /// The name of its CustomResourceDefinition, for example `crontabs.stable.example.com`.
    pub name: String,
    /// The folder of its objects in the store, below the root.
    pub stored_as: String,
    /// Whether its names are accepted, so that it is served.
    pub is_established: bool,
    /// Whether its definition is being deleted, so that no object may be created.
    pub is_terminating: bool,
    /// The conversion between its versions.
    pub conversion: Conversion,
    /// All versions, in the order of the definition, and whether they are served.
    pub versions: Vec<(&'static Kind, bool)>,
    stored: Option<&'static Kind>,
}

/// The conversion of objects between versions.
#[derive(Clone, Debug)]
pub enum Conversion {
    /// Only `apiVersion` changes.
    None,
    /// A webhook converts them.
    Webhook(Box<WebhookConversion>),
}

/// A version of a custom resource.
#[derive(Debug)]
pub struct Version {
    resource: Arc<Resource>,
    /// The encoded `JSONSchemaProps`; empty without a schema.
    schema: Bytes,
    compiled: OnceLock<Option<Schema>>,
    /// The fields of the subresource `scale`, if it has it.
    pub scale: Option<ScalePaths>,
    /// Whether it is deprecated, so that its clients are warned.
    pub is_deprecated: bool,
    /// The text of that warning, in place of the default one.
    pub deprecation_warning: Option<String>,
}

/// The JSON paths of the fields that the subresource `scale` reads and writes, for example `.spec.replicas`.
#[derive(Clone, Debug)]
pub struct ScalePaths {
    /// The wanted number of replicas.
    pub spec: String,
    /// The observed number of replicas.
    pub status: String,
    /// The label selector, as text; empty if there is none.
    pub selector: String,
}

impl Resource {
    /// Returns the resource that a definition declares; `kind_of` returns the kind with these names.
    ///
    /// # Errors
    /// Those of `kind_of`.
    pub(crate) fn of<E>(
        definition: &CustomResourceDefinition,
        mut kind_of: impl FnMut(Names) -> Result<&'static Kind, E>,
    ) -> Result<Self, E> {
        let spec = &definition.spec;
        let names = |version: &CustomResourceDefinitionVersion| Names {
            group: spec.group.clone(),
            version: version.name.clone(),
            kind: spec.names.kind.clone(),
            plural: spec.names.plural.clone(),
            namespaced: spec.scope == "Namespaced",
        };
        let versions = spec.versions.iter();
        let versions = versions.map(|version| Ok((kind_of(names(version))?, version)));
        let versions: Vec<_> = versions.collect::<Result<_, E>>()?;
        let stored = versions.iter().find(|(_, version)| version.storage);
        Ok(Self {
            name: definition.metadata.name.clone(),
            stored_as: format!("{}/{}", spec.group, spec.names.plural),
            is_established: is_true(definition, "Established"),
            is_terminating: is_true(definition, "Terminating"),
            conversion: Conversion::of(definition),
            stored: stored.map(|(kind, _)| *kind),
            versions: versions
                .into_iter()
                .map(|(kind, version)| (kind, version.served))
                .collect(),
        })
    }

    /// Returns the kind of the version that is stored.
    pub fn stored(&self) -> Option<&'static Kind> {
        self.stored
    }

    /// Returns a version, served or not, by its apiVersion.
    pub fn version(&self, api_version: &str) -> Option<&'static Kind> {
        let mut kinds = self.versions.iter().map(|(kind, _)| *kind);
        kinds.find(|kind| kind.api_version() == api_version)
    }

    /// Returns the webhook that converts between its versions, if it has one.
    pub fn webhook(&self) -> Option<&WebhookConversion> {
        match &self.conversion {
            Conversion::Webhook(webhook) => Some(webhook),
            Conversion::None => None,
        }
    }

    /// Returns the served versions.
    pub fn served(&self) -> impl Iterator<Item = &'static Kind> {
        let served = self.versions.iter().filter(|(_, is_served)| *is_served);
        served
            .map(|(kind, _)| *kind)
            .filter(|_| self.is_established)
    }
}

fn is_true(definition: &CustomResourceDefinition, condition: &str) -> bool {
    let mut conditions = definition.status.conditions.iter();
    conditions.any(|one| one.r#type == condition && one.status == "True")
}

impl Conversion {
    fn of(definition: &CustomResourceDefinition) -> Self {
        let conversion = definition.spec.conversion.as_ref();
        match conversion.and_then(|conversion| conversion.webhook.clone()) {
            Some(webhook) => Self::Webhook(Box::new(webhook)),
            None => Self::None,
        }
    }
}

impl Version {
    /// Returns the definition of a version's kind.
    pub(crate) fn definition(
        resource: &Arc<Resource>,
        definition: &CustomResourceDefinition,
        version: &CustomResourceDefinitionVersion,
    ) -> Definition {
        let names = accepted_names(definition);
        let parts = version.subresources.as_ref();
        let has_status = parts.is_some_and(|parts| parts.status.is_some());
        let scale = parts.and_then(|parts| parts.scale.as_ref());
        let mut subresources = Vec::new();
        subresources.extend(has_status.then(|| "status".to_owned()));
        subresources.extend(scale.map(|_| "scale".to_owned()));
        Definition {
            singular: names.singular.clone(),
            list_kind: names.list_kind.clone(),
            short_names: names.short_names.clone(),
            categories: names.categories.clone(),
            subresources,
            columns: columns(&version.additional_printer_columns),
            selectable: version
                .selectable_fields
                .iter()
                .map(|field| selectable(&field.json_path))
                .collect(),
            custom: Some(Self {
                resource: resource.clone(),
                schema: schema(version),
                compiled: OnceLock::new(),
                scale: scale.map(|scale| ScalePaths {
                    spec: scale.spec_replicas_path.clone(),
                    status: scale.status_replicas_path.clone(),
                    selector: scale.label_selector_path.clone().unwrap_or_default(),
                }),
                is_deprecated: version.deprecated,
                deprecation_warning: version.deprecation_warning.clone(),
            }),
        }
    }

    /// Returns its resource.
    pub fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// Returns its schema as JSON, if it has one.
    pub fn schema_document(&self) -> Option<Value> {
        if self.schema.is_empty() {
            return None;
        }
        let props = JsonSchemaProps::decode(self.schema.clone()).ok()?;
        serde_json::to_value(props).ok()
    }

    /// Returns its schema, if it has one. It is compiled when it is first needed.
    pub fn schema(&self) -> Option<&Schema> {
        let compile = || Schema::compile(&self.schema_document()?).ok();
        self.compiled.get_or_init(compile).as_ref()
    }
}

fn schema(version: &CustomResourceDefinitionVersion) -> Bytes {
    let validation = version.schema.as_ref();
    let props = validation.and_then(|validation| validation.open_api_v3_schema.as_ref());
    props.map_or_else(Bytes::new, |props| props.encode_to_vec().into())
}

/// Returns the accepted names, or those of the spec if none are accepted yet.
fn accepted_names(definition: &CustomResourceDefinition) -> &CustomResourceDefinitionNames {
    match &definition.status.accepted_names {
        accepted if accepted.plural.is_empty() => &definition.spec.names,
        accepted => accepted,
    }
}

/// Returns the columns of a table; without any, the age, as upstream.
fn columns(declared: &[CustomResourceColumnDefinition]) -> Vec<Column> {
    if declared.is_empty() {
        return vec![Column {
            name: "Age".to_owned(),
            r#type: "date".to_owned(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            path: Some(".metadata.creationTimestamp".to_owned()),
        }];
    }
    let column = |column: &CustomResourceColumnDefinition| Column {
        name: column.name.clone(),
        r#type: column.r#type.clone(),
        format: column.format.clone(),
        description: description(column),
        priority: column.priority,
        path: Some(column.json_path.clone()),
    };
    declared.iter().map(column).collect()
}

fn description(column: &CustomResourceColumnDefinition) -> String {
    match column.description.as_str() {
        "" => format!(
            "Custom resource definition column (in JSONPath format): {}",
            column.json_path
        ),
        text => text.to_owned(),
    }
}

/// Returns a selectable field, without the dot that JSON paths start with.
fn selectable(path: &str) -> Selectable {
    let name = path.trim_start_matches('.').to_owned();
    Selectable {
        paths: vec![name.clone()],
        name,
    }
}
