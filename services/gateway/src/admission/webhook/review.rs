//! `AdmissionReview`: the request to an admission webhook, and the checks of its response.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use setpoint_proto::meta::Status;
use uuid::Uuid;

use crate::admission::request::Values;

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";
/// The versions that are written. The first of them that a webhook names is used.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const JSON_PATCH: &str = "JSONPatch";
/// The fields of a request that are left out where they are empty.
const OPTIONAL: [&str; 4] = ["subResource", "requestSubResource", "name", "namespace"];

/// A review of a request.
pub(super) struct Review {
    version: &'static str,
    uid: String,
}

/// The response to a review.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Response {
    #[serde(deserialize_with = "or_default")]
    uid: String,
    #[serde(deserialize_with = "or_default")]
    pub allowed: bool,
    pub status: Option<Status>,
    /// In base64.
    #[serde(deserialize_with = "or_default")]
    patch: String,
    patch_type: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub warnings: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub audit_annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Received {
    #[serde(deserialize_with = "or_default")]
    kind: String,
    #[serde(deserialize_with = "or_default")]
    api_version: String,
    response: Option<Response>,
}

impl Review {
    /// Returns a review in the first version that the webhook names and that is known; `None` if there is none.
    pub(super) fn new(versions: &[String]) -> Option<Self> {
        let known = |name: &String| VERSIONS.into_iter().find(|version| version == name);
        Some(Self {
            version: versions.iter().find_map(known)?,
            uid: Uuid::new_v4().to_string(),
        })
    }

    /// Returns the request as JSON.
    pub(super) fn request(&self, values: &Values) -> Vec<u8> {
        let mut request = values.request.clone();
        if let Value::Object(fields) = &mut request {
            fields.insert("uid".into(), self.uid.as_str().into());
            fields.insert("object".into(), values.object.clone());
            fields.insert("oldObject".into(), values.old.clone());
            fields.retain(|name, value| value != "" || !OPTIONAL.contains(&name.as_str()));
        }
        let review = json!({
            "kind": KIND,
            "apiVersion": format!("{GROUP}/{}", self.version),
            "request": request,
        });
        review.to_string().into_bytes()
    }

    /// Reads the response to the review.
    ///
    /// # Errors
    /// If it is not JSON, or not the response to this review.
    pub(super) fn response(&self, json: &[u8], mutates: bool) -> Result<Response, String> {
        let received: Received = serde_json::from_slice(json).map_err(|error| {
            format!("failed to call webhook: couldn't get version/kind; json parse error: {error}")
        })?;
        let checked = self.check(received, mutates);
        checked.map_err(|error| format!("received invalid webhook response: {error}"))
    }

    fn check(&self, received: Received, mutates: bool) -> Result<Response, String> {
        let response = received.response.ok_or("webhook response was absent")?;
        // Upstream does not check more than that in the older version.
        if self.version != VERSIONS[0] {
            return Ok(response);
        }
        if response.uid != self.uid {
            let (wanted, got) = (&self.uid, &response.uid);
            return Err(format!("expected response.uid={wanted:?}, got {got:?}"));
        }
        let (group, version) = match received.api_version.split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", received.api_version.as_str()),
        };
        let found = format!("{group}/{version}, Kind={}", received.kind);
        let wanted = format!("{GROUP}/{}, Kind={KIND}", self.version);
        if found != wanted {
            return Err(format!(
                "expected webhook response of {wanted}, got {found}"
            ));
        }
        match mutates {
            true => response.check_patch()?,
            false => response.check_no_patch()?,
        }
        Ok(response)
    }

    /// Returns the patch in a response; `None` if there is none.
    ///
    /// # Errors
    /// If it is not a JSON patch.
    pub(super) fn patch(&self, response: &Response) -> Result<Option<Value>, String> {
        if response.patch.is_empty() {
            return Ok(None);
        }
        let of = response.patch_type.as_deref();
        if let Some(of) = of.filter(|of| *of != JSON_PATCH && self.version == VERSIONS[0]) {
            return Err(format!("unsupported patch type {of:?}"));
        }
        let undecodable =
            |error: String| format!("received undecodable patch in webhook response: {error}");
        let patch = BASE64_STANDARD.decode(&response.patch);
        let patch = patch.map_err(|error| undecodable(error.to_string()))?;
        let patch: Value =
            serde_json::from_slice(&patch).map_err(|error| undecodable(error.to_string()))?;
        match &patch {
            Value::Null => Ok(None),
            Value::Array(operations) if operations.is_empty() => Ok(None),
            Value::Array(_) => Ok(Some(patch)),
            _ => Err(undecodable("it is not a list of operations".into())),
        }
    }
}

