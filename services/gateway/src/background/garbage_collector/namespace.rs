//! Deletes the content of a namespace that is being deleted, its Pods first (upstream: the namespace controller).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_codec::{Kind, Object, kind_of};
use setpoint_model::{Key, condition};
use setpoint_proto::ApiError;
use setpoint_proto::core::{Namespace, NamespaceCondition};
use setpoint_proto::meta::Time;

use super::live;
use super::node::Node;
use super::task::Outcome;
use crate::kinds::Role;
use crate::kinds::namespace::CONTENT;
use crate::registry::write::current::Current;
use crate::registry::{AtLeast, Filter, Registry, RequestContext, Target, errors};

/// The delay before content with finalizers is checked again. The deletion of the last Pod, and of the last object, repeats
/// the task at once.
const RECHECK_DELAY: Duration = Duration::from_secs(5);

/// The content that is left in the namespace.
#[derive(Default)]
struct RemainingContent {
    nodes: Vec<Node>,
    /// Messages of deletions that failed.
    errors: Vec<String>,
}

/// Deletes the content of the namespace, sets its conditions, and removes the finalizer of the content once it is empty.
pub(super) async fn delete_content(
    registry: &Registry,
    context: &RequestContext,
    name: &str,
) -> Result<Outcome, ApiError> {
    // No object is created in a namespace that is being deleted, so the lists below are complete.
    let Some(namespace) = ending(registry, name).await? else {
        return Ok(Outcome::Done);
    };
    let mut remaining = RemainingContent::default();
    // Services, ConfigMaps and policies are deleted after the Pods, which may rely on them.
    for pods in [true, false] {
        let kinds = registry
            .cache()
            .kinds()
            .iter()
            .filter(|kind| kind.namespaced);
        for kind in kinds.filter(|kind| (crate::kinds::of(kind).role() == Role::Pod) == pods) {
            remaining
                .delete(registry, context, kind, &namespace)
                .await?;
        }
        if !remaining.is_empty() {
            break;
        }
    }
    update_status(registry, context, &namespace, &remaining).await?;
    Ok(match (remaining.is_empty(), remaining.errors.is_empty()) {
        (true, _) => Outcome::Done,
        (false, true) => Outcome::Later(RECHECK_DELAY),
        (false, false) => Outcome::Failed,
    })
}

impl RemainingContent {
    fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.errors.is_empty()
    }

    /// Deletes the objects of a kind, and adds those that still exist.
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
        // Checked after the list, so that none of it is in another namespace of the same name.
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

    /// Returns the conditions of the deletion, with upstream's messages.
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
        let some = |given: bool, reason, message| given.then_some((reason, message));
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

/// Each type with its reason and message for the status `False`. All kinds are compiled in, so the first two never fail.
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

/// Sets the conditions, and removes the finalizers if nothing is left.
async fn update_status(
    registry: &Registry,
    context: &RequestContext,
    namespace: &Node,
    remaining: &RemainingContent,
) -> Result<(), ApiError> {
    let target = Target::whole(namespace.kind, &namespace.key);
    let conditions = remaining.conditions(Timestamp::now());
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        let new = slot.insert(old.object.clone_box());
        let new = new.downcast_mut::<Namespace>();
        let Some(new) = new.filter(|new| new.metadata.uid == namespace.uid) else {
            return Err(errors::not_found(target.kind, &target.name));
        };
        for condition in conditions.clone() {
            condition::set(&mut new.status.conditions, condition);
        }
        if remaining.is_empty() {
            // Those of others hold the namespace until they remove them through the subresource `finalize`.
            new.spec.finalizers.retain(|finalizer| finalizer != CONTENT);
        }
        Ok(())
    };
    registry
        .guaranteed_update(context, &target, &mut mutate)
        .await?;
    Ok(())
}

async fn content_of(
    registry: &Registry,
    kind: &'static Kind,
    namespace: &Node,
) -> Result<Vec<Node>, ApiError> {
    let all = Filter::all(kind, namespace.key.name.as_str());
    let list = registry.cache().list(&all, AtLeast::Newest).await?;
    let nodes = list.items.iter().filter_map(|item| Node::of(item));
    Ok(nodes.collect())
}

/// Returns the namespace if it is being deleted.
async fn ending(registry: &Registry, name: &str) -> Result<Option<Node>, ApiError> {
    let (key, kind) = (Key::new("", name), kind_of::<Namespace>());
    let found = registry.cache().get(kind, &key, AtLeast::Newest).await?;
    let found = found.as_deref().and_then(Node::of);
    Ok(found.filter(|namespace| namespace.ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(name: &str) -> Node {
        Node {
            kind: kind_of::<setpoint_proto::core::Pod>(),
            key: Key::new("production", name),
            uid: name.into(),
            owners: Vec::new(),
            finalizers: vec!["example.com/a".into()],
            ending: true,
        }
    }

    fn true_conditions(remaining: &RemainingContent) -> Vec<(String, String, String)> {
        let conditions = remaining.conditions(Timestamp::UNIX_EPOCH).into_iter();
        conditions
            .filter(|condition| condition.status == condition::TRUE)
            .map(|condition| (condition.r#type, condition.reason, condition.message))
            .collect()
    }

    /// Checks K9.
    #[test]
    fn conditions_name_the_remaining_content_with_upstreams_messages() {
        let mut remaining = RemainingContent::default();
        assert_eq!(true_conditions(&remaining), []);
        assert_eq!(remaining.conditions(Timestamp::UNIX_EPOCH).len(), 5);
        remaining.nodes = vec![held("a"), held("b")];
        remaining.errors = vec!["b".into(), "a".into()];
        let owned = |kind: &str, reason: &str, message: &str| {
            (kind.to_owned(), reason.to_owned(), message.to_owned())
        };
        assert_eq!(
            true_conditions(&remaining),
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
