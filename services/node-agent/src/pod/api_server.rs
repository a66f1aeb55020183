//! The address at which Pods reach the API, for the environment of their containers and for their hosts files.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use http::uri::Authority;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tracing::warn;

/// The names of the API in a cluster, which are on the certificates of gateways.
const NAMES: [&str; 4] = [
    "kubernetes.default.svc.cluster.local",
    "kubernetes.default.svc",
    "kubernetes.default",
    "kubernetes",
];
/// The time for which the addresses of a host name are known.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(60);
/// The delay after a lookup that has failed.
const LOOKUP_RETRY: Duration = Duration::from_secs(5);
/// Timeout of a lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// The port in names of variables: that of the Service `kubernetes`.
const SERVICE_PORT: u16 = 443;

/// Looks up the addresses of a host name in the network of Pods.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The host and the port at which Pods reach the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// An IP or a host name.
    host: String,
    port: u16,
    /// The hosts of all gateways on this port, of which [`Self::host`] is the first.
    hosts: Vec<String>,
}

impl Place {
    /// Parses `<host>:<port>`; `None` if it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        let host = host_of(&authority);
        let port = authority.port_u16().filter(|port| *port > 0)?;
        let is_plain = !text.contains('@') && !host.is_empty();
        is_plain.then(|| Self {
            hosts: vec![host.clone()],
            host,
            port,
        })
    }

    /// Returns that of the first of these URLs, comma-separated. `machine` takes the place of loopback addresses, for
    /// Pods in a network of their own, where it is this machine. `None` if there is no URL.
    pub fn of_gateways(urls: &str, machine: Option<Ipv4Addr>) -> Option<Self> {
        let places = urls.split(',').map(|url| place_of(url.trim()));
        let places: Vec<_> = places.collect::<Option<_>>()?;
        let port = places.first()?.1;
        let mut hosts = Vec::new();
        for (host, _) in places.into_iter().filter(|(_, other)| *other == port) {
            let host = match machine {
                Some(machine) if is_loopback(&host) => machine.to_string(),
                _ => host,
            };
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        let host = hosts.first()?.clone();
        Some(Self { host, port, hosts })
    }

    /// Returns the variables that the kubelet sets for the Service `default/kubernetes`.
    pub fn variables(&self) -> Vec<(String, String)> {
        let Self { host, port, .. } = self;
        let (port, url) = (
            port.to_string(),
            match host.contains(':') {
                true => format!("tcp://[{host}]:{port}"),
                false => format!("tcp://{host}:{port}"),
            },
        );
        let of_port = format!("PORT_{SERVICE_PORT}_TCP");
        [
            ("SERVICE_HOST".to_owned(), host.clone()),
            ("SERVICE_PORT".to_owned(), port.clone()),
            ("SERVICE_PORT_HTTPS".to_owned(), port.clone()),
            ("PORT".to_owned(), url.clone()),
            (of_port.clone(), url),
            (format!("{of_port}_PROTO"), "tcp".to_owned()),
            (format!("{of_port}_PORT"), port),
            (format!("{of_port}_ADDR"), host.clone()),
        ]
        .map(|(name, value)| (format!("KUBERNETES_{name}"), value))
        .into()
    }

    /// Returns the names in hosts files: those of the API, and the host itself if it is a name.
    fn names(&self) -> Vec<String> {
        let names = self.hosts.iter().filter(|host| ip_of(host).is_none());
        let api = NAMES.iter().map(|name| (*name).to_owned());
        api.chain(names.cloned()).collect()
    }
}

/// Returns host and port of a URL.
fn place_of(url: &str) -> Option<(String, u16)> {
    let url: Uri = url.parse().ok()?;
    let default = match url.scheme_str() {
        Some("http") => 80,
        _ => 443,
    };
    let host = host_of(url.authority()?);
    Some((host, url.port_u16().unwrap_or(default)))
}

/// Returns the host of a URL, an IPv6 address without its brackets.
fn host_of(authority: &Authority) -> String {
    let host = authority.host();
    host.trim_matches(['[', ']']).to_owned()
}

fn ip_of(host: &str) -> Option<IpAddr> {
    host.parse().ok()
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || ip_of(host).is_some_and(|ip| ip.is_loopback())
}

