//! The order of the modules of a crate's root.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::files_in;

/// Crates with rooms: modules of their root, each of which may name only those before it. The modules that are not
/// listed put the rooms together, and are named by none of them.
const ROOMS: &[(&str, &[&str])] = &[
    ("services/node-agent", &["pod", "node", "serve"]),
    (
        "services/gateway",
        &[
            "metrics",
            "offload",
            "server_info",
            "dial_policy",
            "service_ranges",
            "settings_file",
            "outbound",
            "kubeconfig",
            "errors",
            "warnings",
            "cached",
            "request",
            "request_context",
            "agents",
            "webhook",
            "converter",
            "admission",
            "aggregation",
            "prometheus_adapter",
            "usage",
            "registry",
            "computed",
            "reviews",
            "write",
            "verbs",
            "explain",
            "grpc",
            "http",
            "background",
        ],
    ),
];

#[test]
fn rooms_of_a_crate_name_only_those_below_them() {
    for (package, rooms) in ROOMS {
        let src = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(package)
            .join("src");
        let modules = modules_of(&src);
        for (floor, room) in rooms.iter().enumerate() {
            assert!(modules.contains(*room), "{package} has no {room}");
            let below = &rooms[..=floor];
            for (file, text) in sources_of_room(&src, room) {
                let named = named_from(&text, depth(&src, &file));
                let mut known = named.iter().filter(|name| modules.contains(*name));
                let above = known.find(|name| !below.contains(&name.as_str()));
                assert_eq!(above, None, "{} must not name it", file.display());
            }
        }
    }
}

/// Returns the names of the modules of a crate's root.
fn modules_of(src: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(src).expect("folders are readable");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let names = paths.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    names.collect()
}

/// Returns the sources of a module of a crate's root.
fn sources_of_room(src: &Path, room: &str) -> Vec<(PathBuf, String)> {
    let (file, folder) = (src.join(format!("{room}.rs")), src.join(room));
    let files = folder.is_dir().then(|| files_in(&folder));
    let files = files
        .into_iter()
        .flatten()
        .chain(file.exists().then_some(file));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("sources are readable");
        (path, text)
    };
    files.map(read).collect()
}

/// Returns the number of modules that a source is within, its own included.
fn depth(src: &Path, file: &Path) -> usize {
    let path = file.strip_prefix(src).expect("a source of the crate");
    let own = usize::from(!path.ends_with("mod.rs"));
    path.components().count() - 1 + own
}

/// Returns the names that follow the root of the crate in paths of a source: after `crate::`, or after as many
/// `super::` as there are modules around it.
fn named_from(text: &str, depth: usize) -> BTreeSet<String> {
    let up = "super::".repeat(depth);
    let roots = ["crate::", up.as_str()];
    let after = roots.iter().flat_map(|root| {
        let found = text.match_indices(root);
        let whole = found.filter(|(at, _)| !text[..*at].ends_with(is_of_a_longer_path));
        whole.map(|(at, root)| &text[at + root.len()..])
    });
    after.flat_map(heads).collect()
}

fn is_of_a_longer_path(before: char) -> bool {
    before.is_alphanumeric() || "_$:".contains(before)
}

/// Returns the first names of a path, of which there are several if it begins with a group: `{a::b, c::{d, e}}`.
fn heads(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else {
        return vec![identifier(path)];
    };
    let (mut names, mut open, mut begins) = (Vec::new(), 0, true);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => open += 1,
            '}' if open == 0 => break,
            '}' => open -= 1,
            ',' if open == 0 => begins = true,
            letter if begins && !letter.is_whitespace() => {
                names.push(identifier(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

fn identifier(path: &str) -> String {
    let of_name = |letter: &char| letter.is_alphanumeric() || *letter == '_';
    path.chars().take_while(of_name).collect()
}

#[test]
fn paths_from_the_root_are_found_alone_in_groups_and_through_parents() {
    let named = |text: &str| named_from(text, 2).into_iter().collect::<Vec<_>>();
    assert_eq!(named("use crate::node::{self, Pods};"), ["node"]);
    let group = "use crate::{\n    pod::{plan, world},\n    serve,\n};";
    assert_eq!(named(group), ["pod", "serve"]);
    assert_eq!(named("fn f(x: &super::super::agent::Agent) {}"), ["agent"]);
    assert_eq!(
        named("use super::node; $crate::a!(); other_crate::b();"),
        [""; 0]
    );
}
