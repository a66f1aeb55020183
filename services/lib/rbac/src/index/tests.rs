mod agreement;

use setpoint_proto::meta::ObjectMeta;

use super::*;
use crate::Resource;

/// Returns a rule from lists of words.
pub(super) fn rule(verbs: &str, groups: &str, resources: &str, urls: &str) -> PolicyRule {
    PolicyRule {
        verbs: words(verbs),
        api_groups: words(groups),
        resources: words(resources),
        non_resource_urls: words(urls),
        ..PolicyRule::default()
    }
}

/// Returns the words of a text; `core` stands for the empty one.
fn words(text: &str) -> Vec<String> {
    let words = text.split_whitespace();
    words
        .map(|word| if word == "core" { "" } else { word })
        .map(Into::into)
        .collect()
}

pub(super) fn meta(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        namespace: namespace.into(),
        name: name.into(),
        ..ObjectMeta::default()
    }
}

pub(super) fn cluster_role(name: &str, rules: Vec<PolicyRule>) -> ClusterRole {
    ClusterRole {
        metadata: meta("", name),
        rules,
        ..ClusterRole::default()
    }
}

pub(super) fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        kind: kind.into(),
        name: name.into(),
        ..RoleRef::default()
    }
}

/// Returns subjects from words such as `User:jane` and `ServiceAccount:ns/web`.
pub(super) fn subjects(text: &str) -> Vec<Subject> {
    let one = |word: &str| {
        let (kind, name) = word.split_once(':').unwrap();
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        Subject {
            kind: kind.into(),
            name: name.into(),
            namespace: namespace.into(),
            ..Subject::default()
        }
    };
    text.split_whitespace().map(one).collect()
}

pub(super) fn cluster_binding(name: &str, role: &str, to: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: meta("", name),
        role_ref: role_ref("ClusterRole", role),
        subjects: subjects(to),
    }
}

pub(super) fn binding(namespace: &str, name: &str, role: RoleRef, to: &str) -> RoleBinding {
    RoleBinding {
        metadata: meta(namespace, name),
        role_ref: role,
        subjects: subjects(to),
    }
}

impl Index {
    /// Returns whether nothing is left of what was added.
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.roles.is_empty() && self.subjects.is_empty()
    }
}

/// A user with groups, who asks.
struct Asking<'a> {
    index: &'a Index,
    name: &'a str,
    groups: Vec<String>,
}

impl Index {
    fn asked_by<'a>(&'a self, name: &'a str, groups: &str) -> Asking<'a> {
        Asking {
            index: self,
            name,
            groups: words(groups),
        }
    }
}

impl Asking<'_> {
    fn decide(&self, verb: &str, target: Target<'_>) -> (bool, String) {
        let user = User {
            name: self.name,
            groups: &self.groups,
        };
        let decision = self.index.decide(Request { user, verb, target });
        (decision.allowed(), decision.reason())
    }

    /// Decides about `group/resource/subresource` in a namespace.
    fn may(&self, verb: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let (group, resource) = resource.split_once(' ').unwrap_or(("", resource));
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let resource = Resource {
            group,
            resource,
            subresource,
            name,
            namespace,
        };
        self.decide(verb, Target::Resource(resource)).0
    }

    fn may_path(&self, verb: &str, path: &str) -> bool {
        self.decide(verb, Target::Path(path)).0
    }
}

#[test]
fn a_cluster_role_is_granted_in_the_namespace_of_its_binding() {
    let mut index = Index::default();
    index.upsert_cluster_role(cluster_role("admin", vec![rule("*", "*", "*", "*")]));
    let role = role_ref("ClusterRole", "admin");
    index.upsert_role_binding(binding("ns1", "b", role, "User:admin Group:admins"));
    for (user, groups, verb, resource, namespace, expected) in [
        ("admin", "", "get", "Pods", "ns1", true),
        ("admin", "group1", "watch", "Foobar", "ns1", true),
        ("joe", "group1 admins", "watch", "Foobar", "ns1", true),
        ("joe", "group1", "watch", "Foobar", "ns1", false),
        ("admin", "admins", "get", "Pods", "ns2", false),
        ("admin", "admins", "get", "Nodes", "", false),
    ] {
        let asking = index.asked_by(user, groups);
        assert_eq!(
            asking.may(verb, resource, namespace, ""),
            expected,
            "{user} {namespace}"
        );
    }
    assert!(!index.asked_by("admin", "admins").may_path("get", "/apis"));
}

