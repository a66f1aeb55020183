//! The address at which Pods reach the API, for the environment of their containers and for their hosts files.

use std::net::{IpAddr, Ipv4Addr};

use http::Uri;
use http::uri::Authority;

use super::addresses::{Addresses, Lookup};

/// The names of the API in a cluster, which are on the certificates of gateways.
const NAMES: [&str; 4] = [
    "kubernetes.default.svc.cluster.local",
    "kubernetes.default.svc",
    "kubernetes.default",
    "kubernetes",
];
/// The port in names of variables: that of the Service `kubernetes`.
const SERVICE_PORT: u16 = 443;

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
    addresses: Addresses,
}

impl ApiServer {
    /// Returns the one at this place.
    pub fn new(place: Place, lookup: Lookup) -> Self {
        Self {
            addresses: Addresses::new(place.hosts.clone(), lookup),
            place,
        }
    }

    /// Returns the variables of each container.
    pub fn variables(&self) -> Vec<(String, String)> {
        self.place.variables()
    }

    /// Returns the entries of hosts files: addresses with their names.
    pub async fn entries(&self) -> Vec<(String, Vec<String>)> {
        let names = self.place.names();
        let addresses = self.addresses.get().await.into_iter();
        addresses
            .map(|ip| (ip.to_string(), names.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
}
