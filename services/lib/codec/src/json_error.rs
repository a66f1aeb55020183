//! Error messages for JSON that could not be decoded, in the wording of Go's `encoding/json`.
//!
//! Called only after decoding has failed, so speed does not matter.

use prost_reflect::Kind as Type;
use serde_json::Value;

use crate::Kind;
use crate::rules::{self, Field, Message};

/// Returns the message for text that is not JSON.
pub(crate) fn syntax(json: &[u8], error: &serde_json::Error) -> String {
    match json {
        [] => "unexpected end of JSON input".to_owned(),
        _ if error.is_eof() => "unexpected end of JSON input".to_owned(),
        _ => format!("json parse error: {error}"),
    }
}

/// Returns the message for a document with a value of the wrong type.
pub(crate) fn wrong_type(kind: &Kind, document: &Value, error: &serde_json::Error) -> String {
    let root = rules::message(kind.message.full_name());
    let found =
        root.and_then(|message| in_message(message, &message.name, document, &mut Vec::new()));
    found.unwrap_or_else(|| without_position(error))
}

/// Removes the position that serde_json appends: kubectl generated the text, so its users cannot interpret it.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// The field of a value.
struct Position<'a> {
    owner: &'a str,
    path: String,
}

impl Position<'_> {
    fn cannot_unmarshal(&self, value: &str, go_type: &str) -> Option<String> {
        let Self { owner, path } = self;
        Some(match path.as_str() {
            "" => format!("json: cannot unmarshal {value} into Go value of type v1.{owner}"),
            _ => format!(
                "json: cannot unmarshal {value} into Go struct field {owner}.{path} of type {go_type}"
            ),
        })
    }
}

fn in_message<'v>(
    message: &'static Message,
    owner: &str,
    value: &'v Value,
    path: &mut Vec<&'v str>,
) -> Option<String> {
    let Value::Object(object) = value else {
        let at = Position {
            owner,
            path: path.join("."),
        };
        return at.cannot_unmarshal(json_type(value), &format!("v1.{}", message.name));
    };
    object.iter().find_map(|(key, value)| {
        let field = message.field(key)?;
        path.push(key);
        let found = in_field(field, &message.name, value, path);
        path.pop();
        found
    })
}

fn in_field<'v>(
    field: &'static Field,
    owner: &str,
    value: &'v Value,
    path: &mut Vec<&'v str>,
) -> Option<String> {
    let element = go_type(&field.element);
    let wrong = |go_type: String, path: &[&str]| {
        Position {
            owner,
            path: path.join("."),
        }
        .cannot_unmarshal(json_type(value), &go_type)
    };
    match (field.descriptor.is_list(), field.descriptor.is_map(), value) {
        (_, _, Value::Null) => None,
        (true, _, Value::Array(items)) => items
            .iter()
            .find_map(|item| in_element(field, owner, item, path)),
        (true, ..) => wrong(format!("[]{element}"), path),
        (_, true, Value::Object(map)) => map
            .values()
            .find_map(|item| in_element(field, owner, item, path)),
        (_, true, _) => wrong(format!("map[string]{element}"), path),
        _ => in_element(field, owner, value, path),
    }
}

fn in_element<'v>(
    field: &'static Field,
    owner: &str,
    value: &'v Value,
    path: &mut Vec<&'v str>,
) -> Option<String> {
    if value.is_null() {
        return None;
    }
    if let Some(message) = field.message() {
        return in_message(message, owner, value, path);
    }
    let problem = scalar_problem(&field.element, value)?;
    Position {
        owner,
        path: path.join("."),
    }
    .cannot_unmarshal(&problem, &go_type(&field.element))
}

