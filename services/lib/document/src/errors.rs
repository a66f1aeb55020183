//! The errors of a document.

use serde_json::Value;

/// The reason why a document has no meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A value is not of its type.
    #[error("failed decoding: {0}")]
    Malformed(String),
    /// A field is not known.
    #[error("strict decoding error: unknown field {0:?}")]
    Unknown(String),
}

/// The errors of fields so far (upstream: `field.ErrorList`).
#[derive(Debug, Default)]
pub struct FieldErrors(Vec<String>);

impl FieldErrors {
    /// Adds the error that a field must be set. `detail` may be empty.
    pub fn required(&mut self, path: &str, detail: &str) {
        let colon = if detail.is_empty() { "" } else { ": " };
        self.0
            .push(format!("{path}: Required value{colon}{detail}"));
    }

    /// Adds the error that a value is not valid.
    pub fn invalid(&mut self, path: &str, value: &Value, detail: &str) {
        let error = format!("{path}: Invalid value: {value}: {detail}");
        self.0.push(error);
    }

    /// Adds the error that a value is none of those that are supported.
    pub fn not_supported(&mut self, path: &str, value: &str, supported: &[&str]) {
        let supported: Vec<_> = supported.iter().map(|one| format!("{one:?}")).collect();
        let supported = supported.join(", ");
        self.0.push(format!(
            "{path}: Unsupported value: {value:?}: supported values: {supported}"
        ));
    }

    /// Returns all errors in one text.
    ///
    /// # Errors
    /// If there are any.
    pub fn finish(self) -> Result<(), String> {
        match self.0.as_slice() {
            [] => Ok(()),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}
