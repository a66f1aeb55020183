use std::sync::Arc;

use setpoint_store::Memory;
use setpoint_store::cache::Settings;

use super::*;

fn node(name: &str) -> Identity {
    Identity {
        name: format!("system:node:{name}"),
        groups: vec![NODES.into()],
        ..Identity::default()
    }
}

fn pods(verb: &'static str, resource: &str) -> Attributes {
    let resource = Resource {
        resource: resource.into(),
        namespace: "shop".into(),
        name: "web".into(),
        ..Resource::default()
    };
    Attributes::of_resource(verb, resource)
}

#[test]
fn a_node_is_a_user_with_its_group() {
    let a = node("a");
    assert_eq!(node_of(&a), Some("a"));
    assert_eq!(node_of(&node("")), Some(""));
    let others = Identity {
        groups: vec!["system:masters".into()],
        ..a
    };
    assert_eq!(node_of(&others), None);
    let user = Identity {
        name: "a".into(),
        ..node("a")
    };
    assert_eq!(node_of(&user), None);
}

#[tokio::test]
async fn what_is_not_divided_by_node_is_allowed_by_the_role_of_nodes() {
    let cache = Cache::start(Arc::new(Memory::default()), Settings::default());
    let nodes = Nodes::new(&cache);
    let a = node("a");
    assert!(nodes.allows(&a, &pods("create", "events")));
    assert!(!nodes.allows(&a, &pods("delete", "events")));
    assert!(nodes.allows(&a, &pods("get", "services")));
    assert!(!nodes.allows(&a, &pods("get", "replicationcontrollers")));
    assert!(!nodes.allows(&node(""), &pods("get", "services")));
}

#[test]
fn reasons_are_upstreams() {
    let pod = pods("get", "pods");
    assert_eq!(
        Nodes::reason(&node("a"), &pod),
        "no relationship found between node 'a' and this object"
    );
    assert_eq!(
        Nodes::reason(&node(""), &pod),
        "unknown node for user \"system:node:\""
    );
    assert_eq!(
        Nodes::reason(&node("a"), &pods("update", "secrets")),
        "can only read resources of this type"
    );
    assert_eq!(Nodes::reason(&Identity::default(), &pod), "");
}