impl Response {
    fn check_patch(&self) -> Result<(), String> {
        let problem = match (self.patch.is_empty(), self.patch_type.as_deref()) {
            (false, None) => "webhook returned response.patch but not response.patchType",
            (true, Some(_)) => "webhook returned response.patchType but not response.patch",
            (false, Some("")) => r#"webhook returned invalid response.patchType of """#,
            _ => return Ok(()),
        };
        Err(problem.to_owned())
    }

    fn check_no_patch(&self) -> Result<(), String> {
        match (self.patch.is_empty(), &self.patch_type) {
            (false, _) => Err("validating webhook may not return response.patch".to_owned()),
            (_, Some(_)) => Err("validating webhook may not return response.patchType".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Reads a value; null is its default.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(version: &str) -> Review {
        Review::new(&["v7".into(), version.into()]).unwrap()
    }

    /// Returns the error of a response with these fields; `None` if it is accepted.
    fn problem(version: &str, mutates: bool, fields: Value) -> Option<String> {
        let review = review(version);
        let mut response = json!({ "uid": review.uid, "allowed": true });
        response
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let answer = json!({
            "kind": KIND, "apiVersion": format!("{GROUP}/{version}"), "response": response,
        });
        let answer = review.response(answer.to_string().as_bytes(), mutates);
        answer.err()
    }

    /// The cases of upstream's `TestVerifyAdmissionResponse`.
    #[test]
    fn a_response_is_that_to_the_review() {
        let invalid = |error: &str| Some(format!("received invalid webhook response: {error}"));
        let patch = |of: Value| json!({ "patch": "W10=", "patchType": of });
        for (mutates, fields, error) in [
            (true, json!({}), None),
            (true, patch("JSONPatch".into()), None),
            (
                true,
                json!({ "patch": "W10=" }),
                Some("webhook returned response.patch but not response.patchType"),
            ),
            (
                true,
                json!({ "patchType": "JSONPatch" }),
                Some("webhook returned response.patchType but not response.patch"),
            ),
            (
                true,
                patch("".into()),
                Some("webhook returned invalid response.patchType of \"\""),
            ),
            (
                false,
                patch("JSONPatch".into()),
                Some("validating webhook may not return response.patch"),
            ),
            (
                false,
                json!({ "patchType": "JSONPatch" }),
                Some("validating webhook may not return response.patchType"),
            ),
        ] {
            assert_eq!(
                problem("v1", mutates, fields.clone()),
                error.and_then(invalid)
            );
            assert_eq!(problem("v1beta1", mutates, fields), None);
        }
        let other = problem("v1", true, json!({ "uid": "x" })).unwrap();
        assert!(other.ends_with(r#", got "x""#), "{other}");
        assert_eq!(problem("v1beta1", true, json!({ "uid": "x" })), None);
    }

    #[test]
    fn a_response_of_another_kind_is_refused() {
        let review = review("v1");
        let told = |answer: Value| {
            let answer = answer.to_string();
            review.response(answer.as_bytes(), true).err().unwrap()
        };
        assert_eq!(
            told(json!({})),
            "received invalid webhook response: webhook response was absent"
        );
        assert_eq!(
            told(json!({ "response": { "uid": review.uid } })),
            "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="
        );
        assert!(review.response(b"hello", true).is_err());
    }

    #[test]
    fn only_json_patches_are_read() {
        let patch = |version: &str, of: &str, patch: &str| {
            let response = Response {
                patch: BASE64_STANDARD.encode(patch),
                patch_type: Some(of.into()),
                ..Default::default()
            };
            review(version).patch(&response)
        };
        let operations = r#"[{"op":"remove","path":"/a"}]"#;
        assert!(patch("v1", "JSONPatch", operations).unwrap().is_some());
        assert_eq!(patch("v1", "JSONPatch", "[]"), Ok(None));
        assert_eq!(
            patch("v1", "Other", operations),
            Err(r#"unsupported patch type "Other""#.into())
        );
        assert!(patch("v1beta1", "Other", operations).unwrap().is_some());
        assert!(patch("v1", "JSONPatch", "{}").is_err());
    }

    #[test]
    fn a_webhook_must_know_a_version() {
        assert!(Review::new(&["v2".into()]).is_none());
        assert_eq!(review("v1beta1").version, "v1beta1");
    }
}
