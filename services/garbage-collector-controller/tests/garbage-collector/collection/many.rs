//! Many objects.

use futures::stream::{self, StreamExt as _};
use setpoint_controller::client::ListOptions;
use setpoint_proto::core::ConfigMap;

use crate::collection::fixture::{Fixture, blocking};

async fn collect(many: usize) {
    let fixture = Fixture::running().await;
    let (ends, lives) = (
        fixture.owned("ends", &[]).await,
        fixture.owned("lives", &[]).await,
    );
    let create = async |number: usize| {
        let owner = if number.is_multiple_of(10) {
            &lives
        } else {
            &ends
        };
        let name = format!("of-{number}");
        fixture.owned(&name, &[blocking(owner)]).await;
    };
    stream::iter(0..many).for_each_concurrent(64, create).await;
    fixture.delete("ends", "Foreground").await;
    fixture.gone("ends").await;
    let all = ListOptions::default();
    let left = fixture.client.list::<ConfigMap>(&all).await.unwrap();
    let left = left.items.len();
    // And the other owner.
    assert_eq!(left, many / 10 + 1);
}

/// Checks K2.
#[tokio::test]
async fn a_thousand_dependants_are_collected_and_those_of_another_owner_are_not() {
    collect(1_000).await;
}

/// Checks F1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute"]
async fn ten_thousand_dependants_are_collected() {
    collect(10_000).await;
}
