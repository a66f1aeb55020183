//! The names that a definition gets, and whether it is established.
//!
//! ```text
//!                       a name is in use
//!   new ──┬────────────────────────────────► NamesAccepted=False, Established=False (NotAccepted)
//!         │                                              │ the name is free again
//!         └► NamesAccepted=True, Established=False (Installing) ◄──────┘
//!                                │
//!                                └► Established=True (InitialNamesAccepted), for good
//! ```

use std::collections::HashSet;

use jiff::Timestamp;
use setpoint_codec as codec;
use setpoint_model::condition::{FALSE, TRUE, get, is_true};
use setpoint_proto::apiextensions::{CustomResourceDefinition, CustomResourceDefinitionNames};

use super::approval::Approval;
use super::condition::{APPROVAL, ESTABLISHED, NAMES_ACCEPTED, new, set};
use super::conversion;

const INVALID_CA_BUNDLE: &str = "InvalidCABundle";

/// The names that definitions and built-in kinds have.
#[derive(Default)]
struct Taken<'a> {
    resources: HashSet<&'a str>,
    kinds: HashSet<&'a str>,
}

impl<'a> Taken<'a> {
    /// Returns the names that definitions of a group have, and its built-in kinds.
    fn by(
        group: &str,
        definitions: impl IntoIterator<Item = &'a CustomResourceDefinition>,
    ) -> Self {
        let mut taken = Self::default();
        for kind in codec::kinds().served().filter(|kind| kind.group == group) {
            taken.resources.insert(&kind.plural);
            taken.kinds.insert(&kind.kind);
        }
        for definition in definitions {
            let names = &definition.status.accepted_names;
            taken.resources.extend(resources(names));
            taken.kinds.extend(kinds(names));
        }
        taken
    }

    fn has_any(&self, names: &CustomResourceDefinitionNames) -> bool {
        let mut resources = resources(names).filter(|name| !name.is_empty());
        let mut kinds = kinds(names).filter(|kind| !kind.is_empty());
        resources.any(|name| self.resources.contains(name))
            || kinds.any(|kind| self.kinds.contains(kind))
    }
}

fn resources(names: &CustomResourceDefinitionNames) -> impl Iterator<Item = &str> {
    let resources = [&names.plural, &names.singular].into_iter();
    resources.chain(&names.short_names).map(String::as_str)
}

fn kinds(names: &CustomResourceDefinitionNames) -> impl Iterator<Item = &str> {
    [names.kind.as_str(), names.list_kind.as_str()].into_iter()
}

/// Returns whether the definition has its names and is established, and is not being deleted.
pub fn is_settled(definition: &CustomResourceDefinition) -> bool {
    let conditions = &definition.status.conditions;
    let approval = Approval::of(definition).map(|approval| approval.explain(definition));
    let is_explained = approval.is_none_or(|(reason, message)| {
        let found = get(conditions, APPROVAL);
        found.is_some_and(|found| found.reason == reason && found.message == message)
    });
    definition.spec.names == definition.status.accepted_names
        && is_true(conditions, NAMES_ACCEPTED)
        && is_true(conditions, ESTABLISHED)
        && is_explained
        && !super::needs_removal(definition)
}

/// Takes the next step towards an established definition: accepts names or, if there is nothing to accept, establishes
/// it. `others` are the other definitions of the group, read after this status of the definition.
pub fn settle_names<'a>(
    definition: &mut CustomResourceDefinition,
    others: impl Iterator<Item = &'a CustomResourceDefinition> + Clone,
    now: Timestamp,
) {
    let before = definition.status.clone();
    accept_names(definition, others.clone(), now);
    set_approval(definition, now);
    let taken = Taken::by(&definition.spec.group, others);
    if definition.status == before && !taken.has_any(&before.accepted_names) {
        establish(definition, now);
    }
}

