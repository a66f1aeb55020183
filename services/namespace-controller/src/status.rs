//! Status: the conditions of the deletion, with upstream's messages.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_controller::Outcome;
use setpoint_model::condition;
use setpoint_proto::core::{NamespaceCondition, NamespaceStatus};

use crate::{Action, Content, Item, World};

const DISCOVERY_FAILURE: &str = "NamespaceDeletionDiscoveryFailure";
const CONTENT_FAILURE: &str = "NamespaceDeletionContentFailure";
const CONTENT_REMAINING: &str = "NamespaceContentRemaining";
const FINALIZERS_REMAINING: &str = "NamespaceFinalizersRemaining";

/// Each type with its reason and message for the status `False`. The gateway lists all kinds in one read, so the second
/// never holds.
const CONDITIONS: [(&str, &str, &str); 5] = [
    (
        DISCOVERY_FAILURE,
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        CONTENT_FAILURE,
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (
        CONTENT_REMAINING,
        "ContentRemoved",
        "All content successfully removed",
    ),
    (
        FINALIZERS_REMAINING,
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
];

/// Returns the status that the namespace should have; `None` if it has it, or if the content was changed since it was
/// read.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<NamespaceStatus> {
    match &outcome.failed {
        None if !outcome.plan.is_empty() => None,
        failed => of_content(world, failed.as_ref().map(|error| error.message.as_str())),
    }
}

/// Returns the status for the content as it was read; `failed` is the message of a deletion that failed since.
pub(crate) fn of_content(world: &World, failed: Option<&str>) -> Option<NamespaceStatus> {
    let Content::Known(items) = &world.content else {
        return None;
    };
    let mut status = world.namespace.object.status.clone();
    let mut has_changed = false;
    for (kind, problem) in problems(world, items, failed) {
        let stated = state(kind, problem, world);
        has_changed |= condition::set(&mut status.conditions, stated);
    }
    has_changed.then_some(status)
}

/// Returns what is to be said for each type of condition that holds: the reason and the message.
fn problems(
    world: &World,
    items: &[Item],
    failed: Option<&str>,
) -> Vec<(&'static str, Option<(&'static str, String)>)> {
    let mut errors: BTreeSet<&str> = failed.into_iter().collect();
    // Failures of kinds of which nothing is left do not matter any more.
    let left = |resource: &str| items.iter().any(|item| item.resource == resource);
    let failures = world.failures.iter().filter(|(kind, _)| left(kind));
    errors.extend(failures.map(|(_, failure)| failure.message.as_str()));
    let errors: Vec<_> = errors.into_iter().collect();
    let resources = count(items.iter().map(|item| with_group(&item.resource)));
    let resources = sentences(&resources, |resource, number| {
        format!("{resource} has {number} resource instances")
    });
    let finalizers = count(items.iter().flat_map(|item| item.finalizers.clone()));
    let finalizers = sentences(&finalizers, |finalizer, number| {
        format!("{finalizer} in {number} resource instances")
    });
    let some = |given: bool, reason, message| given.then_some((reason, message));
    let problem = |kind| match kind {
        DISCOVERY_FAILURE => some(
            !world.undiscovered.is_empty(),
            "DiscoveryFailed",
            discovery_failure(&world.undiscovered),
        ),
        CONTENT_FAILURE => some(
            !errors.is_empty(),
            "ContentDeletionFailed",
            format!(
                "Failed to delete all resource types, {} remaining: {}",
                errors.len(),
                errors.join(", ")
            ),
        ),
        CONTENT_REMAINING => some(
            !resources.is_empty(),
            "SomeResourcesRemain",
            format!("Some resources are remaining: {resources}"),
        ),
        FINALIZERS_REMAINING => some(
            !finalizers.is_empty(),
            "SomeFinalizersRemain",
            format!("Some content in the namespace has finalizers remaining: {finalizers}"),
        ),
        _ => None,
    };
    CONDITIONS
        .iter()
        .map(|(kind, ..)| (*kind, problem(kind)))
        .collect()
}

fn discovery_failure(groups: &[String]) -> String {
    let number = groups.len();
    let stale = groups
        .iter()
        .map(|group| format!("{group}: stale GroupVersion discovery: {group}"));
    let stale = stale.collect::<Vec<_>>().join(", ");
    format!(
        "Discovery failed for some groups, {number} failing: unable to retrieve the complete list of server APIs: {stale}"
    )
}

fn state(
    kind: &'static str,
    problem: Option<(&'static str, String)>,
    world: &World,
) -> NamespaceCondition {
    let well = CONDITIONS.iter().find(|(known, ..)| *known == kind);
    let (_, reason, message) = well.copied().unwrap_or_default();
    let (status, reason, message) = match problem {
        Some((reason, message)) => (condition::TRUE, reason, message),
        None => (condition::FALSE, reason, message.to_owned()),
    };
    NamespaceCondition {
        r#type: kind.to_owned(),
        status: status.to_owned(),
        last_transition_time: world.now.into(),
        reason: reason.to_owned(),
        message,
    }
}

/// Returns the plural and the group, which is empty for the core group: `pods.`, as upstream prints it.
fn with_group(resource: &str) -> String {
    match resource.contains('.') {
        true => resource.to_owned(),
        false => format!("{resource}."),
    }
}

fn count(names: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut numbers = BTreeMap::<_, usize>::new();
    for name in names {
        let number = numbers.entry(name).or_default();
        *number = number.saturating_add(1);
    }
    numbers
}

fn sentences(
    numbers: &BTreeMap<String, usize>,
    sentence: impl Fn(&str, usize) -> String,
) -> String {
    let sentences = numbers.iter().map(|(name, number)| sentence(name, *number));
    sentences.collect::<Vec<_>>().join(", ")
}
