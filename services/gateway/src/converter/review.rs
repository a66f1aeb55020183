//! `ConversionReview`: the request to a conversion webhook, and the checks of its response.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use setpoint_codec::{CustomObject, Kind, Object as _};
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_kinds::validation::metadata;

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "ConversionReview";
/// The versions that are written. The first of them that a webhook names is used.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const SUCCESS: &str = "Success";

/// The reason for which a response was refused, and the kind of that failure in metrics.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Follows `conversion webhook for <kind>`.
    pub(super) message: String,
    pub(super) failure: Failure,
}

/// Kinds of failures, by upstream's names in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Call,
    Malformed,
    Partial,
    InvalidObject,
}

impl Failure {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Call => "conversion_webhook_call_failure",
            Self::Malformed => "conversion_webhook_malformed_response_failure",
            Self::Partial => "conversion_webhook_partial_response_failure",
            Self::InvalidObject => "conversion_webhook_invalid_converted_object_failure",
        }
    }
}

/// A review of objects that are to be converted.
pub(super) struct Review<'o> {
    version: &'static str,
    uid: String,
    objects: &'o [CustomObject],
    to: &'static Kind,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a> {
    kind: &'a str,
    api_version: String,
    request: SentRequest<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SentRequest<'a> {
    uid: &'a str,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    objects: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Received {
    kind: String,
    api_version: String,
    response: Option<ReceivedResponse>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReceivedResponse {
    uid: String,
    converted_objects: Option<Vec<Value>>,
    result: ReceivedResult,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReceivedResult {
    status: String,
    message: String,
}

impl<'o> Review<'o> {
    /// Returns a review in the first version that the webhook names and that is known; `None` if there is none.
    pub(super) fn new(
        versions: &[String],
        objects: &'o [CustomObject],
        to: &'static Kind,
    ) -> Option<Self> {
        let known = |name: &String| VERSIONS.into_iter().find(|version| version == name);
        Some(Self {
            version: versions.iter().find_map(known)?,
            uid: uuid::Uuid::new_v4().to_string(),
            objects,
            to,
        })
    }

    /// Returns the request as JSON.
    pub(super) fn request(&self) -> Vec<u8> {
        let sent = Sent {
            kind: KIND,
            api_version: format!("{GROUP}/{}", self.version),
            request: SentRequest {
                uid: &self.uid,
                desired_api_version: self.to.api_version(),
                objects: self.objects.iter().map(CustomObject::document).collect(),
            },
        };
        serde_json::to_vec(&sent).unwrap_or_default()
    }

    /// Returns the converted objects in a response, with the metadata of the originals except for labels and
    /// annotations.
    pub(super) fn converted(&self, response: &[u8]) -> Result<Vec<CustomObject>, Refusal> {
        let refuse = |failure, message| Refusal { message, failure };
        let malformed = |why| refuse(Failure::Malformed, format!("failed: {why}"));
        let received = serde_json::from_slice(response).map_err(|error| {
            refuse(
                Failure::Call,
                format!("failed: couldn't decode the response: {error}"),
            )
        })?;
        let found = self.accept(received).map_err(malformed)?;
        let (returned, expected) = (found.len(), self.objects.len());
        if returned != expected {
            let message = format!("returned {returned} objects, expected {expected}");
            return Err(refuse(Failure::Partial, message));
        }
        let pairs = self.objects.iter().zip(found).enumerate();
        let converted = pairs.map(|(at, (original, found))| {
            let invalid =
                |problem: Problem| refuse(Failure::InvalidObject, problem.at(at, expected == 1));
            restored(original, found, self.to).map_err(invalid)
        });
        converted.collect()
    }

    /// Returns the objects of a successful response.
    fn accept(&self, received: Received) -> Result<Vec<Value>, String> {
        // Upstream does not check that either in the older version.
        let checks = self.version == VERSIONS[0];
        let (group, version) = match received.api_version.split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", received.api_version.as_str()),
        };
        let found = format!("{group}/{version}, Kind={}", received.kind);
        let wanted = format!("{GROUP}/{}, Kind={KIND}", self.version);
        if checks && found != wanted {
            return Err(format!(
                "expected webhook response of {wanted}, got {found}"
            ));
        }
        let response = received.response.ok_or("no response provided")?;
        if checks && response.uid != self.uid {
            let (wanted, got) = (&self.uid, &response.uid);
            return Err(format!("expected response.uid={wanted:?}, got {got:?}"));
        }
        match response.result {
            ReceivedResult { status, .. } if status == SUCCESS => {
                Ok(response.converted_objects.unwrap_or_default())
            }
            ReceivedResult { message, .. } if !message.is_empty() => Err(message),
            ReceivedResult { status, .. } => Err(format!(
                "response.result.status was '{status}', not 'Success'"
            )),
        }
    }
}