/// Returns the problem of a value that is not the expected scalar; `None` if it is.
fn scalar_problem(expected: &Type, value: &Value) -> Option<String> {
    let fits = match (expected, value) {
        (Type::Bool, Value::Bool(_)) => true,
        (Type::String | Type::Bytes, Value::String(_)) => true,
        (Type::Double | Type::Float, Value::Number(_)) => true,
        (Type::Int32, Value::Number(number)) => number
            .as_i64()
            .is_some_and(|number| i32::try_from(number).is_ok()),
        (Type::Int64, Value::Number(number)) => number.is_i64(),
        (Type::Message(message), value) => has_json_type(message.name(), value),
        _ => false,
    };
    let number = matches!(expected, Type::Int32 | Type::Int64) && value.is_number();
    match (fits, number) {
        (true, _) => None,
        (false, true) => Some(format!("number {value}")),
        (false, false) => Some(json_type(value).to_owned()),
    }
}

/// Returns whether the value has the JSON type of a message with a format of its own, such as a time.
fn has_json_type(message: &str, value: &Value) -> bool {
    match message {
        "Time" | "MicroTime" | "Duration" => value.is_string(),
        "IntOrString" | "Quantity" => value.is_string() || value.is_number(),
        _ => true,
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns Go's name of the type.
fn go_type(kind: &Type) -> String {
    match kind {
        Type::Bool => "bool".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::Double | Type::Float => "float64".to_owned(),
        Type::Bytes => "[]uint8".to_owned(),
        Type::Message(message) if ["Time", "MicroTime", "Duration"].contains(&message.name()) => {
            "string".to_owned()
        }
        Type::Message(message) if message.name() == "IntOrString" => "int32".to_owned(),
        Type::Message(message) => format!("v1.{}", message.name()),
        _ => "string".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::kinds;

    fn error(resource: &str, json: &str) -> String {
        let kind = kinds().by_resource(resource).unwrap();
        let error = kind.from_json(json.as_bytes()).unwrap_err().to_string();
        let head = format!(
            "{0} in version \"v1\" cannot be handled as a {0}: ",
            kind.kind
        );
        error.strip_prefix(&head).unwrap().to_owned()
    }

    #[test]
    fn a_wrong_type_has_the_message_of_go() {
        for (spec, expected) in [
            (
                r#"{"replicas":"3"}"#,
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                r#"{"replicas":3.5}"#,
                "json: cannot unmarshal number 3.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                r#"{"replicas":3000000000}"#,
                "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                r#"{"template":{"spec":{"containers":[{"image":5}]}}}"#,
                "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image of type string",
            ),
            (
                r#"{"template":{"spec":{"containers":{"name":"a"}}}}"#,
                "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
            ),
            (
                r#"{"template":{"metadata":{"labels":{"a":true}}}}"#,
                "json: cannot unmarshal bool into Go struct field ObjectMeta.spec.template.metadata.labels of type string",
            ),
            (
                r#"{"template":[]}"#,
                "json: cannot unmarshal array into Go struct field DeploymentSpec.spec.template of type v1.PodTemplateSpec",
            ),
        ] {
            let json = format!(r#"{{"spec":{spec}}}"#);
            assert_eq!(error("deployments.apps", &json), expected);
        }
    }

    #[test]
    fn types_have_their_names_in_go() {
        for (resource, json, expected) in [
            (
                "pods",
                r#"{"spec":{"hostPID":true,"hostNetwork":"x"}}"#,
                "string into Go struct field PodSpec.spec.hostNetwork of type bool",
            ),
            (
                "pods",
                r#"{"spec":{"terminationGracePeriodSeconds":"x"}}"#,
                "string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
            ),
            (
                "pods",
                r#"{"spec":{"activeDeadlineSeconds":9223372036854775808}}"#,
                "number 9223372036854775808 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
            ),
            (
                "pods",
                r#"{"metadata":{"labels":7}}"#,
                "number into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            ),
            (
                "pods",
                r#"{"metadata":{"creationTimestamp":7}}"#,
                "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
            ),
            (
                "secrets",
                r#"{"data":{"password":7}}"#,
                "number into Go struct field Secret.data of type []uint8",
            ),
            (
                "deployments.apps",
                r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}}"#,
                "bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
            ),
        ] {
            let expected = format!("json: cannot unmarshal {expected}");
            assert_eq!(error(resource, json), expected);
        }
    }

    #[test]
    fn valid_values_before_the_wrong_one_are_skipped() {
        let right = r#"{"metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","generation":7,"labels":{"a":"b"}},
            "spec":{"activeDeadlineSeconds":7,"automountServiceAccountToken":true,
            "containers":[{"name":"a","livenessProbe":{"httpGet":{"port":"http"},"periodSeconds":7},
            "resources":{"limits":{"cpu":1,"memory":"1Gi"}}}],"volumes":"x"}}"#;
        assert_eq!(
            error("pods", right),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.volumes of type []v1.Volume"
        );
        assert_eq!(
            error("secrets", r#"{"data":{"a":"AAEC"},"type":7}"#),
            "json: cannot unmarshal number into Go struct field Secret.type of type string"
        );
        let nulls = r#"{"metadata":{"annotations":null,"creationTimestamp":null,"finalizers":null},"spec":{"hostname":7}}"#;
        assert_eq!(
            error("pods", nulls),
            "json: cannot unmarshal number into Go struct field PodSpec.spec.hostname of type string"
        );
    }

    #[test]
    fn an_array_in_place_of_an_object_is_rejected() {
        for json in [r#" ["web"]"#, "[]", "[null]", "\n[{}]"] {
            assert_eq!(
                error("pods", json),
                "json: cannot unmarshal array into Go value of type v1.Pod",
                "{json}"
            );
        }
        for (json, field) in [
            (
                r#"{"metadata":["web"]}"#,
                "Pod.metadata of type v1.ObjectMeta",
            ),
            (
                r#"{"spec":{"securityContext":[]}}"#,
                "PodSpec.spec.securityContext of type v1.PodSecurityContext",
            ),
            (
                r#"{"spec":{"containers":[["a"]]}}"#,
                "PodSpec.spec.containers of type v1.Container",
            ),
        ] {
            let expected = format!("json: cannot unmarshal array into Go struct field {field}");
            assert_eq!(error("pods", json), expected);
        }
    }

    #[test]
    fn null_reads_as_unset_in_every_place() {
        let pods = kinds().by_resource("pods").unwrap();
        let json = br#"{"metadata":{"labels":{"a":null},"annotations":null,"creationTimestamp":null},
            "spec":{"containers":[null,{"args":[null],"image":null,"resources":null}],"securityContext":null},"status":null}"#;
        let pod = pods.from_json(json).unwrap();
        let pod: &setpoint_proto::core::Pod = pod.downcast_ref().unwrap();
        assert_eq!(pod.metadata.labels["a"], "");
        assert_eq!(pod.spec.containers.len(), 2);
        assert_eq!(pod.spec.containers[1].args, [""]);
    }

    #[test]
    fn a_wrong_type_in_an_inlined_message_is_found() {
        assert_eq!(
            error(
                "pods",
                r#"{"spec":{"containers":[{"livenessProbe":{"periodSeconds":"x"}}]}}"#
            ),
            "json: cannot unmarshal string into Go struct field Probe.spec.containers.livenessProbe.periodSeconds of type int32"
        );
    }

    #[test]
    fn invalid_times_and_base64_are_reported_without_a_position() {
        assert_eq!(
            error("pods", r#"{"metadata":{"creationTimestamp":"yesterday"}}"#),
            r#"parsing time "yesterday": not a time in RFC 3339 form"#
        );
        let base64 = error("secrets", r#"{"data":{"password":"%%"}}"#);
        assert!(base64.starts_with("illegal base64 data"), "{base64}");
    }

    #[test]
    fn malformed_json_has_the_message_of_go() {
        assert_eq!(error("pods", r#"{"spec":"#), "unexpected end of JSON input");
        assert_eq!(error("pods", ""), "unexpected end of JSON input");
        assert!(error("pods", "{]").starts_with("json parse error: "));
    }
}
