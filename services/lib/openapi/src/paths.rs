//! The paths of a kind and their operations.

use serde_json::{Map, Value, json};
use setpoint_codec::rest::{
    is_connect, media_types, patch_types, path_of, subresource_kind, subresource_verbs,
};
use setpoint_codec::{Definition, Kind};

use super::parameters::{
    DELETE, DELETE_COLLECTION, LIST, PATCH, PRETTY, WRITE, parameter, variable,
};
use super::{connect, schema};

/// Adds the paths of a kind.
pub(super) fn add_kind(
    paths: &mut Map<String, Value>,
    kind: &'static Kind,
    definition: &Definition,
) {
    let root = path_of(&kind.group, &kind.version);
    let all = format!("{root}/{}", kind.plural);
    let collection = match kind.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{}", kind.plural),
        false => all.clone(),
    };
    if kind.is_review {
        let place = Place::of(kind, definition);
        let mut post = operation("post", kind, &place, place.id("post", kind, ""));
        post["description"] = describe("post", kind, "").into();
        let operations = with_parameters(json!({ "post": post }), kind, &collection);
        paths.insert(collection, operations);
        return;
    }
    let object = format!("{collection}/{{name}}");
    let place = Place::of(kind, definition);
    if kind.namespaced {
        let id = format!("list{}{}ForAllNamespaces", place.group, kind.kind);
        let mut list = operation("list", kind, &place, id);
        list["description"] = describe("list", kind, "").into();
        let operations = with_parameters(json!({ "get": list }), kind, &all);
        paths.insert(all.clone(), operations);
    }
    for subresource in &definition.subresources {
        let path = format!("{object}/{subresource}");
        if is_connect(subresource) {
            let operations = connect_operations(kind, subresource, &place, "");
            paths.insert(path.clone(), with_parameters(operations, kind, &path));
        } else {
            let operations = subresource_operations(kind, subresource, &place);
            paths.insert(path.clone(), with_parameters(operations, kind, &path));
        }
        if subresource == "proxy" {
            let path = format!("{path}/{{path}}");
            let operations = connect_operations(kind, subresource, &place, "WithPath");
            paths.insert(path.clone(), with_parameters(operations, kind, &path));
        }
    }
    let whole = |action| {
        let mut operation = operation(action, kind, &place, place.id(action, kind, ""));
        operation["description"] = describe(action, kind, "").into();
        operation
    };
    if kind.is_computed {
        for (path, action) in [(collection, "list"), (object, "get")] {
            let operations = with_parameters(json!({ "get": whole(action) }), kind, &path);
            paths.insert(path, operations);
        }
        return;
    }
    let mut operations = json!({ "get": whole("list"), "post": whole("post") });
    if kind.deletes_collection {
        operations["delete"] = whole("deletecollection");
    }
    paths.insert(
        collection.clone(),
        with_parameters(operations, kind, &collection),
    );
    let operations = json!({
        "get": whole("get"),
        "put": whole("put"),
        "patch": whole("patch"),
        "delete": whole("delete"),
    });
    paths.insert(object.clone(), with_parameters(operations, kind, &object));
}

/// The parts that all operations of a kind share: those of their identifiers, and their schemas.
struct Place {
    /// Group and version, for example `RbacAuthorizationV1`.
    group: String,
    namespaced: &'static str,
    /// For example `rbacAuthorization_v1`.
    tag: String,
    /// A reference to the schema of lists.
    list: Value,
    is_custom: bool,
}

impl Place {
    fn of(kind: &Kind, definition: &Definition) -> Self {
        let group = match kind.group.as_str() {
            "" => "core",
            group => group.strip_suffix(".k8s.io").unwrap_or(group),
        };
        let group: String = group.split('.').map(capitalized).collect();
        let first = group.chars().next().into_iter();
        let first: String = first.flat_map(char::to_lowercase).collect();
        let rest = group.get(1..).unwrap_or_default();
        Self {
            tag: format!("{first}{rest}_{}", kind.version),
            group: group + &capitalized(&kind.version),
            namespaced: if kind.namespaced { "Namespaced" } else { "" },
            list: schema::reference(&schema::list_name(kind, definition)),
            is_custom: kind.is_custom(),
        }
    }

