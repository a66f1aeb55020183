//! Writes whose answers are lost, late or doubled between a controller and the gateway, repeated as controllers repeat
//! them.

use std::time::Duration;

use setpoint_controller::client::Preconditions;
use setpoint_controller::{Client, Created};
use setpoint_model::{Key, Meta};
use setpoint_proto::Reason;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::meta::OwnerReference;

use crate::server::{Answers, Faults, Server, config_map};

/// Late by less and by more than a client waits.
const ALL: [Answers; 4] = [
    Answers::Lost,
    Answers::Late(Duration::from_secs(5)),
    Answers::Late(Duration::from_secs(15)),
    Answers::Doubled,
];

fn child_of(owner: &ConfigMap) -> ConfigMap {
    let mut child = config_map("child");
    child.metadata.owner_references = vec![OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: owner.metadata.name.clone(),
        uid: owner.metadata.uid.clone(),
        controller: Some(true),
        ..OwnerReference::default()
    }];
    child
}

/// Starts a gateway whose answers to writes have a fault.
async fn start(answers: Answers) -> (Server, Client) {
    let server = Server::start().await;
    let faults = Faults {
        answers,
        ..Faults::default()
    };
    server.set_faults(faults);
    let client = server.client("test");
    (server, client)
}

/// Checks DG1.
#[tokio::test(start_paused = true)]
async fn a_child_is_created_once() {
    for answers in ALL {
        let (server, gateway) = start(answers).await;
        let owner = server.put(&config_map("owner"));
        let (meta, child) = (Meta::of(&owner.metadata), child_of(&owner));
        let create = async || gateway.create_or_take(&meta, &child, |_| true).await;
        let first = create().await;
        if let Err(error) = &first {
            assert_eq!(error.reason, Reason::Timeout, "{answers:?}");
        }
        let made: ConfigMap = server.get("default", "child").unwrap();
        server.set_faults(Faults::default());
        let again = create().await;
        assert!(
            matches!(again, Ok(Created::Before(_))),
            "{answers:?} {again:?}"
        );
        assert_eq!(server.get::<ConfigMap>("default", "child"), Some(made));

        let other = Meta::of(&server.put(&config_map("other")).metadata);
        let taken = gateway.create_or_take(&other, &child, |_| true).await;
        assert_eq!(taken.unwrap_err().reason, Reason::AlreadyExists);
    }
}

/// Checks DG1: what was asked of one object is not done to the one that replaces it.
#[tokio::test(start_paused = true)]
async fn a_deletion_ends_one_object() {
    for answers in ALL {
        let (server, gateway) = start(answers).await;
        let doomed = server.put(&config_map("a"));
        let key = Key::of(&doomed.metadata);
        let uid = || Preconditions::uid(doomed.metadata.uid.clone());
        let first = gateway.delete::<ConfigMap>(&key, uid(), None).await;
        if let Err(error) = &first {
            let known = [Reason::Timeout, Reason::NotFound];
            assert!(known.contains(&error.reason), "{answers:?} {error}");
        }
        assert_eq!(server.get::<ConfigMap>("default", "a"), None);
        let next = server.put(&config_map("a"));
        server.set_faults(Faults::default());
        let again = gateway.delete::<ConfigMap>(&key, uid(), None).await;
        assert_eq!(again.unwrap_err().reason, Reason::Conflict, "{answers:?}");
        assert_eq!(server.get::<ConfigMap>("default", "a"), Some(next));
    }
}

/// Checks DG1.
#[tokio::test(start_paused = true)]
async fn an_update_is_made_once() {
    for answers in ALL {
        let (server, gateway) = start(answers).await;
        let mut changed = server.put(&config_map("a"));
        changed.data.insert("key".into(), "value".into());
        let first = gateway.update(&changed).await;
        if let Err(error) = &first {
            let known = [Reason::Timeout, Reason::Conflict];
            assert!(known.contains(&error.reason), "{answers:?} {error}");
        }
        let made: ConfigMap = server.get("default", "a").unwrap();
        assert_eq!(made.data, changed.data);
        server.set_faults(Faults::default());
        let again = gateway.update(&changed).await;
        assert_eq!(again.unwrap_err().reason, Reason::Conflict, "{answers:?}");
        assert_eq!(server.get::<ConfigMap>("default", "a"), Some(made));
    }
}
