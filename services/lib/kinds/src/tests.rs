//! Tests of all kinds, and of the code that must not name one.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use setpoint_codec::kinds;

use crate::of;

/// The sources that must not depend on particular kinds.
const SOURCES: [&str; 4] = [
    "src/validation",
    "../codec/src",
    "../store/src",
    "../../gateway/src",
];

/// Plurals with another meaning that these files may contain.
const ALLOWED: &[(&str, &str)] = &[
    // A segment of the path of every namespaced object.
    ("request/attributes.rs", "namespaces"),
    ("request/route.rs", "namespaces"),
    // The name of a task.
    ("background/mod.rs", "namespaces"),
    // A field of a volume of GlusterFS.
    ("podspec/remote.rs", "endpoints"),
    // The resources that a ResourceQuota limits.
    ("podspec/resources.rs", "configmaps"),
    ("podspec/resources.rs", "persistentvolumeclaims"),
    ("podspec/resources.rs", "pods"),
    ("podspec/resources.rs", "replicationcontrollers"),
    ("podspec/resources.rs", "resourcequotas"),
    ("podspec/resources.rs", "secrets"),
    ("podspec/resources.rs", "services"),
    // What a user is impersonated as, in rules about the verb `impersonate`.
    ("request/impersonation.rs", "serviceaccounts"),
];

/// Files of rules about requests, which name resources as roles do: served or not.
const RULES: &[&str] = &["authorization/node/rules.rs", "impersonation/checks.rs"];

#[test]
fn every_column_has_a_path_or_a_cell() {
    for kind in kinds().iter() {
        let empty = kind.decode(b"").unwrap();
        let definition = kind.definition();
        let computed = definition
            .columns
            .iter()
            .filter(|column| column.path.is_none());
        for column in computed.filter(|column| column.name != "Age") {
            let cell = of(kind).cell(&*empty, &column.name, Timestamp::UNIX_EPOCH);
            assert!(cell.is_some(), "{}: {}", kind.kind, column.name);
        }
    }
}

#[test]
fn every_kind_validates_names() {
    for kind in kinds().iter() {
        assert!(!of(kind).check_name("no/good name").is_empty());
    }
}

#[test]
fn a_kind_has_the_hooks_of_its_subresources() {
    for kind in kinds().iter() {
        let empty = kind.decode(b"").unwrap();
        let scale = of(kind).scale(&*empty).is_some();
        assert_eq!(scale, kind.has_subresource("scale"), "{}", kind.kind);
        let mut bound = empty.clone();
        let bound = of(kind).bind(&mut *bound, "node", Timestamp::UNIX_EPOCH);
        assert_eq!(
            bound.is_ok(),
            kind.has_subresource("binding"),
            "{}",
            kind.kind
        );
    }
}

/// A special case of a kind has to be an item of `StoredKind` or an option of its message.
#[test]
fn only_its_own_file_names_a_kind() {
    let mut files = Vec::new();
    for folder in SOURCES {
        find(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
            &mut files,
        );
    }
    assert!(
        files.len() > 100,
        "the sources are not where they should be"
    );
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in code(&text) {
            let at = format!("{}:{number}: {}", file.display(), line.trim());
            assert!(!line.contains("::TYPE_URL"), "{at}");
            for kind in kinds().iter() {
                let named = line.contains(&format!("{:?}", kind.plural))
                    || line.contains(&format!("{:?}", kind.resource()));
                assert!(!named || is_allowed(&file, &kind.plural), "{at}");
            }
        }
    }
}

/// Returns the lines of code with their numbers, without comments and the tests at the end of the file.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().zip(1..).map(|(line, number)| (number, line));
    lines
        .take_while(|(_, line)| *line != "mod tests {")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn is_allowed(file: &Path, plural: &str) -> bool {
    let mut allowed = ALLOWED.iter();
    allowed.any(|(end, name)| file.ends_with(end) && *name == plural)
        || RULES.iter().any(|end| file.ends_with(end))
}

/// Finds the source files in a folder, those of kinds and for tests excepted.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        match path.is_dir() {
            true if ["kinds", "contract", "in_process", "tests"].contains(&name) => {}
            true => find(&path, files),
            false if name == "tests.rs" => {}
            false => files.push(path),
        }
    }
}
