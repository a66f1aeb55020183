//! Roles, bindings and subjects, with the metadata that all of them have.

use std::collections::BTreeMap;

use setpoint_proto::meta::{LabelSelector, ObjectMeta};
use setpoint_proto::rbac::{
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef,
    Subject,
};

/// The annotation of an object that each start brings back to what it was. With another value than `true`, the object
/// is left alone.
pub const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// The namespace of the ServiceAccounts of components and controllers.
pub const KUBE_SYSTEM: &str = "kube-system";

const GROUP: &str = "rbac.authorization.k8s.io";

pub fn cluster_role(name: &str, rules: Vec<PolicyRule>) -> ClusterRole {
    ClusterRole {
        metadata: metadata("", name),
        rules,
        aggregation_rule: None,
    }
}

/// Returns a role that has the rules of all roles that are [`aggregated_to`] it.
pub fn aggregate(name: &str) -> ClusterRole {
    let selector = LabelSelector {
        match_labels: BTreeMap::from([aggregation_label(name)]),
        ..LabelSelector::default()
    };
    ClusterRole {
        metadata: metadata("", name),
        rules: Vec::new(),
        aggregation_rule: Some(AggregationRule {
            cluster_role_selectors: vec![selector],
        }),
    }
}

/// Adds the label by which the role named `aggregate` finds this one.
pub fn aggregated_to(aggregate: &str, mut role: ClusterRole) -> ClusterRole {
    role.metadata.labels.extend([aggregation_label(aggregate)]);
    role
}

fn aggregation_label(aggregate: &str) -> (String, String) {
    (format!("{GROUP}/aggregate-to-{aggregate}"), "true".into())
}

pub fn role(namespace: &str, name: &str, rules: Vec<PolicyRule>) -> Role {
    Role {
        metadata: metadata(namespace, name),
        rules,
    }
}

/// Returns the binding of a ClusterRole, with the name of the role.
pub fn cluster_role_binding(role: &str, subjects: Vec<Subject>) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: metadata("", role),
        subjects,
        role_ref: reference("ClusterRole", role),
    }
}

/// Returns the binding of a Role, with the name of the role.
pub fn role_binding(namespace: &str, role: &str, subjects: Vec<Subject>) -> RoleBinding {
    RoleBinding {
        metadata: metadata(namespace, role),
        subjects,
        role_ref: reference("Role", role),
    }
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: GROUP.into(),
        kind: kind.into(),
        name: name.into(),
    }
}

fn metadata(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: name.into(),
        namespace: namespace.into(),
        labels: BTreeMap::from([("kubernetes.io/bootstrapping".into(), "rbac-defaults".into())]),
        annotations: BTreeMap::from([(AUTOUPDATE.into(), "true".into())]),
        ..ObjectMeta::default()
    }
}

pub fn user(name: &str) -> Subject {
    Subject {
        kind: "User".into(),
        api_group: GROUP.into(),
        name: name.into(),
        namespace: String::new(),
    }
}

pub fn group(name: &str) -> Subject {
    Subject {
        kind: "Group".into(),
        api_group: GROUP.into(),
        name: name.into(),
        namespace: String::new(),
    }
}

/// Returns a ServiceAccount of [`KUBE_SYSTEM`]. The kind belongs to the core group, whose name is empty.
pub fn service_account(name: &str) -> Subject {
    Subject {
        kind: "ServiceAccount".into(),
        api_group: String::new(),
        name: name.into(),
        namespace: KUBE_SYSTEM.into(),
    }
}
