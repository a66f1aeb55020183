//! The metric of a certificate that expires.

use jiff::Timestamp;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGauge, default_registry};
use setpoint_tls::Credentials;

const NAME: &str = "setpoint_tls_certificate_ttl_seconds";
const HELP: &str = "Time until the certificate of this process expires; negative if it has.";

/// Registers the metric of these credentials, once in a process.
pub(crate) fn register(credentials: Credentials) {
    let Ok(gauge) = IntGauge::new(NAME, HELP) else {
        return;
    };
    // A second one, of a process that runs several services in a test, is not shown.
    let _ = default_registry().register(Box::new(TimeToLive { gauge, credentials }));
}

/// A gauge whose value is that of the time at which it is read.
struct TimeToLive {
    gauge: IntGauge,
    credentials: Credentials,
}

impl Collector for TimeToLive {
    fn desc(&self) -> Vec<&Desc> {
        self.gauge.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let left = self.credentials.validity().remaining(Timestamp::now());
        self.gauge.set(left.as_secs());
        self.gauge.collect()
    }
}
