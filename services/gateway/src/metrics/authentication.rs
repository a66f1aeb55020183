//! The metrics of tokens of other issuers, with upstream's names and labels.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus::{HistogramVec, IntGaugeVec};
use sha2::{Digest as _, Sha256};

use super::{gauges, histograms};

const SUCCESS: &str = "success";
const FAILURE: &str = "failure";

static LATENCY: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Latency of jwt authentication operations in seconds. This is the time spent authenticating a token for cache miss only (i.e. when the token is not found in the cache).";
    let buckets = [
        0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    ];
    histograms(
        "apiserver_authentication_jwt_authenticator_latency_seconds",
        help,
        &["result", "jwt_issuer_hash"],
        &buckets,
    )
});

static FETCHED: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Timestamp of the last successful or failed JWKS fetch split by result, api server identity and jwt issuer for the JWT authenticator.";
    gauges(
        "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
        help,
        &["result", "jwt_issuer_hash", "apiserver_id_hash"],
    )
});

static KEY_SETS: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Information about the last JWKS fetched by the JWT authenticator with hash as label, split by api server identity and jwt issuer.";
    gauges(
        "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
        help,
        &["jwt_issuer_hash", "apiserver_id_hash", "hash"],
    )
});

/// The metrics of an issuer. What it has fetched is forgotten with the last copy.
#[derive(Clone)]
pub(crate) struct JwtIssuer(Arc<Labels>);

struct Labels {
    issuer: String,
    instance: String,
    /// The hash of the last key set.
    key_set: Mutex<Option<String>>,
}

impl JwtIssuer {
    pub(crate) fn new(url: &str, instance: &str) -> Self {
        Self(Arc::new(Labels {
            issuer: hashed(url),
            instance: hashed(instance),
            key_set: Mutex::default(),
        }))
    }

    /// Records a token of the issuer.
    pub(crate) fn authenticated(&self, succeeded: bool, took: Duration) {
        let result = if succeeded { SUCCESS } else { FAILURE };
        let labels = [result, self.0.issuer.as_str()];
        LATENCY
            .with_label_values(&labels)
            .observe(took.as_secs_f64());
    }

    /// Records a fetch of the keys, with the hash of its document if it has succeeded.
    pub(crate) fn fetched(&self, hash: Option<&str>) {
        let of = &*self.0;
        let result = if hash.is_some() { SUCCESS } else { FAILURE };
        let labels = [result, of.issuer.as_str(), of.instance.as_str()];
        let now = Timestamp::now().as_second();
        FETCHED.with_label_values(&labels).set(now);
        if let Some(hash) = hash {
            let mut last = of.key_set.lock();
            of.forget(last.as_deref());
            let labels = [of.issuer.as_str(), of.instance.as_str(), hash];
            KEY_SETS.with_label_values(&labels).set(1);
            *last = Some(hash.to_owned());
        }
    }
}

impl Labels {
    fn forget(&self, key_set: Option<&str>) {
        if let Some(hash) = key_set {
            let labels = [self.issuer.as_str(), self.instance.as_str(), hash];
            // It may be that it was never there.
            let _ = KEY_SETS.remove_label_values(&labels);
        }
    }
}

impl Drop for Labels {
    fn drop(&mut self) {
        self.forget(self.key_set.lock().as_deref());
        for result in [SUCCESS, FAILURE] {
            let labels = [result, self.issuer.as_str(), self.instance.as_str()];
            let _ = FETCHED.remove_label_values(&labels);
        }
    }
}

/// Returns the hash of a text, as upstream has it in labels.
pub(crate) fn hashed(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref();
    if text.is_empty() {
        return String::new();
    }
    let digits = Sha256::digest(text).into_iter();
    let digits: String = digits.map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}
