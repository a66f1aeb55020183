//! A view of a StorageClass.

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_model::volume::WAIT_FOR_FIRST_CONSUMER;
use setpoint_proto::storage::StorageClass;

/// The annotations that mark the default class.
const DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// The fields of a StorageClass that binding and provisioning depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The name of the provisioner.
    pub provisioner: String,
    /// The reclaim policy of its volumes.
    pub reclaim_policy: String,
    /// Whether claims wait for their first Pod.
    pub is_delayed: bool,
    /// Whether it is the default of claims.
    pub is_default: bool,
    /// The names of its parameters.
    pub parameters: Vec<String>,
    /// The options for mounting its volumes.
    pub mount_options: Vec<String>,
}

impl View for ClassView {
    type Object = StorageClass;

    fn of(class: StorageClass) -> Self {
        let mut meta = Meta::of(&class.metadata);
        let is_default = DEFAULT
            .iter()
            .any(|name| meta.annotation(name) == Some("true"));
        meta.labels.clear();
        meta.annotations.clear();
        Self {
            meta,
            provisioner: class.provisioner,
            reclaim_policy: class.reclaim_policy.unwrap_or_else(|| "Delete".to_owned()),
            is_delayed: class.volume_binding_mode.as_deref() == Some(WAIT_FOR_FIRST_CONSUMER),
            is_default,
            parameters: class.parameters.into_keys().collect(),
            mount_options: class.mount_options,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
