//! Panics in background work: one of a chore costs only that chore, one of a task is reported and the task restarted.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_proto::core::{ConfigMap, Event, Pod};
use setpoint_proto::meta::DeleteOptions;
use setpoint_store::Memory;
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::NAMESPACE;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::collector::{blocks, owner};
use crate::world::{World, pod};

const HOUR: Duration = Duration::from_secs(3600);

/// What each task reported, in order.
type Reports = Arc<Mutex<Vec<(&'static str, Result<(), String>)>>>;

/// A store that panics at the deletion of a key that contains `word`, as a bug would.
fn fails_to_delete(word: &'static str) -> Arc<FaultyStore> {
    let store = FaultyStore::new(Arc::new(Memory::default()));
    store.panic_in_commits(move |write| write.value.is_none() && write.key.contains(word));
    store
}

fn run(world: &World, event_ttl: Duration) -> (Reports, DropGuard) {
    let (reports, stop) = (Reports::default(), CancellationToken::new());
    let told = reports.clone();
    let report = move |task| {
        let told = told.clone();
        move |state| told.lock().push((task, state))
    };
    let registry = world.registry.clone();
    tokio::spawn(registry.run_background(event_ttl, stop.clone(), report));
    (reports, stop.drop_guard())
}

/// Checks F1.
#[tokio::test(start_paused = true)]
async fn a_chore_that_panics_is_tried_again_while_all_others_are_done() {
    let store = fails_to_delete("/bad");
    let world = World::start_over(store.clone()).await;
    let (reports, _stop) = run(&world, HOUR);
    let ends = owner(&world, "ends").await;
    for name in ["bad", "good"] {
        let mut owned = pod(name);
        owned.metadata.owner_references = vec![blocks(&ends)];
        world.create(&owned).await.unwrap();
    }
    world
        .delete::<ConfigMap>("ends", DeleteOptions::default())
        .await
        .unwrap();
    world.gone::<Pod>("good").await;
    assert!(world.get::<Pod>("bad").await.is_ok());
    // Others' work goes on for as long as the chore fails.
    for n in 0..3 {
        let name = format!("next-{n}");
        let next = owner(&world, &name).await;
        let mut owned = pod(&format!("of-{n}"));
        owned.metadata.owner_references = vec![blocks(&next)];
        world.create(&owned).await.unwrap();
        world
            .delete::<ConfigMap>(&name, DeleteOptions::default())
            .await
            .unwrap();
        world.gone::<Pod>(&format!("of-{n}")).await;
    }
    assert!(reports.lock().iter().all(|(_, state)| state.is_ok()));
    store.panic_in_commits(|_| false);
    // By now it is tried more rarely than a test is used to wait.
    let collected = async {
        while world.get::<Pod>("bad").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(HOUR, collected).await.unwrap();
}

/// Checks F1: a panic of the task itself restarts it, and its report says so while it keeps failing.
#[tokio::test(start_paused = true)]
async fn a_task_that_panics_is_restarted_and_reported() {
    let store = fails_to_delete("/events/");
    let world = World::start_over(store.clone()).await;
    let mut old = Event::default();
    old.metadata.name = "old".into();
    old.involved_object.namespace = NAMESPACE.into();
    world.create(&old).await.unwrap();
    let (reports, _stop) = run(&world, Duration::from_secs(1));
    let failing = async {
        let is_told = || {
            let reports = reports.lock();
            let mut failed = reports.iter().filter(|(_, state)| state.is_err());
            failed.any(|(task, _)| *task == "expiry")
        };
        while !is_told() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(HOUR, failing).await.unwrap();
    // The collector goes on meanwhile.
    let ends = owner(&world, "ends").await;
    let mut owned = pod("owned");
    owned.metadata.owner_references = vec![blocks(&ends)];
    world.create(&owned).await.unwrap();
    world
        .delete::<ConfigMap>("ends", DeleteOptions::default())
        .await
        .unwrap();
    world.gone::<Pod>("owned").await;
    store.panic_in_commits(|_| false);
    world.gone::<Event>("old").await;
}
