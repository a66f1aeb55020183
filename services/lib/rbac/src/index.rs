//! The index of roles and bindings.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use setpoint_proto::rbac::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};

use super::decision::Decision;
use super::request::{Request, Target, User};
use super::roles::{RoleKey, Roles};
use super::rule::allows;
use super::slab::Slab;
use super::subjects::{BindingId, Held, Name, Subjects};
use super::table::RoleId;

/// Roles and bindings, by which requests are decided. It may be given them in any order: a binding grants nothing while
/// its role does not exist.
#[derive(Debug, Default)]
pub struct Index {
    roles: Roles,
    subjects: Subjects,
    bindings: Slab<Binding>,
    ids: HashMap<BindingKey, BindingId>,
}

/// The namespace of a binding, which is empty for a ClusterRoleBinding, and its name.
type BindingKey = (String, String);

/// A RoleBinding or, without a namespace, a ClusterRoleBinding.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) role: RoleRef,
    pub(crate) subjects: Vec<Subject>,
    role_id: RoleId,
}

/// A role that a binding refers to and that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingRole {
    kind: String,
    name: String,
}

impl fmt::Display for MissingRole {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.kind.to_ascii_lowercase();
        write!(
            to,
            "{resource}.rbac.authorization.k8s.io {:?} not found",
            self.name
        )
    }
}

/// The rules that apply to a user.
#[derive(Clone, Debug, Default)]
pub struct Rules<'a> {
    /// The rules in the order of the names of their bindings, ClusterRoleBindings first.
    pub rules: Vec<&'a PolicyRule>,
    /// The roles of the user that do not exist.
    pub missing: BTreeSet<MissingRole>,
}

impl Index {
    /// Adds a Role or replaces its rules.
    pub fn upsert_role(&mut self, role: Role) {
        let key = RoleKey::Namespaced {
            namespace: role.metadata.namespace,
            name: role.metadata.name,
        };
        self.roles.set(key, role.rules);
    }

    /// Removes a Role.
    pub fn remove_role(&mut self, namespace: &str, name: &str) {
        self.roles.unset(&RoleKey::Namespaced {
            namespace: namespace.into(),
            name: name.into(),
        });
    }

    /// Adds a ClusterRole or replaces its rules.
    pub fn upsert_cluster_role(&mut self, role: ClusterRole) {
        self.roles
            .set(RoleKey::Cluster(role.metadata.name), role.rules);
    }

    /// Removes a ClusterRole.
    pub fn remove_cluster_role(&mut self, name: &str) {
        self.roles.unset(&RoleKey::Cluster(name.into()));
    }

    /// Adds a RoleBinding or replaces it.
    pub fn upsert_role_binding(&mut self, binding: RoleBinding) {
        let RoleBinding {
            metadata,
            subjects,
            role_ref,
        } = binding;
        self.bind((metadata.namespace, metadata.name), role_ref, subjects);
    }

    /// Removes a RoleBinding.
    pub fn remove_role_binding(&mut self, namespace: &str, name: &str) {
        self.unbind(&(namespace.into(), name.into()));
    }

    /// Adds a ClusterRoleBinding or replaces it.
    pub fn upsert_cluster_role_binding(&mut self, binding: ClusterRoleBinding) {
        let ClusterRoleBinding {
            metadata,
            subjects,
            role_ref,
        } = binding;
        self.bind((String::new(), metadata.name), role_ref, subjects);
    }

    /// Removes a ClusterRoleBinding.
    pub fn remove_cluster_role_binding(&mut self, name: &str) {
        self.unbind(&(String::new(), name.into()));
    }

    fn bind(&mut self, key: BindingKey, role: RoleRef, subjects: Vec<Subject>) {
        self.unbind(&key);
        let (namespace, name) = key.clone();
        let role_id = self.roles.refer(role_key(&role, &namespace));
        let names: Vec<_> = subjects
            .iter()
            .filter_map(|subject| Name::of(subject, &namespace))
            .collect();
        let id = self.bindings.insert(Binding {
            namespace,
            name,
            role,
            subjects,
            role_id,
        });
        for name in names {
            self.subjects.add(&name, &key.0, role_id, id);
        }
        self.ids.insert(key, id);
    }

    fn unbind(&mut self, key: &BindingKey) {
        let id = self.ids.remove(key);
        let Some((id, binding)) = id.and_then(|id| Some((id, self.bindings.remove(id)?))) else {
            return;
        };
        for subject in &binding.subjects {
            if let Some(name) = Name::of(subject, &binding.namespace) {
                self.subjects
                    .remove(&name, &binding.namespace, binding.role_id, id);
            }
        }
        self.roles.unrefer(binding.role_id);
    }

