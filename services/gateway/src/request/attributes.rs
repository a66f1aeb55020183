//! The attributes of a request that the rules of authorization name (upstream: the part of `RequestInfo` that becomes
//! `authorizer.Attributes`).

use std::borrow::Cow;

use http::Method;
use setpoint_codec::rest::is_connect;
use setpoint_kinds::Target;
use setpoint_model::selector::{Comparison, FieldRequirement, Fields, Selector};
use setpoint_model::{Verb, names};

use super::Query;

/// The attributes of a request without its user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// A verb of the API or, if the path is that of no resource, the method in lower case.
    pub(crate) verb: Cow<'static, str>,
    /// `None` for other paths, such as `/healthz`.
    pub(crate) resource: Option<Resource>,
    /// The path; empty for a call of gRPC that names a resource.
    pub(crate) path: String,
    /// The requirements of the field selector of a list, a watch or the deletion of a collection; none if it cannot be
    /// parsed (upstream: `GetFieldSelector`, KEP-4601).
    pub(crate) fields: Vec<FieldRequirement>,
    /// The label selector of such a request; that of all objects if it cannot be parsed.
    pub(crate) labels: Selector,
}

/// A resource, served or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resource {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    /// The plural.
    pub(crate) resource: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
    /// Empty for all namespaces, and for cluster-scoped kinds. A Namespace is in itself.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
}

impl Attributes {
    /// Returns the attributes of an HTTP request. `segments` are the decoded ones of its path.
    pub(crate) fn of_http(method: &Method, path: &str, segments: &[&str], query: &Query) -> Self {
        let path = path.to_owned();
        match Resource::of_path(segments) {
            Some((resource, special)) => {
                let verb = verb_of_method(method, special, &resource, query);
                let found = Self {
                    verb: verb.into(),
                    resource: Some(resource),
                    path,
                    ..Self::default()
                };
                // Of paths that have a verb, some ignore selectors.
                let selector = |name| query.get(name).filter(|_| special.is_none());
                let (fields, labels) = (selector("fieldSelector"), selector("labelSelector"));
                found.selected_by(fields.unwrap_or_default(), labels.unwrap_or_default())
            }
            None => Self::of_path(method.as_str().to_ascii_lowercase(), &path),
        }
    }

