//! The roles that allow a request, whoever makes it, by its verb, group and resource, or by its path.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use setpoint_proto::rbac::PolicyRule;

use super::request::Resource;
use super::rule::combinations;
use super::symbols::{BySymbol, Symbol, Symbols};

/// The place of a role.
pub(crate) type RoleId = u32;
/// Roles in order.
type Roles = Vec<RoleId>;

/// The largest number of combinations of verbs, groups, resources and names for which a rule has entries. The roles of
/// larger rules are candidates of every request: whoever may write a role could otherwise fill the memory by one.
const MAX_COMBINATIONS: usize = 4096;
/// The combinations of a verb, a group and a resource with their wildcards, each for any name and for that of the
/// request.
const MAX_POSTINGS: usize = 2 * 2 * 3 * 2;

/// A verb, a group, a resource and a subresource, each of which may be a wildcard. [`Symbol::NONE`] is no subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Pattern {
    verb: Symbol,
    group: Symbol,
    resource: Symbol,
    subresource: Symbol,
}

/// The roles that allow a pattern.
#[derive(Debug, Default)]
struct Postings {
    any_name: Roles,
    named: HashMap<Symbol, Roles, BySymbol>,
}

type ByVerb = HashMap<Symbol, Roles, BySymbol>;

/// The roles of an index by what their rules allow.
#[derive(Debug, Default)]
pub(crate) struct Table {
    symbols: Symbols,
    resources: HashMap<Pattern, Postings, BySymbol>,
    paths: BTreeMap<Box<str>, ByVerb>,
    /// By the text before the `*` at the end.
    prefixes: BTreeMap<Box<str>, ByVerb>,
    wide: Roles,
}

impl Table {
    /// Adds the rules of a role.
    pub(crate) fn add(&mut self, role: RoleId, rules: &[PolicyRule]) {
        for rule in rules {
            if combinations(rule) > MAX_COMBINATIONS {
                insert(&mut self.wide, role);
                continue;
            }
            for (pattern, names) in patterns(rule, |text| self.symbols.intern(text)) {
                let postings = self.resources.entry(pattern).or_default();
                match names.is_empty() {
                    true => insert(&mut postings.any_name, role),
                    false => names.into_iter().for_each(|name| {
                        insert(postings.named.entry(name).or_default(), role);
                    }),
                }
            }
            for verb in &rule.verbs {
                for url in &rule.non_resource_urls {
                    let verb = self.symbols.intern(verb);
                    let (map, text) = self.urls(url);
                    let by_verb = map.entry(text.into()).or_default();
                    insert(by_verb.entry(verb).or_default(), role);
                }
            }
        }
    }

    /// Removes the rules that a role was added with.
    pub(crate) fn remove(&mut self, role: RoleId, rules: &[PolicyRule]) {
        remove(&mut self.wide, role);
        for rule in rules {
            if combinations(rule) > MAX_COMBINATIONS {
                continue;
            }
            for (pattern, names) in patterns(rule, |text| self.symbols.release(text)) {
                let Some(postings) = self.resources.get_mut(&pattern) else {
                    continue;
                };
                match names.is_empty() {
                    true => remove(&mut postings.any_name, role),
                    false => names
                        .into_iter()
                        .for_each(|name| take(&mut postings.named, name, role)),
                }
                if postings.any_name.is_empty() && postings.named.is_empty() {
                    self.resources.remove(&pattern);
                }
            }
            for verb in &rule.verbs {
                for url in &rule.non_resource_urls {
                    let verb = self.symbols.release(verb);
                    let (map, text) = self.urls(url);
                    let Some(by_verb) = map.get_mut(text) else {
                        continue;
                    };
                    take(by_verb, verb, role);
                    if by_verb.is_empty() {
                        map.remove(text);
                    }
                }
            }
        }
    }

