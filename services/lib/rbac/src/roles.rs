//! The roles that exist or that bindings refer to.

use std::collections::HashMap;

use setpoint_proto::rbac::PolicyRule;

use super::slab::Slab;
use super::table::{RoleId, Table};

/// The identity of a role.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RoleKey {
    Cluster(String),
    Namespaced { namespace: String, name: String },
}

/// A role that exists or that bindings refer to.
#[derive(Debug)]
pub(crate) struct Role {
    pub(crate) key: RoleKey,
    /// `None` if the role does not exist.
    pub(crate) rules: Option<Vec<PolicyRule>>,
    references: usize,
}

/// All roles, and the table of what they allow.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    ids: HashMap<RoleKey, RoleId>,
    roles: Slab<Role>,
    pub(crate) table: Table,
}

impl Roles {
    /// Adds a role or replaces its rules.
    pub(crate) fn set(&mut self, key: RoleKey, rules: Vec<PolicyRule>) {
        let id = self.id(key);
        let Some(role) = self.roles.get_mut(id) else {
            return;
        };
        if let Some(old) = role.rules.take() {
            self.table.remove(id, &old);
        }
        self.table.add(id, &rules);
        role.rules = Some(rules);
    }

    /// Removes a role. Bindings may refer to it further.
    pub(crate) fn unset(&mut self, key: &RoleKey) {
        let Some(id) = self.ids.get(key).copied() else {
            return;
        };
        if let Some(rules) = self.roles.get_mut(id).and_then(|role| role.rules.take()) {
            self.table.remove(id, &rules);
        }
        self.forget_unused(id);
    }

    /// Returns the place of a role that a binding refers to.
    pub(crate) fn refer(&mut self, key: RoleKey) -> RoleId {
        let id = self.id(key);
        if let Some(role) = self.roles.get_mut(id) {
            role.references += 1;
        }
        id
    }

    /// Ends a reference.
    pub(crate) fn unrefer(&mut self, id: RoleId) {
        if let Some(role) = self.roles.get_mut(id) {
            role.references -= 1;
        }
        self.forget_unused(id);
    }

    /// Returns a role.
    pub(crate) fn get(&self, id: RoleId) -> Option<&Role> {
        self.roles.get(id)
    }

    /// Returns the rules of a role that exists.
    pub(crate) fn rules(&self, key: &RoleKey) -> Option<&[PolicyRule]> {
        let role = self.roles.get(*self.ids.get(key)?)?;
        role.rules.as_deref()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.table.is_empty()
    }

    fn id(&mut self, key: RoleKey) -> RoleId {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = self.roles.insert(Role {
            key: key.clone(),
            rules: None,
            references: 0,
        });
        self.ids.insert(key, id);
        id
    }

    fn forget_unused(&mut self, id: RoleId) {
        let unused = |role: &&Role| role.rules.is_none() && role.references == 0;
        if self.roles.get(id).filter(unused).is_some()
            && let Some(role) = self.roles.remove(id)
        {
            self.ids.remove(&role.key);
        }
    }
}
