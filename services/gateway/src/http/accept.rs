//! Content negotiation: the format of a response, from the `Accept` header.

use http::HeaderMap;
use http::header::ACCEPT;
use setpoint_proto::{ApiError, Reason};

use super::yaml::YAML;

/// The media type of Kubernetes' protobuf encoding.
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Yaml,
    /// Kubernetes' protobuf envelope.
    Protobuf,
    /// A `Table` of the given version.
    Table(&'static str),
    /// A `PartialObjectMetadata`.
    PartialMetadata,
    /// An `APIGroupDiscoveryList` of the given version.
    Discovery(&'static str),
}

/// Returns the first supported format for objects, in the client's order.
pub(super) fn objects(headers: &HeaderMap) -> Result<Format, ApiError> {
    first(headers, |range| match (range.name, range.param("as")) {
        (PROTOBUF, None) => Some(Format::Protobuf),
        (YAML, None) => Some(Format::Yaml),
        (name, None) if is_json(name) => Some(Format::Json),
        (name, Some("Table")) if is_json(name) => {
            range.version(&["v1", "v1beta1"]).map(Format::Table)
        }
        (name, Some("PartialObjectMetadata" | "PartialObjectMetadataList")) if is_json(name) => {
            Some(Format::PartialMetadata)
        }
        _ => None,
    })
}

/// Returns the first supported format for discovery, in the client's order.
pub(super) fn discovery(headers: &HeaderMap) -> Result<Format, ApiError> {
    first(headers, |range| match (range.name, range.param("as")) {
        (name, None) if is_json(name) => Some(Format::Json),
        (name, Some("APIGroupDiscoveryList")) if is_json(name) => {
            range.version(&["v2", "v2beta1"]).map(Format::Discovery)
        }
        _ => None,
    })
}

fn is_json(name: &str) -> bool {
    matches!(name, "application/json" | "application/*" | "*/*")
}

fn first(
    headers: &HeaderMap,
    format: impl Fn(Range) -> Option<Format>,
) -> Result<Format, ApiError> {
    let mut accepts = headers.get_all(ACCEPT).iter().peekable();
    if accepts.peek().is_none() {
        return Ok(Format::Json);
    }
    accepts
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(|range| format(Range::of(range)))
        .ok_or_else(not_acceptable)
}

pub(super) fn not_acceptable() -> ApiError {
    let message = format!(
        "only the following media types are accepted: application/json, {YAML}, {PROTOBUF}"
    );
    ApiError::new(Reason::NotAcceptable, message)
}

/// A media range of an `Accept` header.
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

    /// Returns the requested version, if it is supported.
    fn version(&self, supported: &[&'static str]) -> Option<&'static str> {
        let requested = self.param("v");
        supported
            .iter()
            .copied()
            .find(|version| Some(*version) == requested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, value.parse().expect("it is a header"))])
    }

    #[test]
    fn the_first_supported_format_is_chosen() {
        for (value, format) in [
            ("*/*", Format::Json),
            ("application/json, */*", Format::Json),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Format::Protobuf,
            ),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                Format::Table("v1"),
            ),
            (
                "application/json;as=Table;v=v9;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io",
                Format::Table("v1beta1"),
            ),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                Format::PartialMetadata,
            ),
            ("text/html, application/xhtml+xml, */*;q=0.8", Format::Json),
        ] {
            assert_eq!(objects(&accept(value)), Ok(format), "{value}");
        }
        assert_eq!(objects(&HeaderMap::new()), Ok(Format::Json));
    }

    #[test]
    fn an_unknown_format_is_not_acceptable() {
        let error = objects(&accept("application/cbor")).expect_err("it is not supported");
        assert_eq!(error.reason, Reason::NotAcceptable);
    }

    #[test]
    fn new_clients_get_aggregated_discovery() {
        let value =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(discovery(&accept(value)), Ok(Format::Discovery("v2")));
    }
}
