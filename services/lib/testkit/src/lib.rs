//! Shared by the tests of all crates: free ports, a faulty link, a real etcd, a real Prometheus with an exporter, a
//! containerd, an image and a registry of images, an OpenID Connect issuer, a disk to fill, a network namespace.
#![allow(
    clippy::unwrap_used,
    reason = "only tests use this crate: a panic is a failed test"
)]

mod busybox;
mod containerd;
mod etcd;
mod exporter;
mod freeze;
mod https_server;
mod image_registry;
mod link;
mod network_namespace;
mod oidc_issuer;
mod port;
mod processes;
mod prometheus;
mod small_disk;

pub use busybox::{busybox_files, busybox_image};
pub use containerd::{Containerd, HANDLER};
pub use etcd::{Certificates, Etcd};
pub use exporter::Exporter;
pub use https_server::{Answer, HttpsServer};
pub use image_registry::{ImageRegistry, REGISTRY_USER};
pub use link::Link;
pub use network_namespace::enter_namespace;
pub use oidc_issuer::OidcIssuer;
pub use port::free_port;
pub use processes::processes_with;
pub use prometheus::Prometheus;
pub use small_disk::SmallDisk;