#[test]
fn paths_are_allowed_by_themselves_and_by_prefixes() {
    let mut index = Index::default();
    for (name, verbs, urls) in [
        ("getter", "get", "/apis"),
        ("all", "*", "/apis"),
        ("prefix", "get", "/apis/* /x/y/*"),
        ("root", "get", "*"),
    ] {
        index.upsert_cluster_role(cluster_role(name, vec![rule(verbs, "", "", urls)]));
        let subject = format!("Group:{name}");
        index.upsert_cluster_role_binding(cluster_binding(name, name, &subject));
    }
    for (group, verb, path, expected) in [
        ("getter", "get", "/apis", true),
        ("getter", "watch", "/apis", false),
        ("getter", "get", "/apis/v1", false),
        ("all", "watch", "/apis", true),
        ("all", "get", "/api/v1", false),
        ("prefix", "get", "/apis/v1/foobar", true),
        ("prefix", "get", "/apis/", true),
        ("prefix", "get", "/apis", false),
        ("prefix", "get", "/x/y/z", true),
        ("prefix", "get", "/x/z", false),
        ("prefix", "get", "/api/v1", false),
        ("root", "get", "/", true),
        ("root", "get", "/apis/v1/é", true),
        ("root", "post", "/", false),
    ] {
        let asking = index.asked_by("jane", group);
        assert_eq!(
            asking.may_path(verb, path),
            expected,
            "{group} {verb} {path}"
        );
    }
}

#[test]
fn a_subresource_is_another_resource() {
    let mut index = Index::default();
    let rules = vec![
        rule("*", "*", "pods", ""),
        rule("get", "core", "nodes/status", ""),
        rule("update", "apps", "*/scale", ""),
        rule("watch", "*", "*", ""),
    ];
    index.upsert_cluster_role(cluster_role("r", rules));
    index.upsert_cluster_role_binding(cluster_binding("b", "r", "User:jane"));
    let jane = index.asked_by("jane", "");
    for (verb, resource, expected) in [
        ("get", "pods", true),
        ("get", "pods/status", false),
        ("get", "nodes/status", true),
        ("get", "nodes", false),
        ("update", "apps deployments/scale", true),
        ("update", "apps anything/scale", true),
        ("update", "apps deployments/status", false),
        ("update", "apps scale", false),
        ("update", "batch jobs/scale", false),
        ("watch", "batch jobs/scale", true),
        ("watch", "anything", true),
    ] {
        assert_eq!(
            jane.may(verb, resource, "", ""),
            expected,
            "{verb} {resource}"
        );
    }
}

#[test]
fn names_limit_a_rule_to_objects() {
    let mut index = Index::default();
    let named = PolicyRule {
        resource_names: words("web db"),
        ..rule("get list", "core", "secrets", "")
    };
    index.upsert_role(Role {
        metadata: meta("ns", "r"),
        rules: vec![named],
    });
    index.upsert_role_binding(binding("ns", "b", role_ref("Role", "r"), "User:jane"));
    let jane = index.asked_by("jane", "");
    assert!(jane.may("get", "secrets", "ns", "web"));
    // A list that a field selector limits to one name has that name.
    assert!(jane.may("list", "secrets", "ns", "db"));
    assert!(!jane.may("list", "secrets", "ns", ""));
    assert!(!jane.may("get", "secrets", "ns", "other"));
    assert!(!jane.may("get", "secrets", "", "web"));
}

#[test]
fn a_service_account_without_a_namespace_is_in_that_of_its_binding() {
    let mut index = Index::default();
    index.upsert_cluster_role(cluster_role("r", vec![rule("get", "core", "pods", "")]));
    let role = || role_ref("ClusterRole", "r");
    index.upsert_role_binding(binding("ns", "a", role(), "ServiceAccount:web"));
    index.upsert_role_binding(binding("other", "b", role(), "ServiceAccount:ns/web"));
    index.upsert_cluster_role_binding(cluster_binding("c", "r", "ServiceAccount:lost"));
    let web = index.asked_by("system:serviceaccount:ns:web", "");
    assert!(web.may("get", "pods", "ns", ""));
    assert!(web.may("get", "pods", "other", ""));
    assert!(!web.may("get", "pods", "third", ""));
    let lost = index.asked_by("system:serviceaccount::lost", "");
    assert!(!lost.may("get", "pods", "ns", ""));
}

#[test]
fn a_reason_names_the_binding_the_role_and_the_subject() {
    let mut index = Index::default();
    index.upsert_cluster_role(cluster_role("x", vec![rule("get", "core", "pods", "")]));
    index.upsert_role(Role {
        metadata: meta("ns", "r"),
        rules: vec![rule("list", "core", "pods", "")],
    });
    index.upsert_cluster_role_binding(cluster_binding("z", "x", "Group:g User:jane"));
    index.upsert_role_binding(binding(
        "ns",
        "a",
        role_ref("Role", "r"),
        "ServiceAccount:web",
    ));
    index.upsert_role_binding(binding(
        "ns",
        "b",
        role_ref("ClusterRole", "x"),
        "User:jane",
    ));
    let pods = |namespace| {
        Target::Resource(Resource {
            resource: "pods",
            namespace,
            ..Resource::default()
        })
    };
    let reason = |user, groups, verb| index.asked_by(user, groups).decide(verb, pods("ns")).1;
    assert_eq!(
        reason("jane", "", "get"),
        "RBAC: allowed by ClusterRoleBinding \"z\" of ClusterRole \"x\" to User \"jane\""
    );
    assert_eq!(
        reason("jane", "g", "get"),
        "RBAC: allowed by ClusterRoleBinding \"z\" of ClusterRole \"x\" to Group \"g\""
    );
    assert_eq!(
        reason("system:serviceaccount:ns:web", "", "list"),
        "RBAC: allowed by RoleBinding \"a/ns\" of Role \"r\" to ServiceAccount \"web/ns\""
    );
    assert_eq!(reason("joe", "", "get"), "");
}

