//! Starts the processes of a local cluster; for the commands of `setpoint`, and for tests.
//!
//! A [`ClusterSpec`] and a [`StateDir`] determine the [`ProcessSpec`] of each process ([`topology`]); [`command`] makes
//! a command of one. The commands of `setpoint` record the processes that they start, and find them again as
//! [`RunningProcess`]es.

mod authorities;
pub mod cluster_network;
mod cluster_spec;
mod component;
pub mod frozen;
mod identity;
mod joined;
pub(crate) mod known_members;
mod kubeconfig;
mod launch;
pub mod network;
pub mod node_dns;
pub mod pki;
pub mod port;
mod process;
pub mod proxy;
pub mod readiness;
mod state_dir;
pub mod topology;

pub(crate) use authorities::{Authorities, Issuer};
pub use authorities::{Keys, Stage};
pub use cluster_network::ClusterNetwork;
pub use cluster_spec::{ClusterSpec, LOOPBACK, Profile, address, election};
pub use component::{Component, ControlPlane, Joining};
pub use identity::Identity;
pub(crate) use identity::PROCESS_LIFETIME;
pub use joined::{Joined, NodeNetwork, PodNetwork, Runtime};
pub use kubeconfig::Kubeconfig;
pub(crate) use kubeconfig::embedded;
pub use launch::{Started, command, program, start, sweep};
pub use network::Network;
pub use pki::Pki;
pub(crate) use pki::Wanted;
pub use process::{RunningProcess, STOP_TIMEOUT};
pub use state_dir::StateDir;
pub use topology::ProcessSpec;