/// Accepts the requested names that no other definition has, and sets the conditions about them.
///
/// A name that is in use is left as it was accepted before, unless one that outranks the definition has it, as each
/// built-in kind does. The last conflict is the reason of the condition, as upstream's.
fn accept_names<'a>(
    definition: &mut CustomResourceDefinition,
    others: impl Iterator<Item = &'a CustomResourceDefinition> + Clone,
    now: Timestamp,
) {
    let outranking = others.clone();
    let outranking = outranking.filter(|other| outranks(other, definition));
    let lost = Taken::by(&definition.spec.group, outranking);
    let accepted = &mut definition.status.accepted_names;
    if lost.has_any(accepted) {
        *accepted = CustomResourceDefinitionNames::default();
    }
    let taken = Taken::by(&definition.spec.group, others);
    let conflict = accept(accepted, definition.spec.names.clone(), &taken);
    let condition = match conflict {
        None => new(
            NAMES_ACCEPTED,
            TRUE,
            "NoConflicts",
            "no conflicts found",
            now,
        ),
        Some((reason, message)) => new(NAMES_ACCEPTED, FALSE, reason, message, now),
    };
    let are_accepted = condition.status == TRUE;
    set(definition, condition);
    set_not_established(definition, are_accepted, now);
}

/// Returns whether a definition keeps a name that another one has, too. One that is established keeps all.
fn outranks(one: &CustomResourceDefinition, other: &CustomResourceDefinition) -> bool {
    let is_established =
        |one: &CustomResourceDefinition| is_true(&one.status.conditions, ESTABLISHED);
    let age = |one: &CustomResourceDefinition| {
        let created = one.metadata.creation_timestamp.timestamp();
        (created, one.metadata.uid.clone())
    };
    !is_established(other) && (is_established(one) || age(one) < age(other))
}

/// Accepts what can be accepted. Returns reason and message of the last conflict.
fn accept(
    accepted: &mut CustomResourceDefinitionNames,
    requested: CustomResourceDefinitionNames,
    taken: &Taken<'_>,
) -> Option<(&'static str, String)> {
    let (resources, kinds) = (&taken.resources, &taken.kinds);
    let short = accept_short(&mut accepted.short_names, requested.short_names, resources);
    let conflicts = [
        (
            "PluralConflict",
            accept_one(&mut accepted.plural, requested.plural, resources),
        ),
        (
            "SingularConflict",
            accept_one(&mut accepted.singular, requested.singular, resources),
        ),
        ("ShortNamesConflict", short),
        (
            "KindConflict",
            accept_one(&mut accepted.kind, requested.kind, kinds),
        ),
        (
            "ListKindConflict",
            accept_one(&mut accepted.list_kind, requested.list_kind, kinds),
        ),
    ];
    accepted.categories = requested.categories;
    let mut found = conflicts
        .into_iter()
        .filter_map(|(reason, message)| Some((reason, message?)));
    found.next_back()
}

/// Accepts a name unless it is in use. Returns the message if it is.
fn accept_one(accepted: &mut String, requested: String, taken: &HashSet<&str>) -> Option<String> {
    if *accepted != requested && taken.contains(requested.as_str()) {
        return Some(in_use(&requested));
    }
    *accepted = requested;
    None
}

