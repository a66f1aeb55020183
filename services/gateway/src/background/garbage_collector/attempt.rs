//! Deletes a dependant whose owners are being deleted or gone (upstream: `attemptToDeleteItem`).
//!
//! ```text
//!  owners                        dependant
//!  ────────────────────────────  ──────────────────────────────────────────────────────────────────
//!  one is unresolvable           unchanged
//!  one is solid                  kept; its references to dangling and waiting owners are removed
//!  none is solid, one is waiting deleted in the foreground, if it has dependants itself
//!  all are dangling              deleted with the policy that its finalizers imply
//! ```
//!
//! An owner is *waiting* while it is being deleted in the foreground.

use setpoint_proto::ApiError;
use setpoint_proto::meta::OwnerReference;

use super::live;
use super::node::{Location, Node};
use super::task::{GraphState, Outcome};
use crate::registry::validation::metadata::{FOREGROUND, ORPHAN};
use crate::registry::{AtLeast, Registry, RequestContext};

/// The owner references of a node, by the state of the owner.
#[derive(Debug, Default)]
pub(super) struct References {
    /// The number of owners that exist and do not wait for their dependants.
    solid: usize,
    /// The uids of owners that do not exist.
    dangling: Vec<String>,
    /// The uids of owners that wait for their dependants.
    waiting: Vec<String>,
    /// The number of references that cannot be resolved.
    unresolvable: usize,
}

impl References {
    /// Reads every owner of `node` from a cache that is as new as `at`.
    pub async fn of(registry: &Registry, node: &Node, at: AtLeast) -> Result<Self, ApiError> {
        let mut references = Self::default();
        for owner in &node.owners {
            references.add(registry, node, owner, at).await?;
        }
        Ok(references)
    }

    async fn add(
        &mut self,
        registry: &Registry,
        node: &Node,
        owner: &OwnerReference,
        at: AtLeast,
    ) -> Result<(), ApiError> {
        let Location::At(kind, key) = node.location_of(registry.cache().kinds(), owner) else {
            self.unresolvable = self.unresolvable.saturating_add(1);
            return Ok(());
        };
        let found = registry.cache().get(kind, &key, at).await?;
        let found = found.as_deref().and_then(Node::of);
        match found.filter(|found| found.uid == owner.uid) {
            None => self.dangling.push(owner.uid.clone()),
            Some(found) if found.waits_for_dependants() => self.waiting.push(owner.uid.clone()),
            Some(_) => self.solid = self.solid.saturating_add(1),
        }
        Ok(())
    }

    /// Returns whether the dependant has to be deleted or changed.
    pub fn want_attempt(&self) -> bool {
        self.unresolvable == 0 && !(self.dangling.is_empty() && self.waiting.is_empty())
    }

    fn is_obsolete(&self, owner: &OwnerReference) -> bool {
        self.dangling.contains(&owner.uid) || self.waiting.contains(&owner.uid)
    }
}

/// Deletes a dependant without a solid owner, or removes its references to owners that are gone or waiting.
pub(super) async fn attempt(
    registry: &Registry,
    context: &RequestContext,
    node: &Node,
    graph: GraphState,
) -> Result<Outcome, ApiError> {
    let Some(now) = live::get(registry, node).await? else {
        return Ok(Outcome::Done);
    };
    // The read above has brought the cache up to date, and an owner that is gone or waiting remains so.
    let references = References::of(registry, &now, AtLeast::Any).await?;
    if now.ending || !references.want_attempt() {
        return Ok(Outcome::Done);
    }
    if references.solid > 0 {
        let keep = |owner: &OwnerReference| !references.is_obsolete(owner);
        live::change(registry, context, &now, |meta| {
            meta.owner_references.retain(keep);
        })
        .await?;
        return Ok(Outcome::Done);
    }
    let policy = policy(&now, &references, graph);
    live::delete_abandoned(registry, context, &now, policy).await?;
    Ok(Outcome::Done)
}

fn policy(node: &Node, references: &References, graph: GraphState) -> &'static str {
    if !references.waiting.is_empty() && graph.has_dependants {
        return "Foreground";
    }
    if node.has_finalizer(ORPHAN) {
        return "Orphan";
    }
    match node.has_finalizer(FOREGROUND) {
        true => "Foreground",
        false => "Background",
    }
}
