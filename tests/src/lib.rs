//! Several real services at once: a cluster of real processes over real etcd, and the kubectl that drives it.

mod audience;
mod clock;
mod cluster;
mod happened;
mod history;
pub mod http;
pub mod jaeger;
mod kubectl;
mod process;
mod proxy;
mod reign;
mod setpoint;
pub mod trace;
mod traffic;
mod wait;
mod wire;

pub use audience::{Audience, client};
pub use clock::WallClock;
pub use cluster::{Cluster, Size, election, fast_election};
pub use happened::happened;
pub use history::{Entry, History};
pub use kubectl::{Kubectl, Output};
pub use process::Process;
pub use proxy::Proxy;
pub use reign::{Handover, Reign};
pub use setpoint_testkit::free_port;
pub use traffic::Traffic;
pub use wait::eventually;
pub use wire::Wire;
