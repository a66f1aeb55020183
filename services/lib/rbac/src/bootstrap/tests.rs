use std::collections::BTreeSet;

use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::rbac::{ClusterRole, PolicyRule, Subject};

use super::object::{KUBE_SYSTEM, group, service_account};
use super::{AUTOUPDATE, cluster_role_bindings, cluster_roles, role_bindings, roles};

const READ: [&str; 3] = ["get", "list", "watch"];

const NAMESPACES: [&str; 6] = [
    "default",
    "kube-node-lease",
    "kube-public",
    "kube-system",
    "setpoint-replicas",
    "setpoint-system",
];

#[test]
fn names_are_unique() {
    for (kind, metadata) in all_metadata() {
        let names: BTreeSet<_> = metadata.iter().map(|m| (&m.namespace, &m.name)).collect();
        assert!(!names.is_empty(), "{kind}");
        assert_eq!(names.len(), metadata.len(), "{kind}");
    }
}

#[test]
fn every_object_is_labelled_as_a_default_and_updated_at_each_start() {
    for metadata in all_metadata().iter().flat_map(|(_, metadata)| metadata) {
        let name = &metadata.name;
        let label = metadata.labels.get("kubernetes.io/bootstrapping");
        assert_eq!(label.map(String::as_str), Some("rbac-defaults"), "{name}");
        let annotation = metadata.annotations.get(AUTOUPDATE);
        assert_eq!(annotation.map(String::as_str), Some("true"), "{name}");
    }
}

#[test]
fn only_roles_and_their_bindings_have_a_namespace() {
    for (kind, metadata) in all_metadata() {
        for ObjectMeta {
            name, namespace, ..
        } in metadata
        {
            let expected = match kind {
                "Role" | "RoleBinding" => NAMESPACES.contains(&&*namespace),
                _ => namespace.is_empty(),
            };
            assert!(expected, "{kind} {name} is in {namespace:?}");
        }
    }
}

#[test]
fn every_binding_refers_to_a_role_that_exists() {
    let cluster_roles: BTreeSet<_> = cluster_roles()
        .into_iter()
        .map(|r| r.metadata.name)
        .collect();
    for binding in cluster_role_bindings() {
        assert_eq!(binding.role_ref.kind, "ClusterRole");
        assert!(
            cluster_roles.contains(&binding.role_ref.name),
            "{binding:?}"
        );
    }
    let namespaced = roles()
        .into_iter()
        .map(|r| (r.metadata.namespace, r.metadata.name));
    let roles: BTreeSet<_> = namespaced.collect();
    for binding in role_bindings() {
        assert_eq!(binding.role_ref.kind, "Role");
        let role = (binding.metadata.namespace, binding.role_ref.name);
        assert!(roles.contains(&role), "{role:?}");
    }
}

#[test]
fn every_rule_is_complete_and_in_canonical_order() {
    for (role, rule) in all_rules() {
        assert!(!rule.verbs.is_empty(), "{role}");
        let resources = !rule.resources.is_empty() && !rule.api_groups.is_empty();
        let paths = !rule.non_resource_urls.is_empty();
        assert!(resources != paths, "{role}: {rule:?}");
        for list in [
            &rule.verbs,
            &rule.api_groups,
            &rule.resources,
            &rule.resource_names,
            &rule.non_resource_urls,
        ] {
            assert!(list.is_sorted_by(|a, b| a < b), "{role}: {list:?}");
        }
    }
}

/// An informer of Kubernetes' components lists, then watches.
#[test]
fn a_component_of_kubernetes_that_may_list_may_watch() {
    let all = all_rules();
    let lists: Vec<_> = all
        .iter()
        .filter(|(role, _)| !role.starts_with("system:setpoint:"))
        .filter(|(_, rule)| has(&rule.verbs, "list"))
        .collect();
    assert!(!lists.is_empty());
    for (role, rule) in lists {
        assert!(has(&rule.verbs, "watch"), "{role}: {rule:?}");
    }
}

