//! Small objects for tests, and their envelopes.

use std::collections::BTreeMap;

use crate::keys;
use bytes::Bytes;
use setpoint_codec::envelope::{self, Identity};
pub use setpoint_codec::kind_of as kind;
use setpoint_model::Key;
use setpoint_proto::core::{ConfigMap, Pod};
use setpoint_proto::{Cause, Resource};

/// The namespace of all objects of the suites.
pub const NAMESPACE: &str = "production";

/// Returns the key of an object in [`NAMESPACE`].
pub fn key_of<T: Resource>(name: &str) -> String {
    keys::object(kind::<T>(), &Key::new(NAMESPACE, name))
}

/// Returns the envelope of an object.
pub fn enveloped<T: Resource>(object: &T, cause: Option<&Cause>) -> Bytes {
    envelope::write(T::API_VERSION, T::KIND, &object.encode_to_vec(), cause)
}

/// Returns an envelope without the identity of its write, which is its last field.
pub fn without_identity(value: &Bytes) -> Bytes {
    let length = Identity(0).append_to(&[]).len();
    value.slice(..value.len() - length)
}

/// Returns a ConfigMap with `value` as its data and as a label.
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

/// Returns a Pod that is bound to a node, unless `node` is empty.
pub fn pod(name: &str, node: &str) -> Pod {
    let mut object = Pod::default();
    object.metadata.namespace = NAMESPACE.into();
    object.metadata.name = name.into();
    object.spec.node_name = node.into();
    object
}
