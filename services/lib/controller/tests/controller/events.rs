//! The recorder counts repetitions and never blocks.

use std::time::Duration;

use setpoint_controller::{Recorder, events};
use setpoint_model::Meta;
use setpoint_proto::core::{ConfigMap, Event, ObjectReference};

use crate::server::{Faults, Server, config_map, eventually};

/// Starts a server, and a recorder of `test-controller-0` that writes to it.
async fn start() -> (Server, Recorder) {
    let server = Server::start().await;
    let recorder = Recorder::new(
        server.client("test"),
        "test-controller",
        "test-controller-0",
    );
    (server, recorder)
}

#[tokio::test(start_paused = true)]
async fn repetitions_are_counted_in_one_event() {
    let (server, recorder) = start().await;
    let about = events::reference_to(&server.put(&config_map("a")));
    for n in 1..=3 {
        recorder.warning(&about, "Failed", "no luck");
        eventually("it is written", async || {
            server
                .all::<Event>()
                .first()
                .is_some_and(|event| event.count == n)
        })
        .await;
    }
    let [event] = &server.all::<Event>()[..] else {
        panic!("there is one Event")
    };
    assert_eq!(
        (event.r#type.as_str(), event.reason.as_str()),
        ("Warning", "Failed")
    );
    assert_eq!(event.involved_object.name, "a");
    assert_eq!(event.metadata.namespace, "default");
    assert_eq!(event.reporting_instance, "test-controller-0");
    assert_eq!((server.calls("Create"), server.calls("Patch")), (1, 2));
}

/// The profiles of a scheduler record their Events through one queue.
#[tokio::test(start_paused = true)]
async fn components_of_an_instance_share_a_recorder() {
    let (server, recorder) = start().await;
    let about = events::reference_to(&server.put(&config_map("a")));
    recorder.normal(&about, "First", "by the recorder's own");
    recorder
        .of_component("other")
        .normal(&about, "Second", "by another");
    eventually("both are written", async || {
        server.all::<Event>().len() == 2
    })
    .await;
    let mut written: Vec<_> = server
        .all::<Event>()
        .into_iter()
        .map(|event| {
            (
                event.reason,
                event.reporting_component,
                event.source.component,
            )
        })
        .collect();
    written.sort_unstable();
    let expected = [("First", "test-controller"), ("Second", "other")];
    let expected = expected.map(|(reason, by)| (reason.to_owned(), by.to_owned(), by.to_owned()));
    assert_eq!(written, expected);
}

#[test]
fn an_object_and_its_metadata_give_the_same_reference() {
    let mut object = config_map("a");
    object.metadata.uid = "u1".into();
    object.metadata.resource_version = "7".into();
    let expected = ObjectReference {
        kind: "ConfigMap".into(),
        api_version: "v1".into(),
        namespace: "default".into(),
        name: "a".into(),
        uid: "u1".into(),
        resource_version: "7".into(),
        ..ObjectReference::default()
    };
    assert_eq!(events::reference_to(&object), expected);
    let meta = Meta::of(&object.metadata);
    assert_eq!(events::reference::<ConfigMap>(&meta), expected);
}

#[tokio::test(start_paused = true)]
async fn events_are_written_after_the_work_and_repetitions_in_one_write() {
    let (server, recorder) = start().await;
    let about = events::reference_to(&server.put(&config_map("a")));
    for _ in 0..3 {
        recorder.normal(&about, "Created", "it is there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.calls("Create"), 0, "the work comes first");
    eventually("it is written", async || server.all::<Event>().len() == 1).await;
    assert_eq!(server.all::<Event>()[0].count, 3);
    assert_eq!((server.calls("Create"), server.calls("Patch")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn recorded_events_are_written_before_the_end_and_later_ones_are_dropped() {
    let (server, recorder) = start().await;
    let about = events::reference_to(&server.put(&config_map("a")));
    for n in 0..3 {
        recorder.normal(&about, "Created", format!("pod {n}"));
    }
    let clone = recorder.clone();
    recorder.finish().await;
    assert_eq!(server.all::<Event>().len(), 3);
    clone.normal(&about, "Created", "too late");
    clone.finish().await;
    assert_eq!(server.all::<Event>().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_a_gateway_that_hangs() {
    let server = Server::start().await;
    server.set_faults(Faults {
        hang: vec!["Create"],
        ..Faults::default()
    });
    let recorder = Recorder::new(
        server.client("test"),
        "test-controller",
        "test-controller-0",
    );
    recorder.normal(
        &events::reference_to(&config_map("a")),
        "Created",
        "it is there",
    );
    let start = tokio::time::Instant::now();
    recorder.finish().await;
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_cleaned_up_begins_anew() {
    let (server, recorder) = start().await;
    let about = events::reference_to(&server.put(&config_map("a")));
    recorder.normal(&about, "Created", "it is there");
    eventually("it is written", async || server.all::<Event>().len() == 1).await;
    server.remove(&server.all::<Event>()[0]);
    recorder.normal(&about, "Created", "it is there");
    eventually("it is written", async || server.all::<Event>().len() == 1).await;
    assert_eq!(server.all::<Event>()[0].count, 1);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_hangs_costs_events_and_nothing_else() {
    let server = Server::start().await;
    server.set_faults(Faults {
        hang: vec!["Create"],
        ..Faults::default()
    });
    let recorder = Recorder::new(
        server.client("test"),
        "test-controller",
        "test-controller-0",
    );
    let about = events::reference_to(&config_map("a"));
    for n in 0..10_000 {
        recorder.normal(&about, "Created", format!("pod {n}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_about_one_object_is_few_events() {
    let (server, recorder) = start().await;
    let about = events::reference_to(&config_map("a"));
    for n in 0..1000 {
        recorder.normal(&about, "Created", format!("pod {n}"));
    }
    eventually("all are counted", async || {
        server
            .all::<Event>()
            .iter()
            .map(|event| event.count)
            .sum::<i32>()
            == 1000
    })
    .await;
    let events = server.all::<Event>();
    assert_eq!(events.len(), 10);
    let combined = |event: &&Event| {
        event
            .message
            .starts_with("(combined from similar events): ")
    };
    let [rest] = &events.iter().filter(combined).collect::<Vec<_>>()[..] else {
        panic!("the rest is one Event: {events:?}")
    };
    assert_eq!(
        (rest.count, rest.message.split(' ').next_back()),
        (991, Some("999"))
    );
}

#[tokio::test(start_paused = true)]
async fn every_event_names_the_loop_that_reports_and_its_instance() {
    let server = Server::start().await;
    let about = events::reference_to(&config_map("a"));
    let of_service = Recorder::new(
        server.client("test"),
        "test-controller",
        "test-controller-0",
    );
    let of_node = Recorder::on_node(server.client("test"), "kubelet", "node-7");
    of_service.normal(&about, "One", "it is there");
    of_node.normal(&about, "Two", "it is there");
    eventually("both are written", async || {
        server.all::<Event>().len() == 2
    })
    .await;
    let changes = |reason: &str| {
        let events = server.all::<Event>();
        let event = events.iter().find(|event| event.reason == reason).unwrap();
        let source = event.source.clone();
        let (component, instance) = (&event.reporting_component, &event.reporting_instance);
        [
            source.component,
            source.host,
            component.clone(),
            instance.clone(),
        ]
    };
    let controller = [
        "test-controller",
        "",
        "test-controller",
        "test-controller-0",
    ];
    assert_eq!(changes("One"), controller);
    assert_eq!(changes("Two"), ["kubelet", "node-7", "kubelet", "node-7"]);
}

/// As with client-go's filter: 25 writes about an object, then one in five minutes, which has the whole count.
#[tokio::test(start_paused = true)]
async fn what_goes_on_forever_is_written_ever_less_often() {
    let (server, recorder) = start().await;
    let about = events::reference_to(&server.put(&config_map("a")));
    let repeat = async |times: usize| {
        for _ in 0..times {
            recorder.warning(&about, "BackOff", "it fails again");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    repeat(100).await;
    assert_eq!((server.calls("Create"), server.calls("Patch")), (1, 24));
    assert_eq!(server.all::<Event>()[0].count, 25);
    tokio::time::sleep(Duration::from_secs(300)).await;
    repeat(1).await;
    assert_eq!((server.calls("Create"), server.calls("Patch")), (1, 25));
    assert_eq!(server.all::<Event>()[0].count, 101);
}
