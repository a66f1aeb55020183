use super::super::Resource;
use super::*;

fn user(name: &str, groups: &[&str]) -> Identity {
    Identity {
        name: name.into(),
        groups: groups.iter().map(ToString::to_string).collect(),
        ..Identity::default()
    }
}

fn pods(namespace: &str, name: &str) -> Attributes {
    Attributes::of_resource(
        "get",
        Resource {
            resource: "pods".into(),
            subresource: "log".into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Resource::default()
        },
    )
}

fn of(modes: &[Mode]) -> Authorizer {
    Authorizer {
        chain: RwLock::new(Chain::of_modes(modes)),
        ..Authorizer::default()
    }
}

#[test]
fn errors_have_upstreams_texts() {
    let jane = user("jane", &[]);
    let text =
        |attributes: &Attributes, reason| forbidden::error(&jane, attributes, reason).message;
    assert_eq!(
        text(&pods("ns", "web"), ""),
        "pods \"web\" is forbidden: User \"jane\" cannot get resource \"pods/log\" in API group \"\" \
        in the namespace \"ns\""
    );
    let mut nodes = pods("", "");
    let resource = nodes.resource.as_mut().unwrap();
    resource.group = "apps".into();
    resource.subresource.clear();
    assert_eq!(
        text(&nodes, "RBAC: x"),
        "pods.apps is forbidden: User \"jane\" cannot get resource \"pods\" in API group \"apps\" \
        at the cluster scope: RBAC: x"
    );
    let path = Attributes::of_path("get", "/<y>");
    assert_eq!(
        text(&path, ""),
        "forbidden: User \"jane\" cannot get path \"/&lt;y&gt;\""
    );
    let details = forbidden::error(&jane, &nodes, "").details.unwrap();
    assert_eq!(
        (details.kind.as_str(), details.group.as_str()),
        ("pods", "apps")
    );
}

#[tokio::test]
async fn the_first_mode_that_allows_decides() {
    let (jane, master) = (user("jane", &[]), user("root", &[ADMINISTRATORS]));
    let request = pods("ns", "web");
    for (modes, who, allowed, reason) in [
        (&[][..], &jane, true, ALLOWED),
        (&[Mode::AlwaysAllow], &jane, true, ALLOWED),
        (&[Mode::AlwaysAllow], &master, true, ALLOWED),
        (&[Mode::AlwaysDeny], &jane, false, DENIED),
        (&[Mode::AlwaysDeny], &master, true, ""),
        (&[Mode::AlwaysDeny, Mode::AlwaysAllow], &jane, true, ALLOWED),
    ] {
        let authorizer = of(modes);
        let decision = authorizer.decide(who, &request);
        assert_eq!(
            (decision.allowed, decision.reason.as_str()),
            (allowed, reason)
        );
        let outcome = authorizer.authorize(who, &request).await;
        assert_eq!(outcome.is_ok(), allowed);
        assert!(
            outcome
                .err()
                .is_none_or(|error| error.message.ends_with(DENIED))
        );
    }
}

/// Checks F29: requests without credentials are accepted or not from the start on.
#[test]
fn a_reload_cannot_allow_everything() {
    let everything = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
        authorizers: [{type: AlwaysAllow, name: all}]\n";
    let everything = || Configuration::read(everything.as_bytes()).unwrap();
    let refused = of(&[Mode::AlwaysDeny]).reload(everything()).unwrap_err();
    let expected = "authorizer type AlwaysAllow is not allowed if it was not enabled at initial server startup";
    assert_eq!(refused, expected);
    let open = Authorizer {
        began_open: true,
        ..of(&[Mode::AlwaysAllow])
    };
    assert_eq!(open.reload(everything()), Ok(()));
}
