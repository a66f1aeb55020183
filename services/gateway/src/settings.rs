//! The settings of the gateway.

mod access;
mod cluster_info;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_encryption::Configuration as EncryptionConfiguration;
use setpoint_host::settings::first_broken;
use setpoint_host::{self as host, DurationText};
use setpoint_model::Cidr;
use setpoint_model::ip::loopback_range;
use setpoint_pod_security::Configuration as PodSecurityConfiguration;
use setpoint_store::{cache, etcd};
use setpoint_tls::{Credentials, Files};

use crate::admission::{Selection as AdmissionPlugins, pod_security_file};
use crate::aggregation::FrontProxy;
use crate::audit::Settings as Audit;
use crate::prometheus_adapter;
use crate::request::flow_control::{FlowControl, READS, WRITES};
use crate::service_ranges::ServiceRanges;
use access::{Authentication, Authorization};
use cluster_info::ClusterInfo;

pub(crate) use access::Authorizers;

/// The settings of the gateway.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Address and port to listen on; port 0 picks a free port.
    listen: SocketAddr,
    /// Time after which a watcher that does not read its stream is disconnected.
    #[serde(with = "DurationText")]
    stall: Duration,
    /// Interval of comparing the cache with etcd, which also follows each reconnection; 0s for never.
    #[serde(with = "DurationText")]
    cache_check: Duration,
    /// Time after its last write at which an Event is deleted.
    #[serde(with = "DurationText")]
    event_ttl: Duration,
    /// Certificate by which other API servers (of APIServices) recognise the gateway, and its CA. Without these files,
    /// both are made once and kept in the Secret setpoint-system/front-proxy.
    front_proxy: FrontProxyFiles,
    /// Whether requests have priorities (API Priority and Fairness): FlowSchemas and PriorityLevelConfigurations say
    /// how many of a kind are executed at a time. Otherwise, reads and writes beyond their limits are refused.
    enable_priority_and_fairness: bool,
    /// Reads executed at a time. With `enable_priority_and_fairness`, the sum of this and of
    /// `max_mutating_requests_inflight` is the number of seats that the priority levels share.
    max_requests_inflight: usize,
    /// Writes executed at a time, or the seats that are added to `max_requests_inflight`.
    max_mutating_requests_inflight: usize,
    /// Records of requests.
    audit: Audit,
    /// Credentials of users.
    authentication: Authentication,
    /// Permissions of users.
    authorization: Authorization,
    /// The ConfigMap kube-public/cluster-info.
    #[serde(default)]
    cluster_info: ClusterInfo,
    /// Admission plugins that are on besides those that are on by default, by Kubernetes' names.
    #[serde(default)]
    enable_admission_plugins: Vec<String>,
    /// Admission plugins that are off, by Kubernetes' names.
    #[serde(default)]
    disable_admission_plugins: Vec<String>,
    /// File with a PodSecurityConfiguration (pod-security.admission.config.k8s.io/v1), read at start: the levels of
    /// namespaces without labels, and users, namespaces and runtime classes that are exempt. Empty for none, and
    /// privileged.
    #[serde(default)]
    pod_security_configuration_file: PathBuf,
    /// File with an EncryptionConfiguration (apiserver.config.k8s.io/v1): the resources whose objects are encrypted in
    /// etcd, and the keys. Empty for none: everything is in plain text. It is read again when it changes.
    #[serde(default)]
    encryption_provider_config: PathBuf,
    /// Range of the addresses of Services, of IPv4, from /12 to /29. All gateways of a cluster must have the same.
    #[serde(default = "service_cluster_ip_range")]
    service_cluster_ip_range: String,
    /// Range of node ports of Services: `first-last`, `first+more` or one port. All gateways of a cluster must have the
    /// same.
    #[serde(default = "service_node_port_range")]
    service_node_port_range: String,
    /// Loopback range whose addresses endpoints may have, such as 127.64.0.0/10; empty for none, as in Kubernetes. For
    /// clusters on one machine whose Pods have addresses of the loopback, and whose Services carry traffic in user
    /// space.
    #[serde(default)]
    endpoint_loopback_range: String,
    /// Connection to etcd.
    etcd: Etcd,
    /// Detection of managers that overwrite each other's fields.
    flaps: Flaps,
    /// Metrics of other sources, for HorizontalPodAutoscalers: a Prometheus server, and the query of each metric.
    metrics: prometheus_adapter::Settings,
}

