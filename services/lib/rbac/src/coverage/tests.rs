#![allow(
    clippy::cloned_ref_to_slice_refs,
    reason = "lists of one rule are as readable as longer ones"
)]

use super::*;

/// Returns a rule; `of` is its resources below groups, or its paths.
fn rule(verbs: &str, groups: &str, resources: &str, names: &str, urls: &str) -> PolicyRule {
    let split = |text: &str| match text {
        "" => Vec::new(),
        text => text.split(' ').map(|one| one.replace("core", "")).collect(),
    };
    PolicyRule {
        verbs: split(verbs),
        api_groups: split(groups),
        resources: split(resources),
        resource_names: split(names),
        non_resource_urls: split(urls),
    }
}

fn of(verbs: &str, groups: &str, resources: &str) -> PolicyRule {
    rule(verbs, groups, resources, "", "")
}

fn at(verbs: &str, urls: &str) -> PolicyRule {
    rule(verbs, "", "", "", urls)
}

#[track_caller]
fn check(owner: &[PolicyRule], wanted: &[PolicyRule], missing: &[PolicyRule]) {
    assert_eq!(covers(owner, wanted), missing, "{owner:?} {wanted:?}");
}

#[test]
fn rules_cover_what_they_allow() {
    let one = of("get", "v1", "builds");
    check(&[one.clone()], &[one], &[]);
    check(
        &[of("get", "v1", "*/scale")],
        &[of("get", "v1", "foo/scale")],
        &[],
    );
    check(
        &[of("get", "v1", "*/scale")],
        &[of("get", "v1", "foo")],
        &[of("get", "v1", "foo")],
    );
    check(&[of("get", "v1", "*")], &[of("get", "v1", "a b/c")], &[]);
    check(
        &[of("*", "v1", "roles")],
        &[of("watch list *", "v1", "roles")],
        &[],
    );
    check(
        &[of("get", "*", "roles")],
        &[of("get", "a b *", "roles")],
        &[],
    );
}

#[test]
fn several_rules_cover_one_together() {
    let owner = [
        of("delete", "a", "deployments"),
        of("delete", "a", "builds"),
        of("update", "a", "builds deployments"),
        of("delete update", "b", "builds deployments"),
    ];
    check(
        &owner,
        &[of("delete update", "a b", "builds deployments")],
        &[],
    );
    let missing = of("update", "a", "pods");
    let mut with_pods = owner.to_vec();
    with_pods.push(of("delete", "a", "pods"));
    check(
        &with_pods,
        &[of("delete update", "a", "builds pods")],
        &[missing],
    );
}

#[test]
fn an_enumeration_covers_no_wildcard() {
    for (owner, wanted) in [
        (of("get", "a", "roles"), of("get", "*", "roles")),
        (of("get list watch", "a", "roles"), of("*", "a", "roles")),
        (of("get", "a", "roles"), of("get", "a", "*")),
        (of("get", "a", "*/scale"), of("get", "a", "*")),
    ] {
        check(&[owner], &[wanted.clone()], &[wanted]);
    }
}

#[test]
fn names_are_covered_by_the_same_names_or_by_none() {
    let (any, both) = (
        rule("get", "a", "b", "", ""),
        rule("get", "a", "b", "x y", ""),
    );
    check(&[any.clone()], &[both.clone()], &[]);
    check(&[both.clone()], &[any.clone()], &[any]);
    let other = rule("get", "a", "b", "z", "");
    check(&[both], &[rule("get", "a", "b", "x z", "")], &[other]);
}

#[test]
fn paths_are_covered_by_themselves_and_by_prefixes() {
    check(&[at("*", "/apis")], &[at("*", "/apis")], &[]);
    check(&[at("*", "*")], &[at("*", "/apis /apis/v1 /")], &[]);
    check(
        &[at("*", "/apis/*")],
        &[at("get", "/apis /apis/v1")],
        &[at("get", "/apis")],
    );
    check(
        &[at("*", "/apis/*")],
        &[at("get", "/apis/v1/foo /apis/v1 /apis/*")],
        &[],
    );
    let both = rule("get", "v1", "builds", "", "/apis");
    check(&[both.clone()], &[both.clone()], &[]);
    check(&[of("get", "v1", "builds")], &[both], &[at("get", "/apis")]);
}

#[test]
fn a_rule_of_too_many_parts_must_be_covered_as_a_whole() {
    let many = |prefix: &str| {
        let all: Vec<_> = (0..400).map(|number| format!("{prefix}{number}")).collect();
        all.join(" ")
    };
    let wide = of(&many("v"), &many("g"), &many("r"));
    check(&[], &[wide.clone()], &[wide.clone()]);
    check(&[of("*", "*", "*")], &[wide.clone()], &[]);
    check(&[wide.clone()], &[wide], &[]);
}

#[test]
fn an_escalation_names_the_user_and_the_missing_rules() {
    let groups = ["a".to_owned(), "b".to_owned()];
    let user = User {
        name: "jane",
        groups: &groups,
    };
    let held = of("get", "core", "pods");
    let owned = Rules {
        rules: vec![&held],
        ..Rules::default()
    };
    assert_eq!(escalation(user, &owned, &[held.clone()]), None);
    let wanted = [
        of("get list watch", "core", "pods"),
        rule("get", "apps", "deployments", "web", ""),
        at("get", "/metrics"),
    ];
    let expected = "user \"jane\" (groups=[\"a\" \"b\"]) is attempting to grant RBAC permissions not currently held:\n\
        {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}\n\
        {APIGroups:[\"apps\"], Resources:[\"deployments\"], ResourceNames:[\"web\"], Verbs:[\"get\"]}\n\
        {NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}";
    assert_eq!(escalation(user, &owned, &wanted).unwrap(), expected);
}

#[test]
fn the_work_of_a_comparison_counts_the_parts_of_rules_that_are_broken_down() {
    let owned = [of("get", "core", "pods"), of("get", "core", "nodes")];
    let wanted = rule("get list", "a b", "c", "d e f", "");
    assert_eq!(parts(&wanted).count(), 12);
    let size = |wanted: &[PolicyRule]| comparison_size(&owned, wanted) / PART_BYTES;
    assert_eq!(size(&[wanted.clone()]), 24);
    assert_eq!(size(&[wanted, at("get post", "/a")]), 28);
    let many: Vec<_> = (0..1000).map(|name| name.to_string()).collect();
    let huge = PolicyRule {
        verbs: many.clone(),
        resources: many.clone(),
        api_groups: many,
        ..PolicyRule::default()
    };
    assert_eq!(size(&[huge]), 2, "it is compared as a whole");
}
