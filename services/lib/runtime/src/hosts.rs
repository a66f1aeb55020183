//! The file /etc/hosts of a Pod: the text that the kubelet would write, with the servers of the cluster.

use std::fmt::Write as _;
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};

/// Path of the file in containers.
pub const PATH: &str = "/etc/hosts";
/// Permission bits of the file.
pub const MODE: u32 = 0o644;

/// The first line, as in the kubelet.
const HEADER: &str = "# Kubernetes-managed hosts file.\n";
/// The first line for a Pod in the network of its node.
const HEADER_HOST_NETWORK: &str = "# Kubernetes-managed hosts file (host network).\n";
/// The entries that each Pod with a network of its own has.
const LOCAL: &str = "127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
";
const CLUSTER: &str = "\n# Entries of the cluster.\n";
const ALIASES: &str = "\n# Entries added by HostAliases.\n";

/// An address and its names.
pub type Entry = (String, Vec<String>);

/// Entries of the file /etc/hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hosts {
    /// Whether the Pod is in the network of its node, so that it has no entry of its own.
    pub host_network: bool,
    /// Domain of the Pod's host name; empty for none.
    pub domain: String,
    /// Servers of the cluster. A name that an alias has, too, is left out.
    pub cluster: Vec<Entry>,
    /// The aliases of the Pod's spec.
    pub aliases: Vec<Entry>,
}

impl Hosts {
    /// Returns the text of the file of a Pod with this name and address. `node` is the text of its node's file, for a
    /// Pod that shares the network of the node.
    pub fn file(&self, hostname: &str, ip: Ipv4Addr, node: Option<&str>) -> String {
        let header = match self.host_network {
            true => HEADER_HOST_NETWORK,
            false => HEADER,
        };
        let mut text = format!("{header}{}", node.unwrap_or(LOCAL));
        if !text.ends_with('\n') {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = match (self.host_network, self.domain.as_str()) {
            (true, _) => Ok(()),
            (false, "") => writeln!(text, "{ip}\t{hostname}"),
            (false, domain) => writeln!(text, "{ip}\t{hostname}.{domain}\t{hostname}"),
        };
        add(&mut text, CLUSTER, self.unaliased());
        let aliases = self.aliases.iter();
        add(
            &mut text,
            ALIASES,
            aliases.map(|(ip, names)| (ip.as_str(), names.iter().collect())),
        );
        text
    }

    /// Returns the entries of the cluster without the names that aliases have.
    fn unaliased(&self) -> impl Iterator<Item = (&str, Vec<&String>)> {
        let is_alias = |name: &&String| {
            let mut aliases = self.aliases.iter();
            aliases.any(|(_, names)| names.contains(name))
        };
        let entries = self.cluster.iter();
        entries.filter_map(move |(ip, names)| {
            let names: Vec<_> = names.iter().filter(|name| !is_alias(name)).collect();
            (!names.is_empty()).then_some((ip.as_str(), names))
        })
    }
}

/// Adds a line for each address, below a title if there are any.
fn add<'a>(
    text: &mut String,
    title: &str,
    entries: impl Iterator<Item = (&'a str, Vec<&'a String>)>,
) {
    let mut title = Some(title);
    for (ip, names) in entries {
        text.push_str(title.take().unwrap_or_default());
        text.push_str(ip);
        for name in names {
            text.push('\t');
            text.push_str(name);
        }
        text.push('\n');
    }
}

/// Gives a file this content, unless it has it. It stays the same file, because containers have it mounted; it is made
/// if there is none.
///
/// # Errors
/// If it cannot be written, or is a link.
pub fn overwrite(path: &Path, content: &[u8]) -> io::Result<()> {
    if std::fs::read(path).is_ok_and(|current| current == content) {
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(open(path, flags, Mode::from_raw_mode(MODE))?);
    // Written before it is cut, so that nobody reads an empty file.
    file.write_all(content)?;
    file.set_len(content.len().try_into().unwrap_or(u64::MAX))?;
    // The umask does not apply to what other users read.
    file.set_permissions(Permissions::from_mode(MODE))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    const IP: Ipv4Addr = Ipv4Addr::new(10, 1, 2, 3);

    fn entry(ip: &str, names: &[&str]) -> Entry {
        let names = names.iter().map(|name| (*name).to_owned());
        (ip.to_owned(), names.collect())
    }

    fn hosts() -> Hosts {
        Hosts {
            cluster: vec![entry(
                "172.18.0.1",
                &["kubernetes.default.svc", "kubernetes"],
            )],
            aliases: vec![entry("10.9.8.7", &["db", "db.local"])],
            ..Hosts::default()
        }
    }

    #[test]
    fn a_pod_has_the_file_of_the_kubelet_with_the_servers_of_the_cluster() {
        let expected = "# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
10.1.2.3\tweb

# Entries of the cluster.
172.18.0.1\tkubernetes.default.svc\tkubernetes

# Entries added by HostAliases.
10.9.8.7\tdb\tdb.local
";
        assert_eq!(hosts().file("web", IP, None), expected);
    }

    #[test]
    fn a_pod_with_a_subdomain_has_its_full_name_first() {
        let hosts = Hosts {
            domain: "sub.default.svc.cluster.local".into(),
            ..Hosts::default()
        };
        let file = hosts.file("web", IP, None);
        let own = "10.1.2.3\tweb.sub.default.svc.cluster.local\tweb\n";
        assert!(file.ends_with(own), "{file}");
    }

    #[test]
    fn a_pod_in_the_network_of_its_node_has_the_entries_of_the_node() {
        let hosts = Hosts {
            host_network: true,
            ..hosts()
        };
        let file = hosts.file("web", IP, Some("127.0.0.1\tlocalhost here"));
        let start =
            "# Kubernetes-managed hosts file (host network).\n127.0.0.1\tlocalhost here\n\n";
        assert!(file.starts_with(start), "{file}");
        assert!(!file.contains("10.1.2.3"), "{file}");
        assert!(file.contains("\tkubernetes.default.svc"), "{file}");
    }

    #[test]
    fn an_alias_takes_the_place_of_a_server_of_the_cluster() {
        let mut hosts = hosts();
        hosts.aliases = vec![entry("10.9.8.7", &["kubernetes"])];
        let file = hosts.file("web", IP, None);
        assert!(
            file.contains("172.18.0.1\tkubernetes.default.svc\n"),
            "{file}"
        );
        hosts.aliases[0].1.push("kubernetes.default.svc".into());
        let file = hosts.file("web", IP, None);
        assert!(!file.contains("172.18.0.1"), "{file}");
    }

    #[test]
    fn a_file_that_is_overwritten_stays_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        overwrite(&path, b"a longer text").unwrap();
        let before = std::fs::metadata(&path).unwrap();
        overwrite(&path, b"short").unwrap();
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"short");
        assert_eq!(before.ino(), after.ino());
        assert_eq!(after.mode() & 0o777, MODE);
    }

    #[test]
    fn a_link_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(overwrite(&link, b"other").is_err());
        assert_eq!(std::fs::read(&target).unwrap(), b"kept");
    }
}
