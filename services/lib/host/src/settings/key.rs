//! The name of a setting in each layer.

use serde_json::Value;

/// A setting's path in the serialized defaults (`election.lease_duration`) with its default.
pub struct Key {
    path: String,
    default: Value,
}

impl Key {
    /// Returns the keys of all settings in `defaults`.
    pub fn all(defaults: &Value) -> Vec<Self> {
        let mut keys = Vec::new();
        collect("", defaults, &mut keys);
        keys
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the name of the flag, such as `election-lease-duration`.
    pub fn flag(&self) -> String {
        self.path.replace(['.', '_'], "-")
    }

    /// Returns the environment variable, such as `SETPOINT__ELECTION__LEASE_DURATION`.
    pub fn variable(&self) -> String {
        format!(
            "SETPOINT__{}",
            self.path
                .replace('.', "__")
                .replace('-', "_")
                .to_uppercase()
        )
    }

    /// Returns whether it can be set by a flag; tables and lists of tables cannot.
    pub fn has_flag(&self) -> bool {
        let items = self.default.as_array();
        !self.default.is_object() && !items.is_some_and(|items| items.iter().any(Value::is_object))
    }

    pub fn is_table(&self) -> bool {
        self.default.is_object()
    }

    pub fn is_list(&self) -> bool {
        self.default.is_array()
    }

    pub fn is_switch(&self) -> bool {
        self.default.is_boolean()
    }

    /// Returns whether `path` is this setting, its table, or a key in it. Only tables that are empty by default may
    /// have other keys.
    pub fn covers(&self, path: &str) -> bool {
        if self
            .path
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with('.'))
        {
            return true;
        }
        let open = self.default.is_object() || self.default.is_null();
        path.strip_prefix(&self.path)
            .is_some_and(|rest| rest.is_empty() || (open && rest.starts_with('.')))
    }

    /// Returns the default as a value of TOML. That of JSON is one, except for objects and null.
    pub fn toml(&self) -> String {
        self.default.to_string()
    }

    /// Returns the default in the syntax of flags.
    pub fn default_text(&self) -> String {
        match &self.default {
            Value::String(text) => text.clone(),
            Value::Array(items) => items.iter().map(item_text).collect::<Vec<_>>().join(","),
            Value::Null => "none".to_owned(),
            other => other.to_string(),
        }
    }
}

fn item_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn collect(prefix: &str, value: &Value, keys: &mut Vec<Key>) {
    match value {
        Value::Object(fields) if prefix.is_empty() || !fields.is_empty() => {
            for (name, value) in fields {
                let path = if prefix.is_empty() {
                    name.clone()
                } else {
                    format!("{prefix}.{name}")
                };
                collect(&path, value, keys);
            }
        }
        leaf => keys.push(Key {
            path: prefix.to_owned(),
            default: leaf.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_has_a_path_a_flag_and_a_variable() {
        let keys = Key::all(&json!({"election": {"lease_duration": "15s"}, "node-name": null}));
        assert_eq!(keys[0].path(), "election.lease_duration");
        assert_eq!(keys[0].flag(), "election-lease-duration");
        assert_eq!(keys[0].variable(), "SETPOINT__ELECTION__LEASE_DURATION");
        assert_eq!(keys[1].flag(), "node-name");
        assert_eq!(keys[1].variable(), "SETPOINT__NODE_NAME");
    }

    #[test]
    fn tables_and_lists_of_tables_have_no_flag() {
        let keys = Key::all(&json!({"labels": {}, "names": ["a"], "profiles": [{"name": "a"}]}));
        let flags: Vec<_> = keys.iter().map(Key::has_flag).collect();
        assert_eq!(flags, [false, true, false]);
    }

    #[test]
    fn only_a_table_that_is_empty_by_default_accepts_any_key() {
        let keys = Key::all(&json!({"labels": {}, "workers": 2}));
        assert!(keys[0].covers("labels.zone"));
        assert!(!keys[1].covers("workers.many"));
        assert!(!keys[1].covers("workers2"));
    }
}
