//! Namespaces that end: their content goes first, and Pods before everything else.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_codec::{Kind, Object, kinds};
use setpoint_model::{Key, condition};
use setpoint_proto::ApiError;
use setpoint_proto::core::{Namespace, NamespaceCondition};
use setpoint_proto::meta::Time;

use super::live;
use super::node::Node;
use super::task::Outcome;
use crate::kinds::Role;
use crate::registry::write::current::Current;
use crate::registry::write::namespace_lifecycle;
use crate::registry::{AtLeast, Filter, Registry, RequestContext, Target, errors};

/// Between two looks at content that something else holds. The last Pod, and the last object, of a namespace bring the
/// task back at once.
const RECHECK: Duration = Duration::from_secs(5);

/// What a round left in the namespace.
#[derive(Default)]
struct Remains {
    nodes: Vec<Node>,
    /// Why kinds of objects could not be deleted.
    errors: Vec<String>,
}

/// Deletes what is in the namespace, and lets it go once it is empty.
pub(super) async fn empty(
    registry: &Registry,
    context: &RequestContext,
    name: &str,
) -> Result<Outcome, ApiError> {
    // Nothing new comes into a namespace that ends: what is listed from here on is all there is.
    let Some(namespace) = ending(registry, name).await? else {
        return Ok(Outcome::Done);
    };
    let mut remains = Remains::default();
    // Services, ConfigMaps and policies stay for as long as Pods that may rely on them.
    for pods in [true, false] {
        let kinds = kinds().iter().filter(|kind| kind.namespaced);
        for kind in kinds.filter(|kind| (crate::kinds::of(kind).role() == Role::Pod) == pods) {
            remains.delete(registry, context, kind, &namespace).await?;
        }
        if !remains.are_none() {
            break;
        }
    }
    record(registry, context, &namespace, &remains).await?;
    Ok(match (remains.are_none(), remains.errors.is_empty()) {
        (true, _) => Outcome::Done,
        (false, true) => Outcome::Later(RECHECK),
        (false, false) => Outcome::Failed,
    })
}

impl Remains {
    fn are_none(&self) -> bool {
        self.nodes.is_empty() && self.errors.is_empty()
    }

    /// Deletes the objects of a kind, and notes which are still there.
    async fn delete(
        &mut self,
        registry: &Registry,
        context: &RequestContext,
        kind: &'static Kind,
        namespace: &Node,
    ) -> Result<(), ApiError> {
        let content = content_of(registry, kind, namespace).await?;
        if content.is_empty() {
            return Ok(());
        }
        // Asked afterwards, so that none of this is in another namespace of the same name.
        let now = ending(registry, &namespace.key.name).await?;
        if now.is_none_or(|now| now.uid != namespace.uid) {
            return Err(errors::not_found(namespace.kind, &namespace.key.name));
        }
        for node in content.iter().filter(|node| !node.ending) {
            if let Err(error) = live::delete(registry, context, node, "Background").await {
                self.errors.push(error.message);
                break;
            }
        }
        let left = content_of(registry, kind, namespace).await?;
        self.nodes.extend(left);
        Ok(())
    }

    /// Returns the conditions that say how far the deletion has come, in upstream's words.
    fn conditions(&self, now: Timestamp) -> Vec<NamespaceCondition> {
        let (resources, finalizers) = (self.by_resource(), self.by_finalizer());
        let mut errors = self.errors.clone();
        errors.sort_unstable();
        let failed = format!(
            "Failed to delete all resource types, {} remaining: {}",
            errors.len(),
            errors.join(", ")
        );
        let remaining = format!("Some resources are remaining: {}", resources.join(", "));
        let held = format!(
            "Some content in the namespace has finalizers remaining: {}",
            finalizers.join(", ")
        );
        let some = |there: bool, reason, message| there.then_some((reason, message));
        CONDITIONS
            .iter()
            .map(|(kind, reason, message)| {
                let problem = match *kind {
                    CONTENT_FAILURE => some(!errors.is_empty(), "ContentDeletionFailed", &failed),
                    CONTENT_REMAINING => {
                        some(!resources.is_empty(), "SomeResourcesRemain", &remaining)
                    }
                    FINALIZERS_REMAINING => {
                        some(!finalizers.is_empty(), "SomeFinalizersRemain", &held)
                    }
                    _ => None,
                };
                let status = match problem {
                    Some(_) => condition::TRUE,
                    None => condition::FALSE,
                };
                let (reason, message) = problem.map_or((*reason, *message), |(reason, message)| {
                    (reason, message.as_str())
                });
                NamespaceCondition {
                    r#type: (*kind).into(),
                    status: status.into(),
                    last_transition_time: Time::from(now),
                    reason: reason.into(),
                    message: message.into(),
                }
            })
            .collect()
    }

