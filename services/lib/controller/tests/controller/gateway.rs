//! The client: headers, trace contexts and time limits.

use std::time::Duration;

use setpoint_controller::Fence;
use setpoint_controller::client::{ListOptions, Preconditions};
use setpoint_model::Key;
use setpoint_proto::authentication::TokenRequestSpec;
use setpoint_proto::core::{ConfigMap, ServiceAccount};
use setpoint_proto::{Reason, Resource as _};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::server::{Faults, Server, config_map, eventually, soon};

#[tokio::test(start_paused = true)]
async fn a_write_returns_the_object_as_committed_and_its_receipt() {
    let server = Server::start().await;
    let gateway = server.client("test");
    let written = gateway.create(&config_map("a")).await.unwrap();
    let created = written.object().unwrap();
    assert_eq!(
        created.metadata.resource_version,
        written.revision.to_string()
    );
    assert_eq!(written.receipt().resource, "configmaps");
    let key = Key::of(&created.metadata);
    assert_eq!(gateway.get::<ConfigMap>(&key).await.unwrap(), created);

    let mut changed = created.clone();
    changed.data.insert("key".into(), "value".into());
    gateway.update(&changed).await.unwrap();
    let stale = gateway.update(&created).await.unwrap_err();
    assert_eq!(stale.reason, Reason::Conflict);

    let deleted = gateway
        .delete::<ConfigMap>(&key, Preconditions::default(), None)
        .await
        .unwrap();
    assert!(deleted.revision > written.revision);
    assert_eq!(
        gateway.get::<ConfigMap>(&key).await.unwrap_err().reason,
        Reason::NotFound
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_is_issued_for_an_account() {
    let server = Server::start().await;
    let gateway = server.client("test");
    let mut account = ServiceAccount::default();
    account.metadata.namespace = "default".into();
    account.metadata.name = "clerk".into();
    gateway.create(&account).await.unwrap();
    let spec = TokenRequestSpec {
        expiration_seconds: Some(600),
        ..TokenRequestSpec::default()
    };
    let key = Key::of(&account.metadata);
    let issued = gateway.create_token(&key, spec.clone()).await.unwrap();
    assert_eq!(issued.token.split('.').count(), 3);
    assert!(issued.expiration_timestamp.timestamp().is_some());
    let nobody = Key::new("default", "nobody");
    let refused = gateway.create_token(&nobody, spec).await.unwrap_err();
    assert_eq!(refused.reason, Reason::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_complete_however_many_pages_it_has() {
    let server = Server::start().await;
    (0..1200).for_each(|n| _ = server.put(&config_map(&format!("c{n:04}"))));
    let listed = server
        .client("test")
        .list::<ConfigMap>(&ListOptions::default())
        .await
        .unwrap();
    assert_eq!(listed.items.len(), 1200);
    assert!(
        listed
            .items
            .is_sorted_by_key(|config| config.metadata.name.clone())
    );
    assert_eq!(
        (listed.revision.raw(), server.calls("List")),
        (server.revision(), 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_ends_in_time_and_a_quiet_watch_does_not() {
    let server = Server::start().await;
    let gateway = server.client("test");
    let informer = gateway.informer::<setpoint_controller::Whole<ConfigMap>>();
    let reader = informer.reader();
    tokio::spawn(informer.run(CancellationToken::new()));
    soon(reader.synced()).await;

    server.set_faults(Faults {
        hang: vec!["Create"],
        ..Faults::default()
    });
    let begin = Instant::now();
    let error = gateway.create(&config_map("a")).await.unwrap_err();
    assert_eq!(
        (error.reason, begin.elapsed().as_secs()),
        (Reason::Timeout, 10)
    );

    sleep(Duration::from_secs(3600)).await;
    server.put(&config_map("b"));
    eventually("it is seen", async || reader.len() == 1).await;
    assert_eq!(server.calls("Watch"), 1);
}

#[tokio::test(start_paused = true)]
async fn only_writes_are_fenced() {
    let server = Server::start().await;
    let existing = server.put(&config_map("a"));
    let late = Fence {
        namespace: "setpoint-system".into(),
        lease: "test".into(),
        term: 3,
    };
    let gateway = server.client("test").under(&late);
    gateway
        .get::<ConfigMap>(&Key::of(&existing.metadata))
        .await
        .unwrap();
    assert!(gateway.update(&existing).await.unwrap_err().is_fenced());
    gateway
        .under(&Fence::open())
        .update(&existing)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_acts_as_another_user_writes_as_that_one() {
    let server = Server::start().await;
    let gateway = server.client("job-controller");
    let controller = gateway.acting_as("system:setpoint:job-controller", &[]);
    let jane = gateway.acting_as("jane", &["system:setpoint"]);
    for (client, name, expected) in [
        (&gateway, "a", "job-controller"),
        (&controller, "b", "job-controller"),
        (&jane, "c", "jane/job-controller"),
    ] {
        let map = config_map(name);
        client.create(&map).await.unwrap();
        let key = Key::of(&map.metadata);
        let stored = client.object(ConfigMap::RESOURCE, &key).await.unwrap();
        assert_eq!(stored.cause.unwrap().writer, expected);
    }
}
