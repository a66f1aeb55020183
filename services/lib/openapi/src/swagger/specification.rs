//! The paths of a document of OpenAPI v2, and what they refer to.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::references::{Visit, in_parameter, in_path, in_schema};
use super::shape;

type Object = Map<String, Value>;

/// The prefix of references within a document.
const LOCAL: &str = "#/";
const DEFINITIONS: &str = "#/definitions/";
const PARAMETERS: &str = "#/parameters/";
/// The largest number of definitions in a document: several times that of Kubernetes' own.
const MAX_DEFINITIONS: usize = 5000;

/// The parts of a document that are merged.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Specification {
    pub(crate) paths: Object,
    pub(crate) definitions: Object,
    pub(crate) parameters: Object,
}

impl Specification {
    /// Reads a document.
    pub(super) fn parse(document: &[u8]) -> Result<Self, String> {
        let mut document: Value =
            serde_json::from_slice(document).map_err(|error| error.to_string())?;
        if let Some(paths) = document.get_mut("paths").and_then(Value::as_object_mut) {
            // Others are extensions, of any type.
            paths.retain(|path, _| path.starts_with('/'));
        }
        shape::check(&document)?;
        let mut part = |name: &str| match document.get_mut(name).map(Value::take) {
            Some(Value::Object(part)) => part,
            _ => Object::new(),
        };
        let parsed = Self {
            paths: part("paths"),
            definitions: part("definitions"),
            parameters: part("parameters"),
        };
        match parsed.definitions.len() {
            ..=MAX_DEFINITIONS => Ok(parsed),
            number => Err(format!("{number} definitions exceed {MAX_DEFINITIONS}")),
        }
    }

    /// Keeps the paths for which `is_kept` is true. Definitions and parameters that only other paths refer to are
    /// removed.
    ///
    /// # Errors
    /// If something that is kept refers to what is not there: clients would find the whole document unreadable.
    pub(crate) fn with_paths(mut self, is_kept: impl Fn(&str) -> bool) -> Result<Self, String> {
        let referred = self.references();
        let used = reachable(self.of_paths(), &referred);
        let unused = referred.keys().filter(|name| !used.contains(*name));
        let unused: Vec<_> = unused.cloned().collect();
        self.paths.retain(|path, _| is_kept(path));
        let mut roots = self.of_paths();
        roots.extend(unused);
        let kept = reachable(roots, &referred);
        let is_missing =
            |name: &&String| name.starts_with(LOCAL) && !referred.contains_key(name.as_str());
        if let Some(missing) = kept.iter().filter(is_missing).min() {
            return Err(format!("{missing} is not defined"));
        }
        let is_kept = |prefix: &str, name: &str| kept.contains(&format!("{prefix}{name}"));
        self.definitions
            .retain(|name, _| is_kept(DEFINITIONS, name));
        self.parameters.retain(|name, _| is_kept(PARAMETERS, name));
        Ok(self)
    }

    /// Renames definitions and their references.
    pub(crate) fn rename_definitions(&mut self, renames: &HashMap<String, String>) {
        let definitions = std::mem::take(&mut self.definitions).into_iter();
        let renamed = definitions.map(|(name, schema)| (renamed(renames, name), schema));
        self.definitions = renamed.collect();
        self.replace(DEFINITIONS, renames);
    }

    /// Renames parameters and their references.
    pub(crate) fn rename_parameters(&mut self, renames: &HashMap<String, String>) {
        let parameters = std::mem::take(&mut self.parameters).into_iter();
        let renamed = parameters.map(|(name, parameter)| (renamed(renames, name), parameter));
        self.parameters = renamed.collect();
        self.replace(PARAMETERS, renames);
    }

