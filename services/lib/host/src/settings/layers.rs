//! Merges the layers of settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::builder::DefaultState;
use config::{Config, ConfigBuilder, File, FileFormat, Source, Value, ValueKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::docs::Docs;
use super::flags::Flags;
use super::key::Key;
use super::{Common, Error, Extension, Settings};

/// The folder of the settings files.
const FOLDER: &str = "deploy/config";

/// The layers, in increasing precedence.
pub struct Layers {
    builder: ConfigBuilder<DefaultState>,
    keys: Vec<Key>,
    docs: Docs,
}

impl Layers {
    /// Returns the defaults of all settings of a service.
    pub(super) fn of<S: Settings>(common: &Common, extension: &impl Extension) -> Self {
        let mut layers = Self {
            builder: Config::builder(),
            keys: Vec::new(),
            docs: Docs::default(),
        };
        layers.defaults("", common);
        layers.fields::<S>();
        extension.declare(&mut layers);
        layers
    }

    /// Adds the defaults of settings outside of any table. A default of the same name is replaced.
    pub fn fields<T: Settings>(&mut self) {
        self.defaults("", &T::default());
    }

    /// Adds the defaults of settings in the table of this name; none if the type has no fields.
    pub fn table<T: Settings>(&mut self, name: &str) {
        if !names(&T::default()).is_empty() {
            self.defaults(name, &T::default());
        }
    }

    fn defaults<T: Serialize + JsonSchema>(&mut self, table: &str, defaults: &T) {
        match table {
            "" => self.add_defaults(defaults),
            _ => self.add_defaults(&BTreeMap::from([(table, defaults)])),
        }
        self.docs.extend(Docs::of::<T>(table));
    }

    fn add_defaults(&mut self, defaults: &impl Serialize) {
        let source = Config::try_from(defaults).expect("settings are plain data");
        self.add(|builder| builder.add_source(source));
        let keys = Key::all(&json(defaults));
        self.keys
            .retain(|old| !keys.iter().any(|new| new.path() == old.path()));
        self.keys.extend(keys);
    }

    /// Returns the keys of all settings.
    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Returns the doc comments of all settings.
    pub(super) fn docs(&self) -> &Docs {
        &self.docs
    }

    /// Adds the file at `path`, or else the default file of the service if it exists.
    pub(super) fn file(&mut self, service: &str, path: Option<PathBuf>) -> Result<(), Error> {
        let default =
            || Some(Path::new(FOLDER).join(format!("{service}.toml"))).filter(|path| path.exists());
        let Some(path) = path.or_else(default) else {
            return Ok(());
        };
        let file = parse(&path)?;
        let known = |found: &str| self.keys.iter().any(|key| key.covers(found));
        match leaves(&file).into_iter().find(|found| !known(found)) {
            Some(key) => return Err(Error::Unknown { path, key }),
            None => self.add(|builder| builder.add_source(file)),
        }
        Ok(())
    }

    /// Adds environment variables. Each is looked up by name, so variables of other services are ignored.
    pub(super) fn environment(&mut self, env: impl Fn(&str) -> Option<String>) {
        self.overrides(|key| Some((env(&key.variable())?, key.variable())));
    }

    /// Adds the flags of the command line.
    pub(super) fn flags(&mut self, flags: &Flags) {
        self.overrides(|key| Some((flags.get(key)?, format!("--{}", key.flag()))));
    }

    /// Merges the layers.
    pub(super) fn merge(self) -> Result<Merged, Error> {
        let config = self.builder.build().map_err(value_error)?;
        // Not deserialized as a whole, which would lose the origin of each value.
        config
            .collect()
            .map(|values| Merged { values })
            .map_err(value_error)
    }

    fn overrides(&mut self, find: impl Fn(&Key) -> Option<(String, String)>) {
        let mut builder = std::mem::take(&mut self.builder);
        for key in &self.keys {
            if let Some((text, origin)) = find(key) {
                let value = value(key, &text, &origin);
                builder = builder
                    .set_override(key.path(), value)
                    .expect("the path of a setting is valid");
            }
        }
        self.builder = builder;
    }

    fn add(
        &mut self,
        with: impl FnOnce(ConfigBuilder<DefaultState>) -> ConfigBuilder<DefaultState>,
    ) {
        self.builder = with(std::mem::take(&mut self.builder));
    }
}

/// The merged settings.
pub struct Merged {
    values: config::Map<String, Value>,
}

impl Merged {
    /// Reads settings that [`Layers::fields`] has added.
    ///
    /// # Errors
    /// The first value that is not valid, in one line.
    pub fn fields<T: Settings>(&self) -> Result<T, Error> {
        let names = names(&T::default());
        let values = self.values.clone().into_iter();
        valid(read(values.filter(|(name, _)| names.contains(name)))?)
    }

    /// Reads settings that [`Layers::table`] has added.
    ///
    /// # Errors
    /// The first value that is not valid, in one line.
    pub fn table<T: Settings>(&self, name: &str) -> Result<T, Error> {
        let value = self.values.get(name).cloned();
        // Read as an entry, so that errors have its name.
        let entry = value.map(|value| (name.to_owned(), value));
        let mut read: BTreeMap<String, T> = read(entry)?;
        valid(read.remove(name).unwrap_or_default())
    }

    /// Reads the settings of all services.
    pub(super) fn common(&self) -> Result<Common, Error> {
        read(self.values.clone())
    }
}

fn read<T: DeserializeOwned>(
    values: impl IntoIterator<Item = (String, Value)>,
) -> Result<T, Error> {
    let values = ValueKind::Table(values.into_iter().collect());
    T::deserialize(Value::new(None, values)).map_err(value_error)
}

fn valid<T: Settings>(settings: T) -> Result<T, Error> {
    settings.validate().map_err(Error::Invalid)?;
    Ok(settings)
}

fn json(defaults: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(defaults).expect("settings are plain data")
}

/// Returns the names of the fields of settings.
fn names(defaults: &impl Serialize) -> Vec<String> {
    let json = json(defaults);
    let fields = json.as_object().into_iter().flatten();
    fields.map(|(name, _)| name.clone()).collect()
}

fn parse(path: &Path) -> Result<Config, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| file_error(path, &error))?;
    let source = File::from_str(&text, FileFormat::Toml);
    Config::builder()
        .add_source(source)
        .build()
        .map_err(|error| file_error(path, &error))
}

/// Reduces an error to its first line, without the excerpt of the file.
fn file_error(path: &Path, error: &impl ToString) -> Error {
    let text = error.to_string();
    let reason = text.lines().next().unwrap_or_default().to_owned();
    Error::File {
        path: path.to_owned(),
        reason,
    }
}

fn value_error(error: config::ConfigError) -> Error {
    Error::Value(error.to_string())
}

/// Returns the value of a variable or flag, with its origin for error messages.
fn value(key: &Key, text: &str, origin: &str) -> Value {
    let origin = origin.to_owned();
    match key.is_list() {
        true => {
            let items = text.split(',').filter(|item| !item.is_empty());
            let items = items
                .map(|item| Value::new(Some(&origin), item.trim()))
                .collect::<Vec<_>>();
            Value::new(Some(&origin), ValueKind::Array(items))
        }
        false => Value::new(Some(&origin), text),
    }
}

/// Returns the paths of all settings in a file.
fn leaves(file: &Config) -> Vec<String> {
    let values: serde_json::Value = file.clone().try_deserialize().unwrap_or_default();
    Key::all(&values)
        .iter()
        .map(|key| key.path().to_owned())
        .collect()
}
