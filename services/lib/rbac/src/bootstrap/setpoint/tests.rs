use std::collections::BTreeSet;

use setpoint_model::{replicas, users::PREFIX};
use setpoint_proto::rbac::{PolicyRule, Subject};

use super::*;

/// The roles that are for no user of their name.
const SHARED: [&str; 2] = ["system:setpoint:informers", "system:setpoint:replicas"];

#[test]
fn every_service_and_controller_has_a_role_but_the_gateway_and_agents() {
    let of_cluster = cluster_roles().into_iter().map(|role| role.metadata.name);
    let namespaced = roles().into_iter().map(|role| role.metadata.name);
    let roles: BTreeSet<_> = of_cluster
        .chain(namespaced)
        .filter(|name| !SHARED.contains(&&**name))
        .collect();
    let without = ["gateway", "node-agent"];
    let writers = WRITERS.iter().filter(|writer| !without.contains(writer));
    let writers: BTreeSet<_> = writers.map(|writer| of_service(writer)).collect();
    assert_eq!(roles, writers);
}

#[test]
fn a_role_is_for_the_of_service_its_name_alone() {
    let bindings = cluster_role_bindings().into_iter();
    let bindings = bindings.map(|binding| (binding.role_ref.name, binding.subjects));
    let namespaced = role_bindings().into_iter();
    let namespaced = namespaced.map(|binding| (binding.role_ref.name, binding.subjects));
    let mut bound = 0;
    for (role, subjects) in bindings.chain(namespaced) {
        bound += 1;
        match &*role {
            "system:setpoint:informers" => {
                assert_eq!(names(&subjects), ["system:setpoint:controller-manager"]);
            }
            "system:setpoint:replicas" => assert!(subjects.iter().all(|one| one.kind == "Group")),
            role => assert_eq!(names(&subjects), [role]),
        }
    }
    assert_eq!(bound, cluster_roles().len() + roles().len());
}

fn names(subjects: &[Subject]) -> Vec<&str> {
    let users = subjects.iter().filter(|subject| subject.kind == "User");
    users.map(|subject| &*subject.name).collect()
}

#[test]
fn the_controller_manager_acts_as_controllers_and_as_nobody_else() {
    let impersonating: Vec<_> = all_rules()
        .into_iter()
        .filter(|(_, rule)| rule.verbs.iter().any(|verb| verb == "impersonate"))
        .collect();
    let [(holder, rule)] = &*impersonating else {
        panic!("{impersonating:?}");
    };
    assert_eq!(holder, "system:setpoint:controller-manager");
    assert_eq!(rule.verbs, ["impersonate"]);
    assert_eq!(rule.resources, ["users"]);
    let controllers = WRITERS
        .iter()
        .filter(|writer| writer.ends_with("-controller"));
    let controllers: BTreeSet<_> = controllers.map(|writer| of_service(writer)).collect();
    let named: BTreeSet<_> = rule.resource_names.iter().cloned().collect();
    assert_eq!(named, controllers);
}

#[test]
fn each_election_has_a_lease_of_its_own() {
    let mut leases = BTreeSet::new();
    for role in roles() {
        if role.metadata.namespace != replicas::SYSTEM_NAMESPACE {
            continue;
        }
        let about_leases = role
            .rules
            .iter()
            .filter(|rule| rule.resources == ["leases"]);
        for rule in about_leases.filter(|rule| rule.verbs.iter().any(|verb| verb == "update")) {
            let own = role.metadata.name.strip_prefix(PREFIX).unwrap();
            assert_eq!(rule.resource_names, [own]);
            leases.insert(own.to_owned());
        }
    }
    let elected = |writer: &&&str| writer.ends_with("-controller") || **writer == "scheduler";
    let elected = WRITERS.iter().filter(elected).map(ToString::to_string);
    assert_eq!(leases, elected.collect());
}

#[test]
fn nobody_may_use_all_verbs_or_grant_anything() {
    for (role, rule) in all_rules() {
        for verb in ["*", "bind", "escalate"] {
            assert!(
                !rule.verbs.iter().any(|one| one == verb),
                "{role}: {rule:?}"
            );
        }
        assert!(rule.non_resource_urls.is_empty(), "{role}: {rule:?}");
    }
}

/// Controllers of all kinds see Secrets, too.
#[test]
fn secrets_are_named_in_the_roles_of_certificates_and_tokens_only() {
    let about_secrets = all_rules().into_iter().filter(|(_, rule)| {
        let mut resources = rule.resources.iter();
        resources.any(|resource| resource.starts_with("secrets"))
    });
    let holders: BTreeSet<_> = about_secrets.map(|(role, _)| role).collect();
    let expected = [
        "bootstrap-signer-controller",
        "certificatesigningrequest-controller",
        "legacy-service-account-token-cleaner-controller",
        "token-cleaner-controller",
    ];
    assert_eq!(holders, expected.map(of_service).into());
}

fn all_rules() -> Vec<(String, PolicyRule)> {
    let of_cluster = cluster_roles().into_iter();
    let of_cluster = of_cluster.map(|role| (role.metadata.name, role.rules));
    let namespaced = roles().into_iter();
    let namespaced = namespaced.map(|role| (role.metadata.name, role.rules));
    let all = of_cluster.chain(namespaced);
    all.flat_map(|(name, rules)| rules.into_iter().map(move |rule| (name.clone(), rule)))
        .collect()
}
