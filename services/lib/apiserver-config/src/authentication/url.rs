//! The checks of URLs of issuers.

use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;

/// Requires a URL of HTTPS without credentials, query and fragment (upstream: `validateURL`).
pub(super) fn validate(url: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if let Err(error) = rest.parse::<http::Uri>() {
        return errors.invalid(path, url, format!("parse {url:?}: {error}"));
    }
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    let authority = rest.split('/').next().unwrap_or_default();
    for (is_wrong, problem) in [
        (
            !scheme.eq_ignore_ascii_case("https"),
            "URL scheme must be https",
        ),
        (
            authority.contains('@'),
            "URL must not contain a username or password",
        ),
        (!query.is_empty(), "URL must not contain a query"),
        (!fragment.is_empty(), "URL must not contain a fragment"),
    ] {
        if is_wrong {
            errors.invalid(path, url, problem);
        }
    }
}
