//! Two controllers: one binds claims to volumes, or has volumes provisioned for them; the other keeps the phases of volumes and
//! reclaims those whose claim is gone.
//!
//! ```text
//! claim    Pending ── volume that fits, or provisioned ──▶ volume.claimRef ──▶ claim.volumeName ──▶ Bound ── volume gone ──▶ Lost
//! volume   Available ── claimRef ──▶ Bound ── claim gone ──▶ Released ── Delete ──▶ deleted        (Recycle: Failed; Retain: stays)
//! ```
//! Guarantees:
//! * The two writes of a binding are made in this order, each on the version that was observed; after a crash between them the
//!   volume is reserved for the claim, and the next reconcile makes the second one.
//! * A volume is bound by the uid of its claim, which is read before the volume is reserved for it.
//! * A volume is released and deleted only if its claim is gone according to the gateway, not only to a cache.
//! * The finalizers of claims in use and of bound volumes are removed only when a list of the Pods, or the status of the volume,
//!   shows that nothing uses them.

pub mod claim;
mod class;
mod events;
mod node;
pub mod volume;

pub use class::ClassView;
pub use events::Notice;
pub use node::NodeView;
