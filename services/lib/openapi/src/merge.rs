//! Merges the documents of v2 of other servers into that of this one (upstream: the merging of specs in kube-openapi).
//!
//! Paths and definitions of this server win, then those of the servers with higher priorities. A definition that
//! differs from the one of its name is renamed to `<name>_v2`, `<name>_v3` and so on; one that differs only in the
//! kinds that it stands for is shared. Unlike upstream, no kinds are added to a definition of this server: it is
//! renamed, too.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::part::Part;
use super::swagger::{Filtered, Specification};

/// The size of all documents of other servers in bytes of JSON that are merged at most. They are in memory while they
/// are.
const MAX_SIZE: usize = 16 << 20;
/// The extension of a definition with the kinds that it stands for.
const KINDS: &str = "x-kubernetes-group-version-kind";

type Object = Map<String, Value>;

/// Returns a document of what the other servers add to the local parts.
pub(super) fn merged<'p>(local: impl Iterator<Item = &'p Part>, others: &[Arc<Filtered>]) -> Value {
    let mut merge = match Merge::with(local) {
        Ok(merge) => merge,
        Err(error) => {
            tracing::error!(%error, "the OpenAPI v2 documents of other servers are left out");
            return Value::Null;
        }
    };
    let mut room = MAX_SIZE;
    for filtered in others {
        let Some(rest) = room.checked_sub(filtered.size) else {
            tracing::warn!(
                filtered.size,
                "an OpenAPI v2 document is left out: all exceed 16 MiB"
            );
            continue;
        };
        room = rest;
        if let Err(why) = filtered
            .specification()
            .and_then(|source| merge.add(source))
        {
            tracing::warn!(why, "an OpenAPI v2 document is left out");
        }
    }
    let parts = [
        ("paths", merge.paths),
        ("definitions", merge.definitions),
        ("parameters", merge.parameters),
    ];
    Object::from_iter(parts.map(|(name, part)| (name.to_owned(), part.into()))).into()
}

/// The document that is being merged.
#[derive(Default)]
struct Merge {
    local_paths: HashSet<String>,
    /// The definitions of this server, and those that are merged.
    known: HashMap<String, Content>,
    paths: Object,
    definitions: Object,
    parameters: Object,
}

impl Merge {
    fn with<'p>(local: impl Iterator<Item = &'p Part>) -> io::Result<Self> {
        let mut merge = Self::default();
        for part in local {
            let paths = part.paths()?;
            let paths: HashMap<String, IgnoredAny> = serde_json::from_slice(&paths)?;
            merge.local_paths.extend(paths.into_keys());
            let definitions = part.definitions()?;
            let mut reader = serde_json::Deserializer::from_slice(&definitions);
            reader.deserialize_map(Contents(&mut merge.known))?;
        }
        Ok(merge)
    }

    /// Adds the document of a server.
    fn add(&mut self, source: Specification) -> Result<(), String> {
        let is_new =
            |path: &str| !self.local_paths.contains(path) && !self.paths.contains_key(path);
        let mut source = source.with_paths(is_new)?;
        if source.paths.is_empty() {
            return Ok(());
        }
        let known = |name: &str, content: &Content| {
            let existing = self.known.get(name)?;
            let is_merged = self.definitions.contains_key(name);
            Some(existing.is_same(content, is_merged))
        };
        source.rename_definitions(&renames(&source.definitions, Content::of, known));
        let known = |name: &str, parameter: &&Value| {
            let existing = self.parameters.get(name)?;
            Some(existing == *parameter)
        };
        source.rename_parameters(&renames(&source.parameters, |parameter| parameter, known));
        for (name, schema) in source.definitions {
            match self.definitions.get_mut(&name) {
                Some(existing) => add_kinds(existing, &schema),
                None if self.known.contains_key(&name) => {}
                None => {
                    self.known.insert(name.clone(), Content::of(&schema));
                    self.definitions.insert(name, schema);
                }
            }
        }
        self.parameters.extend(source.parameters);
        self.paths.extend(source.paths);
        Ok(())
    }
}

/// Returns new names for definitions that clash with a different definition of the same name. `known` compares the
/// `content` of a value with that of the definition of a name: `None` if there is none, `Some(true)` if both are equal.
fn renames<'s, C>(
    source: &'s Object,
    content: impl Fn(&'s Value) -> C,
    known: impl Fn(&str, &C) -> Option<bool>,
) -> HashMap<String, String> {
    let mut renames = HashMap::new();
    let mut used = HashSet::new();
    for (name, value) in source {
        let content = content(value);
        let mut names = (2..).map(|number: u64| format!("{name}_v{number}"));
        let mut new = name.clone();
        let is_known = loop {
            match known(&new, &content) {
                None => break false,
                Some(true) => break true,
                Some(false) => new = names.next().unwrap_or_default(),
            }
        };
        if new == *name {
            continue;
        }
        while !is_known && (used.contains(&new) || source.contains_key(&new)) {
            new = names.next().unwrap_or_default();
        }
        used.insert(new.clone());
        renames.insert(name.clone(), new);
    }
    renames
}

/// Adds the kinds that a definition stands for to those of one with the same content.
fn add_kinds(existing: &mut Value, other: &Value) {
    let Some(Value::Array(more)) = other.get(KINDS) else {
        return;
    };
    let before = kinds_of(existing).len();
    let mut kinds = kinds_of(existing).to_vec();
    let new = more.iter().filter(|kind| !kinds.contains(kind));
    let new: Vec<_> = new.cloned().collect();
    kinds.extend(new);
    if kinds.len() > before {
        let key = |kind: &Value| {
            ["group", "version", "kind"]
                .map(|part| kind[part].as_str().unwrap_or_default().to_owned())
        };
        kinds.sort_by_cached_key(key);
        existing[KINDS] = kinds.into();
    }
}

