//! The doc comments of settings, which `--help` and the template of the settings file show.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The doc comments of settings and of their tables, by path. That of a type of settings has the path of its table, or
/// none.
#[derive(Default)]
pub struct Docs(BTreeMap<String, String>);

impl Docs {
    /// Returns the doc comments of the fields of `T`, as settings of the table of this path.
    pub fn of<T: JsonSchema>(table: &str) -> Self {
        let mut settings = SchemaSettings::default();
        settings.inline_subschemas = true;
        let schema = settings.into_generator().into_root_schema_for::<T>();
        let mut docs = Self::default();
        docs.collect(table, schema.as_value());
        docs
    }

    /// Adds others, which replace those of the same paths unless they are empty.
    pub fn extend(&mut self, others: Self) {
        let others = others.0.into_iter().filter(|(_, text)| !text.is_empty());
        self.0.extend(others);
    }

    /// Returns the whole doc comment; empty if there is none.
    pub fn text(&self, path: &str) -> &str {
        self.0.get(path).map_or("", String::as_str)
    }

    /// Returns the first paragraph of the doc comment in one line, without the last full stop.
    pub fn summary(&self, path: &str) -> String {
        let lines = self.text(path).lines().map(str::trim);
        let lines = lines.take_while(|line| !line.is_empty());
        let line = lines.collect::<Vec<_>>().join(" ").replace('`', "");
        line.strip_suffix('.').unwrap_or(&line).to_owned()
    }

    fn collect(&mut self, path: &str, schema: &Value) {
        let text = schema.get("description").and_then(Value::as_str);
        self.0
            .insert(path.to_owned(), text.unwrap_or_default().to_owned());
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten() {
            match path {
                "" => self.collect(name, field),
                _ => self.collect(&format!("{path}.{name}"), field),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings of a demo.
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Demo {
        /// Number of workers, of which each
        /// has a `queue`.
        ///
        /// More than that is known.
        workers: usize,
        /// The times.
        times: Times,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Times {
        /// Time to wait.
        wait: u8,
        none: u8,
    }

    #[test]
    fn a_summary_is_the_first_paragraph_in_one_line() {
        let docs = Docs::of::<Demo>("");
        let summary = docs.summary("workers");
        assert_eq!(summary, "Number of workers, of which each has a queue");
        let text = "Number of workers, of which each\nhas a `queue`.\n\nMore than that is known.";
        assert_eq!(docs.text("workers"), text);
    }

    #[test]
    fn fields_of_a_table_have_its_path_and_others_replace_them() {
        let mut docs = Docs::of::<Demo>("demo");
        assert_eq!(docs.text("demo"), "The settings of a demo.");
        assert_eq!(docs.text("demo.times"), "The times.");
        assert_eq!(docs.summary("demo.times.wait"), "Time to wait");
        assert_eq!(docs.summary("demo.times.none"), "");
        docs.extend(Docs::of::<Times>("demo.times"));
        assert_eq!(docs.text("demo.times"), "The times.");
    }
}
