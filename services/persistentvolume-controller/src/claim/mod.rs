//! The controller of claims: binding, provisioning, protection.

mod act;
mod binding;
mod plan;
mod provision;
mod reconciler;
mod status;
mod view;
mod world;

pub use binding::Binding;
pub use plan::{Action, plan};
pub use provision::provision;
pub use reconciler::{CONTROLLER, Claims};
pub use status::{notice, status};
pub use view::ClaimView;
pub use world::World;
