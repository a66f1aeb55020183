//! Tests of panics in background tasks: one within a collector's task fails only that, and a supervised task is restarted.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_proto::core::{ConfigMap, Event, Pod};
use setpoint_proto::meta::DeleteOptions;
use setpoint_store::Memory;
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::NAMESPACE;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::garbage_collector::{blocking_reference, create_owner};
use crate::gateway::{TestGateway, pod};

const HOUR: Duration = Duration::from_secs(3600);

/// The reports of the tasks, in order.
type Reports = Arc<Mutex<Vec<(&'static str, Result<(), String>)>>>;

/// Returns a store that panics at the deletion of a key that contains `word`.
fn panics_at_deletion_of(word: &'static str) -> Arc<FaultyStore> {
    let store = FaultyStore::new(Arc::new(Memory::default()));
    store.panic_in_commits(move |write| write.value.is_none() && write.key.contains(word));
    store
}

fn run(gateway: &TestGateway, event_ttl: Duration) -> (Reports, DropGuard) {
    let (reports, stop) = (Reports::default(), CancellationToken::new());
    let sink = reports.clone();
    let report = move |task| {
        let sink = sink.clone();
        move |state| sink.lock().push((task, state))
    };
    let registry = gateway.registry.clone();
    tokio::spawn(registry.run_background(event_ttl, stop.clone(), report));
    (reports, stop.drop_guard())
}

/// Checks F1.
#[tokio::test(start_paused = true)]
async fn a_task_of_the_collector_that_panics_is_retried_while_others_are_done() {
    let store = panics_at_deletion_of("/bad");
    let gateway = TestGateway::start_over(store.clone()).await;
    let (reports, _stop) = run(&gateway, HOUR);
    let ends = create_owner(&gateway, "ends").await;
    for name in ["bad", "good"] {
        let mut owned = pod(name);
        owned.metadata.owner_references = vec![blocking_reference(&ends)];
        gateway.create(&owned).await.unwrap();
    }
    gateway
        .delete::<ConfigMap>("ends", DeleteOptions::default())
        .await
        .unwrap();
    gateway.gone::<Pod>("good").await;
    assert!(gateway.get::<Pod>("bad").await.is_ok());
    // Other tasks are done while this one fails.
    for n in 0..3 {
        let name = format!("next-{n}");
        let next = create_owner(&gateway, &name).await;
        let mut owned = pod(&format!("of-{n}"));
        owned.metadata.owner_references = vec![blocking_reference(&next)];
        gateway.create(&owned).await.unwrap();
        gateway
            .delete::<ConfigMap>(&name, DeleteOptions::default())
            .await
            .unwrap();
        gateway.gone::<Pod>(&format!("of-{n}")).await;
    }
    assert!(reports.lock().iter().all(|(_, state)| state.is_ok()));
    store.panic_in_commits(|_| false);
    // The delay of its retries is longer than the timeout of `gone` by now.
    let collected = async {
        while gateway.get::<Pod>("bad").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(HOUR, collected).await.unwrap();
}

/// Checks F1: a supervised task that panics is restarted, and reports failures while it keeps failing.
#[tokio::test(start_paused = true)]
async fn a_supervised_task_that_panics_is_restarted_and_reported() {
    let store = panics_at_deletion_of("/events/");
    let gateway = TestGateway::start_over(store.clone()).await;
    let mut old = Event::default();
    old.metadata.name = "old".into();
    old.involved_object.namespace = NAMESPACE.into();
    gateway.create(&old).await.unwrap();
    let (reports, _stop) = run(&gateway, Duration::from_secs(1));
    let failing = async {
        let is_reported = || {
            let reports = reports.lock();
            let mut failed = reports.iter().filter(|(_, state)| state.is_err());
            failed.any(|(task, _)| *task == "expiry")
        };
        while !is_reported() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(HOUR, failing).await.unwrap();
    // The garbage collector still runs.
    let ends = create_owner(&gateway, "ends").await;
    let mut owned = pod("owned");
    owned.metadata.owner_references = vec![blocking_reference(&ends)];
    gateway.create(&owned).await.unwrap();
    gateway
        .delete::<ConfigMap>("ends", DeleteOptions::default())
        .await
        .unwrap();
    gateway.gone::<Pod>("owned").await;
    store.panic_in_commits(|_| false);
    gateway.gone::<Event>("old").await;
}
