//! What the controllers of workloads share: the view of a Pod, Pods from templates, revisions of templates, Events, and
//! the resources of kinds.

mod events;
pub mod history;
mod kind;
mod pod;
mod template;

pub use events::PodWrite;
pub use history::{History, RevisionView, Snapshot};
pub use kind::{DefinitionView, resource_of};
pub use pod::{Admission, Phase, PodView, count, saturate, sidecars};
pub use template::{new_pod, unused_name};
