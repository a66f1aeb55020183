//! Warnings about deprecated versions of custom resources.

use http::HeaderValue;
use setpoint_codec::Kind;

use super::discovery::order;
use super::warnings;

/// Returns the `Warning` header of responses to all requests that use a kind, if it is deprecated.
pub(super) fn header(kind: &Kind) -> Option<HeaderValue> {
    let definition = kind.definition();
    let version = definition.custom.as_ref()?;
    if !version.is_deprecated {
        return None;
    }
    let declared = version.deprecation_warning.clone();
    let text = declared.unwrap_or_else(|| {
        let versions = &version.resource().versions;
        let served = versions.iter().filter(|(_, is_served)| *is_served);
        default(kind, served.map(|(kind, _)| *kind))
    });
    warnings::header(&text)
}

/// Returns the default text, which names the most stable newer version that is not deprecated.
fn default(kind: &Kind, served: impl Iterator<Item = &'static Kind>) -> String {
    let text = format!("{} {} is deprecated", kind.api_version(), kind.kind);
    let is_newer = |other: &&Kind| order::key("", &other.version) < order::key("", &kind.version);
    let newer = served.filter(|other| is_newer(other) && !is_deprecated(other));
    match newer.min_by(|a, b| order::key("", &a.version).cmp(&order::key("", &b.version))) {
        Some(other) => format!("{text}; use {} {}", other.api_version(), other.kind),
        None => text,
    }
}

fn is_deprecated(kind: &Kind) -> bool {
    let definition = kind.definition();
    let version = definition.custom.as_ref();
    version.is_some_and(|version| version.is_deprecated)
}