    fn replace(&mut self, prefix: &str, renames: &HashMap<String, String>) {
        let visit: Visit<'_> = &mut |reference| {
            let name = reference.strip_prefix(prefix);
            if let Some(new) = name.and_then(|name| renames.get(name)) {
                *reference = format!("{prefix}{new}");
            }
        };
        self.paths
            .values_mut()
            .for_each(|path| in_path(path, visit));
        self.definitions
            .values_mut()
            .for_each(|schema| in_schema(schema, visit));
        self.parameters
            .values_mut()
            .for_each(|parameter| in_parameter(parameter, visit));
    }

    /// Returns the references in the paths.
    fn of_paths(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        let visit: Visit<'_> = &mut |reference| found.push(reference.clone());
        self.paths
            .values_mut()
            .for_each(|path| in_path(path, visit));
        found
    }

    /// Returns the references in each definition and parameter, by the reference to it.
    fn references(&mut self) -> HashMap<String, Vec<String>> {
        let mut all = HashMap::new();
        let mut add =
            |prefix: &str, name: &str, part: &mut Value, within: fn(&mut Value, Visit<'_>)| {
                let mut found = Vec::new();
                within(part, &mut |reference| found.push(reference.clone()));
                all.insert(format!("{prefix}{name}"), found);
            };
        for (name, schema) in &mut self.definitions {
            add(DEFINITIONS, name, schema, in_schema);
        }
        for (name, parameter) in &mut self.parameters {
            add(PARAMETERS, name, parameter, in_parameter);
        }
        all
    }
}

fn renamed(renames: &HashMap<String, String>, name: String) -> String {
    renames.get(&name).cloned().unwrap_or(name)
}

/// Returns the references that are reachable from some.
fn reachable(mut roots: Vec<String>, referred: &HashMap<String, Vec<String>>) -> HashSet<String> {
    let mut found = HashSet::new();
    while let Some(one) = roots.pop() {
        if !found.contains(&one) {
            roots.extend(referred.get(&one).into_iter().flatten().cloned());
            found.insert(one);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reference(to: &str) -> Value {
        json!({ "$ref": to })
    }

    fn path(to: &str) -> Value {
        json!({ "get": {
            "parameters": [reference("#/parameters/p")],
            "responses": { "200": { "description": "OK", "schema": reference(to) } },
        } })
    }

    fn specification() -> Specification {
        let document = json!({
            "paths": { "/apis/a.io/v1/as": path("#/definitions/A"), "/version": path("#/definitions/Version") },
            "definitions": {
                "A": { "properties": { "$ref": { "type": "string" }, "b": { "items": reference("#/definitions/B") } } },
                "B": { "additionalProperties": reference("#/definitions/B") },
                "Version": { "properties": { "b": reference("#/definitions/B") } },
                "Unused": { "allOf": [reference("#/definitions/OfUnused")] },
                "OfUnused": {},
            },
            "parameters": { "p": { "in": "query", "name": "p", "type": "string" } },
        });
        Specification::parse(document.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn definitions_that_only_other_paths_refer_to_are_removed() {
        let kept = specification().with_paths(|path| path != "/version");
        let kept = kept.unwrap();
        let names: Vec<_> = kept.definitions.keys().collect();
        assert_eq!(names, ["A", "B", "OfUnused", "Unused"]);
        assert_eq!(kept.paths.len(), 1);
        assert_eq!(kept.parameters.len(), 1);
        let nothing = specification().with_paths(|_| false).unwrap();
        assert!(nothing.parameters.is_empty() && nothing.paths.is_empty());
    }

    #[test]
    fn a_document_with_a_reference_to_nothing_is_unusable() {
        let mut specification = specification();
        specification.definitions.remove("B");
        let refused = specification.with_paths(|_| true).unwrap_err();
        assert_eq!(refused, "#/definitions/B is not defined");
    }

    #[test]
    fn a_renamed_definition_is_renamed_in_every_reference() {
        let mut specification = specification();
        specification.rename_definitions(&[("B".to_owned(), "B_v2".to_owned())].into());
        specification.rename_parameters(&[("p".to_owned(), "p_v2".to_owned())].into());
        let text = serde_json::to_string(&specification).unwrap();
        assert!(
            !text.contains("definitions/B\"") && !text.contains("parameters/p\""),
            "{text}"
        );
        let definitions = &specification.definitions;
        assert_eq!(
            definitions["B_v2"]["additionalProperties"]["$ref"],
            "#/definitions/B_v2"
        );
        assert_eq!(definitions["A"]["properties"]["$ref"]["type"], "string");
        specification.with_paths(|_| true).unwrap();
    }

    #[test]
    fn the_number_of_definitions_is_limited() {
        let many: Object = (0..=MAX_DEFINITIONS)
            .map(|number| (number.to_string(), json!({})))
            .collect();
        let document = json!({ "paths": {}, "definitions": many }).to_string();
        let refused = Specification::parse(document.as_bytes()).unwrap_err();
        assert_eq!(refused, "5001 definitions exceed 5000");
    }
}
