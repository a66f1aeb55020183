//! Quotas of objects of custom kinds.

use setpoint_controller::ObjectRef;
use setpoint_gateway::in_process::custom_kind::{self, TABS};
use setpoint_model::Key;
use setpoint_proto::meta::{DeleteOptions, ObjectMeta};
use tonic::Status;

use crate::counting::fixture::{Fixture, NAMESPACE, quota};

async fn create_tab(fixture: &Fixture, name: &str) -> Result<ObjectMeta, Status> {
    let metadata = ObjectMeta {
        name: name.into(),
        namespace: NAMESPACE.into(),
        ..ObjectMeta::default()
    };
    custom_kind::create(&fixture.gateway, metadata).await
}

#[tokio::test]
async fn the_objects_of_a_kind_that_is_defined_later_are_counted() {
    let (fixture, _running) = Fixture::running().await;
    let hard = [("count/tabs.example.com", "1"), ("secrets", "1")];
    fixture.create(&quota(&hard)).await.unwrap();
    fixture.used(&[("secrets", "0")]).await;
    custom_kind::define(&fixture.gateway).await;
    let none = [("count/tabs.example.com", "0"), ("secrets", "0")];
    fixture.used(&none).await;
    create_tab(&fixture, "a").await.unwrap();
    let refused = create_tab(&fixture, "b").await.unwrap_err();
    assert!(
        refused.message().contains("exceeded quota: quota"),
        "{refused}"
    );
    let tab: ObjectRef = Key::new(NAMESPACE, "a").in_resource(TABS);
    let deleted = fixture.client.delete_object(&tab, DeleteOptions::default());
    deleted.await.unwrap();
    fixture.used(&none).await;
}
