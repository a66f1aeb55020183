//! Ports of the loopback, for servers that tests start.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use parking_lot::Mutex;

/// Below the range of ephemeral ports, so that the port of a killed server stays free.
const FIRST: u16 = 10_000;
const COUNT: u16 = 6_000;
/// Shares no factor with their number, so that all are tried; and a server may have those that follow its own, too.
const STRIDE: u16 = 1_919;

/// The locks of the ports that this process has reserved. They end with the process.
static TAKEN: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// Returns a free port, and reserves it among tests until this process ends.
///
/// # Panics
/// When none is left.
pub fn free_port() -> u16 {
    let (count, stride) = (u32::from(COUNT), u32::from(STRIDE));
    let begin = std::process::id() % count;
    let places = (0..count).map(|n| (begin + n * stride) % count);
    let mut ports = places.filter_map(|place| Some(FIRST + u16::try_from(place).ok()?));
    let free = ports.find(|port| take(*port));
    free.expect("loopback has a free port")
}

/// Reserves the port; returns whether it is free.
fn take(port: u16) -> bool {
    let name = SocketAddr::from_abstract_name(format!("setpoint-test-port-{port}"));
    let Ok(taken) = UnixListener::bind_addr(&name.expect("it is short")) else {
        return false;
    };
    TAKEN.lock().push(taken);
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_port_is_given_twice_though_nobody_listens_there_yet() {
        let ports: BTreeSet<_> = (0..20).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 20);
        for port in ports {
            assert!((FIRST..FIRST + COUNT).contains(&port), "{port}");
            assert!(!take(port), "{port}");
        }
    }
}
