//! The table `permissions.txt`.

use std::collections::{BTreeMap, BTreeSet};

use super::identities::{Identity, MASTERS, NAMESPACE, in_namespace, sets};

const TEXT: &str = include_str!("permissions.txt");
/// Stands for the name of the one who asks.
const ITSELF: &str = "itself";
const ANY: &str = "*";

/// A request, as far as its authorization depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    pub verb: String,
    /// `plural.group/subresource`, or a path.
    pub resource: String,
    pub namespace: String,
    pub name: String,
}

/// Some resources, and who may do what with them.
#[derive(Debug, Default)]
pub struct Block {
    pub resources: Vec<String>,
    pub names: Vec<String>,
    pub namespace: String,
    rows: Vec<(Vec<String>, BTreeSet<String>)>,
}

/// The whole table.
pub struct Table(pub Vec<Block>);

impl Table {
    /// Reads the table.
    ///
    /// # Panics
    /// If an identity or a set does not exist.
    pub fn read(identities: &[Identity]) -> Self {
        let (mut blocks, mut sets) = (Vec::<Block>::new(), sets(identities));
        for line in TEXT.lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(set) = line.strip_prefix('@') {
                let (name, members) = set.split_once(' ').unwrap();
                sets.insert(name.to_owned(), resolve(&sets, members));
            } else if let Some(row) = line.strip_prefix("  ") {
                let (verbs, who) = row.split_once(':').unwrap();
                let row = (words(verbs), resolve(&sets, who));
                blocks.last_mut().unwrap().rows.push(row);
            } else {
                blocks.push(Block::read(line));
            }
        }
        Self(blocks)
    }

    /// Returns whether somebody may do what they ask for.
    pub fn allows(&self, who: &Identity, asked: &Question) -> bool {
        who.short == MASTERS || self.0.iter().any(|block| block.allows(who, asked))
    }
}

impl Block {
    fn read(line: &str) -> Self {
        let (line, namespace) = line.split_once(" in ").unwrap_or((line, ""));
        let (resources, names) = line.split_once(" named ").unwrap_or((line, ""));
        Self {
            resources: words(resources),
            names: words(names),
            namespace: namespace.to_owned(),
            rows: Vec::new(),
        }
    }

    fn allows(&self, who: &Identity, asked: &Question) -> bool {
        let is_named = |name: &String| match name.as_str() {
            ITSELF => asked.name == who.own_name(),
            name => asked.name == name,
        };
        let bound = (asked.namespace == NAMESPACE).then(|| in_namespace(&who.short));
        self.resources
            .iter()
            .any(|one| covers(one, &asked.resource))
            && (self.names.is_empty() || self.names.iter().any(is_named))
            && (self.namespace.is_empty() || self.namespace == asked.namespace)
            && self.rows.iter().any(|(verbs, of)| {
                let is_bound = bound.as_ref().is_some_and(|bound| of.contains(bound));
                verbs.contains(&asked.verb) && (is_bound || of.contains(&who.short))
            })
    }
}

/// Returns whether a resource of the table is, or stands for, one that is asked for.
fn covers(listed: &str, asked: &str) -> bool {
    let is_path = asked.starts_with('/');
    match listed.strip_prefix(ANY) {
        Some("") => !is_path,
        Some(part) => !is_path && asked.ends_with(part),
        None => listed == asked,
    }
}

/// Returns the identities that words of the table name, one by one or as sets.
fn resolve(sets: &BTreeMap<String, BTreeSet<String>>, text: &str) -> BTreeSet<String> {
    let words = text.split_whitespace();
    let found = words.map(|word| {
        let set = sets.get(word);
        set.unwrap_or_else(|| panic!("permissions.txt: nobody is {word:?}"))
    });
    found.flatten().cloned().collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
