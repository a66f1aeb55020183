//! The index decides as a walk over all bindings does, also after updates.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::{binding, cluster_binding, cluster_role, meta, role_ref};
use crate::index::*;
use crate::{Request, Resource, Target, User};

/// An update of an index.
#[derive(Clone, Debug)]
enum Update {
    Role(&'static str, &'static str, Option<Vec<PolicyRule>>),
    ClusterRole(&'static str, Option<Vec<PolicyRule>>),
    RoleBinding(&'static str, &'static str, Option<(RoleRef, String)>),
    ClusterRoleBinding(&'static str, Option<(&'static str, String)>),
}

/// The objects themselves.
#[derive(Default)]
struct Objects {
    roles: HashMap<(String, String), Vec<PolicyRule>>,
    bindings: HashMap<(String, String), (RoleRef, Vec<Subject>)>,
}

const NAMES: &[&str] = &["a", "b", "c"];
const NAMESPACES: &[&str] = &["ns", "other"];
const SUBJECTS: &[&str] = &[
    "User:jane",
    "User:system:serviceaccount:ns:web",
    "Group:g",
    "Group:h",
    "ServiceAccount:web",
    "ServiceAccount:other/web",
    "Robot:jane",
];

fn some(of: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    let some = subsequence(of, 1..=2);
    some.prop_map(|words| words.iter().map(ToString::to_string).collect())
}

fn rule() -> impl Strategy<Value = PolicyRule> {
    let of_resources = (
        some(&["get", "list", "*"]),
        some(&["", "apps", "*"]),
        some(&["pods", "pods/log", "*/log", "*", "nodes"]),
        prop_oneof![Just(Vec::new()), some(&["x", "y", "*", ""])],
    );
    let of_resources = of_resources.prop_map(|(verbs, api_groups, resources, names)| PolicyRule {
        verbs,
        api_groups,
        resources,
        resource_names: names,
        ..PolicyRule::default()
    });
    let urls = some(&["/", "/a", "/a/*", "/a/b", "/a/b*", "/ab/*", "*", "/a/b/c/*"]);
    let of_urls = (some(&["get", "list", "*"]), urls);
    let of_urls = of_urls.prop_map(|(verbs, non_resource_urls)| PolicyRule {
        verbs,
        non_resource_urls,
        ..PolicyRule::default()
    });
    prop_oneof![3 => of_resources, 1 => of_urls]
}

fn update() -> impl Strategy<Value = Update> {
    let rules = || proptest::option::weighted(0.8, vec(rule(), 0..4));
    let to = || subsequence(SUBJECTS, 0..=3).prop_map(|words| words.join(" "));
    let role = (select(&["Role", "ClusterRole"][..]), select(NAMES));
    let role = role.prop_map(|(kind, name)| role_ref(kind, name));
    let (namespace, name) = (|| select(NAMESPACES), || select(NAMES));
    let some = |strategy| proptest::option::weighted(0.8, strategy);
    prop_oneof![
        (namespace(), name(), rules())
            .prop_map(|(namespace, name, rules)| Update::Role(namespace, name, rules)),
        (name(), rules()).prop_map(|(name, rules)| Update::ClusterRole(name, rules)),
        (namespace(), name(), some((role, to()).boxed()))
            .prop_map(|(namespace, name, to)| Update::RoleBinding(namespace, name, to)),
        (name(), proptest::option::weighted(0.8, (name(), to())))
            .prop_map(|(name, to)| Update::ClusterRoleBinding(name, to)),
    ]
}

impl Index {
    fn update(&mut self, update: &Update) {
        match update.clone() {
            Update::Role(namespace, name, None) => self.remove_role(namespace, name),
            Update::Role(namespace, name, Some(rules)) => self.upsert_role(Role {
                metadata: meta(namespace, name),
                rules,
            }),
            Update::ClusterRole(name, None) => self.remove_cluster_role(name),
            Update::ClusterRole(name, Some(rules)) => {
                self.upsert_cluster_role(cluster_role(name, rules));
            }
            Update::RoleBinding(namespace, name, None) => self.remove_role_binding(namespace, name),
            Update::RoleBinding(namespace, name, Some((role, to))) => {
                self.upsert_role_binding(binding(namespace, name, role, &to));
            }
            Update::ClusterRoleBinding(name, None) => self.remove_cluster_role_binding(name),
            Update::ClusterRoleBinding(name, Some((role, to))) => {
                self.upsert_cluster_role_binding(cluster_binding(name, role, &to));
            }
        }
    }
}

fn set<T>(map: &mut HashMap<(String, String), T>, namespace: &str, name: &str, value: Option<T>) {
    let key = (namespace.to_owned(), name.to_owned());
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}

impl Objects {
    fn update(&mut self, update: &Update) {
        let to = |to: String| super::subjects(&to);
        match update.clone() {
            Update::Role(namespace, name, rules) => set(&mut self.roles, namespace, name, rules),
            Update::ClusterRole(name, rules) => set(&mut self.roles, "", name, rules),
            Update::RoleBinding(namespace, name, given) => {
                let given = given.map(|(role, subjects)| (role, to(subjects)));
                set(&mut self.bindings, namespace, name, given);
            }
            Update::ClusterRoleBinding(name, given) => {
                let given =
                    given.map(|(role, subjects)| (role_ref("ClusterRole", role), to(subjects)));
                set(&mut self.bindings, "", name, given);
            }
        }
    }

