//! The spec of a Pod, alone or in a template: what is left unsaid, and what must not be said.

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
mod probe;
mod profiles;
mod projected;
mod qos;
mod remote;
mod resources;
mod restart;
mod scheduling;
mod security;
mod spread;
mod system;
mod validate;
mod volume;
mod windows;

pub(super) use annotations::{MIRROR, validate as validate_annotations};
pub(super) use defaults::{fill_defaults, fill_pod_defaults};
pub(super) use ports::{check_name as check_port_name, validate_number as validate_port};
pub(super) use profiles::{APP_ARMOR, validate as validate_profiles};
pub(super) use qos::qos_class;
pub(super) use resources::validate_amount;
pub(super) use security::validate_id;
pub(super) use validate::{validate, validate_pod};
