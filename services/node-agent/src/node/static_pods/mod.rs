//! Static Pods: those that a node runs because of manifests in a directory of its machine, whether or not a gateway
//! answers, and the mirror Pods by which the API shows them.
//!
//! ```text
//! directory ─▶ manifest ─▶ store ─▶ the reconciler of Pods ─▶ status, in the store
//!                            └───────────▶ mirror ─▶ gateway: mirror Pod, its status
//! ```
//! A static Pod and its mirror Pod have the same name and different uids: that of the static Pod is a hash of its
//! manifest, and it is what Events and the runtime know. Nothing of a static Pod is read from the gateway.

mod directory;
mod manifest;
pub mod mirror;
mod settings;
mod source;
mod store;

pub use settings::Settings;
pub use source::ManifestSource;
pub use store::StaticPods;

/// The annotation with the uid of a static Pod.
const HASH: &str = "kubernetes.io/config.hash";
/// The annotation with the time at which the manifest was read first.
const SEEN: &str = "kubernetes.io/config.seen";
/// The annotation with the kind of source that a Pod is from.
const SOURCE: &str = "kubernetes.io/config.source";
