//! Tests of the classes that complete new objects: default classes of claims and Ingresses, and the RuntimeClass of a
//! Pod.

use setpoint_proto::core::{PersistentVolumeClaim, Toleration};
use setpoint_proto::meta::Quantity;
use setpoint_proto::networking::{Ingress, IngressClass};
use setpoint_proto::node::{RuntimeClass, Scheduling};
use setpoint_proto::storage::StorageClass;

use setpoint_proto::scheduling::PriorityClass;

use crate::registry::gateway::{TestGateway, pod};

fn claim(name: &str) -> PersistentVolumeClaim {
    let mut claim = PersistentVolumeClaim::default();
    claim.metadata.name = name.into();
    claim.spec.access_modes.push("ReadWriteOnce".into());
    let string = "1Gi".to_owned();
    let requests = &mut claim.spec.resources.requests;
    requests.insert("storage".into(), Quantity { string });
    claim
}

#[tokio::test]
async fn a_claim_without_a_class_gets_the_default_class() {
    let gateway = TestGateway::start().await;
    let first = gateway.create(&claim("first")).await.unwrap();
    assert_eq!(first.spec.storage_class_name, None);
    assert_eq!(first.status.phase, "Pending");
    let mut class = StorageClass::default();
    class.metadata.name = "fast".into();
    class.provisioner = "example.com/disk".into();
    let annotation = "storageclass.kubernetes.io/is-default-class";
    let annotations = &mut class.metadata.annotations;
    annotations.insert(annotation.into(), "true".into());
    gateway.create(&class).await.unwrap();
    let second = gateway.create(&claim("second")).await.unwrap();
    assert_eq!(second.spec.storage_class_name.as_deref(), Some("fast"));
    let mut third = claim("third");
    third.spec.storage_class_name = Some(String::new());
    let third = gateway.create(&third).await.unwrap();
    assert_eq!(third.spec.storage_class_name.as_deref(), Some(""));
}

#[tokio::test]
async fn an_ingress_without_a_class_gets_the_default_class() {
    let gateway = TestGateway::start().await;
    let mut class = IngressClass::default();
    class.metadata.name = "edge".into();
    class.spec.controller = "example.com/edge".into();
    let annotation = "ingressclass.kubernetes.io/is-default-class";
    let annotations = &mut class.metadata.annotations;
    annotations.insert(annotation.into(), "true".into());
    gateway.create(&class).await.unwrap();
    let mut ingress = Ingress::default();
    ingress.metadata.name = "web".into();
    let backend = ingress.spec.default_backend.get_or_insert_default();
    let service = backend.service.get_or_insert_default();
    service.name = "web".into();
    service.port.number = 80;
    let ingress = gateway.create(&ingress).await.unwrap();
    assert_eq!(ingress.spec.ingress_class_name.as_deref(), Some("edge"));
}

#[tokio::test]
async fn a_pod_gets_overhead_and_scheduling_of_its_class() {
    let gateway = TestGateway::start().await;
    let mut class = RuntimeClass::default();
    class.metadata.name = "gvisor".into();
    class.handler = "runsc".into();
    let string = "250m".to_owned();
    let overhead = class.overhead.get_or_insert_default();
    overhead.pod_fixed.insert("cpu".into(), Quantity { string });
    let toleration = Toleration {
        key: "sandboxed".into(),
        operator: "Exists".into(),
        ..Default::default()
    };
    class.scheduling = Some(Scheduling {
        node_selector: [("sandbox".to_owned(), "yes".to_owned())].into(),
        tolerations: vec![toleration.clone()],
    });
    gateway.create(&class).await.unwrap();
    let mut pod = pod("web");
    pod.spec.runtime_class_name = Some("gvisor".into());
    let pod = gateway.create(&pod).await.unwrap();
    assert_eq!(pod.spec.overhead["cpu"].string, "250m");
    assert_eq!(pod.spec.node_selector["sandbox"], "yes");
    assert!(pod.spec.tolerations.contains(&toleration));
}

#[tokio::test]
async fn there_is_only_one_default_priority_class() {
    let gateway = TestGateway::start().await;
    let class = |name: &str, default| {
        let mut class = PriorityClass::default();
        class.metadata.name = name.into();
        class.global_default = default;
        class
    };
    gateway.create(&class("one", true)).await.unwrap();
    let created = gateway.create(&class("two", true)).await.unwrap_err();
    let text = "PriorityClass one is already marked as default. Only one default can exist";
    assert!(created.message.contains(text), "{created}");
    gateway.create(&class("two", false)).await.unwrap();
    let updated = gateway.update(&class("two", true)).await.unwrap_err();
    assert!(updated.message.contains(text), "{updated}");
    let mut one = class("one", true);
    one.description = "first".into();
    gateway.update(&one).await.unwrap();
}
