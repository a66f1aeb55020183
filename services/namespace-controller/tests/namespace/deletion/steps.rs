//! A controller that crashes after each of its actions.

use jiff::Timestamp;
use setpoint_controller::{Inputs, Outcome, Reconciler, Whole};
use setpoint_model::Key;
use setpoint_namespace_controller::Namespaces;
use setpoint_proto::core::Namespace;
use tokio_util::sync::CancellationToken;

use crate::deletion::fixture::{Fixture, NAMESPACE, config_map, pod};

/// Executes the first action of a controller that has just started; writes the status if there is none. Returns what it
/// did, `None` if there is nothing to do.
async fn one_action(fixture: &Fixture) -> Option<String> {
    let informer = fixture.client.informer::<Whole<Namespace>>();
    let reader = informer.reader();
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    tokio::spawn(informer.run(stop));
    reader.synced().await;
    let reconciler = Namespaces::new(reader);
    let key = Key::new("", NAMESPACE);
    let now = Timestamp::now();
    reconciler.fetch(&fixture.client, &key, now).await;
    let inputs = Inputs {
        now,
        instant: std::time::Instant::now(),
        seed: 0,
    };
    let world = reconciler.observe(&key, inputs)?;
    let outcome = Outcome::of(Namespaces::plan(&world));
    if let Some(step) = outcome.plan.steps.first() {
        let acted = reconciler.act(&fixture.client, &world, &step.action).await;
        acted.unwrap();
        return Some(format!("{:?}", step.action));
    }
    let status = Namespaces::status(&world, &outcome)?;
    let reported = reconciler.update_status(&fixture.client, &world, status);
    reported.await.unwrap();
    Some("status".to_owned())
}

/// Checks K9.
#[tokio::test]
async fn a_deletion_is_completed_by_controllers_of_which_each_crashes_after_one_action() {
    let fixture = Fixture::start().await;
    for name in ["a", "b"] {
        fixture.client.create(&config_map(name)).await.unwrap();
        fixture.client.create(&pod(name)).await.unwrap();
    }
    fixture.end().await;
    let mut done = Vec::new();
    while let Some(action) = one_action(&fixture).await {
        done.push(action);
        assert!(done.len() < 100, "{done:?}");
    }
    let expected = [
        "Delete(pods shop/a)",
        "Delete(pods shop/b)",
        "Delete(configmaps shop/a)",
        "Delete(configmaps shop/b)",
        "Delete(serviceaccounts shop/default)",
        "status",
        "Finalize",
    ];
    assert_eq!(done, expected);
    fixture.until_gone().await;
}
