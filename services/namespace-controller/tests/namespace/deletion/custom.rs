//! Namespaces with objects of custom kinds.

use setpoint_gateway::in_process::custom_kind::{self, TABS};
use setpoint_model::Key;
use setpoint_proto::Reason;
use setpoint_proto::meta::ObjectMeta;

use crate::deletion::fixture::{Fixture, NAMESPACE};

#[tokio::test]
async fn objects_of_kinds_that_were_defined_later_are_deleted_as_well() {
    let fixture = Fixture::running().await;
    custom_kind::define(&fixture.gateway).await;
    let metadata = ObjectMeta {
        name: "a".into(),
        namespace: NAMESPACE.into(),
        ..ObjectMeta::default()
    };
    custom_kind::create(&fixture.gateway, metadata)
        .await
        .unwrap();
    fixture.end().await;
    fixture.until_gone().await;
    let found = fixture.client.object(TABS, &Key::new(NAMESPACE, "a")).await;
    assert_eq!(found.unwrap_err().reason, Reason::NotFound);
}
