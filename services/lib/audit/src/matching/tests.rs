//! Requests, and the rules that match them.

use super::*;
use crate::{Level, Policy, Stage};

fn policy(rules: &str) -> Policy {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    Policy::read(text.as_bytes()).unwrap()
}

/// Returns whether a rule with these fields matches a request.
#[track_caller]
fn matches(fields: &str, subject: Subject<'_>) -> bool {
    let policy = policy(&format!("rules: [{{level: Metadata, {fields}}}]"));
    policy.decide(&subject).level == Level::Metadata
}

fn of<'a>(group: &'a str, resource: &'a str, subresource: &'a str) -> SubjectResource<'a> {
    SubjectResource {
        group,
        resource,
        subresource,
        namespace: "default",
        name: "a",
    }
}

fn on(resource: SubjectResource<'_>) -> Subject<'_> {
    Subject {
        user: Some("jane"),
        groups: &[],
        verb: "get",
        resource: Some(resource),
        path: "",
    }
}

fn at(path: &str) -> Subject<'_> {
    Subject {
        user: Some("jane"),
        verb: "get",
        path,
        ..Subject::default()
    }
}

#[test]
fn users_groups_and_verbs_are_compared() {
    let groups = ["dev".to_owned(), "ops".to_owned()];
    let jane = Subject {
        groups: &groups,
        ..on(of("", "pods", ""))
    };
    for (fields, expected) in [
        ("users: [jane]", true),
        ("users: [joe]", false),
        ("users: [joe, jane]", true),
        ("userGroups: [ops]", true),
        ("userGroups: [qa]", false),
        ("users: [jane], userGroups: [qa]", false),
        ("verbs: [get]", true),
        ("verbs: [list]", false),
        (r#"verbs: ["*"]"#, false),
    ] {
        assert_eq!(matches(fields, jane), expected, "{fields}");
    }
    let nobody = Subject { user: None, ..jane };
    assert!(!matches("users: [jane]", nobody));
    assert!(!matches("userGroups: [ops]", nobody));
    assert!(matches("verbs: [get]", nobody));
}

#[test]
fn resources_are_named_with_wildcards() {
    let [pods, log, scale, nodes] = [
        of("", "pods", ""),
        of("", "pods", "log"),
        of("apps", "deployments", "scale"),
        of("", "nodes", ""),
    ];
    for (resources, expected) in [
        (r#"{group: ""}"#, [true, true, false, true]),
        (r#"{group: "*"}"#, [true, true, true, true]),
        ("{resources: [pods]}", [true, false, false, false]),
        ("{resources: [pods/log]}", [false, true, false, false]),
        (r#"{resources: ["pods/*"]}"#, [true, true, false, false]),
        (r#"{resources: ["*/log"]}"#, [false, true, false, false]),
        (
            r#"{group: apps, resources: ["*/scale"]}"#,
            [false, false, true, false],
        ),
        (
            r#"{group: "*", resources: ["*"]}"#,
            [true, true, true, true],
        ),
        (
            "{resources: [pods], resourceNames: [a]}",
            [true, false, false, false],
        ),
        (
            "{resources: [pods], resourceNames: [b]}",
            [false, false, false, false],
        ),
        (
            "{resources: [deployments/scale]}",
            [false, false, false, false],
        ),
    ] {
        let fields = format!("resources: [{resources}]");
        let found = [pods, log, scale, nodes].map(|one| matches(&fields, on(one)));
        assert_eq!(found, expected, "{resources}");
    }
    assert!(!matches("resources: [{resources: [pods]}]", at("/api")));
}

#[test]
fn namespaces_are_compared_and_an_empty_one_is_that_of_the_cluster() {
    let namespaced = on(of("", "pods", ""));
    let node = SubjectResource {
        namespace: "",
        ..of("", "nodes", "")
    };
    for (fields, expected) in [
        ("namespaces: [default]", [true, false]),
        (r#"namespaces: [""]"#, [false, true]),
        (r#"namespaces: ["", default]"#, [true, true]),
        ("namespaces: [other]", [false, false]),
    ] {
        let found = [namespaced, on(node)].map(|one| matches(fields, one));
        assert_eq!(found, expected, "{fields}");
    }
    assert!(!matches(r#"namespaces: [""]"#, at("/api")));
}

#[test]
fn paths_of_no_resource_may_end_with_a_wildcard() {
    for (url, path, expected) in [
        ("/metrics", "/metrics", true),
        ("/metrics", "/metrics/a", false),
        ("/healthz*", "/healthz/etcd", true),
        ("/logs/*", "/logs", false),
        ("/logs/*", "/logs/a", true),
        ("*", "/anything", true),
    ] {
        let fields = format!("nonResourceURLs: [{url:?}]");
        assert_eq!(matches(&fields, at(path)), expected, "{url} {path}");
        assert!(!matches(&fields, on(of("", "pods", ""))));
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = policy(
        "omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: [joe]
- level: Request
  verbs: [get]
  omitStages: [ResponseStarted]
  omitManagedFields: false
- level: Metadata
",
    );
    let jane = on(of("", "pods", ""));
    let joe = Subject {
        user: Some("joe"),
        ..jane
    };
    assert_eq!(policy.decide(&joe).level, Level::None);
    let got = policy.decide(&jane);
    assert_eq!(
        (got.level, got.omit_managed_fields),
        (Level::Request, false)
    );
    let omitted = Stage::ALL.map(|stage| got.omit_stages.contains(stage));
    assert_eq!(omitted, [true, true, false, false]);
    let listed = policy.decide(&Subject {
        verb: "list",
        ..jane
    });
    assert_eq!(
        (listed.level, listed.omit_managed_fields),
        (Level::Metadata, true)
    );
}

/// Bodies with credentials are not recorded by a rule for everything.
#[test]
fn only_a_rule_that_names_secrets_and_tokens_records_their_bodies() {
    let [secret, token, review, config] = [
        of("", "secrets", ""),
        of("", "serviceaccounts", "token"),
        of("authentication.k8s.io", "tokenreviews", ""),
        of("", "configmaps", ""),
    ];
    let (metadata, all) = (Level::Metadata, Level::RequestResponse);
    for (resources, expected) in [
        ("", [metadata, metadata, metadata, all]),
        (r#"[{group: "*"}]"#, [metadata, metadata, metadata, all]),
        (
            r#"[{group: "*", resources: ["*", "*/token"]}]"#,
            [metadata, metadata, metadata, all],
        ),
        (
            "[{resources: [secrets]}]",
            [all, Level::None, Level::None, Level::None],
        ),
        (
            r#"[{resources: [secrets]}, {group: "*"}]"#,
            [all, metadata, metadata, all],
        ),
        (
            r#"[{resources: ["serviceaccounts/*"]}, {group: authentication.k8s.io, resources: [tokenreviews]}]"#,
            [Level::None, all, all, Level::None],
        ),
    ] {
        let resources = match resources {
            "" => String::new(),
            list => format!(", resources: {list}"),
        };
        let policy = policy(&format!("rules: [{{level: RequestResponse{resources}}}]"));
        let found = [secret, token, review, config].map(|one| policy.decide(&on(one)).level);
        assert_eq!(found, expected, "{resources}");
    }
}
