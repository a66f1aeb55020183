//! Two controllers: one binds claims to volumes, or has volumes provisioned for them; the other keeps the phases of
//! volumes and reclaims those whose claim is gone.
//!
//! ```text
//! claim    Pending ── volume that fits, or provisioned ──▶ volume.claimRef ──▶ claim.volumeName ──▶ Bound ── volume gone ──▶ Lost
//! volume   Available ── claimRef ──▶ Bound ── claim gone ──▶ Released ── Delete ──▶ deleted        (Recycle: Failed; Retain: stays)
//! ```
//! Guarantees:
//! * The two writes of a binding are made in this order, each on the version that was observed; after a crash between
//!   them the volume is reserved for the claim, and the next reconcile makes the second one.
//! * A volume is bound by the uid of its claim, which is read before the volume is reserved for it.
//! * A volume is released and deleted only if its claim is gone according to the gateway, not only to a cache.
//! * The finalizers of claims in use and of bound volumes are removed only when a list of the Pods, or the status of
//!   the volume, shows that nothing uses them.
//!
//! The controller-manager hosts the two as `persistentvolumeclaim` and `persistentvolume`. `lib/model/src/volume` says
//! which volume fits a claim, for them and for the scheduler.
//!
//! A claim that waits for its first Pod is bound by two writers: the scheduler reserves room on a node
//! (`status.nominatedNodeName`), and a volume there or `volume.kubernetes.io/selected-node`; when the controllers have
//! bound the claim, the Pod is bound.
//!
//! # The provisioner `setpoint.dev/local-path`
//!
//! It makes volumes that are folders of the selected node, for the class `standard`, which each gateway creates at its
//! start if it is missing. The size of these volumes is not enforced.
//!
//! * The agent of a node that can have them sets the annotation `setpoint.dev/local-path: <absolute folder>` on its
//!   Node; simulated nodes need none, and nothing is made or removed there.
//! * The volume is `pvc-<uid of the claim>`: `hostPath {path: <folder>/<name of the volume>, type: DirectoryOrCreate}`,
//!   with the node's host name as its affinity, the annotation `setpoint.dev/node`, and on nodes that are not simulated
//!   the finalizer `setpoint.dev/local-path`. The agent makes the folder when a Pod needs it.
//! * When the claim is gone and the policy is `Delete`, the controller deletes the volume. The agent removes the
//!   folder, and then its finalizer, once `kubernetes.io/pv-protection` is gone, the phase is not `Bound`, and the
//!   gateway (not a cache) has no claim with the uid of `claimRef` that names the volume. If the node is gone, the
//!   controller removes the finalizer.

pub mod claim;
mod class;
mod events;
mod node;
pub mod volume;

pub use class::ClassView;
pub use events::Notice;
pub use node::NodeView;