#[test]
fn admin_contains_edit_which_contains_view() {
    for (name, expected) in [
        ("admin", vec!["edit", "system:aggregate-to-admin"]),
        ("edit", vec!["system:aggregate-to-edit", "view"]),
        ("view", vec!["system:aggregate-to-view"]),
    ] {
        let aggregate = cluster_role(name);
        assert!(aggregate.rules.is_empty(), "{name}");
        let mut found: Vec<_> = aggregated(&aggregate)
            .into_iter()
            .map(|r| r.metadata.name)
            .collect();
        found.sort();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn view_reads_and_gives_no_further_powers() {
    let rules = effective("view");
    assert!(rules.iter().any(|rule| has(&rule.resources, "pods")));
    for rule in rules {
        assert!(
            rule.verbs.iter().all(|verb| READ.contains(&&**verb)),
            "{rule:?}"
        );
        for resource in &rule.resources {
            assert!(!is_powerful(resource), "{rule:?}");
        }
    }
}

/// Checks V18 (CVE-2021-25740).
#[test]
fn users_of_a_namespace_do_not_write_endpoints() {
    for name in ["admin", "edit", "view"] {
        let about_endpoints = |rule: &PolicyRule| {
            rule.resources
                .iter()
                .any(|r| r.starts_with("endpoint") || r.contains('*'))
        };
        let rules: Vec<_> = effective(name)
            .into_iter()
            .filter(about_endpoints)
            .collect();
        assert_eq!(rules.len(), 2, "{name} reads Endpoints and EndpointSlices");
        for rule in rules {
            assert_eq!(rule.verbs, READ, "{name}: {rule:?}");
        }
    }
}

#[test]
fn users_of_a_namespace_do_not_write_its_limits() {
    for rule in effective("admin").iter().filter(|rule| writes(rule)) {
        for limit in [
            "limitranges",
            "resourcequotas",
            "namespaces",
            "nodes",
            "persistentvolumes",
        ] {
            assert!(!has(&rule.resources, limit), "{rule:?}");
        }
        let status = rule.resources.iter().find(|r| r.ends_with("/status"));
        assert_eq!(status, None, "{rule:?}");
    }
}

#[test]
fn roles_for_all_resources_are_few_and_only_one_is_for_all_verbs() {
    let mut found: Vec<_> = all_rules()
        .into_iter()
        .filter(|(_, rule)| has(&rule.resources, "*") && has(&rule.api_groups, "*"))
        .map(|(role, rule)| (role, rule.verbs.join(" ")))
        .collect();
    found.sort();
    let expected = [
        ("cluster-admin", "*"),
        (
            "system:controller:generic-garbage-collector",
            "delete get list patch update watch",
        ),
        (
            "system:controller:namespace-controller",
            "delete deletecollection get list watch",
        ),
        ("system:controller:resourcequota-controller", "list watch"),
        ("system:kube-controller-manager", "list watch"),
        (
            "system:setpoint:garbage-collector-controller",
            "delete get list patch watch",
        ),
        ("system:setpoint:namespace-controller", "delete list"),
        ("system:setpoint:resourcequota-controller", "list watch"),
    ];
    assert_eq!(
        found,
        expected.map(|(role, verbs)| (role.to_owned(), verbs.to_owned()))
    );
}

#[test]
fn verbs_that_grant_are_in_the_roles_that_need_them() {
    for (verb, expected) in [
        (
            "*",
            vec![
                "cluster-admin",
                "cluster-admin",
                "system:kubelet-api-admin",
                "system:kubelet-api-admin",
            ],
        ),
        ("bind", vec![]),
        (
            "escalate",
            vec!["system:controller:clusterrole-aggregation-controller"],
        ),
        (
            "impersonate",
            vec![
                "system:aggregate-to-edit",
                "system:setpoint:controller-manager",
            ],
        ),
        (
            "sign",
            vec![
                "system:controller:certificate-controller",
                "system:setpoint:certificatesigningrequest-controller",
            ],
        ),
    ] {
        let mut found: Vec<_> = all_rules()
            .into_iter()
            .filter(|(_, rule)| has(&rule.verbs, verb))
            .map(|(role, _)| role)
            .collect();
        found.sort();
        assert_eq!(found, expected, "{verb}");
    }
}

#[test]
fn certificates_are_approved_and_signed_for_named_signers_only() {
    let all = all_rules();
    let about_signers: Vec<_> = all
        .iter()
        .filter(|(_, rule)| has(&rule.resources, "signers"))
        .collect();
    assert_eq!(about_signers.len(), 8);
    for (role, rule) in about_signers {
        assert!(!rule.resource_names.is_empty(), "{role}");
    }
}

#[test]
fn roles_for_reading_have_no_other_verb() {
    for name in [
        "system:discovery",
        "system:heapster",
        "system:kube-aggregator",
        "system:kube-dns",
        "system:monitoring",
        "system:public-info-viewer",
        "system:service-account-issuer-discovery",
    ] {
        let rules = cluster_role(name).rules;
        assert!(!rules.is_empty(), "{name}");
        for rule in rules {
            assert!(!writes(&rule), "{name}: {rule:?}");
        }
    }
}

#[test]
fn every_controller_is_bound_to_its_service_account() {
    let bindings = cluster_role_bindings();
    let roles = cluster_roles().into_iter().map(|role| role.metadata.name);
    let mut controllers = 0;
    for role in roles {
        let Some(controller) = role.strip_prefix("system:controller:") else {
            continue;
        };
        let subjects: Vec<_> = bindings
            .iter()
            .filter(|binding| binding.role_ref.name == role)
            .flat_map(|binding| &binding.subjects)
            .collect();
        assert_eq!(subjects, [&service_account(controller)], "{role}");
        controllers += 1;
    }
    assert_eq!(controllers, 38);
}

#[test]
fn every_service_account_is_one_of_kube_system() {
    let accounts = all_subjects()
        .into_iter()
        .filter(|subject| subject.kind == "ServiceAccount");
    for account in accounts {
        assert_eq!(account.namespace, KUBE_SYSTEM, "{account:?}");
        assert_eq!(account.api_group, "", "{account:?}");
    }
}

#[test]
fn anonymous_users_see_health_and_version_only() {
    let roles = roles_of(&group("system:unauthenticated"));
    assert_eq!(roles, ["system:public-info-viewer"]);
    let anonymous = all_subjects()
        .into_iter()
        .find(|subject| subject.name == "system:anonymous");
    assert_eq!(anonymous, None);

    let rules = cluster_role("system:public-info-viewer").rules;
    let paths = "/healthz /livez /readyz /version /version/";
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].verbs, ["get"]);
    assert_eq!(rules[0].non_resource_urls.join(" "), paths);
}