    /// Returns the attributes of a request that names no resource.
    pub(crate) fn of_path(method: impl Into<Cow<'static, str>>, path: &str) -> Self {
        Self {
            verb: method.into(),
            path: path.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the attributes of a call that names an object or a collection.
    pub(crate) fn of_target(verb: Verb, target: &Target) -> Self {
        Self::on_target(name_of(verb), target)
    }

    /// Returns the attributes of a call about objects of all kinds, in a namespace or, if that is empty, in the
    /// cluster. Only rules for all groups and resources allow it.
    pub(crate) fn of_all_kinds(verb: &'static str, namespace: &str) -> Self {
        let all = Resource {
            group: "*".to_owned(),
            version: "*".to_owned(),
            resource: "*".to_owned(),
            namespace: namespace.to_owned(),
            ..Resource::default()
        };
        Self::of_resource(verb, all)
    }

    /// Like [`Self::of_target`], with the name of the verb in rules.
    pub(crate) fn on_target(verb: &'static str, target: &Target) -> Self {
        let kind = target.served;
        let is_namespace = kind.group.is_empty() && kind.plural == NAMESPACES;
        let namespace = match is_namespace {
            true => &target.name,
            false => &target.namespace,
        };
        let resource = Resource {
            group: kind.group.clone(),
            version: kind.version.clone(),
            resource: kind.plural.clone(),
            subresource: target.subresource.name().to_owned(),
            namespace: namespace.clone(),
            name: target.name.clone(),
        };
        Self::of_resource(verb, resource)
    }

    /// Returns the attributes of a call that names a resource.
    pub(crate) fn of_resource(verb: impl Into<Cow<'static, str>>, resource: Resource) -> Self {
        Self {
            verb: verb.into(),
            resource: Some(resource),
            ..Self::default()
        }
    }

    /// Adds the selectors of a request for a collection, which may be empty. A list or a watch of the only name that
    /// the one of fields allows is one of that object.
    #[must_use]
    pub(crate) fn selected_by(mut self, field_selector: &str, label_selector: &str) -> Self {
        if !SELECTING.contains(&&*self.verb) {
            return self;
        }
        self.labels = Selector::parse(label_selector).unwrap_or_default();
        let Ok(fields) = Fields::parse(field_selector) else {
            return self;
        };
        if self.verb != "deletecollection"
            && let Some(resource) = self.resource.as_mut().filter(|of| of.name.is_empty())
            && let Some(name) = only_name(&fields)
        {
            name.clone_into(&mut resource.name);
        }
        self.fields = fields.requirements().to_vec();
        self
    }

    /// Returns whether the field selector selects only objects in which a field has a value.
    pub(crate) fn selects(&self, path: &str, value: &str) -> bool {
        self.fields.iter().any(|one| {
            one.path == path && one.comparison == Comparison::Equal && one.value == value
        })
    }

    /// Returns whether the request lasts until one end ends it (upstream: `BasicLongRunningRequestCheck`): a watch, a
    /// log or a connection.
    pub(crate) fn is_long_running(&self) -> bool {
        self.resource.as_ref().is_some_and(|resource| {
            let part = resource.subresource.as_str();
            ["watch", "proxy"].contains(&&*self.verb) || part == "log" || is_connect(part)
        })
    }
}

/// The verbs that select objects by fields.
const SELECTING: &[&str] = &["list", "watch", "deletecollection"];
const NAMESPACES: &str = "namespaces";
/// The subresources of a Namespace; what else follows its name is a resource in it.
const OF_NAMESPACE: [&str; 2] = ["status", "finalize"];
/// The segments before a resource that are verbs themselves, of deprecated paths.
const SPECIAL: &[&str] = &["proxy", "watch"];

impl Resource {
    /// Reads the segments of a path below `/api/<version>` or `/apis/<group>/<version>`. Returns a special verb, too.
    fn of_path(segments: &[&str]) -> Option<(Self, Option<&'static str>)> {
        let (group, version, rest) = match segments {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let special = SPECIAL.iter().find(|verb| rest.first() == Some(*verb));
        let rest = match special {
            Some(_) if rest.len() < 2 => return None,
            Some(_) => &rest[1..],
            None => rest,
        };
        let (namespace, rest) = match rest {
            [NAMESPACES, namespace, part, ..] if !OF_NAMESPACE.contains(part) => {
                (*namespace, &rest[2..])
            }
            [NAMESPACES, namespace, ..] => (*namespace, rest),
            _ => ("", rest),
        };
        let part = |index: usize| rest.get(index).copied().unwrap_or_default();
        // What follows the name in the deprecated path of a proxy is the path behind it.
        let has_parts = special != Some(&"proxy");
        let resource = Self {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: (*rest.first()?).to_owned(),
            subresource: if has_parts { part(2) } else { "" }.to_owned(),
            namespace: namespace.to_owned(),
            name: part(1).to_owned(),
        };
        Some((resource, special.copied()))
    }
}

/// Returns the verb of a request for a resource.
fn verb_of_method(
    method: &Method,
    special: Option<&'static str>,
    resource: &Resource,
    query: &Query,
) -> &'static str {
    if let Some(verb) = special {
        return verb;
    }
    let is_collection = resource.name.is_empty();
    match method.as_str() {
        "GET" | "HEAD" if is_collection && query.flag("watch") => "watch",
        "GET" | "HEAD" if is_collection => "list",
        "GET" | "HEAD" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if is_collection => "deletecollection",
        "DELETE" => "delete",
        _ => "",
    }
}

/// Returns the only name that a field selector allows.
fn only_name(fields: &Fields) -> Option<&str> {
    let name = fields.exact("metadata.name")?;
    names::validate_path_segment(name)
        .is_empty()
        .then_some(name)
}

/// Returns the name of a verb in rules.
fn name_of(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Watch => "watch",
        Verb::Create => "create",
        Verb::Update => "update",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
    }
}

#[cfg(test)]
mod tests;
