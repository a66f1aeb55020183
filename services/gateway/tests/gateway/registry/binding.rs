//! Tests of the subresource `binding`.

use std::collections::BTreeMap;

use setpoint_gateway::registry::RequestContext;
use setpoint_model::condition;
use setpoint_proto::Reason;
use setpoint_proto::core::{Binding, Node, Pod};
use setpoint_proto::meta::Status;

use crate::registry::gateway::{TestGateway, pod, target, typed};

/// Checks C5 at the gateway: a second binding is refused even if the cache is stale.
#[tokio::test]
async fn a_bound_pod_cannot_be_bound_again_with_a_stale_cache() {
    let gateway = TestGateway::start().await;
    gateway.create(&pod("one")).await.unwrap();
    gateway.get::<Pod>("one").await.unwrap();
    gateway.store.hold();
    let response = gateway.bind("one", "node-1").await.unwrap();
    let revision = response.revision;
    assert_eq!(typed::<Status>(response).unwrap().status, "Success");
    let error = gateway.bind("one", "node-2").await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    assert_eq!(
        error.message,
        r#"Operation cannot be fulfilled on pods/binding "one": pod one is already assigned to node "node-1""#
    );
    gateway.store.release();
    let bound = gateway.get::<Pod>("one").await.unwrap();
    assert_eq!(bound.spec.node_name, "node-1");
    assert!(condition::is_true(&bound.status.conditions, "PodScheduled"));
    assert_eq!(bound.metadata.resource_version, revision.to_string());
}

#[tokio::test]
async fn binding_a_missing_pod_is_not_found() {
    let gateway = TestGateway::start().await;
    let error = gateway.bind("one", "node-1").await.unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
}

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

fn labels<'l>(given: &[(&'l str, &str)]) -> BTreeMap<String, String> {
    let label = |(name, value): &(&'l str, &str)| ((*name).to_owned(), (*value).to_owned());
    given.iter().map(label).collect()
}

/// Starts with a node in a zone.
async fn zoned() -> TestGateway {
    let gateway = TestGateway::start().await;
    let mut node = Node::default();
    node.metadata.name = "node-1".into();
    node.metadata.labels = labels(&[(ZONE, "z1"), (REGION, "r1"), ("disk", "fast")]);
    gateway.create(&node).await.unwrap();
    gateway.there::<Node>("node-1").await;
    gateway
}

/// Checks U6: a Pod has the zone and the region of its node.
#[tokio::test]
async fn a_pod_on_a_node_has_its_topology_labels() {
    let gateway = zoned().await;
    let mut bound = pod("bound");
    bound.metadata.labels = labels(&[("app", "web"), (ZONE, "elsewhere")]);
    gateway.create(&bound).await.unwrap();
    gateway.bind("bound", "node-1").await.unwrap();
    let bound: Pod = gateway.get("bound").await.unwrap();
    let expected = labels(&[("app", "web"), (ZONE, "z1"), (REGION, "r1")]);
    assert_eq!(bound.metadata.labels, expected);

    let mut placed = pod("placed");
    placed.spec.node_name = "node-1".into();
    let placed = gateway.create(&placed).await.unwrap();
    assert_eq!(
        placed.metadata.labels,
        labels(&[(ZONE, "z1"), (REGION, "r1")])
    );

    gateway.create(&pod("lost")).await.unwrap();
    gateway.bind("lost", "node-2").await.unwrap();
    let lost: Pod = gateway.get("lost").await.unwrap();
    assert!(lost.metadata.labels.is_empty());
}

/// Checks U6: as upstream, those of the binding are copied, too.
#[tokio::test]
async fn a_bound_pod_gets_the_labels_and_annotations_of_the_binding() {
    let gateway = zoned().await;
    gateway.create(&pod("web")).await.unwrap();
    let mut binding = Binding::default();
    binding.target.kind = "Node".into();
    binding.target.name = "node-1".into();
    binding.metadata.labels = labels(&[("a b", "c")]);
    let target = target::<Pod>("web", "binding");
    let context = RequestContext::of_server();
    let create = async |binding: &Binding| {
        let binding = Box::new(binding.clone());
        gateway.registry.create(&context, &target, binding).await
    };
    let refused = create(&binding).await;
    assert_eq!(refused.unwrap_err().reason, Reason::Invalid);
    binding.metadata.labels = labels(&[("by", "hand")]);
    binding.metadata.annotations = labels(&[("note", "once")]);
    create(&binding).await.unwrap();
    let web: Pod = gateway.get("web").await.unwrap();
    let expected = labels(&[("by", "hand"), (ZONE, "z1"), (REGION, "r1")]);
    assert_eq!(web.metadata.labels, expected);
    assert_eq!(web.metadata.annotations["note"], "once");
}
