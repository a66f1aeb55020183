//! Several gateways over one store: what one has not yet heard of must not mislead it.

use std::collections::BTreeSet;

use futures::future::join_all;
use setpoint_proto::Reason;
use setpoint_proto::core::{ConfigMap, Namespace, Service, ServicePort};
use setpoint_proto::meta::DeleteOptions;
use setpoint_store::contract::objects::NAMESPACE;

use crate::world::World;

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
async fn what_one_gateway_has_given_no_other_gives() {
    let first = World::start().await;
    let second = first.beside().await;
    second.store.hold();
    let given = first.create(&service("a")).await.unwrap();
    let mut same = service("b");
    same.spec.cluster_ip.clone_from(&given.spec.cluster_ip);
    same.spec.ports[0].node_port = given.spec.ports[0].node_port;
    let (created, ()) = tokio::join!(second.create(&same), async { second.store.release() });
    let refused = created.unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
    assert_eq!(refused.details.unwrap().causes.len(), 2);
}

#[tokio::test]
async fn of_two_gateways_that_give_the_same_at_once_one_gives_it() {
    let first = World::start().await;
    let second = first.beside().await;
    let ask = async |gateway: &World, side: &str, n: usize| {
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
async fn many_services_at_once_all_get_something_of_their_own() {
    let first = World::start().await;
    let gateways = [first.beside().await, first.beside().await];
    let created = (0..60).map(|n| {
        let gateway = &gateways[n % 2];
        async move { gateway.create(&service(&format!("s{n}"))).await.unwrap() }
    });
    let created = join_all(created).await;
    let addresses: BTreeSet<_> = created.iter().map(|s| &s.spec.cluster_ip).collect();
    let ports: BTreeSet<_> = created.iter().map(|s| s.spec.ports[0].node_port).collect();
    assert_eq!((addresses.len(), ports.len()), (60, 60));
}

/// Checks S6: an update that changes nothing as far as this gateway knows does change what another one wrote.
#[tokio::test]
async fn an_update_that_seems_to_change_nothing_is_looked_at_twice() {
    let first = World::start().await;
    first.create(&config_map("a", "old")).await.unwrap();
    let second = first.beside().await;
    second.store.hold();
    first.update(&config_map("a", "new")).await.unwrap();
    second.update(&config_map("a", "old")).await.unwrap();
    let stands: ConfigMap = first.get("a").await.unwrap();
    assert_eq!(stands.data["value"], "old");
}

/// Checks S7: the second gateway has not yet heard that the namespace is gone.
#[tokio::test]
async fn nothing_is_born_in_a_namespace_that_another_gateway_has_ended() {
    let first = World::start().await;
    let second = first.beside().await;
    second.store.hold();
    let house = tokio_util::sync::CancellationToken::new();
    let event_ttl = std::time::Duration::from_secs(3600);
    let keeper = first.registry.clone();
    tokio::spawn(keeper.run_background(event_ttl, house.clone(), |_| |_| ()));
    first
        .delete::<Namespace>(NAMESPACE, DeleteOptions::default())
        .await
        .unwrap();
    first.gone::<Namespace>(NAMESPACE).await;
    let refused = second.create(&config_map("a", "1")).await.unwrap_err();
    assert_eq!(refused.reason, Reason::NotFound);
    house.cancel();
}
