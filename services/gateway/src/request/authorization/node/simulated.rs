//! Agents of simulated nodes, which are many in one process: such an agent may act as each of its nodes.
//!
//! The agent `system:setpoint:simulated-nodes:<prefix>` may impersonate the users `system:node:<prefix>-<number>` and
//! the group of nodes, and nobody else. The rule is fixed, since no role can say it: a rule has names, but no patterns
//! of them.

use setpoint_kinds::Identity;
use setpoint_model::users::{
    NODE_PREFIX, NODES, SIMULATED_NODES, SIMULATED_NODES_PREFIX, is_simulated_node,
};

use super::Attributes;

/// Returns whether an agent may act as a user or with a group.
pub(super) fn may(user: &Identity, attributes: &Attributes) -> bool {
    if attributes.verb != "impersonate" {
        return false;
    }
    let (Some(prefix), Some(resource)) = (prefix_of(user), &attributes.resource) else {
        return false;
    };
    let is_core = resource.group.is_empty() && resource.subresource.is_empty();
    is_core
        && match resource.resource.as_str() {
            "users" => is_node_of(prefix, &resource.name),
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

/// Returns whether a user is a node of the agent with a prefix.
fn is_node_of(prefix: &str, user: &str) -> bool {
    let node = user.strip_prefix(NODE_PREFIX);
    node.is_some_and(|node| is_simulated_node(prefix, node))
}

#[cfg(test)]
mod tests {
    use super::*;
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

    /// Checks V13.
    #[test]
    fn an_agent_acts_as_its_own_nodes_only() {
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

    #[test]
    fn an_agent_has_name_and_group() {
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