    /// Decides about a request.
    pub fn decide<'a>(&'a self, request: Request<'a>) -> Decision<'a> {
        let allowed = match request.target {
            Target::Resource(resource) => {
                let candidates = self.roles.table.resource(request.verb, &resource);
                self.is_held(&request, candidates.iter())
            }
            Target::Path(path) => self.is_held(&request, self.roles.table.path(request.verb, path)),
        };
        Decision {
            index: self,
            request,
            allowed,
        }
    }

    /// Returns whether the user holds one of the roles.
    fn is_held<'a>(
        &'a self,
        request: &Request<'a>,
        roles: impl Iterator<Item = &'a [RoleId]> + Clone,
    ) -> bool {
        let wide = self.roles.table.wide();
        self.held(request).any(|held| {
            roles.clone().any(|roles| held.common(roles).is_some())
                || !wide.is_empty()
                    && held
                        .iter()
                        .any(|(role, _)| self.allows(role, wide, request))
        })
    }

    /// Returns whether a role is one of those whose rules must be read, and allows the request.
    fn allows(&self, role: RoleId, wide: &[RoleId], request: &Request<'_>) -> bool {
        let rules = || self.roles.get(role)?.rules.as_deref();
        wide.binary_search(&role).is_ok()
            && rules().is_some_and(|rules| rules.iter().any(|rule| allows(rule, request)))
    }

    fn held<'a>(&'a self, request: &Request<'a>) -> impl Iterator<Item = &'a Held> {
        self.subjects.held(request.user, request.namespace())
    }

    /// Returns the binding that allows a request, with its subject; of several the first by name, a ClusterRoleBinding
    /// before others.
    pub(crate) fn grant(&self, request: &Request<'_>) -> Option<(&Binding, &Subject)> {
        let roles: Vec<&[RoleId]> = match request.target {
            Target::Resource(resource) => {
                let candidates = self.roles.table.resource(request.verb, &resource);
                candidates.iter().collect()
            }
            Target::Path(path) => self.roles.table.path(request.verb, path).collect(),
        };
        let wide = self.roles.table.wide();
        let ids = self.held(request).flat_map(|held| {
            let read = held
                .iter()
                .filter(|(role, _)| self.allows(*role, wide, request))
                .flat_map(|(_, bindings)| bindings.iter().copied());
            let listed = roles.iter().flat_map(|roles| held.bindings_of(roles));
            listed.chain(read)
        });
        let bindings = ids.filter_map(|id| self.bindings.get(id));
        let first = bindings.min_by_key(|binding| (&binding.namespace, &binding.name))?;
        let mut subjects = first.subjects.iter();
        let applies = |subject: &&Subject| {
            Name::of(subject, &first.namespace).is_some_and(|name| name.is_of(&request.user))
        };
        Some((first, subjects.find(applies)?))
    }

    /// Returns the rules of a user everywhere and, if it is not empty, in the namespace.
    pub fn rules_for(&self, user: User<'_>, namespace: &str) -> Rules<'_> {
        let held = self.subjects.held(user, namespace);
        let ids = held.flat_map(|held| held.iter().flat_map(|(_, bindings)| bindings));
        let bindings = ids.filter_map(|id| self.bindings.get(*id));
        let mut bindings: Vec<_> = bindings.collect();
        bindings.sort_by_key(|binding| (&binding.namespace, &binding.name));
        bindings.dedup_by_key(|binding| (&binding.namespace, &binding.name));
        let mut found = Rules::default();
        for binding in bindings {
            match self.rules_of(&binding.role, &binding.namespace) {
                Ok(rules) => found.rules.extend(rules),
                Err(missing) => drop(found.missing.insert(missing)),
            }
        }
        found
    }

    /// Returns the rules of the role that a binding in a namespace refers to.
    ///
    /// # Errors
    /// If the role does not exist.
    pub fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<&[PolicyRule], MissingRole> {
        let rules = self.roles.rules(&role_key(role, namespace));
        rules.ok_or_else(|| MissingRole {
            kind: role.kind.clone(),
            name: role.name.clone(),
        })
    }
}

fn role_key(role: &RoleRef, namespace: &str) -> RoleKey {
    match role.kind.as_str() {
        "ClusterRole" => RoleKey::Cluster(role.name.clone()),
        _ => RoleKey::Namespaced {
            namespace: namespace.into(),
            name: role.name.clone(),
        },
    }
}

#[cfg(test)]
mod tests;
