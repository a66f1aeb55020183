//! Defaults and validation of the spec of a Pod, which may be in a template.

mod affinity;
mod annotations;
mod claim;
mod container;
mod defaults;
mod dns;
mod downward;
mod env;
mod handler;
mod iscsi;
mod mounts;
mod paths;
mod ports;
mod projected;
mod qos;
mod remote;
mod resources;
mod scheduling;
mod security;
mod spread;
mod system;
mod validate;
mod volume;
mod windows;

pub(crate) use annotations::{
    APP_ARMOR, MIRROR, validate as validate_annotations, validate_profiles,
};
pub(crate) use defaults::{fill_defaults, fill_pod_defaults};
pub(crate) use ports::{
    PROTOCOLS, check_name as check_port_name, validate_number as validate_port,
};
pub(crate) use qos::qos_class;
pub(crate) use resources::validate_amount;
pub(crate) use scheduling::EFFECTS as TAINT_EFFECTS;
pub(crate) use security::validate_id;
pub(crate) use validate::{validate, validate_pod};
