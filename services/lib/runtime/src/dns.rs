//! The resolver configuration of a Pod: the text of its file /etc/resolv.conf. Pure.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Limits of the resolver of the C library, as in the kubelet. What exceeds them is left out.
const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
/// Length of the search path with spaces, and of one domain in it.
const MAX_SEARCH_LIST: usize = 2048;
const MAX_SEARCH: usize = 253;
/// The options of a resolver with their values.
type Options = Vec<(String, Option<String>)>;

/// The DNS of the cluster, which takes the place of the node's name servers and options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterDns {
    /// Addresses of name servers.
    pub nameservers: Vec<String>,
    /// Domains before those of the node.
    pub searches: Vec<String>,
    /// Options with their values.
    pub options: Options,
}

/// A limit that a configuration exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Of the number of name servers.
    Nameservers,
    /// Of the search path.
    Searches,
}

/// The additions of a Pod to the resolver configuration of its node, or its replacement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dns {
    /// Use nothing of the node's configuration.
    pub replaces: bool,
    /// The cluster's DNS, if the Pod asks it.
    pub cluster: Option<ClusterDns>,
    /// Addresses of name servers.
    pub nameservers: Vec<String>,
    /// Domains in which short names are looked up.
    pub searches: Vec<String>,
    /// Options with their values.
    pub options: Options,
}

impl Dns {
    /// Parses a file /etc/resolv.conf.
    pub fn parse(text: &str) -> Self {
        let mut dns = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace().map(ToOwned::to_owned);
            match words.next().as_deref() {
                Some("nameserver") => dns.nameservers.extend(words.next()),
                Some("search") => dns.searches = words.collect(),
                Some("options") => dns.options = words.map(option).collect(),
                _ => {}
            }
        }
        dns
    }

    /// Returns the text of the Pod's file; `base` is that of its node.
    pub fn file(&self, base: &str) -> String {
        self.applied(base).0.text()
    }

    /// Returns what of the configuration is within the limits, and the limits that it exceeds. `base` is the text of
    /// the node's file.
    pub fn applied(&self, base: &str) -> (Self, Vec<Limit>) {
        let mut dns = self.before(base);
        add_new(&mut dns.nameservers, &self.nameservers);
        add_new(&mut dns.searches, &self.searches);
        for (name, value) in &self.options {
            dns.options.retain(|(known, _)| known != name);
            dns.options.push((name.clone(), value.clone()));
        }
        let mut exceeded = Vec::new();
        if dns.nameservers.len() > MAX_NAMESERVERS {
            dns.nameservers.truncate(MAX_NAMESERVERS);
            exceeded.push(Limit::Nameservers);
        }
        if cut_searches(&mut dns.searches) {
            exceeded.push(Limit::Searches);
        }
        (dns, exceeded)
    }

    /// Returns the configuration that the Pod's own parts are added to.
    fn before(&self, base: &str) -> Self {
        if self.replaces {
            return Self::default();
        }
        let node = Self::parse(base);
        let Some(cluster) = &self.cluster else {
            return node;
        };
        let mut searches = cluster.searches.clone();
        add_new(&mut searches, &node.searches);
        Self {
            nameservers: cluster.nameservers.clone(),
            searches,
            options: cluster.options.clone(),
            ..Self::default()
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let options = self.options.iter().map(|(name, value)| match value {
            Some(value) => format!("{name}:{value}"),
            None => name.clone(),
        });
        // Writing to a string cannot fail.
        if !self.searches.is_empty() {
            let _ = writeln!(text, "search {}", self.searches.join(" "));
        }
        for server in &self.nameservers {
            let _ = writeln!(text, "nameserver {server}");
        }
        if !self.options.is_empty() {
            let _ = writeln!(text, "options {}", options.collect::<Vec<_>>().join(" "));
        }
        text
    }
}

fn option(word: String) -> (String, Option<String>) {
    match word.split_once(':') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (word, None),
    }
}

