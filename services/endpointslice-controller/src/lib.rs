//! The controller of EndpointSlices and Endpoints: records the addresses and ports that implement each Service.
//!
//! ```text
//! Service with a selector:     Pods ──────▶ groups (`pods`) ─▶ EndpointSlices (`slices`), Endpoints (`subsets`)
//! Service without a selector:  Endpoints ─▶ groups (`mirror`) ─▶ EndpointSlices (`slices`)
//! ```
//! It does the work of three controllers of upstream: endpointslice, endpoints and endpointslicemirroring. All objects
//! that it writes are owned by the Service, so the garbage collector deletes them with it. Zones and hints are not set.

mod act;
mod action;
mod group;
mod labels;
mod mirror;
mod plan;
mod pods;
mod policies;
mod reconciler;
mod settings;
mod slices;
mod subsets;
mod topology;
mod world;

pub use action::Action;
pub use group::{Family, Group};
pub use mirror::groups as mirrored;
pub use plan::plan;
pub use pods::{PodView, groups as of_pods};
pub use policies::{PolicyView, report_forever};
pub use reconciler::{CONTROLLER, Services};
pub use settings::Addresses;
pub use slices::SLICE_MAX;
pub use topology::{NodeView, Zones};
pub use world::World;
