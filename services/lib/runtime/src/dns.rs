//! The resolver configuration of a Pod: the text of its file /etc/resolv.conf. Pure.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Limits of the resolver of the C library, as in the kubelet. What exceeds them is left out.
const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;

/// The additions of a Pod to the resolver configuration of its node, or its replacement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dns {
    /// Use nothing of the node's configuration.
    pub replaces: bool,
    /// Addresses of name servers.
    pub nameservers: Vec<String>,
    /// Domains in which short names are looked up.
    pub searches: Vec<String>,
    /// Options with their values.
    pub options: Vec<(String, Option<String>)>,
}

impl Dns {
    /// Parses a file /etc/resolv.conf.
    fn parse(text: &str) -> Self {
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
        let mut dns = match self.replaces {
            true => Self::default(),
            false => Self::parse(base),
        };
        add_new(&mut dns.nameservers, &self.nameservers, MAX_NAMESERVERS);
        add_new(&mut dns.searches, &self.searches, MAX_SEARCHES);
        for (name, value) in &self.options {
            dns.options.retain(|(known, _)| known != name);
            dns.options.push((name.clone(), value.clone()));
        }
        dns.text()
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

/// Adds what is not in the list yet, up to a length.
fn add_new(list: &mut Vec<String>, more: &[String], most: usize) {
    for one in more {
        if list.len() < most && !list.contains(one) {
            list.push(one.clone());
        }
    }
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
            replaces: false,
            nameservers: words(&["1.1.1.1", "127.0.0.11"]),
            searches: words(&["shop.local", "svc.local"]),
            options: vec![("ndots".into(), Some("5".into())), ("rotate".into(), None)],
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
}