/// Adds what is not in the list yet.
fn add_new(list: &mut Vec<String>, more: &[String]) {
    for one in more {
        if !list.contains(one) {
            list.push(one.clone());
        }
    }
}

/// Leaves out domains beyond the limits; returns whether there were any.
fn cut_searches(searches: &mut Vec<String>) -> bool {
    let before = searches.len();
    searches.truncate(MAX_SEARCHES);
    searches.retain(|domain| domain.len() <= MAX_SEARCH);
    let mut length = 0;
    let fits = |domain: &&String| {
        length += domain.len() + 1;
        // The last one has no space after it.
        length <= MAX_SEARCH_LIST + 1
    };
    let fitting = searches.iter().take_while(fits).count();
    searches.truncate(fitting);
    searches.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str =
        "# made by the engine\nsearch svc.local\nnameserver 127.0.0.11\noptions ndots:0 edns0\n";

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    fn dns() -> Dns {
        Dns {
            nameservers: words(&["1.1.1.1", "127.0.0.11"]),
            searches: words(&["shop.local", "svc.local"]),
            options: vec![("ndots".into(), Some("5".into())), ("rotate".into(), None)],
            ..Dns::default()
        }
    }

    #[test]
    fn a_pod_adds_to_the_configuration_of_its_node_and_its_options_replace_those() {
        let expected = "search svc.local shop.local\nnameserver 127.0.0.11\nnameserver 1.1.1.1\noptions edns0 ndots:5 rotate\n";
        assert_eq!(dns().file(BASE), expected);
    }

    #[test]
    fn a_pod_with_the_policy_none_has_nothing_of_its_node() {
        let alone = Dns {
            replaces: true,
            ..dns()
        };
        let expected = "search shop.local svc.local\nnameserver 1.1.1.1\nnameserver 127.0.0.11\noptions ndots:5 rotate\n";
        assert_eq!(alone.file(BASE), expected);
    }

    #[test]
    fn a_resolver_has_three_name_servers_at_most() {
        let many = Dns {
            nameservers: words(&["1.0.0.1", "1.0.0.2", "1.0.0.3"]),
            ..Dns::default()
        };
        let file = many.file(BASE);
        assert_eq!(file.matches("nameserver").count(), 3);
        assert!(!file.contains("1.0.0.3"), "{file}");
    }

    #[test]
    fn the_dns_of_the_cluster_takes_the_place_of_servers_and_options_but_not_of_the_search_path() {
        let cluster = ClusterDns {
            nameservers: words(&["10.96.0.10"]),
            searches: words(&["default.svc.cluster.local", "svc.local"]),
            options: vec![("ndots".into(), Some("5".into()))],
        };
        let alone = Dns {
            cluster: Some(cluster),
            ..Dns::default()
        };
        let expected =
            "search default.svc.cluster.local svc.local\nnameserver 10.96.0.10\noptions ndots:5\n";
        assert_eq!(alone.file(BASE), expected);
    }

    #[test]
    fn a_search_path_is_cut_at_each_of_its_limits() {
        let cut = |searches: Vec<String>| {
            let dns = Dns {
                replaces: true,
                searches,
                ..Dns::default()
            };
            let (applied, exceeded) = dns.applied("");
            (applied.searches.len(), !exceeded.is_empty())
        };
        let domains = |count, length| (0..count).map(|n| format!("{n:0length$}")).collect();
        assert_eq!(cut(domains(32, 10)), (32, false));
        assert_eq!(cut(domains(33, 10)), (32, true));
        assert_eq!(cut(vec!["a".repeat(254)]), (0, true));
        // Eight times 252 letters and seven spaces, then one of 24 with its space: 2048.
        let fitting = |last| {
            let mut list: Vec<String> = domains(8, 252);
            list.push("z".repeat(last));
            list
        };
        assert_eq!(cut(fitting(24)), (9, false));
        assert_eq!(cut(fitting(25)), (8, true));
    }
}