/// Where it is published, one ConfigMap is added to that.
#[test]
fn with_cluster_info_anonymous_users_and_nodes_get_one_config_map() {
    let role = super::cluster_info::role();
    let [rule] = &role.rules[..] else {
        panic!("{role:?}");
    };
    assert_eq!(rule.verbs, ["get"]);
    assert_eq!(rule.resources, ["configmaps"]);
    assert_eq!(rule.resource_names, ["cluster-info"]);
    let binding = super::cluster_info::role_binding();
    let readers = ["system:unauthenticated", "system:nodes"].map(group);
    assert_eq!(binding.subjects, readers);
    assert_eq!(binding.role_ref.name, role.metadata.name);
    for meta in [role.metadata, binding.metadata] {
        assert_eq!(meta.namespace, "kube-public");
    }
}

#[test]
fn only_masters_are_administrators() {
    assert_eq!(roles_of(&group("system:masters")), ["cluster-admin"]);
    let bindings = cluster_role_bindings();
    let mut administrators = bindings
        .iter()
        .filter(|b| b.role_ref.name == "cluster-admin");
    let subjects = administrators.next().map(|binding| &*binding.subjects);
    assert_eq!(subjects, Some(&[group("system:masters")][..]));
    assert_eq!(administrators.next(), None);
}