/// Detection of managers that overwrite each other's fields.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Flaps {
    /// Window in which two managers that write one field in four turns are reported; 0s for never.
    #[serde(with = "DurationText")]
    window: Duration,
}

/// The files of the certificate by which other API servers recognise the gateway. All are empty, or none is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct FrontProxyFiles {
    /// File with the CA of the certificate by which API servers of APIServices recognise the gateway; empty for a CA
    /// and a certificate that are made once and kept in the Secret setpoint-system/front-proxy.
    ca: PathBuf,
    /// File with that certificate; empty as `front_proxy.ca` is.
    certificate: PathBuf,
    /// File with the private key of that certificate; empty as `front_proxy.ca` is.
    key: PathBuf,
}

/// The connection to etcd.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Etcd {
    /// Client URLs of the etcd members.
    endpoints: Vec<String>,
    /// Whether calls go to the other members that etcd names, at the client URLs that they advertise, while none of
    /// `etcd.endpoints` works.
    follow_members: bool,
    /// Timeout of a call to etcd, including retries.
    #[serde(with = "DurationText")]
    timeout: Duration,
    /// Concurrent writes to etcd; the sum over all gateways should stay below 128.
    in_flight: usize,
    /// File with the certificates of the CAs of etcd, in PEM, for endpoints of HTTPS; several during a change of the
    /// CA.
    ca_file: PathBuf,
    /// File with the certificate by which etcd recognises the gateway, in PEM; empty as `etcd.ca_file` is.
    certificate_file: PathBuf,
    /// File with the private key of `etcd.certificate_file`, in PEM; empty as `etcd.ca_file` is.
    key_file: PathBuf,
}

impl Etcd {
    /// Returns the files of the identity that etcd recognises; all are empty without TLS.
    fn files(&self) -> Files {
        Files {
            ca_file: self.ca_file.clone(),
            certificate_file: self.certificate_file.clone(),
            key_file: self.key_file.clone(),
        }
    }
}

fn service_cluster_ip_range() -> String {
    ServiceRanges::default().to_string()
}

fn service_node_port_range() -> String {
    let ports = ServiceRanges::default().ports;
    format!("{}-{}", ports.start(), ports.end())
}

impl Default for Settings {
    fn default() -> Self {
        let etcd = etcd::Settings::default();
        Self {
            listen: ([127, 0, 0, 1], 6443).into(),
            stall: cache::Settings::default().stall,
            cache_check: cache::Settings::default().check_interval,
            event_ttl: Duration::from_secs(60 * 60),
            front_proxy: FrontProxyFiles::default(),
            enable_priority_and_fairness: true,
            max_requests_inflight: READS,
            max_mutating_requests_inflight: WRITES,
            audit: Audit::default(),
            authentication: Authentication::default(),
            authorization: Authorization::default(),
            cluster_info: ClusterInfo::default(),
            enable_admission_plugins: Vec::new(),
            disable_admission_plugins: Vec::new(),
            pod_security_configuration_file: PathBuf::new(),
            encryption_provider_config: PathBuf::new(),
            service_cluster_ip_range: service_cluster_ip_range(),
            endpoint_loopback_range: String::new(),
            service_node_port_range: service_node_port_range(),
            etcd: Etcd {
                endpoints: etcd.endpoints,
                follow_members: etcd.follow_members,
                timeout: etcd.timeout,
                in_flight: etcd.in_flight,
                ca_file: PathBuf::new(),
                certificate_file: PathBuf::new(),
                key_file: PathBuf::new(),
            },
            flaps: Flaps {
                window: Duration::from_secs(60),
            },
            metrics: prometheus_adapter::Settings::default(),
        }
    }
}

