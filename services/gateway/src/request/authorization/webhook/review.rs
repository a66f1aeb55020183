//! The questions: `SubjectAccessReview`.

use serde_json::{Map, Value, json};
use setpoint_apiserver_config::authorization::Version;
use setpoint_kinds::Identity;
use setpoint_model::selector::{Comparison, FieldRequirement};
use setpoint_proto::authorization::SubjectAccessReviewStatus;

use crate::request::{Attributes, Resource};

/// Returns the spec of the question about a request, of version v1.
pub(super) fn spec(user: &Identity, attributes: &Attributes) -> Value {
    let mut spec = Map::new();
    if let Some(resource) = &attributes.resource {
        let of_resource = resource_attributes(resource, attributes);
        spec.insert("resourceAttributes".into(), of_resource);
    } else {
        let mut of_path = Map::new();
        set(&mut of_path, "path", &attributes.path);
        set(&mut of_path, "verb", &attributes.verb);
        spec.insert("nonResourceAttributes".into(), of_path.into());
    }
    set(&mut spec, "user", &user.name);
    set(&mut spec, "uid", &user.uid);
    if !user.groups.is_empty() {
        spec.insert("groups".into(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        spec.insert("extra".into(), json!(user.extra));
    }
    spec.into()
}

fn resource_attributes(of: &Resource, attributes: &Attributes) -> Value {
    let mut found = Map::new();
    for (name, text) in [
        ("namespace", &*of.namespace),
        ("verb", &*attributes.verb),
        ("group", &*of.group),
        ("version", &*of.version),
        ("resource", &*of.resource),
        ("subresource", &*of.subresource),
        ("name", &*of.name),
    ] {
        set(&mut found, name, text);
    }
    let fields: Vec<Value> = attributes.fields.iter().map(field_requirement).collect();
    if !fields.is_empty() {
        found.insert("fieldSelector".into(), json!({ "requirements": fields }));
    }
    let labels = attributes.labels.to_label_selector().unwrap_or_default();
    let exact = labels
        .match_labels
        .iter()
        .map(|(key, value)| json!({ "key": key, "operator": "In", "values": [value] }));
    let others = labels.match_expressions.iter().map(|one| {
        let mut found = json!({ "key": one.key, "operator": one.operator });
        if !one.values.is_empty() {
            found["values"] = json!(one.values);
        }
        found
    });
    let labels: Vec<Value> = exact.chain(others).collect();
    if !labels.is_empty() {
        found.insert("labelSelector".into(), json!({ "requirements": labels }));
    }
    found.into()
}

fn field_requirement(one: &FieldRequirement) -> Value {
    let operator = match one.comparison {
        Comparison::Equal => "In",
        Comparison::NotEqual => "NotIn",
    };
    json!({ "key": one.path, "operator": operator, "values": [one.value] })
}

fn set(fields: &mut Map<String, Value>, name: &str, text: &str) {
    if !text.is_empty() {
        fields.insert(name.into(), text.into());
    }
}

/// Returns a spec with all texts, also those that are empty, as conditions read it.
pub(super) fn complete(spec: &Value) -> Value {
    let mut complete = json!({ "user": "", "uid": "", "groups": [], "extra": {} });
    let texts: [(&str, &[&str]); 2] = [
        (
            "resourceAttributes",
            &[
                "namespace",
                "verb",
                "group",
                "version",
                "resource",
                "subresource",
                "name",
            ],
        ),
        ("nonResourceAttributes", &["path", "verb"]),
    ];
    for (name, value) in spec.as_object().into_iter().flatten() {
        complete[name] = value.clone();
    }
    for (part, names) in texts {
        let Some(found) = complete.get_mut(part).and_then(Value::as_object_mut) else {
            continue;
        };
        for name in names {
            found.entry(*name).or_insert_with(|| "".into());
        }
    }
    complete
}

/// Returns the question with a spec.
pub(super) fn question(spec: &Value, version: Version) -> Vec<u8> {
    let mut spec = spec.clone();
    let version = match version {
        Version::V1 => "v1",
        Version::V1beta1 => {
            let fields = spec.as_object_mut();
            if let Some((fields, groups)) =
                fields.and_then(|fields| fields.remove("groups").map(|groups| (fields, groups)))
            {
                fields.insert("group".into(), groups);
            }
            "v1beta1"
        }
    };
    let review = json!({
        "apiVersion": format!("authorization.k8s.io/{version}"),
        "kind": "SubjectAccessReview",
        "spec": spec,
    });
    review.to_string().into()
}

/// Returns the status of an answer.
///
/// # Errors
/// If it is no review.
pub(super) fn status(body: &[u8]) -> Result<SubjectAccessReviewStatus, String> {
    let mut review: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if review["kind"] != "SubjectAccessReview" {
        return Err("the answer is no SubjectAccessReview".to_owned());
    }
    let status = serde_json::from_value(review["status"].take());
    status.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use setpoint_model::selector::Selector;

    use super::*;

    #[test]
    fn a_question_says_what_is_asked_for_and_by_whom() {
        let user = Identity {
            name: "jane".into(),
            groups: vec!["dev".into()],
            extra: [("example.com/a".to_owned(), vec!["b".to_owned()])].into(),
            ..Identity::default()
        };
        let resource = Resource {
            group: "apps".into(),
            version: "v1".into(),
            resource: "deployments".into(),
            namespace: "shop".into(),
            ..Resource::default()
        };
        let attributes = Attributes {
            labels: Selector::parse("app=web,!old").unwrap(),
            ..Attributes::of_resource("list", resource)
        };
        let spec = spec(&user, &attributes);
        let expected = json!({
            "user": "jane",
            "groups": ["dev"],
            "extra": {"example.com/a": ["b"]},
            "resourceAttributes": {
                "namespace": "shop", "verb": "list", "group": "apps", "version": "v1", "resource": "deployments",
                "labelSelector": {"requirements": [
                    {"key": "app", "operator": "In", "values": ["web"]},
                    {"key": "old", "operator": "DoesNotExist"},
                ]},
            },
        });
        assert_eq!(spec, expected);
        let complete = complete(&spec);
        assert_eq!(complete["uid"], "");
        assert_eq!(complete["resourceAttributes"]["subresource"], "");
        let old: Value = serde_json::from_slice(&question(&spec, Version::V1beta1)).unwrap();
        assert_eq!(old["apiVersion"], "authorization.k8s.io/v1beta1");
        assert_eq!(old["spec"]["group"], json!(["dev"]));
        assert!(old["spec"].get("groups").is_none());
    }
}
