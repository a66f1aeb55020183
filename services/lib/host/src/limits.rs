//! Limits on connections and requests of clients.

use std::time::Duration;

use crate::origin::Hosts;

/// Limits on connections and requests. What exceeds them is closed or rejected.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The time after which a client that reads nothing is disconnected, whether from its connection or from one
    /// response.
    pub stall: Duration,
    /// The time in which the handshake of TLS must have ended.
    pub handshake: Duration,
    /// The time in which the head of a connection's first request must arrive.
    pub header: Duration,
    /// The time after which a connection without requests is closed.
    pub idle: Duration,
    /// The time in which the body of a request must arrive.
    pub body: Duration,
    /// The time in which a request must be answered. A stream must have started by then.
    pub request: Duration,
    /// The maximum number of open connections, upgraded ones included; at most three eighths of the file descriptors
    /// that the process may open, since an upgraded one may have another for what it leads to.
    pub connections: usize,
    /// The number of bytes of request bodies in memory beyond which bodies above 64 KiB are rejected. Smaller bodies
    /// are rejected beyond twice of it.
    pub body_bytes: usize,
    /// The accepted names in the `Host` header.
    pub hosts: Hosts,
}

impl Default for Limits {
    /// The values of kube-apiserver, where it has such a limit; its 32 s for a first head are longer than needed.
    fn default() -> Self {
        Self {
            stall: Duration::from_secs(30),
            handshake: Duration::from_secs(10),
            header: Duration::from_secs(10),
            idle: Duration::from_secs(90),
            body: Duration::from_secs(30),
            request: Duration::from_secs(60),
            connections: 4096,
            body_bytes: 256 << 20,
            hosts: Hosts::default(),
        }
    }
}
