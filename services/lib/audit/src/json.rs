//! Writes an object in JSON, field by field, in the order of upstream's types. Fields that are empty are left out.

use serde::Serialize;

/// An object that is being written.
pub(crate) struct Object {
    text: Vec<u8>,
    is_empty: bool,
}

impl Object {
    pub(crate) fn new() -> Self {
        let mut text = Vec::with_capacity(1 << 10);
        text.push(b'{');
        Self {
            text,
            is_empty: true,
        }
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        let before = (self.text.len(), self.is_empty);
        self.name(name);
        if serde_json::to_writer(&mut self.text, value).is_err() {
            self.text.truncate(before.0);
            self.is_empty = before.1;
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
        self.name(name);
        self.text.extend_from_slice(value.as_bytes());
    }

    /// Adds a field whose value is the object that `fill` writes.
    pub(crate) fn object(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        self.name(name);
        self.text.push(b'{');
        self.is_empty = true;
        fill(self);
        self.text.push(b'}');
        self.is_empty = false;
    }

    /// Begins a field. Names are plain words.
    fn name(&mut self, name: &str) {
        if !std::mem::take(&mut self.is_empty) {
            self.text.push(b',');
        }
        self.text.push(b'"');
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b"\":");
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push(b'}');
        String::from_utf8(self.text).expect("JSON is UTF-8")
    }
}
