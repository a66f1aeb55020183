//! The template of a settings file: all settings with their doc comments and defaults.

use std::fmt::Write as _;

use super::key::Key;
use super::layers::Layers;
use super::{Common, Extension, Settings};

/// Returns the template of the settings file of `service`: each setting as a comment with its default, below its doc
/// comment.
pub fn template<S: Settings>(service: &'static str, extension: &impl Extension) -> String {
    let mut common = Common::of(service);
    common.instance = format!("{service}-<host name>");
    let layers = Layers::of::<S>(&common, extension);
    let mut text = format!(
        "# Settings of the {service}. Lines such as `# name = value` are the defaults:\n\
         # remove the # to set another value. `{service} --help` lists the variables\n\
         # and flags that override this file.\n"
    );
    let mut keys: Vec<_> = layers.keys().iter().map(|key| (table(key), key)).collect();
    keys.sort_by_key(|(table, key)| (*table, key.path()));
    let mut current = "";
    for (table, key) in keys {
        if table != current {
            current = table;
            comment(&mut text, layers.docs().text(table));
            text.push_str(&format!("[{table}]\n"));
        }
        entry(&mut text, &layers, table, key);
    }
    text
}

/// Returns the table that a setting is in. One that is a table without fields is its own.
fn table(key: &Key) -> &str {
    match key.path().rsplit_once('.') {
        _ if key.is_table() => key.path(),
        Some((table, _)) => table,
        None => "",
    }
}

fn entry(text: &mut String, layers: &Layers, table: &str, key: &Key) {
    if key.path() == table {
        return;
    }
    comment(text, layers.docs().text(key.path()));
    // A list of tables has no line of its own; its doc comment has an example.
    if key.has_flag() {
        let name = key.path().rsplit('.').next().unwrap_or_default();
        let _ = writeln!(text, "# {name} = {}", key.toml());
    }
}

/// Adds a doc comment, below an empty line.
fn comment(text: &mut String, doc: &str) {
    text.push('\n');
    for line in doc.lines().filter(|line| !line.starts_with("```")) {
        text.push_str(format!("# {line}").trim_end());
        text.push('\n');
    }
}
