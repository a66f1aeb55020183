//! Warnings about deprecated versions of kinds.

use http::HeaderValue;
use setpoint_codec::Kind;
use setpoint_kinds as kinds;

use super::discovery::order;
use crate::warnings;

/// Returns the `Warning` header of responses to all requests that use a kind, if it is deprecated.
pub(super) fn header(kind: &Kind) -> Option<HeaderValue> {
    warnings::header(&text(kind)?)
}

fn text(kind: &Kind) -> Option<String> {
    let definition = kind.definition();
    let Some(version) = definition.custom.as_ref() else {
        let why = kinds::find(kind)?.deprecation()?;
        let (version, kind) = (kind.api_version(), &kind.kind);
        return Some(format!("{version} {kind} is deprecated in {why}"));
    };
    if !version.is_deprecated {
        return None;
    }
    let declared = version.deprecation_warning.clone();
    Some(declared.unwrap_or_else(|| {
        let versions = &version.resource().versions;
        let served = versions.iter().filter(|(_, is_served)| *is_served);
        default(kind, served.map(|(kind, _)| *kind))
    }))
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
