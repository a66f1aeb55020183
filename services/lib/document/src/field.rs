//! A value with the path of its field.

use serde_json::{Map, Value};

use crate::Error;

/// A value that is not null.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    value: &'a Value,
    /// The path, such as `rules[0].level`; empty for the document.
    pub path: String,
    /// The name of the document, for errors about itself.
    document: &'static str,
    /// Whether errors leave its values out.
    is_confidential: bool,
}

impl<'a> Field<'a> {
    /// Returns a whole document, named by what it is.
    pub const fn root(document: &'static str, value: &'a Value) -> Self {
        Self {
            value,
            path: String::new(),
            document,
            is_confidential: false,
        }
    }

    /// Leaves the values out of errors, since there are secrets among them.
    #[must_use]
    pub const fn confidential(mut self) -> Self {
        self.is_confidential = true;
        self
    }

    /// Returns the value.
    pub const fn value(&self) -> &'a Value {
        self.value
    }

    /// Returns the fields of an object, all of which are known.
    ///
    /// # Errors
    /// If it is none, or has others.
    pub fn fields(&self, known: &[&str]) -> Result<&'a Map<String, Value>, Error> {
        let fields = self.value.as_object();
        let fields = fields.ok_or_else(|| self.is_not("an object"))?;
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => Err(Error::Unknown(self.name_of(unknown))),
            None => Ok(fields),
        }
    }

    /// Returns a field of an object; `None` if it is missing or null.
    pub fn get(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        let path = self.name_of(name);
        Some(Self {
            value,
            path,
            ..*self
        })
    }

    /// Returns the path of a field of an object.
    pub fn name_of(&self, field: &str) -> String {
        match self.path.as_str() {
            "" => field.to_owned(),
            path => format!("{path}.{field}"),
        }
    }

    /// Returns the items of a list.
    ///
    /// # Errors
    /// If it is none.
    pub fn items(&self) -> Result<impl Iterator<Item = Self> + use<'a>, Error> {
        let items = self.value.as_array();
        let items = items.ok_or_else(|| self.is_not("a list"))?;
        let list = self.clone();
        Ok(items.iter().enumerate().map(move |(index, value)| Self {
            value,
            path: format!("{}[{index}]", list.path),
            ..list
        }))
    }

    /// Returns a string.
    ///
    /// # Errors
    /// If it is none.
    pub fn text(&self) -> Result<String, Error> {
        let text = self.value.as_str();
        text.map(str::to_owned)
            .ok_or_else(|| self.is_not("a string"))
    }

    /// Returns a boolean.
    ///
    /// # Errors
    /// If it is none.
    pub fn flag(&self) -> Result<bool, Error> {
        self.value.as_bool().ok_or_else(|| self.is_not("a boolean"))
    }

    /// Returns the strings of a list.
    ///
    /// # Errors
    /// If it is none.
    pub fn texts(&self) -> Result<Vec<String>, Error> {
        self.items()?.map(|item| item.text()).collect()
    }

    /// Returns the error that the value is not of its type.
    fn is_not(&self, what: &str) -> Error {
        let at = match self.path.as_str() {
            "" => self.document,
            path => path,
        };
        let value = match self.is_confidential {
            true => "REDACTED".to_owned(),
            false => self.value.to_string(),
        };
        Error::Malformed(format!("{at}: Invalid value: {value}: must be {what}"))
    }
}
