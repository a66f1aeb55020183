//! Which form of an object the client wants: the object itself, its metadata, or a row of a table.

use http::HeaderMap;
use http::header::ACCEPT;
use setpoint_proto::{ApiError, Reason};

use super::yaml::YAML;

/// The type of Kubernetes' binary encoding.
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The object in JSON.
    Json,
    /// The object in YAML.
    Yaml,
    /// The object in Kubernetes' protobuf envelope.
    Protobuf,
    /// A table, in the given version of that format.
    Table(&'static str),
    /// Only the metadata.
    Partial,
    /// Aggregated discovery, in the given version of that format.
    Discovery(&'static str),
}

/// The first acceptable form for objects, in the client's order.
pub(super) fn objects(headers: &HeaderMap) -> Result<Form, ApiError> {
    first(headers, |range| match (range.name, range.param("as")) {
        (PROTOBUF, None) => Some(Form::Protobuf),
        (YAML, None) => Some(Form::Yaml),
        (name, None) if is_json(name) => Some(Form::Json),
        (name, Some("Table")) if is_json(name) => {
            range.version(&["v1", "v1beta1"]).map(Form::Table)
        }
        (name, Some("PartialObjectMetadata" | "PartialObjectMetadataList")) if is_json(name) => {
            Some(Form::Partial)
        }
        _ => None,
    })
}

/// The first acceptable form for discovery, in the client's order.
pub(super) fn discovery(headers: &HeaderMap) -> Result<Form, ApiError> {
    first(headers, |range| match (range.name, range.param("as")) {
        (name, None) if is_json(name) => Some(Form::Json),
        (name, Some("APIGroupDiscoveryList")) if is_json(name) => {
            range.version(&["v2", "v2beta1"]).map(Form::Discovery)
        }
        _ => None,
    })
}

fn is_json(name: &str) -> bool {
    matches!(name, "application/json" | "application/*" | "*/*")
}

fn first(headers: &HeaderMap, form: impl Fn(Range) -> Option<Form>) -> Result<Form, ApiError> {
    let mut accepts = headers.get_all(ACCEPT).iter().peekable();
    if accepts.peek().is_none() {
        return Ok(Form::Json);
    }
    accepts
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(|range| form(Range::of(range)))
        .ok_or_else(not_acceptable)
}

pub(super) fn not_acceptable() -> ApiError {
    let message = format!(
        "only the following media types are accepted: application/json, {YAML}, {PROTOBUF}"
    );
    ApiError::new(Reason::NotAcceptable, message)
}

/// One media type of an `Accept` header, with its parameters.
struct Range<'a> {
    name: &'a str,
    params: &'a str,
}

impl<'a> Range<'a> {
    fn of(text: &'a str) -> Self {
        let (name, params) = text.split_once(';').unwrap_or((text, ""));
        Self {
            name: name.trim(),
            params,
        }
    }

    fn param(&self, name: &str) -> Option<&'a str> {
        let pairs = self
            .params
            .split(';')
            .filter_map(|pair| pair.split_once('='));
        let mut found = pairs.filter(|(key, _)| key.trim() == name);
        found.next().map(|(_, value)| value.trim())
    }

    /// The asked version, if it is one of those we speak.
    fn version(&self, spoken: &[&'static str]) -> Option<&'static str> {
        let asked = self.param("v");
        spoken
            .iter()
            .copied()
            .find(|version| Some(*version) == asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, value.parse().expect("it is a header"))])
    }

    #[test]
    fn the_first_form_that_we_speak_wins() {
        for (value, form) in [
            ("*/*", Form::Json),
            ("application/json, */*", Form::Json),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Form::Protobuf,
            ),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                Form::Table("v1"),
            ),
            (
                "application/json;as=Table;v=v9;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io",
                Form::Table("v1beta1"),
            ),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                Form::Partial,
            ),
            ("text/html, application/xhtml+xml, */*;q=0.8", Form::Json),
        ] {
            assert_eq!(objects(&accept(value)), Ok(form), "{value}");
        }
        assert_eq!(objects(&HeaderMap::new()), Ok(Form::Json));
    }

    #[test]
    fn an_unknown_form_is_not_acceptable() {
        let error = objects(&accept("application/cbor")).expect_err("we do not speak it");
        assert_eq!(error.reason, Reason::NotAcceptable);
    }

    #[test]
    fn new_clients_get_aggregated_discovery() {
        let value =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(discovery(&accept(value)), Ok(Form::Discovery("v2")));
    }
}