impl host::Settings for Settings {
    fn validate(&self) -> Result<(), String> {
        let files = &self.front_proxy;
        let files = [&files.ca, &files.certificate, &files.key];
        let given = files.iter().filter(|file| !file.as_os_str().is_empty());
        let inflight = [
            self.max_requests_inflight,
            self.max_mutating_requests_inflight,
        ];
        first_broken(&[
            (
                !self.etcd.endpoints.is_empty(),
                "etcd.endpoints must not be empty",
            ),
            (
                [0, files.len()].contains(&given.count()),
                "either all of front_proxy.ca, front_proxy.certificate and front_proxy.key or none must be set",
            ),
            (!self.stall.is_zero(), "stall must be greater than 0"),
            (
                self.etcd.in_flight > 0 && !self.etcd.timeout.is_zero(),
                "etcd.in_flight and etcd.timeout must be greater than 0",
            ),
            (
                !inflight.contains(&0),
                "max_requests_inflight and max_mutating_requests_inflight must be greater than 0",
            ),
            (
                !self.event_ttl.is_zero(),
                "event_ttl must be greater than 0",
            ),
        ])?;
        let files = self.etcd.files();
        files.validate().map_err(|error| format!("etcd: {error}"))?;
        let authorizers = self.authorization()?;
        let modes = authorizers.modes();
        authorizers.check()?;
        self.authentication(&modes)?;
        self.admission_plugins()?;
        self.audit.validate()?;
        self.cluster_info.validate()?;
        self.pod_security()?;
        self.encryption()?;
        self.service_ranges()?;
        self.endpoint_loopback_range()?;
        self.metrics.validate()
    }
}

impl Settings {
    /// Returns the settings of the cache.
    pub(crate) fn cache(&self) -> cache::Settings {
        cache::Settings {
            stall: self.stall,
            check_interval: self.cache_check,
            ..Default::default()
        }
    }

    /// Returns the time after its last write at which an Event is deleted.
    pub(crate) fn event_ttl(&self) -> Duration {
        self.event_ttl
    }

    /// Returns the admission plugins that are turned on and off.
    ///
    /// # Errors
    /// If a name is unknown or in both lists.
    pub(crate) fn admission_plugins(&self) -> Result<AdmissionPlugins, String> {
        AdmissionPlugins::new(
            &self.enable_admission_plugins,
            &self.disable_admission_plugins,
        )
    }

    /// Returns the ranges of the addresses and node ports of Services.
    ///
    /// # Errors
    /// If one of them is wrong.
    pub(crate) fn service_ranges(&self) -> Result<ServiceRanges, String> {
        ServiceRanges::parse(
            &self.service_cluster_ip_range,
            &self.service_node_port_range,
        )
    }

    /// Returns the loopback range whose addresses endpoints may have.
    ///
    /// # Errors
    /// If it is wrong.
    pub(crate) fn endpoint_loopback_range(&self) -> Result<Option<Cidr>, String> {
        let range = loopback_range(&self.endpoint_loopback_range);
        range.map_err(|error| format!("endpoint_loopback_range: {error}"))
    }

    /// Returns the configuration of Pod security.
    ///
    /// # Errors
    /// If its file cannot be read, or is wrong.
    pub(crate) fn pod_security(&self) -> Result<PodSecurityConfiguration, String> {
        let read = pod_security_file::read(&self.pod_security_configuration_file);
        read.map_err(|error| format!("pod_security_configuration_file: {error}"))
    }

    /// Returns the file with the encryption configuration, if there is one.
    pub(crate) fn encryption_file(&self) -> Option<PathBuf> {
        named(&self.encryption_provider_config)
    }

    /// Returns the encryption of stored values.
    ///
    /// # Errors
    /// If its file cannot be read, or is wrong.
    pub(crate) fn encryption(&self) -> Result<EncryptionConfiguration, String> {
        let Some(file) = self.encryption_file() else {
            return Ok(EncryptionConfiguration::default());
        };
        let read = EncryptionConfiguration::read_file(&file);
        read.map_err(|error| format!("encryption_provider_config: {error}"))
    }

    /// Returns the identity by which the gateway calls other API servers.
    ///
    /// # Errors
    /// If a file cannot be read or is malformed.
    pub(crate) fn front_proxy(&self) -> anyhow::Result<FrontProxy> {
        let files = &self.front_proxy;
        match files.ca.as_os_str().is_empty() {
            true => Ok(FrontProxy::default()),
            false => FrontProxy::read(&files.ca, &files.certificate, &files.key),
        }
    }

