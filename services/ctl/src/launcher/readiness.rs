//! Asks a process of the cluster whether it is ready.

use std::net::{Ipv4Addr, SocketAddr};

use setpoint_host::probe;

use super::pki::Pki;
use super::state_dir::StateDir;
use super::topology::{is_this_program, service_of};

/// Asks the process `<service>-<n>`, which listens on `port` of the loopback.
///
/// # Errors
/// Why it is not ready, in one line that goes on where its name left off.
pub async fn ask(state_dir: &StateDir, name: &str, port: u16) -> Result<(), String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match service_of(name) {
        service if is_this_program(service) => probe::ask(address, "/readyz").await,
        "etcd" => {
            let credentials = Pki::credentials(&state_dir.pki().files(name));
            let credentials = credentials.map_err(|error| format!("{error:#}"))?;
            probe::ask_as(&credentials, address, "/health").await
        }
        _ => probe::ask_over_tls(address, "/readyz").await,
    }
}
