//! The spec of a Pod, alone or in a template: what is left unsaid, and what must not be said.

mod container;
mod defaults;
mod ports;
mod probe;
mod qos;
mod resources;
mod scheduling;
mod validate;
mod volume;

pub(super) use container::validate_id;
pub(super) use defaults::{fill_defaults, fill_pod_defaults};
pub(super) use qos::qos_class;
pub(super) use resources::validate_amount;
pub(super) use validate::validate;
