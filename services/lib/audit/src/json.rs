//! Writes an object in JSON, field by field, in the order of upstream's types. Fields that are empty are left out.

use std::fmt::Write as _;

use serde::Serialize;

/// An object that is being written.
pub(crate) struct Object {
    text: String,
}

impl Object {
    pub(crate) fn new() -> Self {
        Self {
            text: String::from("{"),
        }
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        if let Ok(value) = serde_json::to_string(value) {
            self.encoded(name, &value);
        }
    }

    /// Adds a field, unless the text is empty.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.field(name, text);
        }
    }

    /// Adds a field whose value is in JSON already.
    pub(crate) fn encoded(&mut self, name: &str, value: &str) {
        if self.text.len() > 1 {
            self.text.push(',');
        }
        // Names are plain words.
        let _ = write!(self.text, "\"{name}\":");
        self.text.push_str(value);
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push('}');
        self.text
    }
}
