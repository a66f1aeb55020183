//! Defaults and validation of the spec of a Pod, which may be in a template.

mod affinity;
mod annotations;
mod claim;
mod container;
mod defaults;
mod dns;
mod downward;
mod env;
mod ephemeral;
mod handler;
mod iscsi;
mod mounts;
mod paths;
mod ports;
mod projected;
mod remote;
mod resources;
mod scheduling;
mod security;
mod spread;
mod system;
mod validate;
mod volume;
mod warnings;
mod windows;

pub(crate) use affinity::validate_selector as validate_node_selector;
pub use annotations::MIRROR;
pub(crate) use annotations::{APP_ARMOR, validate as validate_annotations, validate_profiles};
pub(crate) use claim::validate_metadata as validate_template_metadata;
pub(crate) use defaults::{fill_defaults, fill_pod_defaults};
pub(crate) use paths::validate_no_backsteps;
pub(crate) use ports::{
    PROTOCOLS, check_name as check_port_name, validate_number as validate_port,
};
pub(crate) use remote::fill_azure_disk;
pub use resources::canonicalise;
pub(crate) use resources::{
    validate as validate_resources, validate_amount, validate_any_name,
    validate_name as validate_container_resource,
};
pub(crate) use scheduling::{EFFECTS as TAINT_EFFECTS, validate_toleration};
pub(crate) use security::validate_id;
pub(crate) use validate::{validate, validate_pod};
pub(crate) use volume::{validate_driver, validate_type as validate_volume};
pub(crate) use warnings::{warn_of_pod, warn_of_template};
