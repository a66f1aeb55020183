//! Small objects, and the envelopes in which a store keeps them.

use std::collections::BTreeMap;

use bytes::Bytes;
use setpoint_codec::{Kind, envelope, kinds};
use setpoint_gateway::store::keys;
use setpoint_model::Key;
use setpoint_proto::core::{ConfigMap, Pod};
use setpoint_proto::{Cause, Resource};

/// Everything that the suites store lives here.
pub const NAMESPACE: &str = "production";

/// The kind of a message.
///
/// # Panics
/// When it is not stored.
pub fn kind<T: Resource>() -> &'static Kind {
    kinds()
        .by_resource(T::RESOURCE)
        .expect("every resource has a kind")
}

/// Where an object of this name is kept.
pub fn key_of<T: Resource>(name: &str) -> String {
    keys::object(kind::<T>(), &Key::new(NAMESPACE, name))
}

/// An object as the store keeps it.
pub fn enveloped<T: Resource>(object: &T, cause: Option<&Cause>) -> Bytes {
    envelope::write(T::API_VERSION, T::KIND, &object.encode_to_vec(), cause)
}

/// A ConfigMap with one value, labelled by it.
pub fn config_map(name: &str, value: &str) -> ConfigMap {
    let mut object = ConfigMap {
        data: BTreeMap::from([("value".to_owned(), value.to_owned())]),
        ..Default::default()
    };
    object.metadata.namespace = NAMESPACE.into();
    object.metadata.name = name.into();
    object.metadata.labels = BTreeMap::from([("value".to_owned(), value.to_owned())]);
    object
}

/// A Pod, bound to a node unless that is empty.
pub fn pod(name: &str, node: &str) -> Pod {
    let mut object = Pod::default();
    object.metadata.namespace = NAMESPACE.into();
    object.metadata.name = name.into();
    object.spec.node_name = node.into();
    object
}
