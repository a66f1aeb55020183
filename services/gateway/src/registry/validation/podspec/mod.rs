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

pub(crate) use annotations::{MIRROR, validate as validate_annotations};
pub(crate) use defaults::{fill_defaults, fill_pod_defaults};
pub(crate) use ports::{check_name as check_port_name, validate_number as validate_port};
pub(crate) use profiles::{APP_ARMOR, validate as validate_profiles};
pub(crate) use qos::qos_class;
pub(crate) use resources::validate_amount;
pub(crate) use security::validate_id;
pub(crate) use validate::{validate, validate_pod};