    /// Returns the settings of audit.
    pub(crate) const fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Returns the address that is published in `kube-public/cluster-info`; empty for none.
    pub(crate) fn published_server(&self) -> &str {
        &self.cluster_info.server
    }

    /// Returns the window of flap detection; `None` if it is turned off.
    pub(crate) fn flap_window(&self) -> Option<Duration> {
        Some(self.flaps.window).filter(|window| !window.is_zero())
    }

    /// Returns the limits on the requests that are executed at a time.
    pub(crate) fn flow_control(&self) -> FlowControl {
        let (reads, writes) = (
            self.max_requests_inflight,
            self.max_mutating_requests_inflight,
        );
        match self.enable_priority_and_fairness {
            true => FlowControl::new(reads, writes),
            false => FlowControl::without_fairness(reads, writes),
        }
    }

    /// Returns the settings of metrics from Prometheus.
    pub(crate) const fn metrics(&self) -> &prometheus_adapter::Settings {
        &self.metrics
    }

    /// Returns the ports of the etcd endpoints.
    pub(crate) fn etcd_ports(&self) -> Vec<u16> {
        let endpoints = self.etcd.endpoints.iter();
        let ports = endpoints.filter_map(|url| {
            // A URL may lack its scheme.
            let authority = url.rsplit("//").next()?;
            authority.parse::<http::uri::Authority>().ok()?.port_u16()
        });
        ports.collect()
    }

    /// Returns the settings of the connection to etcd.
    ///
    /// # Errors
    /// If a certificate or key cannot be read or is malformed.
    pub(crate) fn etcd(&self) -> anyhow::Result<etcd::Settings> {
        let files = self.etcd.files();
        let credentials = (!files.is_empty()).then(|| Credentials::load(&files));
        Ok(etcd::Settings {
            endpoints: self.etcd.endpoints.clone(),
            follow_members: self.etcd.follow_members,
            timeout: self.etcd.timeout,
            in_flight: self.etcd.in_flight,
            credentials: credentials.transpose()?,
            ..Default::default()
        })
    }
}

/// Returns the file that a setting names; `None` if it is empty.
fn named(file: &Path) -> Option<PathBuf> {
    (!file.as_os_str().is_empty()).then(|| file.to_owned())
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;
    use setpoint_host::Settings as _;

    use super::*;

    #[test]
    fn the_settings_file_has_every_setting_with_its_default() {
        let template = host::settings::template::<Settings>("gateway", &());
        expect_file!["../../../deploy/config/gateway.toml"].assert_eq(&template);
    }

    #[test]
    fn the_ports_of_etcd_are_read_from_its_urls() {
        let mut settings = Settings::default();
        settings.etcd.endpoints = vec![
            "http://127.0.0.1:2379".into(),
            "etcd-1:4001".into(),
            "https://[::1]:23790".into(),
        ];
        assert_eq!(settings.etcd_ports(), [2379, 4001, 23790]);
    }

    #[test]
    fn the_defaults_are_valid_and_settings_without_effect_are_not() {
        let mut settings = Settings::default();
        assert_eq!(settings.validate(), Ok(()));
        settings.etcd.in_flight = 0;
        assert!(settings.validate().is_err());
        settings = Settings::default();
        settings.etcd.endpoints.clear();
        assert!(settings.validate().is_err());
        settings = Settings::default();
        settings.front_proxy.ca = "ca.crt".into();
        assert!(settings.validate().is_err());
        settings = Settings::default();
        settings.authorization.modes = vec!["Rbac".into()];
        let refused = settings.validate().unwrap_err();
        assert!(
            refused.contains("\"Rbac\" is not a valid mode"),
            "{refused}"
        );
        settings = Settings::default();
        settings.enable_admission_plugins = vec!["Unknown".into()];
        assert!(settings.validate().is_err());
        settings = Settings::default();
        settings.pod_security_configuration_file = "/none".into();
        assert!(settings.validate().is_err());
        settings = Settings::default();
        settings.encryption_provider_config = "/none".into();
        assert!(settings.validate().is_err());
    }
}