fn kinds_of(schema: &Value) -> &[Value] {
    schema[KINDS].as_array().map_or(&[], Vec::as_slice)
}

/// The parts of a definition that are compared with others of its name.
struct Content {
    /// The hash of everything but the kinds.
    hash: [u8; 32],
    kinds: Vec<Value>,
}

impl Content {
    fn of(schema: &Value) -> Self {
        let kinds = kinds_of(schema).to_vec();
        let mut hash = Sha256::new();
        for (name, value) in schema.as_object().into_iter().flatten() {
            if name != KINDS {
                hash.update(format!("{name:?}{value}"));
            }
        }
        Self {
            hash: hash.finalize().into(),
            kinds,
        }
    }

    /// Returns whether another definition can be this one; `takes_kinds` says whether it may stand for other kinds.
    fn is_same(&self, other: &Self, takes_kinds: bool) -> bool {
        let has_kinds = || other.kinds.iter().all(|kind| self.kinds.contains(kind));
        self.hash == other.hash && (takes_kinds || has_kinds())
    }
}

/// Reads definitions one by one, as all would take much memory at once.
struct Contents<'m>(&'m mut HashMap<String, Content>);

impl<'de> Visitor<'de> for Contents<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("definitions")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, schema)) = map.next_entry::<String, Value>()? {
            self.0.insert(name, Content::of(&schema));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reference(name: &str) -> Value {
        json!({ "$ref": format!("#/definitions/{name}") })
    }

    /// Returns the document of a server with a path that leads to definitions.
    fn server(path: &str, definitions: Value) -> Specification {
        let names = definitions.as_object().unwrap().keys();
        let responses: Object = names
            .map(|name| {
                (
                    name.clone(),
                    json!({ "description": "", "schema": reference(name) }),
                )
            })
            .collect();
        let document = json!({
            "paths": { path: { "get": { "parameters": [{ "$ref": "#/parameters/p" }], "responses": responses } } },
            "definitions": definitions,
            "parameters": { "p": { "in": "query", "name": path, "type": "string" } },
        });
        serde_json::from_value(document).unwrap()
    }

    fn local() -> Merge {
        let document = json!({
            "paths": { "/apis/a.io/v1/as": {} },
            "definitions": { "A": { "type": "string" }, "Kind": { "type": "object", KINDS: [{ "kind": "A" }] } },
        });
        Merge::with([Part::of(std::iter::once(document))].iter()).unwrap()
    }

    fn names(object: &Object) -> Vec<&str> {
        object.keys().map(String::as_str).collect()
    }

    #[test]
    fn paths_of_this_server_and_of_earlier_ones_win() {
        let mut merge = local();
        merge
            .add(server("/apis/a.io/v1/as", json!({ "B": {} })))
            .unwrap();
        assert!(merge.paths.is_empty() && merge.definitions.is_empty());
        merge.add(server("/b", json!({ "B": {} }))).unwrap();
        merge.add(server("/b", json!({ "C": {} }))).unwrap();
        assert_eq!(names(&merge.definitions), ["B"]);
        assert_eq!(names(&merge.parameters), ["p"]);
    }

    #[test]
    fn a_definition_that_differs_is_renamed_with_its_references() {
        let mut merge = local();
        let list = json!({ "items": reference("A") });
        merge
            .add(server(
                "/b",
                json!({ "A": { "type": "integer" }, "List": list }),
            ))
            .unwrap();
        merge
            .add(server("/c", json!({ "A": { "type": "integer" } })))
            .unwrap();
        merge
            .add(server(
                "/d",
                json!({ "A": { "type": "number" }, "A_v3": {} }),
            ))
            .unwrap();
        merge
            .add(server("/e", json!({ "A": { "type": "string" } })))
            .unwrap();
        assert_eq!(names(&merge.definitions), ["A_v2", "A_v3", "A_v4", "List"]);
        assert_eq!(merge.definitions["List"]["items"], reference("A_v2"));
        let of = |path: &str| &merge.paths[path]["get"]["responses"]["A"]["schema"];
        assert_eq!(*of("/c"), reference("A_v2"));
        assert_eq!(*of("/d"), reference("A_v4"));
        assert_eq!(*of("/e"), reference("A"));
        let parameters = names(&merge.parameters);
        assert_eq!(parameters, ["p", "p_v2", "p_v3", "p_v4"]);
        assert_eq!(
            merge.paths["/c"]["get"]["parameters"][0]["$ref"],
            "#/parameters/p_v2"
        );
    }

    #[test]
    fn a_definition_of_other_kinds_is_shared() {
        let kind = |kinds: &[&str]| {
            let kinds: Vec<_> = kinds.iter().map(|kind| json!({ "kind": kind })).collect();
            json!({ "Kind": { "type": "object", KINDS: kinds } })
        };
        let mut merge = local();
        merge.add(server("/b", kind(&["A"]))).unwrap();
        assert!(merge.definitions.is_empty());
        merge.add(server("/c", kind(&["A", "C"]))).unwrap();
        merge.add(server("/d", kind(&["B"]))).unwrap();
        assert_eq!(names(&merge.definitions), ["Kind_v2"]);
        let all = json!([{ "kind": "A" }, { "kind": "B" }, { "kind": "C" }]);
        assert_eq!(merge.definitions["Kind_v2"][KINDS], all);
    }
}
