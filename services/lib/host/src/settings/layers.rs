//! Merges the layers of settings.

use std::path::{Path, PathBuf};

use config::builder::DefaultState;
use config::{Config, ConfigBuilder, File, FileFormat, Source, Value, ValueKind};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Error;
use super::flags::Flags;
use super::key::Key;

/// The folder of the settings files.
const FOLDER: &str = "deploy/config";

/// The layers, in increasing precedence.
pub struct Layers {
    builder: ConfigBuilder<DefaultState>,
    keys: Vec<Key>,
}

impl Layers {
    pub fn new() -> Self {
        Self {
            builder: Config::builder(),
            keys: Vec::new(),
        }
    }

    /// Adds defaults and returns their top-level names. A later default of the same name replaces an earlier one.
    pub fn defaults<T: Serialize>(&mut self, defaults: &T) -> Vec<String> {
        let json = serde_json::to_value(defaults).expect("settings are plain data");
        let names = json
            .as_object()
            .map(|fields| fields.keys().cloned().collect())
            .unwrap_or_default();
        let source = Config::try_from(defaults).expect("settings are plain data");
        self.add(|builder| builder.add_source(source));
        let keys = Key::all(&json);
        self.keys
            .retain(|old| !keys.iter().any(|new| new.path() == old.path()));
        self.keys.extend(keys);
        names
    }

    /// Returns the keys of all settings.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Adds the file at `path`, or else the default file of the service if it exists.
    pub fn file(&mut self, service: &str, path: Option<PathBuf>) -> Result<(), Error> {
        let default =
            || Some(Path::new(FOLDER).join(format!("{service}.toml"))).filter(|path| path.exists());
        let Some(path) = path.or_else(default) else {
            return Ok(());
        };
        let file = read(&path)?;
        let known = |found: &str| self.keys.iter().any(|key| key.covers(found));
        match leaves(&file).into_iter().find(|found| !known(found)) {
            Some(key) => return Err(Error::Unknown { path, key }),
            None => self.add(|builder| builder.add_source(file)),
        }
        Ok(())
    }

    /// Adds environment variables. Each is looked up by name, so variables of other services are ignored.
    pub fn environment(&mut self, env: impl Fn(&str) -> Option<String>) {
        self.overrides(|key| Some((env(&key.variable())?, key.variable())));
    }

    /// Adds the flags of the command line.
    pub fn flags(&mut self, flags: &Flags) {
        self.overrides(|key| Some((flags.get(key)?, format!("--{}", key.flag()))));
    }

    /// Merges the layers.
    pub fn merge(self) -> Result<Merged, Error> {
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
    /// Deserializes the settings, only those of the top-level names in `only` if it is set.
    pub fn read<T: DeserializeOwned>(&self, only: Option<&[String]>) -> Result<T, Error> {
        let included = |name: &String| only.is_none_or(|only| only.contains(name));
        let values = self
            .values
            .clone()
            .into_iter()
            .filter(|(name, _)| included(name));
        T::deserialize(Value::new(None, ValueKind::Table(values.collect()))).map_err(value_error)
    }
}

fn read(path: &Path) -> Result<Config, Error> {
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