    fn by_resource(&self) -> Vec<String> {
        let kinds = self.nodes.iter().map(|node| node.kind);
        let numbers = count(kinds.map(|kind| format!("{}.{}", kind.plural, kind.group)));
        numbers
            .into_iter()
            .map(|(resource, number)| format!("{resource} has {number} resource instances"))
            .collect()
    }

    fn by_finalizer(&self) -> Vec<String> {
        let finalizers = self.nodes.iter().flat_map(|node| &node.finalizers);
        let numbers = count(finalizers.cloned());
        numbers
            .into_iter()
            .map(|(finalizer, number)| format!("{finalizer} in {number} resource instances"))
            .collect()
    }
}

const CONTENT_FAILURE: &str = "NamespaceDeletionContentFailure";
const CONTENT_REMAINING: &str = "NamespaceContentRemaining";
const FINALIZERS_REMAINING: &str = "NamespaceFinalizersRemaining";

/// Each type with its reason and message while all is well. All kinds are compiled in, so the first two never fail.
const CONDITIONS: [(&str, &str, &str); 5] = [
    (
        "NamespaceDeletionDiscoveryFailure",
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

fn count(names: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut numbers = BTreeMap::<_, usize>::new();
    for name in names {
        let number = numbers.entry(name).or_default();
        *number = number.saturating_add(1);
    }
    numbers
}

/// Writes the conditions, and lets the namespace go if nothing remains.
async fn record(
    registry: &Registry,
    context: &RequestContext,
    namespace: &Node,
    remains: &Remains,
) -> Result<(), ApiError> {
    let target = Target::whole(namespace.kind, &namespace.key);
    let conditions = remains.conditions(Timestamp::now());
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        let new = slot.insert(old.object.clone_box());
        let new = new.downcast_mut::<Namespace>();
        let Some(new) = new.filter(|new| new.metadata.uid == namespace.uid) else {
            return Err(errors::not_found(target.kind, &target.name));
        };
        for condition in conditions.clone() {
            condition::set(&mut new.status.conditions, condition);
        }
        if remains.are_none() {
            // Also those that users set: without the `finalize` subresource nobody could take them away.
            new.spec.finalizers.clear();
        }
        Ok(())
    };
    registry
        .guaranteed_update(context, &target, None, 0, &mut mutate)
        .await?;
    Ok(())
}

async fn content_of(
    registry: &Registry,
    kind: &'static Kind,
    namespace: &Node,
) -> Result<Vec<Node>, ApiError> {
    let all = Filter::all(kind, namespace.key.name.as_str());
    let there = registry.cache().list(&all, AtLeast::Newest).await?;
    let nodes = there.items.iter().filter_map(|item| Node::of(item));
    Ok(nodes.collect())
}

/// Returns the namespace if it is ending.
async fn ending(registry: &Registry, name: &str) -> Result<Option<Node>, ApiError> {
    let (key, kind) = (Key::new("", name), namespace_lifecycle::kind());
    let there = registry.cache().get(kind, &key, AtLeast::Newest).await?;
    let there = there.as_deref().and_then(Node::of);
    Ok(there.filter(|namespace| namespace.ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(name: &str) -> Node {
        Node {
            kind: kinds().by_resource("pods").expect("it is compiled in"),
            key: Key::new("production", name),
            uid: name.into(),
            owners: Vec::new(),
            finalizers: vec!["example.com/a".into()],
            ending: true,
        }
    }

    fn told(remains: &Remains) -> Vec<(String, String, String)> {
        let conditions = remains.conditions(Timestamp::UNIX_EPOCH).into_iter();
        conditions
            .filter(|condition| condition.status == condition::TRUE)
            .map(|condition| (condition.r#type, condition.reason, condition.message))
            .collect()
    }

    /// Checks K9.
    #[test]
    fn conditions_say_what_remains_in_upstreams_words() {
        let mut remains = Remains::default();
        assert_eq!(told(&remains), []);
        assert_eq!(remains.conditions(Timestamp::UNIX_EPOCH).len(), 5);
        remains.nodes = vec![held("a"), held("b")];
        remains.errors = vec!["b".into(), "a".into()];
        let owned = |kind: &str, reason: &str, message: &str| {
            (kind.to_owned(), reason.to_owned(), message.to_owned())
        };
        assert_eq!(
            told(&remains),
            [
                owned(
                    CONTENT_FAILURE,
                    "ContentDeletionFailed",
                    "Failed to delete all resource types, 2 remaining: a, b"
                ),
                owned(
                    CONTENT_REMAINING,
                    "SomeResourcesRemain",
                    "Some resources are remaining: pods. has 2 resource instances"
                ),
                owned(
                    FINALIZERS_REMAINING,
                    "SomeFinalizersRemain",
                    "Some content in the namespace has finalizers remaining: example.com/a in 2 resource instances"
                ),
            ]
        );
    }
}
