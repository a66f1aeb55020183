//! What the descriptions of fields state (defaults, bounds, required and immutable fields) is what the gateway does
//! with objects. The descriptions are the comments of the `.proto` files, which `kubectl explain` prints.

mod bounds;
mod changes;
mod defaults;
mod objects;
mod paths;
mod required;
mod statements;

use std::collections::{BTreeMap, BTreeSet};

use paths::Path;

/// Messages with statements whose objects are not stored: what they state is tested where they are answered.
const ELSEWHERE: [&str; 2] = [
    // The gateway's tests of the subresources `scale` and `token`.
    "k8s.autoscaling.v1.ScaleSpec",
    "k8s.authentication.v1.TokenRequestSpec",
];

/// The number of fields below which a check has lost its statements.
const FEWEST: usize = 30;

/// Returns the stated fields for which no path in any stored kind passes the check, with the last reason.
///
/// `state` returns what a description states, if anything, and `check` tests it at a path.
fn failures<S>(
    state: impl Fn(&str) -> Option<S>,
    check: impl Fn(&Path, &S) -> Result<(), String>,
) -> Vec<String> {
    let mut open = BTreeMap::<String, String>::new();
    let mut met = BTreeSet::new();
    for path in paths::all() {
        let name = path.name();
        let Some(stated) = statements::text(&name).and_then(&state) else {
            continue;
        };
        if met.contains(&name) {
            continue;
        }
        match check(&path, &stated) {
            Ok(()) => {
                open.remove(&name);
                met.insert(name);
            }
            Err(why) => drop(open.insert(name, format!("{}: {why}", path.shown()))),
        }
    }
    assert!(met.len() >= FEWEST, "the forms of statements have changed");
    let unknown = statements::all().filter(|(name, text)| {
        let message = name.rsplit_once('.').map_or("", |(message, _)| message);
        let is_known = met.contains(*name) || open.contains_key(*name);
        !is_known && !ELSEWHERE.contains(&message) && state(text).is_some()
    });
    let unknown = unknown.map(|(name, _)| (name.to_owned(), "is in no stored kind".to_owned()));
    open.extend(unknown.collect::<Vec<_>>());
    open.into_iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect()
}