/// Accepts all short names or, if any new one is in use, none. Returns the message about those.
fn accept_short(
    accepted: &mut Vec<String>,
    requested: Vec<String>,
    taken: &HashSet<&str>,
) -> Option<String> {
    let new = requested.iter().filter(|name| !accepted.contains(name));
    let used: Vec<_> = new
        .filter(|name| taken.contains(name.as_str()))
        .map(|name| in_use(name))
        .collect();
    match used.as_slice() {
        [] => {
            *accepted = requested;
            None
        }
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

/// Sets the condition of a definition that is not established yet. One that is stays so, whatever its names.
fn set_not_established(
    definition: &mut CustomResourceDefinition,
    names_are_accepted: bool,
    now: Timestamp,
) {
    let old = get(&definition.status.conditions, ESTABLISHED);
    let (reason, message) = match (names_are_accepted, old.map(|old| old.status.as_str())) {
        (_, Some(TRUE)) => return,
        (true, _) if old.is_some_and(|old| old.reason == INVALID_CA_BUNDLE) => return,
        (true, _) => ("Installing", "the initial names have been accepted"),
        (false, _) => ("NotAccepted", "not all names are accepted"),
    };
    set(definition, new(ESTABLISHED, FALSE, reason, message, now));
}

fn set_approval(definition: &mut CustomResourceDefinition, now: Timestamp) {
    let Some(approval) = Approval::of(definition) else {
        return;
    };
    let (reason, message) = approval.explain(definition);
    let status = if approval == Approval::Approved {
        TRUE
    } else {
        FALSE
    };
    set(definition, new(APPROVAL, status, reason, message, now));
}

/// Establishes a definition whose names are accepted, unless its webhook has no valid certificates.
fn establish(definition: &mut CustomResourceDefinition, now: Timestamp) {
    let conditions = &definition.status.conditions;
    if !is_true(conditions, NAMES_ACCEPTED) || is_true(conditions, ESTABLISHED) {
        return;
    }
    let (status, reason, message) = match conversion::has_invalid_ca_bundle(&definition.spec) {
        true => (
            FALSE,
            INVALID_CA_BUNDLE,
            "The conversion webhook CABundle is invalid",
        ),
        false => (
            TRUE,
            "InitialNamesAccepted",
            "the initial names have been accepted",
        ),
    };
    set(definition, new(ESTABLISHED, status, reason, message, now));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// Returns a definition by its plural, singular, short name and kind. Its list kind is distinct.
    fn definition(id: i64, [plural, singular, short, kind]: [&str; 4]) -> CustomResourceDefinition {
        let mut definition = CustomResourceDefinition::default();
        definition.metadata.uid = format!("uid-{id}");
        definition.metadata.creation_timestamp = Timestamp::from_second(id).unwrap().into();
        definition.spec.group = "example.com".into();
        definition.spec.names = CustomResourceDefinitionNames {
            plural: plural.into(),
            singular: singular.into(),
            short_names: vec![short.into()],
            kind: kind.into(),
            list_kind: format!("{kind}List"),
            categories: vec!["all".into()],
        };
        definition
    }

    fn reason<'a>(definition: &'a CustomResourceDefinition, kind: &str) -> &'a str {
        let condition = get(&definition.status.conditions, kind).unwrap();
        &condition.reason
    }

    fn settle(definition: &mut CustomResourceDefinition, others: &[CustomResourceDefinition]) {
        settle_names(definition, others.iter(), NOW);
    }

    fn settled(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
        settle(&mut definition, &[]);
        settle(&mut definition, &[]);
        assert!(is_settled(&definition));
        definition
    }

    #[test]
    fn a_definition_is_established_in_two_steps() {
        let mut tabs = definition(1, ["tabs", "tab", "t", "Tab"]);
        settle(&mut tabs, &[]);
        assert_eq!(reason(&tabs, NAMES_ACCEPTED), "NoConflicts");
        assert_eq!(reason(&tabs, ESTABLISHED), "Installing");
        assert_eq!(tabs.status.accepted_names, tabs.spec.names);
        assert!(!is_settled(&tabs));
        settle(&mut tabs, &[]);
        assert_eq!(reason(&tabs, ESTABLISHED), "InitialNamesAccepted");
        let before = tabs.clone();
        settle_names(&mut tabs, std::iter::empty(), Timestamp::now());
        assert_eq!(tabs, before);
    }

    #[test]
    fn a_name_in_use_is_a_conflict() {
        let other = settled(definition(1, ["tabs", "tab", "t", "Tab"]));
        for (names, expected, message) in [
            (
                ["tabs", "x", "y", "Z"],
                "PluralConflict",
                r#""tabs" is already in use"#,
            ),
            (
                ["x", "tabs", "y", "Z"],
                "SingularConflict",
                r#""tabs" is already in use"#,
            ),
            (
                ["x", "y", "tab", "Z"],
                "ShortNamesConflict",
                r#""tab" is already in use"#,
            ),
            (
                ["x", "y", "z", "Tab"],
                "ListKindConflict",
                r#""TabList" is already in use"#,
            ),
            (
                ["x", "y", "z", "TabList"],
                "KindConflict",
                r#""TabList" is already in use"#,
            ),
        ] {
            let mut new = definition(2, names);
            settle(&mut new, std::slice::from_ref(&other));
            assert_eq!(reason(&new, NAMES_ACCEPTED), expected);
            let condition = get(&new.status.conditions, NAMES_ACCEPTED).unwrap();
            assert_eq!(condition.message, message);
            assert_eq!(reason(&new, ESTABLISHED), "NotAccepted");
            assert!(!is_settled(&new));
            settle(&mut new, &[]);
            settle(&mut new, &[]);
            assert!(is_settled(&new), "{names:?}");
        }
    }

    /// Checks DG3.
    #[test]
    fn the_names_of_a_built_in_kind_are_in_use() {
        let (plural, kind) = ("customresourcedefinitions", "CustomResourceDefinition");
        for (names, expected) in [
            ([plural, "a", "b", "C"], "PluralConflict"),
            (["a", "b", "c", kind], "KindConflict"),
        ] {
            let mut new = definition(1, names);
            new.spec.group = "apiextensions.k8s.io".into();
            settle(&mut new, &[]);
            settle(&mut new, &[]);
            assert_eq!(reason(&new, NAMES_ACCEPTED), expected);
            assert_eq!(reason(&new, ESTABLISHED), "NotAccepted");
            assert!(!is_settled(&new));
        }
    }

    #[test]
    fn an_established_definition_stays_so_without_a_new_name() {
        let other = settled(definition(1, ["tabs", "tab", "t", "Tab"]));
        let mut sheets = settled(definition(2, ["sheets", "sheet", "s", "Sheet"]));
        sheets.spec.names.short_names = vec!["s".into(), "t".into()];
        settle(&mut sheets, &[other]);
        assert_eq!(reason(&sheets, NAMES_ACCEPTED), "ShortNamesConflict");
        assert_eq!(reason(&sheets, ESTABLISHED), "InitialNamesAccepted");
        assert_eq!(sheets.status.accepted_names.short_names, ["s"]);
    }

    #[test]
    fn a_webhook_without_valid_certificates_is_not_established() {
        let mut tabs = definition(1, ["tabs", "tab", "t", "Tab"]);
        let webhook = serde_json::json!({ "strategy": "Webhook", "webhook": {
            "clientConfig": { "caBundle": "eA==" }, "conversionReviewVersions": ["v1"],
        } });
        tabs.spec.conversion = serde_json::from_value(webhook).unwrap();
        settle(&mut tabs, &[]);
        settle(&mut tabs, &[]);
        assert_eq!(reason(&tabs, ESTABLISHED), INVALID_CA_BUNDLE);
        let before = tabs.clone();
        settle(&mut tabs, &[]);
        assert_eq!(tabs, before);
        tabs.spec.conversion = None;
        settle(&mut tabs, &[]);
        assert!(is_settled(&tabs));
    }

    proptest! {
        /// Each of two gateways reads a definition and then the others, and writes later, unless the definition has
        /// changed.
        #[test]
        fn definitions_that_are_established_at_once_share_no_name(
            names in proptest::collection::vec((0..2_usize, 0..2_usize), 2..4),
            steps in proptest::collection::vec((0..2_usize, 0..4_usize, any::<bool>()), 0..60),
        ) {
            let word = ["a", "b"];
            let mut stored: Vec<_> = (0_i64..)
                .zip(&names)
                .map(|(id, (one, two))| definition(id, [word[*one], word[*two], word[*two], word[*one]]))
                .collect();
            let mut read = vec![vec![stored.clone(); stored.len()]; 2];
            for (gateway, at, reads) in steps {
                let at = at % stored.len();
                let seen = &mut read[gateway][at];
                if reads {
                    seen.clone_from(&stored);
                } else if seen[at].status == stored[at].status {
                    let mut others = seen.clone();
                    others.remove(at);
                    settle(&mut stored[at], &others);
                }
            }
            let established: Vec<_> = stored
                .iter()
                .filter(|one| is_true(&one.status.conditions, ESTABLISHED))
                .collect();
            for (at, one) in established.iter().enumerate() {
                let others = established.iter().enumerate().filter(|(other, _)| *other != at);
                let taken = Taken::by("example.com", others.map(|(_, other)| *other));
                prop_assert!(!taken.has_any(&one.status.accepted_names));
            }
        }
    }
}
