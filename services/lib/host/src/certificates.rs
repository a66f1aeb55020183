//! The certificates of a process: those that are about to expire, and the metric of all of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::RwLock;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGaugeVec, Opts, default_registry};
use setpoint_tls::{Credentials, Validity};
use tokio::time::sleep;

/// The reason of the Warning Event about a certificate that is about to expire.
pub const EXPIRING: &str = "CertificateExpiring";

/// The interval of looking for certificates that are about to expire.
const INTERVAL: Duration = Duration::from_secs(10);
const NAME: &str = "setpoint_tls_certificate_ttl_seconds";
const HELP: &str = "Time until a certificate of this process, or the CA that it trusts, expires; negative if it has.";
const LABEL: &str = "certificate";

/// The certificates that a process has, by the tables of its settings. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Certificates(Arc<RwLock<Vec<Named>>>);

#[derive(Clone, Debug)]
struct Named {
    table: &'static str,
    credentials: Credentials,
}

/// A certificate that is about to expire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiring {
    /// Its name: the table of the settings that names its file, or that with `-ca` or `-serving`.
    pub certificate: String,
    /// The time at which it expires.
    pub expires: Timestamp,
}

impl fmt::Display for Expiring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            certificate,
            expires,
        } = self;
        write!(
            formatter,
            "The certificate {certificate:?} expires at {expires} and has not been renewed"
        )
    }
}

/// The certificates of a process that are about to expire, each once until it is renewed.
#[derive(Debug)]
pub struct Expiries {
    certificates: Certificates,
    returned: BTreeMap<String, Timestamp>,
}

impl Expiries {
    /// Waits for a certificate that is about to expire, and returns it.
    pub async fn next(&mut self) -> Expiring {
        loop {
            if let Some(expiring) = self.find(Timestamp::now()) {
                return expiring;
            }
            sleep(INTERVAL).await;
        }
    }

    fn find(&mut self, now: Timestamp) -> Option<Expiring> {
        let mut expiring = self.certificates.expiring(now).into_iter();
        let found =
            expiring.find(|one| self.returned.get(&one.certificate) != Some(&one.expires))?;
        self.returned
            .insert(found.certificate.clone(), found.expires);
        Some(found)
    }
}

impl Certificates {
    /// Returns those that begin to expire from now on, and those that are about to expire already.
    pub fn expiries(&self) -> Expiries {
        Expiries {
            certificates: self.clone(),
            returned: BTreeMap::new(),
        }
    }

    /// Adds the certificate and the CA of the files that a table of the settings names.
    pub fn add(&self, table: &'static str, credentials: Credentials) {
        self.0.write().push(Named { table, credentials });
    }

    /// Returns those of which less than a quarter of the life is left. They are renewed after two thirds of it.
    fn expiring(&self, now: Timestamp) -> Vec<Expiring> {
        let all = self.all().into_iter();
        let expiring = all.filter(|(_, validity)| validity.is_expiring(now));
        let named = expiring.map(|(certificate, validity)| Expiring {
            certificate,
            expires: validity.not_after,
        });
        named.collect()
    }

    fn all(&self) -> Vec<(String, Validity)> {
        let known = self.0.read();
        let all = known.iter().flat_map(|Named { table, credentials }| {
            let serving = credentials.serving_validity();
            let serving = serving.map(|validity| (format!("{table}-serving"), validity));
            let both = [
                ((*table).to_owned(), credentials.validity()),
                (format!("{table}-ca"), credentials.ca_validity()),
            ];
            both.into_iter().chain(serving)
        });
        all.collect()
    }

    /// Registers the metric, once in a process.
    pub(crate) fn register(&self) {
        let Ok(gauges) = IntGaugeVec::new(Opts::new(NAME, HELP), &[LABEL]) else {
            return;
        };
        let certificates = self.clone();
        // A second one, of a process that runs several services in a test, is not shown.
        let _ = default_registry().register(Box::new(TimeToLive {
            gauges,
            certificates,
        }));
    }
}

/// Gauges whose values are those of the time at which they are read.
struct TimeToLive {
    gauges: IntGaugeVec,
    certificates: Certificates,
}

impl Collector for TimeToLive {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        for (certificate, validity) in self.certificates.all() {
            let left = validity.remaining(Timestamp::now());
            let gauge = self.gauges.with_label_values(&[certificate.as_str()]);
            gauge.set(left.as_secs());
        }
        self.gauges.collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use setpoint_tls::authority::{Authority, Leaf, Usage};

    use super::*;

    #[test]
    fn what_has_less_than_a_quarter_of_its_life_left_is_about_to_expire() {
        let authority = Authority::create("ca").unwrap();
        let leaf = Leaf {
            name: "a".to_owned(),
            groups: Vec::new(),
            hosts: Vec::new(),
            usage: Usage::Client,
            lifetime: Duration::from_secs(3_600),
        };
        let credentials = authority.issue(&leaf).unwrap().credentials().unwrap();
        let certificates = Certificates::default();
        certificates.add("tls", credentials.clone());
        let names = |now| {
            let expiring = certificates.expiring(now).into_iter();
            let names = expiring.map(|one| one.certificate);
            names.collect::<Vec<_>>()
        };
        let now = Timestamp::now();
        assert!(names(now).is_empty());
        assert_eq!(names(now + SignedDuration::from_mins(50)), ["tls"]);
        let years = SignedDuration::from_hours(24 * 365 * 9);
        assert_eq!(names(now + years), ["tls", "tls-ca"]);

        let mut expiries = certificates.expiries();
        let mut next = |now| expiries.find(now).map(|one| one.certificate);
        assert_eq!(next(now), None);
        assert_eq!(next(now + years).as_deref(), Some("tls"));
        assert_eq!(next(now + years).as_deref(), Some("tls-ca"));
        assert_eq!(next(now + years), None);
    }
}
