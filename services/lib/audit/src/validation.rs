//! The validation of policies, in upstream's words (`apis/audit/validation`).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use setpoint_document::{self as document, Field, FieldErrors as Errors};
use setpoint_model::names;

use crate::policy::{GroupResources, Level, Policy, Rule, Stage, Stages};

const API_VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";
const OF_POLICY: [&str; 6] = [
    "apiVersion",
    "kind",
    "metadata",
    "omitManagedFields",
    "omitStages",
    "rules",
];
const OF_RULE: [&str; 9] = [
    "level",
    "namespaces",
    "nonResourceURLs",
    "omitManagedFields",
    "omitStages",
    "resources",
    "userGroups",
    "users",
    "verbs",
];
const OF_RESOURCES: [&str; 3] = ["group", "resourceNames", "resources"];

/// The reason why a policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("failed to read file path {path:?}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: String,
    },
    /// It is no document, or a value is not of its type.
    #[error("failed decoding: {0}")]
    Malformed(String),
    /// A field is not known.
    #[error("strict decoding error: unknown field {0:?}")]
    Unknown(String),
    /// Values are not valid.
    #[error("{0}")]
    Invalid(String),
    /// The policy has no rules.
    #[error("loaded illegal policy with 0 rules")]
    Empty,
    /// One of these, in a file.
    #[error("{error}: from file {}", path.display())]
    FromFile {
        /// The file.
        path: PathBuf,
        /// The error, which is printed as part of this one.
        error: Box<Error>,
    },
}

impl From<document::Error> for Error {
    fn from(error: document::Error) -> Self {
        match error {
            document::Error::Malformed(why) => Self::Malformed(why),
            document::Error::Unknown(field) => Self::Unknown(field),
        }
    }
}

impl Error {
    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self::FromFile {
            path: path.to_owned(),
            error: Box::new(self),
        }
    }
}

/// Reads and validates a policy.
pub(crate) fn policy(document: &Value) -> Result<Policy, Error> {
    let (field, mut errors) = (Field::root("policy", document), Errors::default());
    field.fields(&OF_POLICY)?;
    for (name, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        match text(&field, name)?.as_str() {
            "" => errors.required(name, ""),
            given if given != wanted => errors.not_supported(name, given, &[wanted]),
            _ => {}
        }
    }
    let omit_stages = stages(&field, &mut errors)?;
    let mut rules = Vec::new();
    if let Some(list) = field.get("rules") {
        for item in list.items()? {
            rules.push(rule(&item, &mut errors)?);
        }
    }
    errors.finish().map_err(Error::Invalid)?;
    if rules.is_empty() {
        return Err(Error::Empty);
    }
    Ok(Policy {
        rules,
        omit_stages,
        omit_managed_fields: flag(&field)?.unwrap_or_default(),
    })
}

fn rule(field: &Field<'_>, errors: &mut Errors) -> Result<Rule, Error> {
    field.fields(&OF_RULE)?;
    let rule = Rule {
        level: level(field, errors)?,
        users: texts(field, "users")?,
        user_groups: texts(field, "userGroups")?,
        verbs: texts(field, "verbs")?,
        non_resource_urls: urls(field, errors)?,
        resources: resources(field, errors)?,
        namespaces: texts(field, "namespaces")?,
        omit_stages: stages(field, errors)?,
        omit_managed_fields: flag(field)?,
    };
    let names_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
    if names_resources && !rule.non_resource_urls.is_empty() {
        errors.invalid(
            &format!("{}.nonResourceURLs", field.path),
            &json!(rule.non_resource_urls),
            "rules cannot apply to both regular resources and non-resource URLs",
        );
    }
    Ok(rule)
}

fn level(field: &Field<'_>, errors: &mut Errors) -> Result<Level, Error> {
    let (given, path) = (text(field, "level")?, format!("{}.level", field.path));
    let found = Level::ALL.into_iter().find(|level| level.name() == given);
    if found.is_none() {
        match given.as_str() {
            "" => errors.required(&path, ""),
            _ => errors.not_supported(&path, &given, &Level::ALL.map(Level::name)),
        }
    }
    Ok(found.unwrap_or_default())
}

fn stages(field: &Field<'_>, errors: &mut Errors) -> Result<Stages, Error> {
    let mut omitted = Stages::default();
    let Some(list) = field.get("omitStages") else {
        return Ok(omitted);
    };
    for item in list.items()? {
        let given = item.text()?;
        match Stage::ALL.into_iter().find(|stage| stage.name() == given) {
            Some(stage) => omitted.insert(stage),
            None => {
                let allowed = Stage::ALL.map(Stage::name).join(",");
                let detail = format!("allowed stages are {allowed}");
                errors.invalid(&item.path, &json!(given), &detail);
            }
        }
    }
    Ok(omitted)
}

fn urls(field: &Field<'_>, errors: &mut Errors) -> Result<Vec<String>, Error> {
    let Some(list) = field.get("nonResourceURLs") else {
        return Ok(Vec::new());
    };
    for item in list.items()? {
        let url = item.text()?;
        if url == "*" {
            continue;
        }
        if !url.starts_with('/') {
            let detail = "non-resource URL rules must begin with a '/' character";
            errors.invalid(&item.path, &json!(url), detail);
        }
        if url.strip_suffix('*').unwrap_or(&url).contains('*') {
            let detail = "non-resource URL wildcards '*' must be the final character of the rule";
            errors.invalid(&item.path, &json!(url), detail);
        }
    }
    Ok(list.texts()?)
}

fn resources(field: &Field<'_>, errors: &mut Errors) -> Result<Vec<GroupResources>, Error> {
    let Some(list) = field.get("resources") else {
        return Ok(Vec::new());
    };
    // Upstream names the list, not its item; the item is the help that one needs.
    let items = list.items()?.map(|item| group_resources(&item, errors));
    items.collect()
}

fn group_resources(field: &Field<'_>, errors: &mut Errors) -> Result<GroupResources, Error> {
    field.fields(&OF_RESOURCES)?;
    let found = GroupResources {
        group: text(field, "group")?,
        resources: texts(field, "resources")?,
        resource_names: texts(field, "resourceNames")?,
    };
    let problems = match found.group.as_str() {
        "" | "*" => Vec::new(),
        group => names::validate_dns_subdomain(group),
    };
    if !problems.is_empty() {
        let path = format!("{}.group", field.path);
        errors.invalid(&path, &json!(found.group), &problems.join(","));
    }
    if !found.resource_names.is_empty() && found.resources.is_empty() {
        errors.invalid(
            &format!("{}.resourceNames", field.path),
            &json!(found.resource_names),
            "using resourceNames requires at least one resource",
        );
    }
    Ok(found)
}

fn text(field: &Field<'_>, name: &str) -> Result<String, Error> {
    let text = field.get(name).map(|field| field.text()).transpose()?;
    Ok(text.unwrap_or_default())
}

fn texts(field: &Field<'_>, name: &str) -> Result<Vec<String>, Error> {
    let texts = field.get(name).map(|field| field.texts()).transpose()?;
    Ok(texts.unwrap_or_default())
}

fn flag(field: &Field<'_>) -> Result<Option<bool>, Error> {
    let flag = field.get("omitManagedFields");
    Ok(flag.map(|field| field.flag()).transpose()?)
}

#[cfg(test)]
mod tests;