/// The API as Pods reach it.
pub struct ApiServer {
    place: Place,
    lookup: Lookup,
    known: Mutex<Known>,
}

/// The addresses that were found last.
#[derive(Default)]
struct Known {
    addresses: BTreeSet<IpAddr>,
    /// The time of the next lookup.
    until: Option<Instant>,
}

impl ApiServer {
    /// Returns the one at this place.
    pub fn new(place: Place, lookup: Lookup) -> Self {
        Self {
            place,
            lookup,
            known: Mutex::default(),
        }
    }

    /// Returns the variables of each container.
    pub fn variables(&self) -> Vec<(String, String)> {
        self.place.variables()
    }

    /// Returns the entries of hosts files: addresses with their names. Host names are looked up once a minute at most;
    /// if that fails, the addresses stay as they are.
    pub async fn entries(&self) -> Vec<(String, Vec<String>)> {
        let mut known = self.known.lock().await;
        let now = Instant::now();
        if known.until.is_none_or(|until| until <= now) {
            let delay = match self.addresses().await {
                Ok(addresses) => {
                    known.addresses = addresses;
                    LOOKUP_INTERVAL
                }
                Err(error) => {
                    warn!(%error, hosts = ?self.place.hosts, "cannot look up the gateways for hosts files");
                    LOOKUP_RETRY
                }
            };
            known.until = Some(now + delay);
        }
        let names = self.place.names();
        let addresses = known.addresses.iter();
        addresses
            .map(|ip| (ip.to_string(), names.clone()))
            .collect()
    }

    async fn addresses(&self) -> io::Result<BTreeSet<IpAddr>> {
        let mut addresses = BTreeSet::new();
        for host in &self.place.hosts {
            match ip_of(host) {
                Some(ip) => drop(addresses.insert(ip)),
                None => addresses.extend(self.look_up(host).await?),
            }
        }
        Ok(addresses)
    }

