//! Permissions of services, each of which can be taken away to see what needs it.
//!
//! A permission is what a rule of a role allows with one resource and, if it names objects, with one of them:
//!
//! ```text
//! scheduler: update pods/status
//! scheduler in setpoint-system: get update watch leases.coordination.k8s.io named scheduler
//! ```

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use setpoint_model::users::PREFIX;
use setpoint_proto::rbac::PolicyRule;
use setpoint_rbac::bootstrap;

/// The environment variable with the permission that clusters of tests are without.
pub const WITHOUT: &str = "SETPOINT_WITHOUT";

/// The role that gateways have at kubelets, of which clusters of tests have none.
const OF_KUBELETS: &str = "kubelet-clients";

/// A permission of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The name of the role without the prefix of services.
    pub role: String,
    /// Empty for a ClusterRole.
    pub namespace: String,
    verbs: Vec<String>,
    /// The plural, with the group after a dot and the subresource after a slash.
    resource: String,
    /// Empty for objects of all names.
    name: String,
}

impl Permission {
    /// Returns the permissions of all services, node agents among them, but those that kubelets ask about.
    pub fn all() -> Vec<Self> {
        let cluster = bootstrap::cluster_roles().into_iter();
        let cluster = cluster.map(|role| (String::new(), role.metadata.name, role.rules));
        let namespaced = bootstrap::roles().into_iter();
        let namespaced =
            namespaced.map(|role| (role.metadata.namespace, role.metadata.name, role.rules));
        let roles = cluster.chain(namespaced);
        let all = roles.flat_map(|(namespace, name, rules)| {
            let role = name.strip_prefix(PREFIX);
            let role = role.filter(|role| *role != OF_KUBELETS);
            role.map(|role| of_role(&namespace, role, &rules))
        });
        all.flatten().collect()
    }

    /// Returns the kind and the name of the role, for kubectl.
    pub fn object(&self) -> String {
        let name = format!("{PREFIX}{}", self.role);
        match self.namespace.as_str() {
            "" => format!("clusterrole {name}"),
            namespace => format!("role {name} -n {namespace}"),
        }
    }

    /// Takes the permission out of the role, which gateways then leave as it is.
    ///
    /// # Panics
    /// If the role does not have it.
    pub fn remove_from(&self, role: &mut Value) {
        let annotations = &mut role["metadata"]["annotations"];
        annotations[bootstrap::AUTOUPDATE] = json!("false");
        let rules = role["rules"].as_array_mut().expect("a role has rules");
        let at = rules.iter().position(|rule| self.is_of(rule));
        let at = at.unwrap_or_else(|| panic!("no rule allows {self}"));
        let (resource, _) = self.parts();
        let rest = [
            ("resourceNames", self.name.as_str()),
            ("resources", &resource),
        ];
        for (field, value) in rest {
            match rules[at].get_mut(field).and_then(Value::as_array_mut) {
                Some(values) if values.len() > 1 => return values.retain(|one| *one != value),
                _ => {}
            }
        }
        rules.remove(at);
    }

    /// Returns whether a rule allows this, and nothing else with the resource.
    fn is_of(&self, rule: &Value) -> bool {
        let has = |field: &str, value: &str| match rule[field].as_array() {
            Some(values) => values.iter().any(|one| *one == value),
            None => value.is_empty(),
        };
        let (resource, group) = self.parts();
        rule["verbs"] == json!(self.verbs)
            && rule["apiGroups"] == json!([group])
            && has("resources", &resource)
            && has("resourceNames", &self.name)
    }

    /// Returns the resource with its subresource, and the group.
    fn parts(&self) -> (String, &str) {
        let (whole, part) = self
            .resource
            .split_once('/')
            .unwrap_or((&self.resource, ""));
        let (plural, group) = whole.split_once('.').unwrap_or((whole, ""));
        match part {
            "" => (plural.to_owned(), group),
            part => (format!("{plural}/{part}"), group),
        }
    }
}

fn of_role(namespace: &str, role: &str, rules: &[PolicyRule]) -> Vec<Permission> {
    let mut permissions = Vec::new();
    for rule in rules {
        let unnamed = [String::new()];
        let names = match rule.resource_names.as_slice() {
            [] => &unnamed,
            names => names,
        };
        for group in &rule.api_groups {
            for resource in &rule.resources {
                permissions.extend(names.iter().map(|name| Permission {
                    role: role.to_owned(),
                    namespace: namespace.to_owned(),
                    verbs: rule.verbs.clone(),
                    resource: qualified(resource, group),
                    name: name.clone(),
                }));
            }
        }
    }
    permissions
}

fn qualified(resource: &str, group: &str) -> String {
    match (group, resource.split_once('/')) {
        ("", _) => resource.to_owned(),
        (group, None) => format!("{resource}.{group}"),
        (group, Some((plural, part))) => format!("{plural}.{group}/{part}"),
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.role)?;
        if !self.namespace.is_empty() {
            write!(f, " in {}", self.namespace)?;
        }
        write!(f, ": {} {}", self.verbs.join(" "), self.resource)?;
        if !self.name.is_empty() {
            write!(f, " named {}", self.name)?;
        }
        Ok(())
    }
}

impl FromStr for Permission {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("not `ROLE [in NAMESPACE]: VERB … RESOURCE [named NAME]`: {text}");
        let (role, allowed) = text.split_once(": ").ok_or_else(wrong)?;
        let (role, namespace) = role.split_once(" in ").unwrap_or((role, ""));
        let (allowed, name) = allowed.split_once(" named ").unwrap_or((allowed, ""));
        let (verbs, resource) = allowed.rsplit_once(' ').ok_or_else(wrong)?;
        Ok(Self {
            role: role.to_owned(),
            namespace: namespace.to_owned(),
            verbs: verbs.split(' ').map(str::to_owned).collect(),
            resource: resource.to_owned(),
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_is_written_as_it_is_read() {
        for permission in Permission::all() {
            assert_eq!(permission.to_string().parse(), Ok(permission));
        }
    }

    #[test]
    fn one_resource_or_one_name_is_taken_from_a_rule() {
        let rule = |resources: &[&str], names: &[&str]| {
            json!({
                "verbs": ["get"], "apiGroups": ["apps"], "resources": resources, "resourceNames": names
            })
        };
        let without = |text: &str, rule: Value| {
            let mut role = json!({ "metadata": { "annotations": {} }, "rules": [rule] });
            let permission: Permission = text.parse().expect("it is one");
            permission.remove_from(&mut role);
            role["rules"].clone()
        };
        assert_eq!(
            without("x: get a.apps named one", rule(&["a"], &["one", "two"])),
            json!([rule(&["a"], &["two"])])
        );
        assert_eq!(
            without("x: get a.apps named one", rule(&["a"], &["one"])),
            json!([])
        );
        let mut unnamed = rule(&["a/status", "b"], &[]);
        unnamed
            .as_object_mut()
            .expect("it is one")
            .remove("resourceNames");
        let mut rest = unnamed.clone();
        rest["resources"] = json!(["b"]);
        assert_eq!(without("x: get a.apps/status", unnamed), json!([rest]));
    }
}
