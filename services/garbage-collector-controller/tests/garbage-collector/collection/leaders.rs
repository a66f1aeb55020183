//! Leaders that take over, and streams that break.

use setpoint_controller::Client;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{DeleteRequest, MetadataEvent};
use setpoint_proto::trace::Traceparent;
use setpoint_proto::{Reason, TraceContext};
use tonic::Streaming;

use crate::collection::create_chain;
use crate::collection::fixture::{Fixture, NAMESPACE, blocking, config_map};

/// Checks G1: the first one knows nothing of the deletion.
#[tokio::test]
async fn dependants_that_were_abandoned_before_the_start_are_deleted() {
    let fixture = Fixture::start().await;
    create_chain(&fixture).await;
    fixture.delete("web", "Background").await;
    let _collector = fixture.run();
    fixture.gone("pod").await;
}

#[tokio::test]
async fn a_leader_continues_what_the_one_before_it_has_begun() {
    let fixture = Fixture::start().await;
    let first = fixture.run();
    let web = fixture.owned("web", &[]).await;
    let mut held = config_map("held", &[blocking(&web)]);
    held.metadata.finalizers = vec!["example.com/held".into()];
    fixture.create(&held).await;
    fixture.delete("web", "Foreground").await;
    let ending =
        |map: &ConfigMap| map.metadata.name == "held" && map.metadata.deletion_timestamp.is_some();
    fixture.seen(ending).await;
    drop(first);
    fixture.release("held").await;
    fixture.gone("held").await;
    assert!(fixture.get("web").await.is_ok());
    let _second = fixture.run();
    fixture.gone("web").await;
}

/// Two collectors, as in a failover without a fence, do no harm.
#[tokio::test]
async fn two_collectors_at_once_delete_nothing_twice_and_nothing_else() {
    let fixture = Fixture::running().await;
    let _other = fixture.run();
    let kept = fixture.owned("kept", &[]).await;
    for round in 0..20 {
        create_chain(&fixture).await;
        let name = format!("of-kept-{round}");
        fixture.owned(&name, &[blocking(&kept)]).await;
        fixture.delete("web", "Foreground").await;
        fixture.gone("web").await;
    }
    for round in 0..20 {
        assert!(fixture.get(&format!("of-kept-{round}")).await.is_ok());
    }
}

async fn next(events: &mut Streaming<MetadataEvent>) -> MetadataEvent {
    events.message().await.unwrap().unwrap()
}

/// Returns the names of the objects up to the end of the initial state, and its revision.
async fn initial(client: &Client) -> (Streaming<MetadataEvent>, Vec<String>, String) {
    let mut events = client.watch_metadata(None).await.unwrap();
    let mut names = Vec::new();
    loop {
        let event = next(&mut events).await;
        match event.object {
            Some(object) => names.push(object.metadata.name),
            None if event.initial_events_end => return (events, names, event.revision),
            None => {}
        }
    }
}

/// Checks S2, S3.
#[tokio::test]
async fn a_watch_of_metadata_sends_what_matters_once_and_is_continued_after_a_revision() {
    let fixture = Fixture::start().await;
    fixture.owned("first", &[]).await;
    let (mut events, names, revision) = initial(&fixture.client).await;
    assert!(names.contains(&"first".to_owned()) && names.contains(&"shop".to_owned()));
    let owner = fixture.owned("owner", &[]).await;
    let mut changed = config_map("owner", &[]);
    changed.data.insert("key".into(), "value".into());
    fixture.client.update(&changed).await.unwrap();
    fixture.set_owners("first", &[blocking(&owner)]).await;
    fixture.delete("first", "Background").await;
    let resumed = fixture.client.watch_metadata(revision.parse().ok()).await;
    for events in [&mut events, &mut resumed.unwrap()] {
        let mut seen = Vec::new();
        for _ in 0..3 {
            let event = next(events).await;
            let object = event.object.unwrap();
            assert_eq!(
                (&*object.resource, &*object.kind),
                ("configmaps", "ConfigMap")
            );
            assert!(event.cause.is_some());
            let owners = object.metadata.owner_references.len();
            seen.push((object.metadata.name, owners, event.deleted));
        }
        let expected = [("owner", 0, false), ("first", 1, false), ("first", 1, true)];
        assert_eq!(
            seen,
            expected.map(|(name, owners, gone)| (name.to_owned(), owners, gone))
        );
    }
}

#[tokio::test]
async fn a_watch_of_metadata_after_a_revision_that_does_not_exist_expires() {
    let fixture = Fixture::start().await;
    let late = fixture.client.watch_metadata("1000000".parse().ok()).await;
    assert_eq!(late.unwrap_err().reason, Reason::Expired);
}

/// The trace that the user begins, and the depth of each write in it.
#[tokio::test]
async fn a_collection_belongs_to_the_trace_of_the_deletion() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let fixture = Fixture::running().await;
    create_chain(&fixture).await;
    let (mut events, _, _) = initial(&fixture.client).await;
    let parent = PARENT.parse().ok();
    let request = DeleteRequest {
        resource: "configmaps".into(),
        namespace: NAMESPACE.into(),
        name: "web".into(),
        trace: Some(TraceContext {
            parent,
            ..TraceContext::default()
        }),
        ..DeleteRequest::default()
    };
    let mut objects = ObjectsClient::new(fixture.client.channel());
    objects.delete(request).await.unwrap();
    for (name, depth) in [("web", 0), ("set", 1), ("pod", 2)] {
        let event = next(&mut events).await;
        assert_eq!(event.object.unwrap().metadata.name, name);
        let cause = event.cause.unwrap();
        assert_eq!(
            cause.trace_id(),
            parent.map(|parent: Traceparent| parent.trace_id())
        );
        assert_eq!((event.deleted, cause.depth), (true, depth), "{name}");
    }
}
