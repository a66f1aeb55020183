//! Tests of the resourcequota-controller with a gateway: what is no longer used is returned, and no quota is ever
//! exceeded.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod claims;
mod custom;
mod fixture;

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use setpoint_proto::Reason;
use setpoint_proto::core::{ConfigMap, Pod, Service, ServicePort};
use setpoint_proto::meta::Quantity;

use fixture::{Fixture, config_map, list, pod, quota};

#[tokio::test]
async fn what_was_charged_by_creates_is_returned_by_deletions() {
    let (fixture, _running) = Fixture::running().await;
    let hard = [("pods", "2"), ("requests.cpu", "1"), ("secrets", "3")];
    fixture.create(&quota(&hard)).await.unwrap();
    let none = [("pods", "0"), ("requests.cpu", "0"), ("secrets", "0")];
    fixture.used(&none).await;
    assert_eq!(fixture.quota().await.status.hard, list(&hard));
    let one = pod("one", &[("cpu", "600m")]);
    fixture.create(&one).await.unwrap();
    let charged = list(&[("pods", "1"), ("requests.cpu", "600m"), ("secrets", "0")]);
    assert_eq!(fixture.quota().await.status.used, charged);
    let two = pod("two", &[("cpu", "500m")]);
    let refused = fixture.create(&two).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Forbidden);
    fixture.delete::<Pod>("one").await.unwrap();
    fixture.used(&none).await;
    fixture.create(&two).await.unwrap();
}

#[tokio::test]
async fn what_existed_before_the_quota_and_before_a_new_limit_is_counted() {
    let (fixture, _running) = Fixture::running().await;
    fixture.create(&pod("web", &[])).await.unwrap();
    fixture.create(&config_map("settings")).await.unwrap();
    let mut limited = fixture.create(&quota(&[("pods", "1")])).await.unwrap();
    fixture.used(&[("pods", "1")]).await;
    limited.metadata.resource_version.clear();
    limited.spec.hard = list(&[("count/configmaps", "7"), ("count/pods", "7")]);
    fixture.client.update(&limited).await.unwrap();
    let both = [("count/configmaps", "1"), ("count/pods", "1")];
    fixture.used(&both).await;
}

#[tokio::test]
async fn a_status_that_somebody_has_written_is_corrected() {
    let (fixture, _running) = Fixture::running().await;
    fixture.create(&pod("web", &[])).await.unwrap();
    let mut written = fixture
        .create(&quota(&[("count/pods", "7")]))
        .await
        .unwrap();
    fixture.used(&[("count/pods", "1")]).await;
    written.metadata.resource_version.clear();
    written.status.hard = list(&[("pods", "9")]);
    written.status.used = list(&[("pods", "5")]);
    fixture.client.update_status(&written).await.unwrap();
    fixture.used(&[("count/pods", "1")]).await;
    written.status.used.clear();
    fixture.client.update_status(&written).await.unwrap();
    fixture.used(&[("count/pods", "1")]).await;
    let corrected = fixture.quota().await;
    assert_eq!(corrected.status.hard, corrected.spec.hard);
}

#[tokio::test]
async fn pods_that_have_ended_or_left_the_scopes_are_not_counted() {
    let (fixture, _running) = Fixture::running().await;
    let mut best_effort = quota(&[("pods", "5")]);
    best_effort.spec.scopes = vec!["BestEffort".into(), "NotTerminating".into()];
    fixture.create(&best_effort).await.unwrap();
    fixture.used(&[("pods", "0")]).await;
    fixture
        .create(&pod("sized", &[("cpu", "1")]))
        .await
        .unwrap();
    let mut ended = fixture.create(&pod("ended", &[])).await.unwrap();
    let mut moved = fixture.create(&pod("moved", &[])).await.unwrap();
    fixture.used(&[("pods", "2")]).await;
    ended.status.phase = "Failed".into();
    fixture.client.update_status(&ended).await.unwrap();
    fixture.used(&[("pods", "1")]).await;
    moved.metadata.resource_version.clear();
    moved.spec.active_deadline_seconds = Some(600);
    fixture.client.update(&moved).await.unwrap();
    fixture.used(&[("pods", "0")]).await;
}

