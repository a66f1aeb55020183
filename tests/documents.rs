//! Tests that the paths and tests that documents name exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Documents beside the READMEs. CHANGELOG.md is not one of them: it names what was.
const DOCUMENTS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];

/// The hidden folders of the repository. Others are those of tools, as `target` and `mutants.out` are.
const HIDDEN: &[&str] = &[".ci", ".config"];

/// The end of names of files that are looked for even if no folder is named.
const FILES: &[&str] = &[".md", ".toml"];

/// Returns the folder of the workspace.
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the crate is in a folder").to_owned()
}

/// Returns the files of the repository, with paths relative to its folder.
pub fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = folder.join(entry.file_name());
            let kind = entry.file_type().expect("a type");
            if kind.is_dir() {
                folders.extend(is_source(&path).then_some(path));
            } else if kind.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns whether a folder is one of the repository, and not made by a tool.
fn is_source(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    let made = name == "target" || name.starts_with("mutants.out");
    !made && (!name.starts_with('.') || HIDDEN.contains(&name))
}

/// Returns the text of a file of the workspace.
pub fn read(path: &Path) -> String {
    let read = fs::read_to_string(root().join(path));
    read.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn documents() -> Vec<PathBuf> {
    let readme = |path: &PathBuf| path.ends_with("README.md");
    let readmes = files().into_iter().filter(readme);
    let others = DOCUMENTS.iter().map(PathBuf::from);
    readmes.chain(others).collect()
}

/// Returns the lines of a document outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Returns the texts of a line that are marked as code.
fn codes(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns the targets of a line's links to files.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://"))
}

/// Returns the folders that paths in a document may be relative to.
fn bases(document: &Path) -> [PathBuf; 3] {
    let own = document.parent().expect("a file has a folder");
    [PathBuf::new(), own.to_owned(), PathBuf::from("services")]
}

/// Returns whether a text is meant as a path: its first part exists.
fn is_path(text: &str, bases: &[PathBuf]) -> bool {
    let words = |char: char| char.is_alphanumeric() || "./-_<>*{},".contains(char);
    if !text.chars().all(words) || text.starts_with('/') {
        return false;
    }
    let text = text.trim_start_matches("./");
    let inner = text.trim_start_matches("../");
    let Some((first, _)) = inner.split_once('/') else {
        return FILES
            .iter()
            .any(|end| inner.ends_with(end) && inner != *end);
    };
    let upward = &text[..text.len() - inner.len()];
    let begins = |base: &PathBuf| root().join(base).join(upward).join(first).is_dir();
    is_source(Path::new(first)) && bases.iter().any(begins)
}

/// Returns the paths that a pattern with `{one,other}` stands for.
fn alternatives(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return vec![pattern.to_owned()];
    };
    let (inner, after) = rest.split_once('}').expect("braces are closed");
    let replaced = inner.split(',').map(|one| format!("{before}{one}{after}"));
    replaced.flat_map(|one| alternatives(&one)).collect()
}

/// Returns whether a path exists; `*` and `<name>` stand for any part of a name, `**` for any folders.
fn exists(base: &Path, pattern: &str) -> bool {
    let mut found = vec![root().join(base)];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        found = found.iter().flat_map(|at| step(at, part)).collect();
    }
    !found.is_empty()
}

/// Returns the folders below one, itself included.
fn below(at: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(at).into_iter().flatten().flatten();
    let folders = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir());
    let mut found: Vec<_> = folders.flat_map(|folder| below(&folder)).collect();
    found.push(at.to_owned());
    found
}

fn step(at: &Path, part: &str) -> Vec<PathBuf> {
    if part == "**" {
        return below(at);
    }
    let Some(first) = part.find(['*', '<']) else {
        let next = at.join(part);
        return next.exists().then_some(next).into_iter().collect();
    };
    let (start, end) = (
        &part[..first],
        part.rfind(['*', '>']).map_or("", |at| &part[at + 1..]),
    );
    let entries = fs::read_dir(at).into_iter().flatten().flatten();
    let matches = |name: &str| {
        name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(matches));
    named.map(|entry| entry.path()).collect()
}

#[test]
fn every_path_that_a_document_names_exists() {
    let mut named = 0;
    let mut missing = Vec::new();
    for document in documents() {
        let text = read(&document);
        let bases = bases(&document);
        for line in prose(&text) {
            let paths = codes(line).filter(|code| is_path(code, &bases));
            for path in paths.chain(links(line)) {
                named += 1;
                let found = |path: &String| bases.iter().any(|base| exists(base, path));
                if !alternatives(path).iter().all(found) {
                    missing.push(format!("{}: {path}", document.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(
        named > 100,
        "only {named} paths were found in the documents"
    );
}

/// Returns whether a text is the name of a test: metrics of ours are the only other names of that length.
fn is_test(code: &str) -> bool {
    let word = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
    code.chars().all(word) && code.matches('_').count() >= 4 && !code.starts_with("setpoint_")
}

#[test]
fn every_test_that_a_document_names_exists() {
    let texts = ["ARCHITECTURE.md", "SECURITY.md"].map(|path| read(Path::new(path)));
    let codes = texts.iter().flat_map(|text| prose(text)).flat_map(codes);
    let tests: BTreeSet<_> = codes.filter(|code| is_test(code)).collect();
    assert!(tests.len() > 80, "only {} tests were found", tests.len());
    let sources = files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let sources: String = sources.map(|path| read(&path)).collect();
    let functions: BTreeSet<_> = sources
        .split("fn ")
        .filter_map(|rest| rest.split('(').next())
        .collect();
    let missing: Vec<_> = tests
        .iter()
        .filter(|test| !functions.contains(*test))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn paths_are_told_from_other_texts() {
    let bases = bases(Path::new("services/README.md"));
    for path in [
        "services/lib",
        "lib/host/src/limits.rs",
        "../README.md",
        "services/<kind>-controller/",
        "deny.toml",
    ] {
        assert!(is_path(path, &bases), "{path}");
    }
    for text in [
        "apps/v1",
        "/apis/apps",
        "setpoint.dev/local-path",
        "plan.rs",
        "target/local/setpoint",
        "a b/c",
    ] {
        assert!(!is_path(text, &bases), "{text}");
    }
    assert!(exists(
        Path::new(""),
        "services/<kind>-controller/src/lib.rs"
    ));
    assert!(!exists(
        Path::new(""),
        "services/<kind>-controller/src/none.rs"
    ));
    assert_eq!(alternatives("a/{b,c}.rs"), ["a/b.rs", "a/c.rs"]);
}
