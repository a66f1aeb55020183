//! Several real services at once: a cluster of real processes over real etcd, and the kubectl that drives it.

mod cluster;
pub mod jaeger;
mod kubectl;
mod process;
mod wait;

pub use cluster::{Cluster, Size};
pub use kubectl::{Kubectl, Output};
pub use process::Process;
pub use wait::{eventually, free_port};
