//! The mode `Node`: what nodes may do (upstream: `plugin/pkg/auth/authorizer/node`).
//!
//! A node is a user `system:node:<name>` of the group `system:nodes`. It may do what it needs for itself, for the Pods
//! that are bound to it, and for what these name; [`rules`] says what that is, [`relations`] what a Pod names. What a
//! node may write is narrowed further by the admission plugin NodeRestriction. An agent of simulated nodes acts as each
//! of them ([`simulated`]).
//!
//! # Decisions
//!
//! * 2026-11: we chose to look for a relation in the watch cache, which has the Pods of each node in an index, over a
//!   graph of all Pods and what they name (kube-apiserver's): nothing is kept up to date with every write of a Pod, and
//!   the answer is never older than the cache. A question costs one look at each Pod of the node in the namespace.
//!   Wrong if nodes run thousands of Pods in one namespace.

mod relations;
mod rules;
mod simulated;

use setpoint_codec::kind_of;
use setpoint_kinds::Identity;
use setpoint_model::users::{NODE_PREFIX, NODES};
use setpoint_proto::ApiError;
use setpoint_proto::core::Pod;
use setpoint_proto::rbac::{ClusterRoleBinding, RoleRef, Subject};
use setpoint_rbac::{Index, bootstrap};
use setpoint_store::cache::{AtLeast, Cache};

use super::super::{Attributes, Resource};
use super::rbac::request;
use relations::Relations;
use rules::Rule;

/// The role of the rules that are the same for every node.
const ROLE: &str = "system:node";

/// Decides what nodes may do.
pub(super) struct Nodes {
    cache: Cache,
    /// The role of nodes, as if it were bound to all of them.
    role: Index,
}

/// Returns the name of the node that a user is, which may be empty; `None` if it is none (upstream:
/// `NodeIdentifier`).
pub(crate) fn node_of(user: &Identity) -> Option<&str> {
    let node = user.name.strip_prefix(NODE_PREFIX)?;
    let is_node = user.groups.iter().any(|group| group == NODES);
    is_node.then_some(node)
}

impl Nodes {
    /// Returns the authorizer of the nodes whose Pods a cache has.
    pub(super) fn new(cache: &Cache) -> Self {
        Self {
            cache: cache.clone(),
            role: role_of_nodes(),
        }
    }

    /// Returns whether a user may do something as a node, as far as the cache knows.
    pub(super) fn allows(&self, user: &Identity, attributes: &Attributes) -> bool {
        let Some(node) = node_of(user) else {
            return simulated::may(user, attributes, &self.cache);
        };
        match rules::of(node, attributes) {
            Rule::Allowed => true,
            Rule::Denied(_) => false,
            Rule::Related(kind) => {
                let relations = Relations::new(&self.cache, node);
                let resource = attributes.resource.as_ref();
                resource.is_some_and(|of| relations.has(kind, &of.namespace, &of.name))
            }
            Rule::OfRole => self.role.decide(request(user, attributes)).allowed(),
        }
    }

    /// Returns why a request that is not allowed is not; empty for users who are no nodes.
    pub(super) fn reason(user: &Identity, attributes: &Attributes) -> String {
        match node_of(user) {
            None => String::new(),
            Some("") => format!("unknown node for user {:?}", user.name),
            Some(node) => match rules::of(node, attributes) {
                Rule::Denied(reason) => reason.into_owned(),
                Rule::Related(_) => {
                    format!("no relationship found between node '{node}' and this object")
                }
                Rule::Allowed | Rule::OfRole => String::new(),
            },
        }
    }

    /// Returns whether a decision depends on the cache.
    pub(super) fn depends_on_cache(user: &Identity, attributes: &Attributes) -> bool {
        let of_node = |node| matches!(rules::of(node, attributes), Rule::Related(_));
        node_of(user).is_some_and(of_node)
    }

    /// Waits until the cache has all that was written before: a node may ask about a Pod of which it was told by
    /// another gateway.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn reach_newest(&self) -> Result<(), ApiError> {
        self.cache.reach(kind_of::<Pod>(), AtLeast::Newest).await
    }
}

/// Returns an index in which the group of nodes has their role, which the roles of a cluster do not bind.
fn role_of_nodes() -> Index {
    let mut index = Index::default();
    let mut roles = bootstrap::cluster_roles().into_iter();
    if let Some(role) = roles.find(|role| role.metadata.name == ROLE) {
        index.upsert_cluster_role(role);
    }
    index.upsert_cluster_role_binding(ClusterRoleBinding {
        subjects: vec![Subject {
            kind: "Group".into(),
            name: NODES.into(),
            ..Subject::default()
        }],
        role_ref: RoleRef {
            kind: "ClusterRole".into(),
            name: ROLE.into(),
            ..RoleRef::default()
        },
        ..ClusterRoleBinding::default()
    });
    index
}

#[cfg(test)]
mod tests;
