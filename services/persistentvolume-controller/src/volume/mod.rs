//! The controller of volumes: phases, protection, reclaiming.

mod act;
mod plan;
mod reconciler;
mod status;
mod view;

pub use plan::{Action, ClaimState, World, plan};
pub use reconciler::{CONTROLLER, Volumes};
pub use status::{notice, status};
pub use view::VolumeView;
