//! The rules that somebody may not grant because others do not cover them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use setpoint_proto::rbac::PolicyRule;

use super::index::Rules;
use super::request::User;
use super::rule::{combinations, covers_url};

/// The largest number of parts that a rule is broken down into. A larger one must be covered as a whole: otherwise
/// whoever may write a role could occupy the process by one.
const MAX_PARTS: usize = 100_000;
/// The bytes of text in a part, about.
const PART_BYTES: usize = 32;

/// Returns the parts of the wanted rules that no rule of the owner covers (upstream: `Covers`). Each part has one verb,
/// one resource or path, and at most one name.
pub fn covers<'a>(
    owner: impl IntoIterator<Item = &'a PolicyRule> + Clone,
    wanted: &[PolicyRule],
) -> Vec<PolicyRule> {
    let is_covered = |part: &PolicyRule| {
        let mut rules = owner.clone().into_iter();
        rules.any(|rule| covers_part(rule, part))
    };
    let mut missing = Vec::new();
    for rule in wanted {
        // The whole first: it saves the parts of nearly every rule of somebody who may grant it.
        if is_covered(rule) {
            continue;
        }
        match combinations(rule) > MAX_PARTS {
            true => missing.push(rule.clone()),
            false => missing.extend(parts(rule).filter(|part| !is_covered(part))),
        }
    }
    missing
}

/// Returns why a user may not grant rules: that it does not have them itself. `None` if it has them all.
pub fn escalation(user: User<'_>, owned: &Rules<'_>, wanted: &[PolicyRule]) -> Option<String> {
    let missing = covers(owned.rules.iter().copied(), wanted);
    if missing.is_empty() {
        return None;
    }
    let texts: BTreeSet<String> = compact(missing).iter().map(text).collect();
    let texts: Vec<_> = texts.into_iter().collect();
    let mut message = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(user.groups),
        texts.join("\n")
    );
    if let Some(errors) = owned.errors() {
        let written = write!(message, "; resolution errors: [{errors}]");
        written.expect("a String takes any text");
    }
    Some(message)
}

/// Returns the work of comparing wanted rules with those of an owner, in bytes of text: each part of a wanted rule is
/// compared with each rule.
pub fn comparison_size(owned: &[PolicyRule], wanted: &[PolicyRule]) -> usize {
    let wanted = wanted.iter().map(|rule| match combinations(rule) {
        parts if parts > MAX_PARTS => 1,
        parts => parts,
    });
    let parts = wanted.fold(0_usize, usize::saturating_add);
    parts
        .saturating_mul(owned.len().max(1))
        .saturating_mul(PART_BYTES)
}

/// Returns rules with one value each that are a rule together.
fn parts(rule: &PolicyRule) -> impl Iterator<Item = PolicyRule> + '_ {
    of_resources(rule).chain(of_paths(rule))
}

fn of_resources(rule: &PolicyRule) -> impl Iterator<Item = PolicyRule> + '_ {
    let all_names = rule.resource_names.is_empty().then(Vec::new);
    let names = rule.resource_names.iter().map(|name| vec![name.clone()]);
    let names = all_names.into_iter().chain(names);
    let resources = rule.api_groups.iter().flat_map(|group| {
        let resources = rule.resources.iter();
        resources.map(move |resource| (group, resource))
    });
    let verbs = resources.flat_map(|(group, resource)| {
        let verbs = rule.verbs.iter();
        verbs.map(move |verb| (group, resource, verb))
    });
    verbs.flat_map(move |(group, resource, verb)| {
        names.clone().map(move |names| PolicyRule {
            verbs: vec![verb.clone()],
            api_groups: vec![group.clone()],
            resources: vec![resource.clone()],
            resource_names: names,
            ..PolicyRule::default()
        })
    })
}

fn of_paths(rule: &PolicyRule) -> impl Iterator<Item = PolicyRule> + '_ {
    rule.non_resource_urls.iter().flat_map(|url| {
        rule.verbs.iter().map(|verb| PolicyRule {
            verbs: vec![verb.clone()],
            non_resource_urls: vec![url.clone()],
            ..PolicyRule::default()
        })
    })
}

/// Returns whether a rule allows all that another allows.
fn covers_part(owner: &PolicyRule, part: &PolicyRule) -> bool {
    let has_all =
        |owned: &[String], wanted: &[String]| wanted.iter().all(|one| owned.contains(one));
    let has_any_or_all = |owned: &[String], wanted: &[String]| {
        owned.iter().any(|one| one == "*") || has_all(owned, wanted)
    };
    let names = match (
        owner.resource_names.as_slice(),
        part.resource_names.as_slice(),
    ) {
        ([], _) => true,
        (_, []) => false,
        (owned, wanted) => has_all(owned, wanted),
    };
    let has_url = |wanted: &String| {
        let mut urls = owner.non_resource_urls.iter();
        urls.any(|url| covers_url(url, wanted))
    };
    names
        && has_any_or_all(&owner.verbs, &part.verbs)
        && has_any_or_all(&owner.api_groups, &part.api_groups)
        && part
            .resources
            .iter()
            .all(|wanted| covers_resource(&owner.resources, wanted))
        && part.non_resource_urls.iter().all(has_url)
}

fn covers_resource(owned: &[String], wanted: &str) -> bool {
    let of_all = wanted.split_once('/').map(|(_, part)| part);
    owned.iter().any(|one| {
        one == "*" || one == wanted || of_all.is_some() && one.strip_prefix("*/") == of_all
    })
}

/// Joins the verbs of parts that differ in nothing else.
fn compact(parts: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let (mut joined, mut others) = (BTreeMap::<_, PolicyRule>::new(), Vec::new());
    for part in parts {
        match (
            part.api_groups.as_slice(),
            part.resources.as_slice(),
            part.resource_names.len(),
        ) {
            ([group], [resource], 0 | 1) if part.non_resource_urls.is_empty() => {
                let key = (group.clone(), resource.clone(), part.resource_names.clone());
                match joined.get_mut(&key) {
                    Some(rule) => rule.verbs.extend(part.verbs),
                    None => drop(joined.insert(key, part)),
                }
            }
            _ => others.push(part),
        }
    }
    others.extend(joined.into_values());
    others
}

/// Returns a rule as upstream's errors name it.
fn text(rule: &PolicyRule) -> String {
    let fields = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let given = fields.iter().filter(|(_, values)| !values.is_empty());
    let given: Vec<_> = given
        .map(|(name, values)| format!("{name}:{}", quoted(values)))
        .collect();
    format!("{{{}}}", given.join(", "))
}

fn quoted(values: &[String]) -> String {
    let quoted: Vec<_> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests;