#[test]
fn a_denial_names_the_roles_that_do_not_exist() {
    let mut index = Index::default();
    index.upsert_cluster_role_binding(cluster_binding("b", "gone", "User:jane"));
    let jane = index.asked_by("jane", "");
    let missing = "RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found";
    assert_eq!(
        jane.decide("get", Target::Path("/x")),
        (false, missing.into())
    );
    index.upsert_role_binding(binding("ns", "c", role_ref("Role", "lost"), "User:jane"));
    let pods = Target::Resource(Resource {
        namespace: "ns",
        ..Resource::default()
    });
    let (_, reason) = index.asked_by("jane", "").decide("get", pods);
    let both = "RBAC: [clusterrole.rbac.authorization.k8s.io \"gone\" not found, \
        role.rbac.authorization.k8s.io \"lost\" not found]";
    assert_eq!(reason, both);
}

#[test]
fn a_cluster_role_binding_grants_no_role_of_a_namespace() {
    let mut index = Index::default();
    index.upsert_cluster_role(cluster_role("r", vec![rule("get", "core", "pods", "")]));
    let mut wrong = cluster_binding("b", "r", "User:jane");
    wrong.role_ref.kind = "Role".into();
    index.upsert_cluster_role_binding(wrong);
    assert!(!index.asked_by("jane", "").may("get", "pods", "ns", ""));
}

#[test]
fn the_rules_of_a_user_are_those_of_each_binding_once() {
    let mut index = Index::default();
    let of_cluster = rule("get", "core", "pods", "");
    let of_namespace = rule("list", "core", "pods", "");
    index.upsert_cluster_role(cluster_role("r", vec![of_cluster.clone()]));
    index.upsert_role(Role {
        metadata: meta("ns", "r"),
        rules: vec![of_namespace.clone()],
    });
    index.upsert_cluster_role_binding(cluster_binding("b", "r", "User:jane Group:g"));
    index.upsert_cluster_role_binding(cluster_binding("c", "gone", "User:jane"));
    index.upsert_role_binding(binding("ns", "a", role_ref("Role", "r"), "Group:g"));
    let groups = words("g");
    let user = User {
        name: "jane",
        groups: &groups,
    };
    let found = index.rules_for(user, "ns");
    assert_eq!(found.rules, [&of_cluster, &of_namespace]);
    assert_eq!(found.missing.len(), 1);
    assert_eq!(index.rules_for(user, "other").rules, [&of_cluster]);
}

#[test]
fn a_rule_of_too_many_combinations_is_read_instead_of_indexed() {
    let many = |prefix: &str| {
        let all: Vec<_> = (0..40).map(|number| format!("{prefix}{number}")).collect();
        all.join(" ")
    };
    let wide = rule(
        &many("v"),
        &many("g"),
        &format!("{} r/s */t", many("r")),
        "",
    );
    let mut index = Index::default();
    index.upsert_cluster_role(cluster_role(
        "wide",
        vec![wide, rule("get", "core", "pods", "/x")],
    ));
    index.upsert_cluster_role_binding(cluster_binding("b", "wide", "User:jane"));
    let jane = index.asked_by("jane", "");
    for (verb, resource, expected) in [
        ("v1", "g1 r1", true),
        ("v1", "g1 r/s", true),
        ("v1", "g1 other/t", true),
        ("v1", "g1 r1/s", false),
        ("v1", "g1 t", false),
        ("v1", "other r1", false),
        ("get", "pods", true),
    ] {
        assert_eq!(
            jane.may(verb, resource, "", ""),
            expected,
            "{verb} {resource}"
        );
    }
    let resource = Target::Resource(Resource {
        group: "g1",
        resource: "r1",
        ..Resource::default()
    });
    let (_, reason) = jane.decide("v1", resource);
    assert!(reason.contains("ClusterRoleBinding \"b\""), "{reason}");
    assert!(!index.asked_by("joe", "").may("v1", "g1 r1", "", ""));
    index.remove_cluster_role("wide");
    assert!(!index.asked_by("jane", "").may("v1", "g1 r1", "", ""));
}
