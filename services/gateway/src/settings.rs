//! What can be set on the gateway.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_host as host;
use setpoint_store::{cache, etcd};

use crate::flow_control::FlowControl;

/// What can be set on the gateway.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    listen: SocketAddr,
    #[serde(with = "host::duration")]
    stall: Duration,
    #[serde(with = "host::duration")]
    cache_check: Duration,
    #[serde(with = "host::duration")]
    event_ttl: Duration,
    max_requests_inflight: usize,
    max_mutating_requests_inflight: usize,
    etcd: Etcd,
    flaps: Flaps,
}

/// What counts as a flap.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Flaps {
    #[serde(with = "host::duration")]
    window: Duration,
}

/// How etcd is reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Etcd {
    endpoints: Vec<String>,
    #[serde(with = "host::duration")]
    timeout: Duration,
    in_flight: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let etcd = etcd::Settings::default();
        Self {
            listen: ([127, 0, 0, 1], 6443).into(),
            stall: cache::Settings::default().stall,
            cache_check: cache::Settings::default().check_interval,
            event_ttl: Duration::from_secs(60 * 60),
            max_requests_inflight: 400,
            max_mutating_requests_inflight: 200,
            etcd: Etcd {
                endpoints: etcd.endpoints,
                timeout: etcd.timeout,
                in_flight: etcd.in_flight,
            },
            flaps: Flaps {
                window: Duration::from_secs(60),
            },
        }
    }
}

impl host::Settings for Settings {
    fn describe() -> &'static [(&'static str, &'static str)] {
        &[
            (
                "stall",
                "How long a watcher may read nothing of what is sent before it is cut off",
            ),
            (
                "cache_check",
                "How often the cache is compared with etcd, apart from each time etcd is back; 0s for never",
            ),
            (
                "event_ttl",
                "How long an Event is kept after it was last told",
            ),
            (
                "max_requests_inflight",
                "Reads worked on at once; others wait. Watches, and what is about Leases and nodes, are not among them",
            ),
            ("max_mutating_requests_inflight", "The same for writes"),
            ("etcd.endpoints", "Client URLs of etcd's members"),
            (
                "etcd.timeout",
                "How long a call to etcd may take, repeats included",
            ),
            (
                "etcd.in_flight",
                "Writes on their way to etcd at once; all gateways together should stay below 128",
            ),
            (
                "flaps.window",
                "Two managers that take four turns at one field within it are told of; 0s for never",
            ),
        ]
    }

    fn validate(&self) -> Result<(), String> {
        if self.etcd.endpoints.is_empty() {
            return Err("etcd.endpoints names no etcd".into());
        }
        if self.stall.is_zero() {
            return Err("stall must be greater than 0".into());
        }
        if self.etcd.in_flight == 0 || self.etcd.timeout.is_zero() {
            return Err("etcd.in_flight and etcd.timeout must be greater than 0".into());
        }
        if self.max_requests_inflight == 0 || self.max_mutating_requests_inflight == 0 {
            return Err(
                "max_requests_inflight and max_mutating_requests_inflight must be greater than 0"
                    .into(),
            );
        }
        if self.event_ttl.is_zero() {
            return Err("event_ttl must be greater than 0".into());
        }
        Ok(())
    }
}

impl Settings {
    /// How long watchers may stall, how often the cache is compared with etcd, and all else as it is.
    pub(crate) fn cache(&self) -> cache::Settings {
        cache::Settings {
            stall: self.stall,
            check_interval: self.cache_check,
            ..Default::default()
        }
    }

    /// How long an Event is kept.
    pub(crate) fn event_ttl(&self) -> Duration {
        self.event_ttl
    }

    /// Within which time turns at one field count as a flap; `None` for never.
    pub(crate) fn flap_window(&self) -> Option<Duration> {
        Some(self.flaps.window).filter(|window| !window.is_zero())
    }

    /// How many requests are worked on at once.
    pub(crate) fn flow_control(&self) -> FlowControl {
        FlowControl::new(
            self.max_requests_inflight,
            self.max_mutating_requests_inflight,
        )
    }

    /// The ports at which etcd is reached.
    pub(crate) fn etcd_ports(&self) -> Vec<u16> {
        let endpoints = self.etcd.endpoints.iter();
        let ports = endpoints.filter_map(|url| {
            // What comes before may be a scheme, or a host without one.
            let authority = url.rsplit("//").next()?;
            authority.parse::<http::uri::Authority>().ok()?.port_u16()
        });
        ports.collect()
    }

    /// How etcd is reached.
    pub(crate) fn etcd(&self) -> etcd::Settings {
        etcd::Settings {
            endpoints: self.etcd.endpoints.clone(),
            timeout: self.etcd.timeout,
            in_flight: self.etcd.in_flight,
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_host::Settings as _;

    use super::*;

    #[test]
    fn help_says_what_each_setting_means() {
        assert!(host::settings::undescribed::<Settings>().is_empty());
    }

    /// Checks F29.
    #[test]
    fn the_ports_of_etcd_are_known() {
        let mut settings = Settings::default();
        settings.etcd.endpoints = vec![
            "http://127.0.0.1:2379".into(),
            "etcd-1:4001".into(),
            "https://[::1]:23790".into(),
        ];
        assert_eq!(settings.etcd_ports(), [2379, 4001, 23790]);
    }

    #[test]
    fn the_defaults_make_sense_and_nonsense_does_not() {
        let mut settings = Settings::default();
        assert_eq!(settings.validate(), Ok(()));
        settings.etcd.in_flight = 0;
        assert!(settings.validate().is_err());
        settings = Settings::default();
        settings.etcd.endpoints.clear();
        assert!(settings.validate().is_err());
    }
}