#[tokio::test]
async fn what_a_service_of_another_type_no_longer_uses_is_returned() {
    let (fixture, _running) = Fixture::running().await;
    let hard = [("services", "2"), ("services.nodeports", "2")];
    fixture.create(&quota(&hard)).await.unwrap();
    fixture
        .used(&[("services", "0"), ("services.nodeports", "0")])
        .await;
    let mut web = Service {
        metadata: config_map("web").metadata,
        ..Service::default()
    };
    web.spec.r#type = "NodePort".into();
    web.spec.ports = vec![ServicePort {
        port: 80,
        ..ServicePort::default()
    }];
    let mut web = fixture.create(&web).await.unwrap();
    fixture
        .used(&[("services", "1"), ("services.nodeports", "1")])
        .await;
    web.spec.r#type = "ClusterIP".into();
    web.spec.ports[0].node_port = 0;
    fixture.client.update(&web).await.unwrap();
    fixture
        .used(&[("services", "1"), ("services.nodeports", "0")])
        .await;
}

#[tokio::test]
async fn what_a_smaller_pod_no_longer_uses_is_returned() {
    let (fixture, _running) = Fixture::running().await;
    fixture
        .create(&quota(&[("requests.cpu", "1")]))
        .await
        .unwrap();
    fixture.used(&[("requests.cpu", "0")]).await;
    let mut web = fixture
        .create(&pod("web", &[("cpu", "900m")]))
        .await
        .unwrap();
    web.metadata.resource_version.clear();
    let requests = &mut web.spec.containers[0].resources.requests;
    requests.insert("cpu".into(), Quantity::new("200m"));
    fixture.client.update_part(&web, "resize").await.unwrap();
    fixture.used(&[("requests.cpu", "200m")]).await;
}

/// Many writers create and delete while the controller counts: more than the limit never exist.
#[tokio::test]
async fn a_count_between_creates_and_deletions_lets_no_quota_be_exceeded() {
    const LIMIT: usize = 5;
    let (fixture, _running) = Fixture::running().await;
    fixture
        .create(&quota(&[("configmaps", "5")]))
        .await
        .unwrap();
    fixture.used(&[("configmaps", "0")]).await;
    let exist = AtomicUsize::new(0);
    let writers = (0..8).map(|writer| {
        let (fixture, exist) = (&fixture, &exist);
        async move {
            let mut created = 0;
            for round in 0..30 {
                let name = format!("map-{writer}-{round}");
                if fixture.create(&config_map(&name)).await.is_err() {
                    continue;
                }
                created += 1;
                let now = exist.fetch_add(1, Ordering::SeqCst) + 1;
                assert!(now <= LIMIT, "{now} exist");
                exist.fetch_sub(1, Ordering::SeqCst);
                fixture.delete::<ConfigMap>(&name).await.unwrap();
            }
            created
        }
    });
    let created: usize = join_all(writers).await.into_iter().sum();
    // What was deleted was returned meanwhile.
    assert!(created > LIMIT, "{created}");
    fixture.used(&[("configmaps", "0")]).await;
}

/// The next leader finds what the former one has left undone.
#[tokio::test]
async fn what_was_deleted_without_a_leader_is_returned_by_the_next_one() {
    let (fixture, running) = Fixture::running().await;
    fixture
        .create(&quota(&[("configmaps", "5")]))
        .await
        .unwrap();
    fixture.used(&[("configmaps", "0")]).await;
    fixture.create(&config_map("one")).await.unwrap();
    drop(running);
    fixture.delete::<ConfigMap>("one").await.unwrap();
    let _running = fixture.run();
    fixture.used(&[("configmaps", "0")]).await;
}

#[tokio::test]
async fn the_namespaces_of_later_quotas_are_followed_too() {
    let (fixture, _running) = Fixture::running().await;
    let names = ["a", "b", "c"];
    for name in names {
        fixture.create_namespace(name).await;
        let mut quota = quota(&[("configmaps", "1")]);
        quota.metadata.namespace = name.into();
        fixture.create(&quota).await.unwrap();
        fixture.used_in(name, &[("configmaps", "0")]).await;
    }
    for name in names {
        let mut map = config_map("one");
        map.metadata.namespace = name.into();
        fixture.create(&map).await.unwrap();
        fixture.used_in(name, &[("configmaps", "1")]).await;
        let key = setpoint_model::Key::new(name, "one");
        let deleted = fixture
            .client
            .delete::<ConfigMap>(&key, Default::default(), None);
        deleted.await.unwrap();
        fixture.used_in(name, &[("configmaps", "0")]).await;
    }
}
