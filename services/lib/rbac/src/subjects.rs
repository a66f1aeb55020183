//! The roles that users and groups hold.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use setpoint_proto::rbac::Subject;

use super::request::User;
use super::table::RoleId;

/// The place of a binding.
pub(crate) type BindingId = u32;

/// The user or group that a subject of a binding names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    User(String),
    Group(String),
}

impl Name {
    /// Returns the name of a subject. A ServiceAccount without a namespace is in that of its binding; a
    /// ClusterRoleBinding has none.
    pub(crate) fn of(subject: &Subject, namespace: &str) -> Option<Self> {
        match subject.kind.as_str() {
            "User" => Some(Self::User(subject.name.clone())),
            "Group" => Some(Self::Group(subject.name.clone())),
            "ServiceAccount" => {
                let namespace = match subject.namespace.as_str() {
                    "" => namespace,
                    own => own,
                };
                let name = &subject.name;
                let user = || format!("system:serviceaccount:{namespace}:{name}");
                (!namespace.is_empty()).then(|| Self::User(user()))
            }
            _ => None,
        }
    }

    /// Returns whether this is the user or one of its groups.
    pub(crate) fn is_of(&self, user: &User<'_>) -> bool {
        match self {
            Self::User(name) => name == user.name,
            Self::Group(name) => user.groups.contains(name),
        }
    }
}

/// The roles that somebody holds in a scope, each with the bindings by which.
#[derive(Debug, Default)]
pub(crate) struct Held(BTreeMap<RoleId, BTreeSet<BindingId>>);

impl Held {
    /// Returns a role that is also in a list in order. Takes as long as the shorter of both.
    pub(crate) fn common(&self, roles: &[RoleId]) -> Option<RoleId> {
        match self.0.len() <= roles.len() {
            true => {
                let mut held = self.0.keys().copied();
                held.find(|role| roles.binary_search(role).is_ok())
            }
            false => {
                let mut roles = roles.iter().copied();
                roles.find(|role| self.0.contains_key(role))
            }
        }
    }

    /// Returns the bindings by which some roles of a list are held.
    pub(crate) fn bindings_of(&self, roles: &[RoleId]) -> impl Iterator<Item = BindingId> {
        let found = roles.iter().filter_map(|role| self.0.get(role));
        found.flatten().copied()
    }

    /// Returns the roles with their bindings.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RoleId, &BTreeSet<BindingId>)> {
        self.0.iter().map(|(role, bindings)| (*role, bindings))
    }
}

/// The roles of a user or a group.
#[derive(Debug, Default)]
struct Scopes {
    cluster: Held,
    namespaces: HashMap<Box<str>, Held>,
}

/// The users and groups that hold roles.
#[derive(Debug, Default)]
pub(crate) struct Subjects {
    users: HashMap<Box<str>, Scopes>,
    groups: HashMap<Box<str>, Scopes>,
}

impl Subjects {
    /// Adds a role in a namespace, or everywhere if that is empty.
    pub(crate) fn add(&mut self, name: &Name, namespace: &str, role: RoleId, by: BindingId) {
        let (map, name) = self.map(name);
        let scopes = map.entry(name.into()).or_default();
        let held = match namespace {
            "" => &mut scopes.cluster,
            namespace => scopes.namespaces.entry(namespace.into()).or_default(),
        };
        held.0.entry(role).or_default().insert(by);
    }

    /// Removes what was added.
    pub(crate) fn remove(&mut self, name: &Name, namespace: &str, role: RoleId, by: BindingId) {
        let (map, name) = self.map(name);
        let Some(scopes) = map.get_mut(name) else {
            return;
        };
        if namespace.is_empty() {
            scopes.cluster.take(role, by);
        } else if let Some(held) = scopes.namespaces.get_mut(namespace) {
            held.take(role, by);
            if held.0.is_empty() {
                scopes.namespaces.remove(namespace);
            }
        }
        if scopes.cluster.0.is_empty() && scopes.namespaces.is_empty() {
            map.remove(name);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty()
    }

    fn map<'n>(&mut self, name: &'n Name) -> (&mut HashMap<Box<str>, Scopes>, &'n str) {
        match name {
            Name::User(name) => (&mut self.users, name),
            Name::Group(name) => (&mut self.groups, name),
        }
    }

    /// Returns the roles of a user and its groups everywhere and, if it is not empty, in the namespace.
    pub(crate) fn held<'a>(
        &'a self,
        user: User<'a>,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Held> {
        let groups = user.groups.iter();
        let groups = groups.filter_map(|group| self.groups.get(group.as_str()));
        let all = self.users.get(user.name).into_iter().chain(groups);
        all.flat_map(move |scopes| {
            let inner = match namespace {
                "" => None,
                namespace => scopes.namespaces.get(namespace),
            };
            [Some(&scopes.cluster), inner].into_iter().flatten()
        })
    }
}

impl Held {
    fn take(&mut self, role: RoleId, by: BindingId) {
        if let Some(bindings) = self.0.get_mut(&role) {
            bindings.remove(&by);
            if bindings.is_empty() {
                self.0.remove(&role);
            }
        }
    }
}
