//! Dependants whose owners are ending or gone.
//!
//! ```text
//!  its owners            what becomes of the dependant
//!  ────────────────────  ───────────────────────────────────────────────────────────────
//!  one is unresolvable   nothing
//!  one is solid          stays; references to owners that are gone or wait are taken away
//!  none solid, one waits deleted in the foreground, if it has dependants of its own
//!  all are gone          deleted, as finalizers that it has already say
//! ```
//!
//! An owner *waits* while it is being deleted in the foreground. (upstream: `attemptToDeleteItem`)

use setpoint_proto::ApiError;
use setpoint_proto::meta::OwnerReference;

use super::live;
use super::node::{Node, Place};
use super::task::{Outcome, Position};
use crate::registry::validation::metadata::{FOREGROUND, ORPHAN};
use crate::registry::{AtLeast, Registry, RequestContext};

/// The owner references of a node, by what they point at.
#[derive(Debug, Default)]
pub(super) struct References {
    /// Owners that are there and do not wait for their dependants.
    solid: usize,
    /// The uids of owners that are not there.
    dangling: Vec<String>,
    /// The uids of owners that wait for their dependants.
    waiting: Vec<String>,
    /// References that nobody can resolve.
    unresolvable: usize,
}

impl References {
    /// Looks at every owner of `node`. `at` says how old the answer may be.
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
        let Place::At(kind, key) = node.place_of(owner) else {
            self.unresolvable = self.unresolvable.saturating_add(1);
            return Ok(());
        };
        let there = registry.cache().get(kind, &key, at).await?;
        let there = there.as_deref().and_then(Node::of);
        match there.filter(|there| there.uid == owner.uid) {
            None => self.dangling.push(owner.uid.clone()),
            Some(there) if there.waits_for_dependants() => self.waiting.push(owner.uid.clone()),
            Some(_) => self.solid = self.solid.saturating_add(1),
        }
        Ok(())
    }

    /// Is there something to do about them?
    pub fn want_attempt(&self) -> bool {
        self.unresolvable == 0 && !(self.dangling.is_empty() && self.waiting.is_empty())
    }

    fn is_gone(&self, owner: &OwnerReference) -> bool {
        self.dangling.contains(&owner.uid) || self.waiting.contains(&owner.uid)
    }
}

/// Deletes a dependant if none of its owners is left, or takes away its references to those that are not.
pub(super) async fn attempt(
    registry: &Registry,
    context: &RequestContext,
    node: &Node,
    position: Position,
) -> Result<Outcome, ApiError> {
    let Some(now) = live::now(registry, node).await? else {
        return Ok(Outcome::Done);
    };
    // The cache holds every write acknowledged before that look, and an owner that is gone or waits stays so.
    let references = References::of(registry, &now, AtLeast::Any).await?;
    if now.ending || !references.want_attempt() {
        return Ok(Outcome::Done);
    }
    if references.solid > 0 {
        let keep = |owner: &OwnerReference| !references.is_gone(owner);
        live::change(registry, context, &now, |meta| {
            meta.owner_references.retain(keep);
        })
        .await?;
        return Ok(Outcome::Done);
    }
    let policy = policy(&now, &references, position);
    live::delete_abandoned(registry, context, &now, policy).await?;
    Ok(Outcome::Done)
}

fn policy(node: &Node, references: &References, position: Position) -> &'static str {
    if !references.waiting.is_empty() && position.has_dependants {
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
