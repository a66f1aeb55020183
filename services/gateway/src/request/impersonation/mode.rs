//! The modes of impersonation.

use setpoint_kinds::Identity;
use setpoint_model::names;
use setpoint_model::users::NODE_PREFIX;
use setpoint_proto::{ApiError, Reason};

const ACCOUNT: &str = "system:serviceaccount:";
/// The attribute of a ServiceAccount with the node that its token is bound to.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// A way in which a user acts as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A ServiceAccount as the node that its token is bound to.
    AssociatedNode,
    /// As a node, named without groups.
    ArbitraryNode,
    /// As a ServiceAccount, named without groups.
    ServiceAccount,
    /// As a user that is neither a node nor a ServiceAccount.
    UserInfo,
    /// As anybody, by the verb `impersonate`.
    Legacy,
}

impl Mode {
    /// All modes, in the order in which they are tried.
    pub(super) const ALL: [Self; 5] = [
        Self::AssociatedNode,
        Self::ArbitraryNode,
        Self::ServiceAccount,
        Self::UserInfo,
        Self::Legacy,
    ];

    /// Returns the verb on the values of the user.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::AssociatedNode => "impersonate:associated-node",
            Self::ArbitraryNode => "impersonate:arbitrary-node",
            Self::ServiceAccount => "impersonate:serviceaccount",
            Self::UserInfo => "impersonate:user-info",
            Self::Legacy => "impersonate",
        }
    }

    /// Returns the verb on what the request is about, whose own verb is `verb`; `None` for the oldest mode.
    pub(super) fn verb_on(self, verb: &str) -> Option<String> {
        let mode = self.verb().strip_prefix("impersonate:")?;
        Some(format!("impersonate-on:{mode}:{verb}"))
    }

    /// Returns whether `user` can act as `wanted` in this mode, if it may.
    pub(super) fn applies(self, wanted: &Identity, user: &Identity) -> bool {
        let Identity {
            name,
            uid,
            groups,
            extra,
        } = wanted;
        let name_alone = uid.is_empty() && groups.is_empty() && extra.is_empty();
        let own_node = || account(&user.name).and_then(|_| node_of(user));
        match self {
            Self::AssociatedNode => name_alone && node(name).is_some() && node(name) == own_node(),
            Self::ArbitraryNode => name_alone && node(name).is_some(),
            Self::ServiceAccount => name_alone && account(name).is_some(),
            Self::UserInfo => node(name).is_none() && account(name).is_none(),
            Self::Legacy => true,
        }
    }
}

/// Returns the error of a request for which there is no mode.
pub(super) fn none() -> ApiError {
    ApiError::new(Reason::InternalError, "all impersonation modes failed")
}

/// Returns the namespace and the name of the ServiceAccount that a user is.
pub(super) fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT)?.split_once(':')?;
    let valid = names::validate_dns_label(namespace).is_empty()
        && names::validate_dns_subdomain(name).is_empty();
    valid.then_some((namespace, name))
}

/// Returns the name of the node that a user is.
pub(super) fn node(user: &str) -> Option<&str> {
    let name = user.strip_prefix(NODE_PREFIX)?;
    names::validate_dns_subdomain(name)
        .is_empty()
        .then_some(name)
}

/// Returns the node that the token of a user is bound to.
fn node_of(user: &Identity) -> Option<&str> {
    match user.extra.get(NODE_NAME)?.as_slice() {
        [name] => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Identity {
        Identity {
            name: name.into(),
            groups: Vec::new(),
            ..Identity::default()
        }
    }

    fn modes(wanted: &Identity, user: &Identity) -> Vec<Mode> {
        let modes = Mode::ALL.into_iter();
        modes.filter(|mode| mode.applies(wanted, user)).collect()
    }

    #[test]
    fn a_user_that_is_named_alone_has_the_mode_of_its_kind() {
        let jane = named("jane");
        let (node, account) = (
            named("system:node:n1"),
            named("system:serviceaccount:ns:web"),
        );
        assert_eq!(modes(&node, &jane), [Mode::ArbitraryNode, Mode::Legacy]);
        assert_eq!(modes(&account, &jane), [Mode::ServiceAccount, Mode::Legacy]);
        assert_eq!(modes(&jane, &jane), [Mode::UserInfo, Mode::Legacy]);
        let groups = vec!["dev".to_owned()];
        for wanted in [&node, &account] {
            let wanted = Identity {
                groups: groups.clone(),
                ..wanted.clone()
            };
            assert_eq!(modes(&wanted, &jane), [Mode::Legacy]);
        }
        let jane = Identity { groups, ..jane };
        assert_eq!(modes(&jane, &jane), [Mode::UserInfo, Mode::Legacy]);
    }

    #[test]
    fn only_a_service_account_is_associated_with_its_node() {
        let wanted = named("system:node:n1");
        let on = |user: &str, node: &str| Identity {
            extra: [(NODE_NAME.to_owned(), vec![node.to_owned()])].into(),
            ..named(user)
        };
        let agent = on("system:serviceaccount:ns:agent", "n1");
        assert_eq!(modes(&wanted, &agent)[0], Mode::AssociatedNode);
        for other in [
            on("system:serviceaccount:ns:agent", "n2"),
            on("jane", "n1"),
            named("system:serviceaccount:ns:agent"),
        ] {
            assert_eq!(modes(&wanted, &other)[0], Mode::ArbitraryNode);
        }
    }

    #[test]
    fn names_of_nodes_and_accounts_are_valid_names() {
        assert_eq!(node("system:node:n1.example"), Some("n1.example"));
        assert_eq!(node("system:node:N1"), None);
        assert_eq!(account("system:serviceaccount:ns:web"), Some(("ns", "web")));
        for other in [
            "system:serviceaccount:ns:web:x",
            "system:serviceaccount:n.s:web",
            "system:serviceaccount:ns:",
        ] {
            assert_eq!(account(other), None, "{other}");
        }
    }

    #[test]
    fn a_constrained_mode_has_a_verb_for_each_verb() {
        let on = Mode::UserInfo.verb_on("get");
        assert_eq!(on.as_deref(), Some("impersonate-on:user-info:get"));
        assert_eq!(Mode::Legacy.verb_on("get"), None);
    }
}