    /// Returns the identifier of an operation, for example `readAppsV1NamespacedDeploymentScale`.
    fn id(&self, action: &str, kind: &Kind, subresource: &str) -> String {
        let (verb, of) = match action {
            "get" => ("read", ""),
            "post" => ("create", ""),
            "put" => ("replace", ""),
            "deletecollection" => ("delete", "Collection"),
            other => (other, ""),
        };
        let Self {
            group, namespaced, ..
        } = self;
        let part = capitalized(subresource);
        format!("{verb}{group}{of}{namespaced}{}{part}", kind.kind)
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().into_iter();
    first.flat_map(char::to_uppercase).chain(letters).collect()
}

fn subresource_operations(kind: &'static Kind, subresource: &str, place: &Place) -> Value {
    let of = subresource_kind(kind, subresource);
    let part = |action| {
        let mut operation = operation(action, of, place, place.id(action, kind, subresource));
        operation["description"] = describe(action, kind, subresource).into();
        operation
    };
    let verbs = subresource_verbs(subresource).iter();
    let operations = verbs.filter_map(|verb| {
        let (method, action) = match *verb {
            "create" => ("post", "post"),
            "get" => ("get", "get"),
            "update" => ("put", "put"),
            "patch" => ("patch", "patch"),
            _ => return None,
        };
        Some((method.to_owned(), part(action)))
    });
    Value::Object(operations.collect())
}

/// `suffix` tells the path with a further path from the one without.
fn connect_operations(
    kind: &'static Kind,
    subresource: &str,
    place: &Place,
    suffix: &str,
) -> Value {
    let part = capitalized(subresource);
    let id = |method: &str| {
        let (group, method, namespaced) = (&place.group, capitalized(method), place.namespaced);
        format!(
            "connect{group}{method}{namespaced}{}{part}{suffix}",
            kind.kind
        )
    };
    Value::Object(connect::operations(kind, subresource, &place.tag, id))
}

/// Returns what an operation does, in upstream's words.
fn describe(action: &str, kind: &Kind, subresource: &str) -> String {
    let name = &kind.kind;
    let part = match subresource {
        "" => String::new(),
        subresource => format!("{subresource} of "),
    };
    // Upstream writes `read status of the specified Pod`, but `create binding of a Pod`.
    match action {
        "list" => format!("list or watch objects of kind {name}"),
        "deletecollection" => format!("delete collection of {name}"),
        "get" => format!("read {part}the specified {name}"),
        "put" => format!("replace {part}the specified {name}"),
        "patch" => format!("partially update {part}the specified {name}"),
        "delete" => format!("delete {part}{}{name}", article(name)),
        _ => format!("create {part}{}{name}", article(name)),
    }
}

/// Returns the article of a kind with a space; a plural has none.
fn article(name: &str) -> &'static str {
    let is_plural = name.ends_with('s') && !name.ends_with("ss");
    match name.chars().next() {
        _ if is_plural => "",
        Some('A' | 'E' | 'I' | 'O' | 'U') => "an ",
        _ => "a ",
    }
}

fn with_parameters(mut operations: Value, kind: &Kind, path: &str) -> Value {
    let variables = ["namespace", "name", "path"].into_iter();
    let variables = variables.filter(|name| path.contains(&format!("{{{name}}}")));
    let variables = variables.map(|name| variable(name, &kind.kind));
    operations["parameters"] = variables.chain([parameter(&PRETTY)]).collect();
    operations
}

fn operation(action: &str, kind: &'static Kind, place: &Place, id: String) -> Value {
    let query = match action {
        "get" => &[],
        "list" => LIST,
        "delete" => DELETE,
        "deletecollection" => DELETE_COLLECTION,
        "patch" => PATCH,
        _ => WRITE,
    };
    let mut operation = json!({
        "operationId": id,
        "tags": [place.tag],
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": schema::group_version_kind(kind, &kind.kind),
        "responses": responses(action, kind, place),
    });
    // As Kubernetes, omit an empty list.
    if !query.is_empty() {
        operation["parameters"] = query.iter().map(parameter).collect();
    }
    if let Some(body) = body(action, kind, place) {
        operation["requestBody"] = json!({ "content": body, "description": sent(action) });
    }
    operation
}

/// Returns the responses of an operation by HTTP status; the default is an error.
fn responses(action: &str, kind: &'static Kind, place: &Place) -> Value {
    let own = schema::reference(&schema::kind_name(kind));
    let status = schema::reference(schema::STATUS);
    let schema = match action {
        "list" => place.list.clone(),
        "delete" => json!({ "anyOf": [own, status] }),
        "deletecollection" => json!({ "anyOf": [place.list, status] }),
        _ => own,
    };
    let types = media_types(place.is_custom);
    let mut responses = json!({
        "200": response("OK", types, &schema),
        "default": response("Error", &["application/json"], &status),
    });
    if ["post", "put", "patch"].contains(&action) {
        responses["201"] = response("Created", types, &schema);
    }
    responses
}

fn response(description: &str, types: &[&str], schema: &Value) -> Value {
    json!({ "description": description, "content": content(types, schema) })
}

fn body(action: &str, kind: &'static Kind, place: &Place) -> Option<Value> {
    let own = schema::reference(&schema::kind_name(kind));
    let types = media_types(place.is_custom);
    match action {
        "post" | "put" => Some(content(types, &own)),
        "patch" => {
            let types = patch_types(place.is_custom);
            Some(content(types, &json!({ "type": "object" })))
        }
        "delete" | "deletecollection" => {
            let options = setpoint_codec::kinds().by_kind("v1", "DeleteOptions")?;
            let options = schema::reference(&schema::kind_name(options));
            Some(content(types, &options))
        }
        _ => None,
    }
}

/// Returns what the body of a request is.
fn sent(action: &str) -> &'static str {
    match action {
        "patch" => "The changes, in the form that the media type names.",
        "delete" | "deletecollection" => {
            "How objects are deleted, in place of the parameters of the query."
        }
        _ => "The whole object.",
    }
}

fn content(types: &[&str], schema: &Value) -> Value {
    let types = types
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "schema": schema })));
    Value::Object(types.collect())
}