/// The node authorizer grants nodes less than this role has.
#[test]
fn the_role_of_nodes_is_bound_to_nobody() {
    let bindings = cluster_role_bindings();
    let binding = bindings
        .iter()
        .find(|b| b.metadata.name == "system:node")
        .unwrap();
    assert_eq!(binding.role_ref.name, "system:node");
    assert_eq!(binding.subjects, []);
}

fn all_metadata() -> [(&'static str, Vec<ObjectMeta>); 4] {
    [
        (
            "ClusterRole",
            cluster_roles().into_iter().map(|o| o.metadata).collect(),
        ),
        (
            "ClusterRoleBinding",
            cluster_role_bindings()
                .into_iter()
                .map(|o| o.metadata)
                .collect(),
        ),
        ("Role", roles().into_iter().map(|o| o.metadata).collect()),
        (
            "RoleBinding",
            role_bindings().into_iter().map(|o| o.metadata).collect(),
        ),
    ]
}

fn all_rules() -> Vec<(String, PolicyRule)> {
    let of_clusters = cluster_roles()
        .into_iter()
        .map(|role| (role.metadata.name, role.rules));
    let of_namespaces = roles()
        .into_iter()
        .map(|role| (role.metadata.name, role.rules));
    of_clusters
        .chain(of_namespaces)
        .flat_map(|(name, rules)| rules.into_iter().map(move |rule| (name.clone(), rule)))
        .collect()
}

fn all_subjects() -> Vec<Subject> {
    let of_clusters = cluster_role_bindings().into_iter().flat_map(|b| b.subjects);
    of_clusters
        .chain(role_bindings().into_iter().flat_map(|b| b.subjects))
        .collect()
}

fn roles_of(subject: &Subject) -> Vec<String> {
    let bindings = cluster_role_bindings().into_iter();
    let bound = bindings.filter(|binding| binding.subjects.contains(subject));
    bound.map(|binding| binding.role_ref.name).collect()
}

fn cluster_role(name: &str) -> ClusterRole {
    let mut roles = cluster_roles().into_iter();
    roles.find(|role| role.metadata.name == name).unwrap()
}

/// Returns the roles whose rules this one collects.
fn aggregated(aggregate: &ClusterRole) -> Vec<ClusterRole> {
    let selectors = aggregate
        .aggregation_rule
        .iter()
        .flat_map(|rule| &rule.cluster_role_selectors);
    let labels: Vec<_> = selectors
        .flat_map(|selector| &selector.match_labels)
        .collect();
    let roles = cluster_roles().into_iter();
    roles
        .filter(|role| {
            labels
                .iter()
                .any(|(key, value)| role.metadata.labels.get(*key) == Some(value))
        })
        .collect()
}

/// Returns the rules of a role, those of the roles that it aggregates included.
fn effective(name: &str) -> Vec<PolicyRule> {
    let role = cluster_role(name);
    let parts = aggregated(&role).into_iter();
    let collected = parts.flat_map(|part| effective(&part.metadata.name));
    role.rules.into_iter().chain(collected).collect()
}

/// Reports whether who reads this acts as a Pod or a ServiceAccount, or sees what is only for them.
fn is_powerful(resource: &str) -> bool {
    let powers = [
        "secrets",
        "exec",
        "attach",
        "portforward",
        "proxy",
        "token",
        "roles",
        "rolebindings",
    ];
    resource.contains('*') || resource.split('/').any(|part| powers.contains(&part))
}

fn writes(rule: &PolicyRule) -> bool {
    rule.verbs.iter().any(|verb| !READ.contains(&&**verb))
}

fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|item| item == word)
}
