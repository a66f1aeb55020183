//! Values of a document, with the paths of their fields.

use serde_json::{Map, Value};

use crate::validation::Error;

/// Reads a document in YAML, of which JSON is a part.
///
/// # Errors
/// If it is malformed, has a key twice, or expands beyond the limits of the reader.
pub fn yaml(text: &[u8]) -> Result<Value, String> {
    serde_saphyr::from_slice(text).map_err(|error| {
        let error = error.to_string();
        // Without the excerpt, which the file itself shows better.
        error.lines().next().unwrap_or_default().to_owned()
    })
}

/// A value that is not null.
pub(crate) struct Field<'a> {
    value: &'a Value,
    pub(crate) path: String,
}

impl<'a> Field<'a> {
    pub(crate) const fn root(value: &'a Value) -> Self {
        let path = String::new();
        Self { value, path }
    }

    /// Returns the fields of an object, all of which are known.
    pub(crate) fn fields(&self, known: &[&str]) -> Result<&'a Map<String, Value>, Error> {
        let fields = self.value.as_object();
        let fields = fields.ok_or_else(|| self.is_not("an object"))?;
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => Err(Error::Unknown(self.name_of(unknown))),
            None => Ok(fields),
        }
    }

    /// Returns a field of an object; `None` if it is missing or null.
    pub(crate) fn get(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        let path = self.name_of(name);
        Some(Self { value, path })
    }

    fn name_of(&self, field: &str) -> String {
        match self.path.as_str() {
            "" => field.to_owned(),
            path => format!("{path}.{field}"),
        }
    }

    /// Returns the items of a list.
    pub(crate) fn items(&self) -> Result<impl Iterator<Item = Self> + use<'a>, Error> {
        let items = self.value.as_array();
        let items = items.ok_or_else(|| self.is_not("a list"))?;
        let path = self.path.clone();
        Ok(items.iter().enumerate().map(move |(index, value)| Self {
            value,
            path: format!("{path}[{index}]"),
        }))
    }

    pub(crate) fn text(&self) -> Result<String, Error> {
        let text = self.value.as_str();
        text.map(str::to_owned)
            .ok_or_else(|| self.is_not("a string"))
    }

    pub(crate) fn flag(&self) -> Result<bool, Error> {
        self.value.as_bool().ok_or_else(|| self.is_not("a boolean"))
    }

    /// Returns the strings of a list.
    pub(crate) fn texts(&self) -> Result<Vec<String>, Error> {
        self.items()?.map(|item| item.text()).collect()
    }

    fn is_not(&self, what: &str) -> Error {
        let at = match self.path.as_str() {
            "" => "policy",
            path => path,
        };
        Error::Malformed(format!(
            "{at}: Invalid value: {}: must be {what}",
            self.value
        ))
    }
}
