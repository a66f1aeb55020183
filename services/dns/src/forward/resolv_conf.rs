//! The file /etc/resolv.conf of this process.

use std::net::{IpAddr, SocketAddr};

use hickory_proto::rr::Name;

use super::PORT;

/// The content of a file `resolv.conf`, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvConf {
    /// The name servers.
    pub servers: Vec<SocketAddr>,
    /// The search path.
    pub search: Vec<Name>,
}

impl ResolvConf {
    /// Parses the text of a file.
    pub fn parse(text: &str) -> Self {
        let mut parsed = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let ip = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    parsed
                        .servers
                        .extend(ip.map(|ip| SocketAddr::new(ip, PORT)));
                }
                Some("search") => parsed.search = words.filter_map(absolute).collect(),
                _ => {}
            }
        }
        parsed
    }
}

fn absolute(domain: &str) -> Option<Name> {
    let mut name = Name::from_ascii(domain).ok()?;
    name.set_fqdn(true);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_search_path_are_read() {
        let text = "# text\nsearch a.example b.example\nnameserver 10.0.0.2\nnameserver x\noptions ndots:1\n";
        let parsed = ResolvConf::parse(text);
        assert_eq!(parsed.servers, ["10.0.0.2:53".parse().unwrap()]);
        let search: Vec<_> = parsed.search.iter().map(Name::to_ascii).collect();
        assert_eq!(search, ["a.example.", "b.example."]);
    }
}
