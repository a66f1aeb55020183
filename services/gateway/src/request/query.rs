//! Query parameters, parsed as Kubernetes does.

use std::convert::Infallible;
use std::num::IntErrorKind;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use setpoint_proto::{ApiError, Reason};

use super::RequestInfo;

/// The parameters in their order. A clone is a reference to the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Arc<[(String, String)]>);

impl Query {
    /// Parses the query of a URL, without the question mark.
    pub(crate) fn parse(text: &str) -> Self {
        Self(
            form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    /// Returns the first value of a parameter that is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).find(|value| !value.is_empty())
    }

    /// Returns all values of a parameter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let pairs = self.0.iter().filter(move |(key, _)| key == name);
        pairs.map(|(_, value)| value.as_str())
    }

    /// Returns whether a parameter is set, and neither `false` nor `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        let value = self.all(name).next();
        value.is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }

    /// Returns the value of a parameter as an integer.
    ///
    /// # Errors
    /// `BadRequest` if it is not an integer.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        text.parse()
            .map(Some)
            .map_err(|error: std::num::ParseIntError| {
                let problem = match error.kind() {
                    IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                let message = format!("strconv.ParseInt: parsing {text:?}: {problem}");
                ApiError::new(Reason::BadRequest, message)
            })
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let parsed = parts
            .extensions
            .get()
            .map(|info: &RequestInfo| info.query.clone());
        Ok(parsed.unwrap_or_else(|| Self::parse(parts.uri.query().unwrap_or_default())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query =
            Query::parse("labelSelector=app%3Dweb%2Ctier+in+(a)&watch=true&limit=500&empty=");
        assert_eq!(query.get("labelSelector"), Some("app=web,tier in (a)"));
        assert_eq!(query.get("empty"), None);
        assert!(query.flag("watch"));
        assert_eq!(query.number("limit"), Ok(Some(500)));
        assert_eq!(query.number("timeoutSeconds"), Ok(None));
    }

    #[test]
    fn a_flag_is_off_if_it_is_missing_false_or_0() {
        for text in ["", "watch=false", "watch=0", "watch=False"] {
            assert!(!Query::parse(text).flag("watch"), "{text}");
        }
        assert!(Query::parse("watch").flag("watch"));
    }

    #[test]
    fn the_error_names_a_malformed_number() {
        let error = Query::parse("limit=many")
            .number("limit")
            .expect_err("it is not a number");
        assert_eq!(
            error.message,
            r#"strconv.ParseInt: parsing "many": invalid syntax"#
        );
    }
}