/// A defect of a converted object.
enum Problem {
    Type(String),
    Identity(String),
    Metadata(String),
}

impl Problem {
    /// Returns the message for the object at an index, in upstream's words, which differ for a single object.
    fn at(&self, index: usize, is_single: bool) -> String {
        match (self, is_single) {
            (Self::Type(why), true) => format!("returned invalid object at index 0: {why}"),
            (Self::Identity(why), true) => format!("returned invalid object: {why}"),
            (Self::Metadata(why), true) => format!("returned invalid metadata: {why}"),
            (Self::Type(why) | Self::Identity(why), false) => {
                format!("returned invalid converted object at index {index}: {why}")
            }
            (Self::Metadata(why), false) => {
                format!("returned invalid metadata in object at index {index}: {why}")
            }
        }
    }
}

/// Returns a converted object with the metadata of the original, except for labels and annotations.
fn restored(
    original: &CustomObject,
    converted: Value,
    to: &'static Kind,
) -> Result<CustomObject, Problem> {
    let Value::Object(mut content) = converted else {
        return Err(Problem::Type(format!(
            "Object 'Kind' is missing in '{converted}'"
        )));
    };
    let text = |field: Option<Value>| match field {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let (kind, version) = (
        text(content.remove("kind")),
        text(content.remove("apiVersion")),
    );
    let found = content.remove("metadata");
    if kind.is_empty() {
        let why = format!("Object 'Kind' is missing in '{}'", Value::Object(content));
        return Err(Problem::Type(why));
    }
    let wanted = to.api_version();
    if version != wanted {
        let why = format!("invalid groupVersion (expected {wanted}, received {version})");
        return Err(Problem::Type(why));
    }
    if kind != to.kind {
        let why = format!("invalid kind (expected {}, received {kind})", to.kind);
        return Err(Problem::Type(why));
    }
    let mut object = original.emptied(to);
    object.content = content;
    check_identity(original, found.as_ref()).map_err(Problem::Identity)?;
    restore_metadata(&mut object, found).map_err(Problem::Metadata)?;
    Ok(object)
}

/// Checks that the webhook has not changed name, namespace and uid.
fn check_identity(original: &CustomObject, converted: Option<&Value>) -> Result<(), String> {
    let meta = original.meta();
    let fields = [
        ("name", "name", &meta.name),
        ("namespace", "namespace", &meta.namespace),
        ("uid", "UID", &meta.uid),
    ];
    for (field, title, own) in fields {
        let found = converted
            .and_then(|found| found.get(field))
            .and_then(Value::as_str);
        let found = found.unwrap_or_default();
        if found != own {
            return Err(format!("must have the same {title}: {own} != {found}"));
        }
    }
    Ok(())
}

fn restore_metadata(object: &mut CustomObject, converted: Option<Value>) -> Result<(), String> {
    let mut found = match converted {
        Some(Value::Object(found)) => found,
        None => return Err("missing metadata in converted object".into()),
        Some(other) => {
            let of = type_name(&other);
            return Err(format!("invalid metadata of type {of} in converted object"));
        }
    };
    let meta = object.meta_mut();
    let labels = strings(&mut found, "labels")?;
    let annotations = strings(&mut found, "annotations")?;
    let mut errors = FieldErrors::default();
    let path = FieldPath::root("metadata");
    if labels != meta.labels {
        metadata::validate_labels(&labels, &path.field("labels"), &mut errors);
    }
    if annotations != meta.annotations {
        // Upstream names the field in the singular.
        metadata::validate_annotations(&annotations, &path.field("annotation"), &mut errors);
    }
    if errors.count() > 0 {
        return Err(errors.to_string());
    }
    (meta.labels, meta.annotations) = (labels, annotations);
    Ok(())
}

/// Takes a map of strings out of the metadata.
fn strings(found: &mut Map<String, Value>, name: &str) -> Result<BTreeMap<String, String>, String> {
    let entries = match found.remove(name) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(entries)) => entries,
        Some(other) => {
            let of = type_name(&other);
            return Err(format!(
                "invalid metadata.{name} of type {of} in converted object"
            ));
        }
    };
    let entries = entries.into_iter().map(|(key, value)| match value {
        Value::String(text) => Ok((key, text)),
        other => {
            let of = type_name(&other);
            Err(format!(
                "metadata.{name}[{key}] must be a string, but is {of} in converted object"
            ))
        }
    });
    entries.collect()
}

/// Returns the type of a value, by Go's name.
fn type_name(value: &Value) -> Cow<'static, str> {
    Cow::Borrowed(match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    })
}
