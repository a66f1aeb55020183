//! How etcd is reached.

use std::time::Duration;

/// How etcd is reached.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its members' client URLs.
    pub endpoints: Vec<String>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long a call may take, repeats included.
    pub timeout: Duration,
    /// How many writes may be on their way at once. All gateways together should stay below 128.
    pub in_flight: usize,
    /// The largest answer that is decoded, in bytes. Larger pages are requested again in smaller ones.
    pub message_limit: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".into()],
            connect_timeout: Duration::from_secs(2),
            timeout: Duration::from_secs(5),
            in_flight: 64,
            // Pages of large objects pass tonic's 4 MiB; so does a revision that touches many keys.
            message_limit: 64 << 20,
        }
    }
}
