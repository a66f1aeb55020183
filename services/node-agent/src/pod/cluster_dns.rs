//! The resolver configuration of Pods, as the kubelet forms it from `dnsPolicy` and `dnsConfig`.
//!
//! The file of the node is known to the runtime only, which adds it where the policy says so and applies the limits.

use setpoint_proto::core::{Pod, PodSpec};
use setpoint_runtime::{ClusterDns, Dns, dns};

use super::addresses::{Addresses, Lookup};

/// The options of a Pod that asks the cluster's DNS.
const OPTIONS: [(&str, &str); 1] = [("ndots", "5")];

/// The cluster's DNS as Pods reach it.
pub struct Resolver {
    /// `None` without name servers.
    servers: Option<Addresses>,
    domain: String,
}

impl Resolver {
    /// Returns that of these hosts, which may be none, and this domain.
    pub fn new(servers: Vec<String>, domain: String, lookup: Lookup) -> Self {
        let servers = (!servers.is_empty()).then(|| Addresses::new(servers, lookup));
        Self { servers, domain }
    }

    /// Returns the domain of the cluster.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Returns whether a Pod asks the cluster's DNS and the node knows none, so that the Pod gets the resolver
    /// configuration of the node.
    pub fn is_missing(&self, pod: &Pod) -> bool {
        self.servers.is_none() && asks_cluster(&pod.spec)
    }

    /// Returns the resolver configuration of a Pod; `None` if it is that of its node.
    pub async fn of(&self, pod: &Pod) -> Option<Dns> {
        let servers = match &self.servers {
            Some(servers) if asks_cluster(&pod.spec) => servers.get().await,
            _ => Default::default(),
        };
        let servers = servers.iter().map(ToString::to_string).collect();
        form(pod, &self.domain, servers)
    }
}

/// Returns whether a Pod asks the cluster's DNS. With the network of its node, it has to say so.
fn asks_cluster(spec: &PodSpec) -> bool {
    match &*spec.dns_policy {
        "ClusterFirstWithHostNet" => true,
        "Default" | "None" => false,
        _ => !spec.host_network,
    }
}

/// Returns the resolver configuration with these name servers of the cluster, which may be none.
fn form(pod: &Pod, domain: &str, servers: Vec<String>) -> Option<Dns> {
    let spec = &pod.spec;
    let replaces = spec.dns_policy == "None";
    if !replaces && servers.is_empty() && spec.dns_config.is_none() {
        return None;
    }
    let cluster = (!servers.is_empty()).then(|| ClusterDns {
        nameservers: servers,
        searches: searches(&pod.metadata.namespace, domain),
        options: OPTIONS
            .map(|(name, value)| (name.to_owned(), Some(value.to_owned())))
            .into(),
    });
    let config = spec.dns_config.clone().unwrap_or_default();
    let options = config.options.into_iter();
    Some(Dns {
        replaces,
        cluster,
        nameservers: config.nameservers,
        searches: config.searches,
        options: options.map(|option| (option.name, option.value)).collect(),
    })
}

fn searches(namespace: &str, domain: &str) -> Vec<String> {
    if domain.is_empty() {
        return Vec::new();
    }
    vec![
        format!("{namespace}.svc.{domain}"),
        format!("svc.{domain}"),
        domain.to_owned(),
    ]
}

/// Returns the kubelet's messages about name servers and search paths that are left out, as far as they do not come
/// from the file of the node.
pub fn exceeded(config: &Dns) -> Vec<String> {
    let (applied, limits) = config.applied("");
    let mut messages = Vec::new();
    if limits.contains(&dns::Limit::Nameservers) {
        messages.push(format!(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: {}",
            applied.nameservers.join(" ")
        ));
    }
    if limits.contains(&dns::Limit::Searches) {
        messages.push(format!(
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: {}",
            applied.searches.join(" ")
        ));
    }
    messages
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::PodDnsConfig;

    use super::*;

    const NODE: &str = "search node.example\nnameserver 10.0.0.1\noptions edns0\n";

    fn pod(policy: &str, host_network: bool) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.namespace = "shop".to_owned();
        pod.spec.dns_policy = policy.to_owned();
        pod.spec.host_network = host_network;
        pod
    }

    async fn file(pod: &Pod) -> String {
        let lookup: Lookup = std::sync::Arc::new(|_| unreachable!("it is an address"));
        let servers = vec!["10.96.0.10".to_owned()];
        let resolver = Resolver::new(servers, "cluster.local".to_owned(), lookup);
        let config = resolver.of(pod).await;
        config.map_or_else(|| "as the node".to_owned(), |config| config.file(NODE))
    }

    #[tokio::test]
    async fn a_policy_decides_between_the_cluster_the_node_and_nothing() {
        let cluster = "search shop.svc.cluster.local svc.cluster.local cluster.local node.example\n\
                       nameserver 10.96.0.10\noptions ndots:5\n";
        let node = "as the node";
        for (policy, host_network, expected) in [
            ("ClusterFirst", false, cluster),
            ("ClusterFirst", true, node),
            ("ClusterFirstWithHostNet", true, cluster),
            ("ClusterFirstWithHostNet", false, cluster),
            ("Default", false, node),
            ("None", false, ""),
        ] {
            let found = file(&pod(policy, host_network)).await;
            assert_eq!(found, expected, "{policy} {host_network}");
        }
    }

    #[test]
    fn the_dns_is_missing_for_pods_that_ask_that_of_the_cluster() {
        let lookup: Lookup = std::sync::Arc::new(|_| unreachable!("there is no name"));
        let without = Resolver::new(Vec::new(), "cluster.local".to_owned(), lookup.clone());
        let with = Resolver::new(vec!["10.96.0.10".to_owned()], String::new(), lookup);
        let asking = pod("ClusterFirst", false);
        assert!(without.is_missing(&asking) && !with.is_missing(&asking));
        assert!(without.is_missing(&pod("ClusterFirstWithHostNet", true)));
        for (policy, host_network) in [("ClusterFirst", true), ("Default", false), ("None", false)]
        {
            let pod = pod(policy, host_network);
            assert!(!without.is_missing(&pod), "{policy}");
        }
    }

    #[tokio::test]
    async fn a_pod_adds_to_what_its_policy_gives_without_duplicates() {
        let mut pod = pod("ClusterFirst", false);
        pod.spec.dns_config = Some(PodDnsConfig {
            nameservers: vec!["1.1.1.1".to_owned(), "10.96.0.10".to_owned()],
            searches: vec!["svc.cluster.local".to_owned(), "own.example".to_owned()],
            ..PodDnsConfig::default()
        });
        let expected = "search shop.svc.cluster.local svc.cluster.local cluster.local node.example own.example\n\
                        nameserver 10.96.0.10\nnameserver 1.1.1.1\noptions ndots:5\n";
        assert_eq!(file(&pod).await, expected);
    }

    #[test]
    fn what_exceeds_the_limits_is_named_in_the_kubelets_words() {
        let mut pod = pod("None", false);
        let servers = (1..=4).map(|number| format!("10.0.0.{number}"));
        pod.spec.dns_config = Some(PodDnsConfig {
            nameservers: servers.collect(),
            searches: (0..33).map(|number| format!("s{number}")).collect(),
            ..PodDnsConfig::default()
        });
        let messages = exceeded(&form(&pod, "", Vec::new()).unwrap());
        let expected = "Nameserver limits were exceeded, some nameservers have been omitted, \
                        the applied nameserver line is: 10.0.0.1 10.0.0.2 10.0.0.3";
        assert_eq!(messages[0], expected);
        assert!(messages[1].ends_with(" s31"), "{messages:?}");
    }
}