    async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = timeout(LOOKUP_TIMEOUT, (self.lookup)(host.to_owned())).await;
        let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        match found.is_empty() {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use futures::FutureExt as _;
    use tokio::time::advance;

    use super::*;

    const MACHINE: Ipv4Addr = Ipv4Addr::new(172, 18, 0, 1);

    fn place(urls: &str, machine: Option<Ipv4Addr>) -> (String, u16, Vec<String>) {
        let place = Place::of_gateways(urls, machine).unwrap();
        (place.host, place.port, place.hosts)
    }

    #[test]
    fn the_place_of_the_api_is_that_of_the_first_gateway() {
        for (urls, host, port, hosts) in [
            ("https://127.0.0.1:7443", "127.0.0.1", 7443, "127.0.0.1"),
            ("https://a:1, https://b:1,https://c:2", "a", 1, "a b"),
            ("https://[fd00::1]:1", "fd00::1", 1, "fd00::1"),
            ("https://a", "a", 443, "a"),
            ("http://a", "a", 80, "a"),
        ] {
            let hosts = hosts.split(' ').map(str::to_owned).collect();
            assert_eq!(place(urls, None), (host.to_owned(), port, hosts), "{urls}");
        }
        assert_eq!(Place::of_gateways("no url", None), None);
    }

    #[test]
    fn pods_in_a_network_of_their_own_reach_a_loopback_gateway_at_the_address_of_the_machine() {
        let loopback = "https://127.0.0.1:6443,https://localhost:6443,https://[::1]:6443";
        let machine = "172.18.0.1".to_owned();
        let expected = (machine.clone(), 6443, vec![machine]);
        assert_eq!(place(loopback, Some(MACHINE)), expected);
        let (host, _, hosts) = place("https://gateway:1,https://127.0.0.2:1", Some(MACHINE));
        assert_eq!(
            (host.as_str(), hosts.join(" ")),
            ("gateway", "gateway 172.18.0.1".into())
        );
    }

    #[test]
    fn a_setting_that_is_no_host_with_a_port_is_refused() {
        let parsed = |text: &str| Place::parse(text).map(|place| (place.host, place.port));
        assert_eq!(parsed("10.0.0.1:6443"), Some(("10.0.0.1".into(), 6443)));
        assert_eq!(parsed("[fd00::1]:1"), Some(("fd00::1".into(), 1)));
        for text in [
            "",
            "10.0.0.1",
            ":6443",
            "a:0",
            "https://a:1",
            "user@a:1",
            "a:70000",
        ] {
            assert_eq!(parsed(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_container_has_the_variables_of_the_service_with_the_address_of_a_gateway() {
        let place = Place::parse("172.18.0.1:6443").unwrap();
        let variables = place.variables();
        let lines = variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let expected = [
            "KUBERNETES_SERVICE_HOST=172.18.0.1",
            "KUBERNETES_SERVICE_PORT=6443",
            "KUBERNETES_SERVICE_PORT_HTTPS=6443",
            "KUBERNETES_PORT=tcp://172.18.0.1:6443",
            "KUBERNETES_PORT_443_TCP=tcp://172.18.0.1:6443",
            "KUBERNETES_PORT_443_TCP_PROTO=tcp",
            "KUBERNETES_PORT_443_TCP_PORT=6443",
            "KUBERNETES_PORT_443_TCP_ADDR=172.18.0.1",
        ];
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_ipv6_address_has_brackets_in_urls_only() {
        let variables = Place::parse("[fd00::1]:6443").unwrap().variables();
        assert_eq!(variables[0].1, "fd00::1");
        assert_eq!(variables[3].1, "tcp://[fd00::1]:6443");
    }

    #[tokio::test]
    async fn hosts_files_have_the_names_of_the_api() {
        let nowhere: Lookup = Arc::new(|_| panic!("an address is not looked up"));
        let api = ApiServer::new(Place::parse("172.18.0.1:6443").unwrap(), nowhere);
        let names = "kubernetes.default.svc.cluster.local kubernetes.default.svc kubernetes.default kubernetes";
        let names = names.split(' ').map(str::to_owned).collect();
        assert_eq!(api.entries().await, [("172.18.0.1".to_owned(), names)]);
    }

    /// Returns the API at `gateway:6443`, whose last octet is the number; the lookup fails for zero.
    fn named(octet: &Arc<AtomicU8>) -> ApiServer {
        let octet = Arc::clone(octet);
        let lookup: Lookup = Arc::new(move |host| {
            assert_eq!(host, "gateway");
            let found = match octet.load(Ordering::Relaxed) {
                0 => Vec::new(),
                octet => vec![Ipv4Addr::new(10, 0, 0, octet).into()],
            };
            async move { Ok(found) }.boxed()
        });
        ApiServer::new(Place::parse("gateway:6443").unwrap(), lookup)
    }

    async fn address(api: &ApiServer) -> String {
        let entries = api.entries().await;
        let named = |names: &[String]| names.last().is_some_and(|name| name == "gateway");
        assert!(entries.iter().all(|(_, names)| named(names)), "{entries:?}");
        let addresses = entries.into_iter().map(|(ip, _)| ip);
        addresses.collect::<Vec<_>>().join(" ")
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_looked_up_once_a_minute_and_keeps_its_addresses_if_that_fails() {
        let octet = Arc::new(AtomicU8::new(0));
        let api = named(&octet);
        assert_eq!(address(&api).await, "");
        octet.store(1, Ordering::Relaxed);
        assert_eq!(address(&api).await, "", "the next attempt is later");
        advance(LOOKUP_RETRY).await;
        assert_eq!(address(&api).await, "10.0.0.1");
        octet.store(2, Ordering::Relaxed);
        advance(LOOKUP_INTERVAL / 2).await;
        assert_eq!(address(&api).await, "10.0.0.1");
        advance(LOOKUP_INTERVAL / 2).await;
        assert_eq!(address(&api).await, "10.0.0.2");
        octet.store(0, Ordering::Relaxed);
        advance(LOOKUP_INTERVAL).await;
        assert_eq!(address(&api).await, "10.0.0.2");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_that_does_not_end_delays_a_pod_by_its_timeout() {
        let pending: Lookup = Arc::new(|_| futures::future::pending().boxed());
        let api = ApiServer::new(Place::parse("gateway:6443").unwrap(), pending);
        let begin = Instant::now();
        assert!(api.entries().await.is_empty());
        assert_eq!(begin.elapsed(), LOOKUP_TIMEOUT);
    }
}
