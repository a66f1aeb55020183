//! The bounds on what clients may take of a process.

use std::time::Duration;

use crate::origin::Hosts;

/// Limits on connections and requests. A connection or a request beyond them is ended or refused; the process goes on.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest time for which a client may read nothing of what is sent to it, on its connection or of one large answer.
    pub stall: Duration,
    /// The time by which the head of a new connection's first request must have arrived.
    pub header: Duration,
    /// The longest time that a connection may be open without a request.
    pub idle: Duration,
    /// The time by which a request's body must have arrived.
    pub body: Duration,
    /// The time by which a request must be answered; streams only have to begin by then.
    pub request: Duration,
    /// Connections open at once, further bounded by the descriptors that the process may have.
    pub connections: usize,
    /// Bytes of request bodies in memory at once. Bodies above 64 KiB are refused beyond it, all others beyond twice of it.
    pub body_bytes: usize,
    /// The names in `Host` by which clients may call the process.
    pub hosts: Hosts,
}

impl Default for Limits {
    /// kube-apiserver's values where it has one.
    fn default() -> Self {
        Self {
            stall: Duration::from_secs(30),
            header: Duration::from_secs(32),
            idle: Duration::from_secs(90),
            body: Duration::from_secs(30),
            request: Duration::from_secs(60),
            connections: 4096,
            body_bytes: 256 << 20,
            hosts: Hosts::default(),
        }
    }
}
