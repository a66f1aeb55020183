//! Agents of simulated nodes, which are many in one process: such an agent may act as each of its nodes.
//!
//! The agent `system:setpoint:simulated-nodes:<prefix>` may impersonate the users `system:node:<prefix>-<number>` and
//! the group of nodes, and nobody else. The rule is fixed, since no role can say it: a rule has names, but no patterns
//! of them.
//!
//! A real node may have such a name, too. A Node that exists and is not labelled as a simulated one is none of the
//! agent's: the label is the mark of its nodes, which it sets when it registers them, and a real node has another one.

use setpoint_codec::kind_of;
use setpoint_kinds::Identity;
use setpoint_model::Key;
use setpoint_model::users::{
    NODE_PREFIX, NODES, SIMULATED_NODES, SIMULATED_NODES_PREFIX, is_simulated_node,
};

use setpoint_model::volume::{RUNTIME, SIMULATED};
use setpoint_proto::core::Node;
use setpoint_store::cache::Cache;

use super::Attributes;

/// Returns whether an agent may act as a user or with a group, as far as the cache knows the Nodes.
pub(super) fn may(user: &Identity, attributes: &Attributes, cache: &Cache) -> bool {
    if attributes.verb != "impersonate" {
        return false;
    }
    let (Some(prefix), Some(resource)) = (prefix_of(user), &attributes.resource) else {
        return false;
    };
    let is_core = resource.group.is_empty() && resource.subresource.is_empty();
    is_core
        && match resource.resource.as_str() {
            "users" => {
                let node = node_of(prefix, &resource.name);
                node.is_some_and(|node| !is_real(node, cache))
            }
            "groups" => resource.name == NODES,
            _ => false,
        }
}

/// Returns the prefix of the names of an agent's nodes; `None` if the user is no such agent.
fn prefix_of(user: &Identity) -> Option<&str> {
    let prefix = user.name.strip_prefix(SIMULATED_NODES_PREFIX)?;
    let is_agent = user.groups.iter().any(|group| group == SIMULATED_NODES);
    (is_agent && !prefix.is_empty()).then_some(prefix)
}

/// Returns the node of the agent with a prefix that a user is.
fn node_of<'u>(prefix: &str, user: &'u str) -> Option<&'u str> {
    let node = user.strip_prefix(NODE_PREFIX)?;
    is_simulated_node(prefix, node).then_some(node)
}

/// Returns whether there is a Node of this name that is not simulated.
fn is_real(node: &str, cache: &Cache) -> bool {
    let found = cache.peek(kind_of::<Node>(), &Key::new("", node));
    found.is_some_and(|found| {
        let runtime = found.labels().get(RUNTIME);
        runtime.is_none_or(|runtime| runtime != SIMULATED)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use setpoint_store::Memory;
    use setpoint_store::cache::Settings;

    use super::{Attributes, Cache, Identity, SIMULATED_NODES};
    use crate::request::Resource;

    fn agent(name: &str, group: &str) -> Identity {
        Identity {
            name: name.into(),
            groups: vec![group.into(), "system:authenticated".into()],
            ..Identity::default()
        }
    }

    fn act_as(resource: &str, name: &str) -> Attributes {
        Attributes::of_resource(
            "impersonate",
            Resource {
                version: "v1".into(),
                resource: resource.into(),
                name: name.into(),
                ..Resource::default()
            },
        )
    }

    fn may(user: &Identity, attributes: &Attributes) -> bool {
        let cache = Cache::start(Arc::new(Memory::default()), Settings::default());
        super::may(user, attributes, &cache)
    }

    /// Checks V13.
    #[tokio::test]
    async fn an_agent_acts_as_its_own_nodes_only() {
        let own = agent("system:setpoint:simulated-nodes:sim", SIMULATED_NODES);
        for (resource, name, expected) in [
            ("users", "system:node:sim-0", true),
            ("users", "system:node:sim-1234", true),
            ("users", "system:node:sim-", false),
            ("users", "system:node:sim", false),
            ("users", "system:node:sim-0a", false),
            ("users", "system:node:sim--0", false),
            ("users", "system:node:sim-a-0", false),
            ("users", "system:node:simx-0", false),
            ("users", "system:node:other-0", false),
            ("users", "sim-0", false),
            ("users", "system:admin", false),
            ("groups", "system:nodes", true),
            ("groups", "system:masters", false),
            ("uids", "system:nodes", false),
            ("serviceaccounts", "system:node:sim-0", false),
        ] {
            assert_eq!(
                may(&own, &act_as(resource, name)),
                expected,
                "{resource} {name}"
            );
        }
        let mut other_verb = act_as("users", "system:node:sim-0");
        other_verb.verb = "delete".into();
        assert!(!may(&own, &other_verb));
        let mut uid = act_as("groups", "system:nodes");
        uid.resource.as_mut().unwrap().group = "authentication.k8s.io".into();
        assert!(!may(&own, &uid));
    }

    #[tokio::test]
    async fn an_agent_has_name_and_group() {
        let node = act_as("users", "system:node:sim-0");
        let without_group = agent("system:setpoint:simulated-nodes:sim", "system:nodes");
        assert!(!may(&without_group, &node));
        assert!(!may(&agent("sim", SIMULATED_NODES), &node));
        assert!(!may(
            &agent("system:setpoint:simulated-nodes:", SIMULATED_NODES),
            &act_as("users", "system:node:-0")
        ));
        assert!(!may(&agent("system:node:sim", SIMULATED_NODES), &node));
    }
}
