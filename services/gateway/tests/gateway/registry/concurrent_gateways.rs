//! Tests of several gateways over one store, some with stale caches.

use std::collections::BTreeSet;

use futures::future::join_all;
use setpoint_proto::Reason;
use setpoint_proto::core::{ConfigMap, Namespace, Service, ServicePort};
use setpoint_proto::meta::DeleteOptions;
use setpoint_store::contract::objects::NAMESPACE;

use crate::registry::gateway::TestGateway;

fn service(name: &str) -> Service {
    let mut service = Service::default();
    service.metadata.name = name.into();
    service.spec.r#type = "NodePort".into();
    service.spec.ports.push(ServicePort {
        port: 80,
        ..Default::default()
    });
    service
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = name.into();
    object.data = [("value".to_owned(), value.to_owned())].into();
    object
}

#[tokio::test]
async fn a_value_allocated_by_one_gateway_is_taken_for_another() {
    let first = TestGateway::start().await;
    let second = first.another().await;
    second.store.hold();
    let allocated = first.create(&service("a")).await.unwrap();
    let mut same = service("b");
    same.spec.cluster_ip.clone_from(&allocated.spec.cluster_ip);
    same.spec.ports[0].node_port = allocated.spec.ports[0].node_port;
    let (created, ()) = tokio::join!(second.create(&same), async { second.store.release() });
    let refused = created.unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
    assert_eq!(refused.details.unwrap().causes.len(), 2);
}

#[tokio::test]
async fn only_one_of_two_concurrent_allocations_of_a_value_succeeds() {
    let first = TestGateway::start().await;
    let second = first.another().await;
    let ask = async |gateway: &TestGateway, side: &str, n: usize| {
        let mut service = service(&format!("{side}{n}"));
        service.spec.cluster_ip = format!("10.96.7.{n}");
        gateway.create(&service).await
    };
    for n in 0..30 {
        let (a, b) = tokio::join!(ask(&first, "a", n), ask(&second, "b", n));
        let reasons: Vec<_> = [a, b].into_iter().filter_map(Result::err).collect();
        assert_eq!(reasons.len(), 1, "10.96.7.{n}");
        assert_eq!(reasons[0].reason, Reason::Invalid);
    }
}

#[tokio::test]
async fn concurrently_created_services_get_different_values() {
    let first = TestGateway::start().await;
    let gateways = [first.another().await, first.another().await];
    let created = (0..60).map(|n| {
        let gateway = &gateways[n % 2];
        async move { gateway.create(&service(&format!("s{n}"))).await.unwrap() }
    });
    let created = join_all(created).await;
    let addresses: BTreeSet<_> = created.iter().map(|s| &s.spec.cluster_ip).collect();
    let ports: BTreeSet<_> = created.iter().map(|s| s.spec.ports[0].node_port).collect();
    assert_eq!((addresses.len(), ports.len()), (60, 60));
}

/// Checks S6: an update that equals a stale cached object is compared with the stored one.
#[tokio::test]
async fn an_update_equal_to_a_stale_object_is_written() {
    let first = TestGateway::start().await;
    first.create(&config_map("a", "old")).await.unwrap();
    let second = first.another().await;
    second.store.hold();
    first.update(&config_map("a", "new")).await.unwrap();
    second.update(&config_map("a", "old")).await.unwrap();
    let stored: ConfigMap = first.get("a").await.unwrap();
    assert_eq!(stored.data["value"], "old");
}

/// Checks S7: the cache of the second gateway still has the namespace.
#[tokio::test]
async fn no_object_is_created_in_a_namespace_that_another_gateway_deleted() {
    let first = TestGateway::start().await;
    let second = first.another().await;
    second.store.hold();
    first
        .delete::<Namespace>(NAMESPACE, DeleteOptions::default())
        .await
        .unwrap();
    // As the namespace-controller does when it is empty.
    let mut emptied: Namespace = first.get(NAMESPACE).await.unwrap();
    emptied.spec.finalizers.clear();
    let _ = first.update_part("finalize", &emptied).await;
    first.gone::<Namespace>(NAMESPACE).await;
    let refused = second.create(&config_map("a", "1")).await.unwrap_err();
    assert_eq!(refused.reason, Reason::NotFound);
}

/// Checks DG17: the first attempt, on a stale object, must not leave anything in the second one.
#[tokio::test]
async fn an_update_that_is_tried_again_begins_from_the_request() {
    let first = TestGateway::start().await;
    let mut old = service("two");
    old.spec.cluster_ip = "10.96.15.50".into();
    first.create(&old).await.unwrap();
    let second = first.another().await;
    second.there::<Service>("two").await;
    second.store.hold();
    first
        .delete::<Service>("two", DeleteOptions::default())
        .await
        .unwrap();
    let new = first.create(&service("two")).await.unwrap();
    let mut labelled = service("two");
    labelled.metadata.labels = [("a".to_owned(), "b".to_owned())].into();
    let updated = second.update(&labelled).await.unwrap();
    assert_eq!(updated.metadata.uid, new.metadata.uid);
    assert_eq!(updated.spec.cluster_ip, new.spec.cluster_ip);
    assert_eq!(updated.spec.ports, new.spec.ports);
    assert_eq!(updated.metadata.labels["a"], "b");
}
