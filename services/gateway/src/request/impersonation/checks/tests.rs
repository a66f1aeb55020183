use super::*;

fn named(name: &str) -> Identity {
    Identity {
        name: name.into(),
        groups: Vec::new(),
        ..Identity::default()
    }
}

fn completed(mode: Mode, user: Identity) -> Vec<String> {
    let (authorizer, requestor) = (Authorizer::default(), Identity::default());
    let checks = Checks {
        mode,
        authorizer: &authorizer,
        user: &requestor,
    };
    checks.complete(user).groups
}

#[test]
fn a_user_has_the_groups_of_its_kind() {
    let dev = vec!["dev".to_owned()];
    let jane = Identity {
        groups: dev,
        ..named("jane")
    };
    assert_eq!(completed(Mode::Legacy, jane), ["dev", AUTHENTICATED]);
    let unknown = Identity {
        groups: vec![UNAUTHENTICATED.into()],
        ..named("jane")
    };
    assert_eq!(completed(Mode::Legacy, unknown), [UNAUTHENTICATED]);
    assert_eq!(
        completed(Mode::UserInfo, named(ANONYMOUS)),
        [UNAUTHENTICATED]
    );
    let account = completed(Mode::ServiceAccount, named("system:serviceaccount:ns:web"));
    assert_eq!(account[1..], ["system:serviceaccounts:ns", AUTHENTICATED]);
    let node = || named("system:node:n1");
    assert_eq!(
        completed(Mode::ArbitraryNode, node()),
        [NODES, AUTHENTICATED]
    );
    assert_eq!(completed(Mode::Legacy, node()), [AUTHENTICATED]);
}

#[test]
fn the_resource_of_a_name_is_that_of_its_kind() {
    let (authorizer, requestor) = (Authorizer::default(), Identity::default());
    let resource = |mode, name: &str| {
        let checks = Checks {
            mode,
            authorizer: &authorizer,
            user: &requestor,
        };
        let of = checks.name(name);
        format!("{}/{} {} {}", of.group, of.resource, of.namespace, of.name)
    };
    let (node, account) = ("system:node:n1", "system:serviceaccount:ns:web");
    assert_eq!(resource(Mode::Legacy, "jane"), "/users  jane");
    assert_eq!(resource(Mode::Legacy, node), "/users  system:node:n1");
    assert_eq!(resource(Mode::Legacy, account), "/serviceaccounts ns web");
    let of = |rest: &str| format!("{AUTHENTICATION}/{rest}");
    assert_eq!(resource(Mode::UserInfo, "jane"), of("users  jane"));
    assert_eq!(resource(Mode::ArbitraryNode, node), of("nodes  n1"));
    assert_eq!(resource(Mode::AssociatedNode, node), of("nodes  *"));
    assert_eq!(
        resource(Mode::ServiceAccount, account),
        of("serviceaccounts ns web")
    );
}

#[test]
fn attributes_have_a_domain_and_no_empty_values() {
    let problem = |key: &str, values: &[&str]| {
        let values = values.iter().map(ToString::to_string).collect();
        validate(&[(key.to_owned(), values)].into())
            .err()
            .unwrap_or_default()
    };
    assert_eq!(problem("acme.com/scope", &["dev"]), "");
    assert_eq!(
        problem("scope", &["dev"]),
        "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \"scope\": \
        must be a domain-prefixed path (such as \"acme.io/foo\")"
    );
    assert_eq!(
        problem("acme.com/Scope", &["dev"]),
        "impersonating a non-lowercase key in extra is not allowed: \"acme.com/Scope\""
    );
    for (key, values) in [("", "dev"), ("acme.com/scope", "")] {
        assert!(
            problem(key, &[values]).contains("the empty string"),
            "{key}"
        );
    }
}
