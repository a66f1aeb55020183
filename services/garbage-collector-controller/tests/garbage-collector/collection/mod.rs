//! The collector over a gateway in the same process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod custom;
mod fixture;
mod foreground;
mod leaders;
mod many;
mod references;

use fixture::{Fixture, blocking};

/// Creates `web`, an object of it, and one of that.
async fn create_chain(fixture: &Fixture) {
    let web = fixture.owned("web", &[]).await;
    let set = fixture.owned("set", &[blocking(&web)]).await;
    fixture.owned("pod", &[blocking(&set)]).await;
}

/// Checks D13.
#[tokio::test]
async fn all_dependants_are_deleted_in_the_background() {
    let fixture = Fixture::running().await;
    create_chain(&fixture).await;
    fixture.delete("web", "Background").await;
    fixture.gone("set").await;
    fixture.gone("pod").await;
}

/// Checks D13.
#[tokio::test]
async fn dependants_are_orphaned_without_their_reference() {
    let fixture = Fixture::running().await;
    create_chain(&fixture).await;
    fixture.delete("web", "Orphan").await;
    fixture.gone("web").await;
    let set = fixture.get("set").await.unwrap();
    assert!(set.metadata.owner_references.is_empty());
    assert!(fixture.get("pod").await.is_ok());
}

/// Checks D13.
#[tokio::test]
async fn an_owner_that_is_deleted_in_the_foreground_goes_last() {
    let fixture = Fixture::running().await;
    create_chain(&fixture).await;
    fixture.delete("web", "Foreground").await;
    fixture.gone("web").await;
    for name in ["set", "pod"] {
        assert!(fixture.get(name).await.is_err(), "{name}");
    }
}
