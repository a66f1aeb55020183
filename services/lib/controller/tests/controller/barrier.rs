//! The barrier: a key waits until the caches have reached its writes.

use std::time::Duration;

use setpoint_controller::{Barrier, Receipt, Whole};
use setpoint_model::{Key, Revision};
use setpoint_proto::Resource as _;
use setpoint_proto::core::{ConfigMap, Namespace};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::server::{Faults, Server, config_map, eventually, namespace, soon};

/// Checks I6.
#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_cache_has_reached_its_write() {
    let server = Server::start().await;
    let gateway = server.client("test");
    let informer = gateway.informer::<Whole<ConfigMap>>();
    let reader = informer.reader();
    let mut barrier = Barrier::default();
    barrier.watch(&reader);
    tokio::spawn(informer.run(CancellationToken::new()));
    soon(reader.synced()).await;

    server.set_faults(Faults {
        mute: Some(("configmaps", server.revision())),
        hang: vec!["Watch"],
        ..Faults::default()
    });
    let written = gateway.create(&config_map("a")).await.unwrap();
    let key = Key::new("default", "set");
    barrier.wrote(&key, [written.receipt(), Receipt::none()]);
    let other = Key::new("default", "other");
    assert!(barrier.reached(&other).await, "nothing was written for it");
    let begin = Instant::now();
    assert!(!barrier.reached(&key).await);
    assert!(begin.elapsed() >= Duration::from_secs(1) && reader.is_empty());

    server.set_faults(Faults::default());
    assert!(soon(barrier.reached(&key)).await);
    assert_eq!(reader.len(), 1);
}

/// Checks I6.
#[tokio::test(start_paused = true)]
async fn a_key_waits_until_each_cache_has_reached_the_writes_of_its_kind() {
    let server = Server::start().await;
    let gateway = server.client("test");
    let maps = gateway.informer::<Whole<ConfigMap>>();
    let namespaces = gateway.informer::<Whole<Namespace>>();
    let (seen, missing) = (maps.reader(), namespaces.reader());
    let mut barrier = Barrier::default();
    barrier.watch(&seen);
    barrier.watch(&missing);
    tokio::spawn(maps.run(CancellationToken::new()));
    tokio::spawn(namespaces.run(CancellationToken::new()));
    soon(seen.synced()).await;
    soon(missing.synced()).await;

    server.set_faults(Faults {
        mute: Some(("namespaces", server.revision())),
        hang: vec!["Watch"],
        ..Faults::default()
    });
    let map = gateway.create(&config_map("a")).await.unwrap();
    let namespace = gateway.create(&namespace("b")).await.unwrap();
    let key = Key::new("default", "set");
    barrier.wrote(&key, [map.receipt(), namespace.receipt()]);
    eventually("the other cache is there", async || {
        seen.reached() >= namespace.revision
    })
    .await;
    assert!(!barrier.reached(&key).await);

    server.set_faults(Faults::default());
    assert!(soon(barrier.reached(&key)).await);
    assert_eq!((seen.len(), missing.len()), (1, 2), "and `default`");
}

#[tokio::test(start_paused = true)]
async fn writes_of_kinds_without_a_cache_are_nothing_to_wait_for() {
    let server = Server::start().await;
    let written = server
        .client("test")
        .create(&config_map("a"))
        .await
        .unwrap();
    let (barrier, key) = (Barrier::default(), Key::new("default", "a"));
    barrier.wrote(&key, [written.receipt()]);
    let reached = timeout(Duration::ZERO, barrier.reached(&key)).await;
    assert_eq!(reached, Ok(true));
}

/// Checks F37: revisions that a restored store has lost are not waited for.
#[tokio::test(start_paused = true)]
async fn a_key_does_not_wait_for_a_revision_that_a_restored_store_has_lost() {
    let server = Server::start().await;
    let gateway = server.client("test");
    let informer = gateway.informer::<Whole<ConfigMap>>();
    let reader = informer.reader();
    let mut barrier = Barrier::default();
    barrier.watch(&reader);
    tokio::spawn(informer.run(CancellationToken::new()));
    soon(reader.synced()).await;

    let lost = Receipt {
        resource: ConfigMap::RESOURCE,
        revision: Revision::from_raw(1_000_000),
    };
    let key = Key::new("default", "set");
    barrier.wrote(&key, [lost]);
    assert!(soon(barrier.reached(&key)).await, "fetched anew");
    assert_eq!(server.calls("Initial"), 2);

    // A relist counts from the write, not from the wait, however long it takes.
    barrier.wrote(&key, [lost]);
    server.set_faults(Faults {
        hang: vec!["Watch"],
        ..Faults::default()
    });
    assert!(!barrier.reached(&key).await, "nothing was fetched since");
    server.set_faults(Faults::default());
    soon(async { while !barrier.reached(&key).await {} }).await;
}