    /// Decides by a walk over all bindings.
    fn allow(&self, request: &Request<'_>) -> bool {
        let namespace = match request.target {
            Target::Resource(resource) => resource.namespace,
            Target::Path(_) => "",
        };
        let applies = |of: &str| of.is_empty() || of == namespace;
        let mut bindings = self.bindings.iter().filter(|((of, _), _)| applies(of));
        bindings.any(|((of, _), (role, subjects))| {
            let role_namespace = if role.kind == "ClusterRole" { "" } else { of };
            let key = (role_namespace.to_owned(), role.name.clone());
            let rules = self.roles.get(&key).map(Vec::as_slice).unwrap_or_default();
            subjects
                .iter()
                .any(|subject| is_subject(subject, of, &request.user))
                && rules.iter().any(|rule| rule_allows(rule, request))
        })
    }
}

fn is_subject(subject: &Subject, namespace: &str, user: &User<'_>) -> bool {
    match subject.kind.as_str() {
        "User" => user.name == subject.name,
        "Group" => user.groups.contains(&subject.name),
        "ServiceAccount" => {
            let own = &subject.namespace;
            let namespace = if own.is_empty() { namespace } else { own };
            let account = user.name.strip_prefix("system:serviceaccount:");
            account.and_then(|account| account.split_once(':')) == Some((namespace, &subject.name))
                && !namespace.is_empty()
        }
        _ => false,
    }
}

fn rule_allows(rule: &PolicyRule, request: &Request<'_>) -> bool {
    let matches =
        |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
    if !matches(&rule.verbs, request.verb) {
        return false;
    }
    match request.target {
        Target::Path(path) => rule.non_resource_urls.iter().any(|url| {
            url == "*"
                || url == path
                || url.ends_with('*') && path.starts_with(url.trim_end_matches('*'))
        }),
        Target::Resource(of) => {
            let (mut combined, mut of_all) = (of.resource.to_owned(), None);
            if !of.subresource.is_empty() {
                combined = format!("{combined}/{}", of.subresource);
                of_all = Some(format!("*/{}", of.subresource));
            }
            let is_resource =
                |one: &String| *one == "*" || *one == combined || Some(one) == of_all.as_ref();
            let names = &rule.resource_names;
            matches(&rule.api_groups, of.group)
                && rule.resources.iter().any(is_resource)
                && (names.is_empty() || names.iter().any(|name| name == of.name))
        }
    }
}

/// Asserts that both decide alike about every request that rules can tell from another.
fn check_all(index: &Index, objects: &Objects) {
    let groups = ["g", "h"].map(ToOwned::to_owned);
    let users = [
        "jane",
        "system:serviceaccount:ns:web",
        "system:serviceaccount:other:web",
        "joe",
    ];
    for (name, groups) in users
        .iter()
        .zip([&groups[..0], &groups[..0], &groups[..1], &groups[..]])
    {
        let user = User { name, groups };
        let check = |verb, target| {
            let request = Request { user, verb, target };
            let decision = index.decide(request);
            assert_eq!(decision.allowed(), objects.allow(&request), "{request:?}");
            let named = decision.reason().contains("allowed by");
            assert_eq!(named, decision.allowed(), "{request:?}");
            let other = crate::rule::allows;
            let rules = index.rules_for(user, request.namespace()).rules;
            assert_eq!(
                rules.iter().any(|rule| other(rule, &request)),
                decision.allowed()
            );
        };
        for verb in ["get", "create", "*"] {
            for path in ["/", "/a", "/a/", "/a/b", "/a/bc", "/a/b/c/d", "/ab/c", "/b"] {
                check(verb, Target::Path(path));
            }
            for (group, resource) in [("", "pods"), ("apps", "pods"), ("x", "nodes"), ("", "*")] {
                for (subresource, name) in
                    [("", ""), ("log", ""), ("log", "x"), ("", "*"), ("x", "z")]
                {
                    for namespace in ["", "ns", "other"] {
                        check(
                            verb,
                            Target::Resource(Resource {
                                group,
                                resource,
                                subresource,
                                name,
                                namespace,
                            }),
                        );
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_index_decides_as_a_walk_over_all_bindings(updates in vec(update(), 0..40)) {
        let (mut index, mut objects) = (Index::default(), Objects::default());
        for (number, update) in updates.iter().enumerate() {
            index.update(update);
            objects.update(update);
            if number % 8 == 0 {
                check_all(&index, &objects);
            }
        }
        check_all(&index, &objects);
    }

    #[test]
    fn an_index_of_which_all_was_removed_is_empty(updates in vec(update(), 0..40)) {
        let mut index = Index::default();
        for update in &updates {
            index.update(update);
        }
        for update in updates {
            index.update(&match update {
                Update::Role(namespace, name, _) => Update::Role(namespace, name, None),
                Update::ClusterRole(name, _) => Update::ClusterRole(name, None),
                Update::RoleBinding(namespace, name, _) => Update::RoleBinding(namespace, name, None),
                Update::ClusterRoleBinding(name, _) => Update::ClusterRoleBinding(name, None),
            });
        }
        prop_assert!(index.is_empty(), "{index:?}");
    }
}