    /// Returns the paths or the prefixes, whichever a URL of a rule belongs to, and its key there.
    fn urls<'u>(&mut self, url: &'u str) -> (&mut BTreeMap<Box<str>, ByVerb>, &'u str) {
        match url.ends_with('*') {
            true => (&mut self.prefixes, url.trim_end_matches('*')),
            false => (&mut self.paths, url),
        }
    }

    /// Returns the roles that allow what the request asks for in each of the ways in which rules can.
    pub(crate) fn resource(&self, verb: &str, resource: &Resource<'_>) -> Candidates<'_> {
        let mut found = Candidates::default();
        let find = |text| self.symbols.find(text);
        let subresource = match resource.subresource {
            "" => Some(Symbol::NONE),
            part => find(part),
        };
        let has_part = subresource.filter(|part| *part != Symbol::NONE);
        let resources = [
            find(resource.resource).zip(subresource),
            Some((Symbol::ANY, Symbol::NONE)),
            has_part.map(|part| (Symbol::ANY, part)),
        ];
        let name = find(resource.name);
        for verb in [find(verb), Some(Symbol::ANY)].into_iter().flatten() {
            for group in [find(resource.group), Some(Symbol::ANY)]
                .into_iter()
                .flatten()
            {
                for (resource, subresource) in resources.into_iter().flatten() {
                    let pattern = Pattern {
                        verb,
                        group,
                        resource,
                        subresource,
                    };
                    if let Some(postings) = self.resources.get(&pattern) {
                        found.push(&postings.any_name);
                        let named = name.and_then(|name| postings.named.get(&name));
                        named.into_iter().for_each(|roles| found.push(roles));
                    }
                }
            }
        }
        found
    }

    /// Returns the roles that allow a verb on a path.
    pub(crate) fn path<'a>(
        &'a self,
        verb: &str,
        path: &'a str,
    ) -> impl Iterator<Item = &'a [RoleId]> + Clone {
        let verbs = [self.symbols.find(verb), Some(Symbol::ANY)];
        let prefixes = Prefixes {
            all: &self.prefixes,
            bound: Some(path),
        };
        let of_verb = move |by_verb: &'a ByVerb| {
            let roles = verbs
                .into_iter()
                .flatten()
                .filter_map(|verb| by_verb.get(&verb));
            roles.map(Vec::as_slice)
        };
        self.paths
            .get(path)
            .into_iter()
            .chain(prefixes)
            .flat_map(of_verb)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let urls = self.paths.is_empty() && self.prefixes.is_empty();
        urls && self.resources.is_empty() && self.wide.is_empty() && self.symbols.is_empty()
    }

    /// Returns the roles with rules that must be read themselves.
    pub(crate) fn wide(&self) -> &[RoleId] {
        &self.wide
    }
}

/// Lists of roles, without an allocation.
pub(crate) struct Candidates<'a> {
    lists: [&'a [RoleId]; MAX_POSTINGS],
    number: usize,
}

impl Default for Candidates<'_> {
    fn default() -> Self {
        Self {
            lists: [&[]; MAX_POSTINGS],
            number: 0,
        }
    }
}

impl<'a> Candidates<'a> {
    fn push(&mut self, roles: &'a [RoleId]) {
        if !roles.is_empty() {
            self.lists[self.number] = roles;
            self.number += 1;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [RoleId]> + Clone {
        self.lists[..self.number].iter().copied()
    }
}

/// The entries whose keys a path begins with, from the longest on.
#[derive(Clone)]
struct Prefixes<'a> {
    all: &'a BTreeMap<Box<str>, ByVerb>,
    /// The longest beginning of the path that was not looked at yet.
    bound: Option<&'a str>,
}

impl<'a> Iterator for Prefixes<'a> {
    type Item = &'a ByVerb;

    fn next(&mut self) -> Option<&'a ByVerb> {
        loop {
            let bound = self.bound.take()?;
            let until = (Bound::Unbounded, Bound::Included(bound));
            let (prefix, by_verb) = self.all.range::<str, _>(until).next_back()?;
            if bound.starts_with(&**prefix) {
                let last = prefix.char_indices().next_back();
                self.bound = last.map(|(at, _)| &bound[..at]);
                return Some(by_verb);
            }
            // What both begin with: a key between it and the bound would have been found instead.
            let mut both = bound.char_indices().zip(prefix.chars());
            let differs = both.find(|((_, one), other)| one != other);
            self.bound = differs.map(|((at, _), _)| &bound[..at]);
        }
    }
}

/// Returns the patterns of a rule with its names. `symbol` is called equally often for equal rules.
fn patterns(
    rule: &PolicyRule,
    mut symbol: impl FnMut(&str) -> Symbol,
) -> Vec<(Pattern, Vec<Symbol>)> {
    let mut patterns = Vec::new();
    for verb in &rule.verbs {
        for group in &rule.api_groups {
            for resource in &rule.resources {
                let (resource, subresource) = match resource.split_once('/') {
                    Some((resource, part)) => (resource, Some(part)),
                    None => (resource.as_str(), None),
                };
                let pattern = Pattern {
                    verb: symbol(verb),
                    group: symbol(group),
                    resource: symbol(resource),
                    subresource: subresource.map_or(Symbol::NONE, &mut symbol),
                };
                let names = rule.resource_names.iter().map(|name| symbol(name));
                patterns.push((pattern, names.collect()));
            }
        }
    }
    patterns
}

fn insert(roles: &mut Roles, role: RoleId) {
    if let Err(at) = roles.binary_search(&role) {
        roles.insert(at, role);
    }
}

fn remove(roles: &mut Roles, role: RoleId) {
    if let Ok(at) = roles.binary_search(&role) {
        roles.remove(at);
    }
}

fn take(map: &mut HashMap<Symbol, Roles, BySymbol>, key: Symbol, role: RoleId) {
    if let Some(roles) = map.get_mut(&key) {
        remove(roles, role);
        if roles.is_empty() {
            map.remove(&key);
        }
    }
}
