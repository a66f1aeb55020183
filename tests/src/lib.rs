//! Several real services at once: a cluster of real processes over real etcd, and the kubectl that drives it.

mod cluster;
mod history;
pub mod jaeger;
mod kubectl;
mod process;
mod reign;
mod setpoint;
mod kubectl;
mod process;
mod reign;
mod wait;
mod wire;

pub use cluster::{Cluster, Size, fast_election};
pub use history::{Entry, History};
pub use kubectl::{Kubectl, Output};
pub use process::Process;
pub use reign::{Handover, Reign};
pub use wait::{eventually, free_port};
pub use wire::Wire;
