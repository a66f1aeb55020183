//! The configuration of the network of Pods for the CNI, from the range of a node: the standard plug-ins `bridge`,
//! `host-local`, `portmap` and `firewall`.
//!
//! The bridge does not masquerade: that would hide a Pod from those of other machines. What carries the traffic between
//! machines masquerades what leaves the ranges of all Pods.

use std::io;
use std::path::{Path, PathBuf};
use std::{fs, process};

use serde_json::json;

use super::settings::Settings;

/// The name of the file. The runtime uses the first one of the directory.
const FILE: &str = "10-setpoint.conflist";
/// The ends of the names of files that a runtime reads.
const READ: [&str; 3] = ["conf", "conflist", "json"];

/// Whether packets between Pods of one bridge pass the tables of the kernel, by which Services and policies work.
const BRIDGED_PACKETS: &str = "/proc/sys/net/bridge/bridge-nf-call-iptables";

/// The configuration of a node.
#[derive(Clone, Debug)]
pub(super) struct Cni {
    /// The directory that the runtime reads.
    directory: PathBuf,
    /// The name of the bridge.
    bridge: String,
    /// The directory of the addresses that `host-local` has given.
    addresses: PathBuf,
    /// The file of [`BRIDGED_PACKETS`].
    bridged_packets: PathBuf,
}

impl Cni {
    /// Returns the configuration of a node whose files are in the directory `state`.
    pub fn new(settings: &Settings, state: &Path) -> Self {
        Self {
            directory: settings.cni_conf_dir.clone(),
            bridge: settings.bridge.clone(),
            addresses: state.join("cni"),
            bridged_packets: BRIDGED_PACKETS.into(),
        }
    }

    /// Writes the configuration for Pods with addresses of this range. The runtime follows the directory.
    ///
    /// # Errors
    /// If the file system refuses it, the runtime reads another file of the directory before, or the kernel lacks a
    /// module.
    pub fn write(&self, range: &str) -> io::Result<()> {
        self.let_bridged_packets_pass()?;
        fs::create_dir_all(&self.directory)?;
        if let Some(other) = self.other_before()? {
            let directory = self.directory.display();
            return Err(io::Error::other(format!(
                "the runtime reads {other} in {directory} before {FILE}: remove it, or let the network be its own \
                 (cri.network = \"cni\")"
            )));
        }
        // Another name than those that a runtime reads.
        let next = self.directory.join(format!(".{FILE}.{}", process::id()));
        fs::write(&next, self.list(range))?;
        fs::rename(next, self.directory.join(FILE))
    }

    fn let_bridged_packets_pass(&self) -> io::Result<()> {
        match fs::read_to_string(&self.bridged_packets) {
            Ok(value) if value.trim() == "1" => Ok(()),
            Ok(_) => fs::write(&self.bridged_packets, "1"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::Error::other(
                "the kernel module br_netfilter is not loaded, without which Services do not reach Pods of their own \
                 node: modprobe br_netfilter",
            )),
            Err(error) => Err(error),
        }
    }

    /// Returns the name of a file that comes before.
    fn other_before(&self) -> io::Result<Option<String>> {
        let mut first: Option<String> = None;
        for entry in fs::read_dir(&self.directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let end = name.rsplit_once('.').map(|(_, end)| end);
            let is_read = end.is_some_and(|end| READ.contains(&end)) && name.as_str() < FILE;
            if is_read && first.as_ref().is_none_or(|first| name < *first) {
                first = Some(name);
            }
        }
        Ok(first)
    }

    fn list(&self, range: &str) -> String {
        let list = json!({
            "cniVersion": "0.4.0",
            "name": self.bridge,
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": self.bridge,
                    "isGateway": true,
                    // The range may be another one once the Node was deleted.
                    "forceAddress": true,
                    "hairpinMode": true,
                    "ipam": {
                        "type": "host-local",
                        "dataDir": self.addresses,
                        "ranges": [[{ "subnet": range }]],
                        "routes": [{ "dst": "0.0.0.0/0" }],
                    },
                },
                { "type": "portmap", "capabilities": { "portMappings": true }, "snat": true },
                { "type": "firewall" },
            ],
        });
        format!("{list:#}\n")
    }
}

/// Removes the configuration, and the bridge, of a node whose agent has ended. Nothing happens where there is none.
pub(super) async fn remove(settings: &Settings) -> io::Result<()> {
    match fs::remove_file(settings.cni_conf_dir.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        removed => removed?,
    }
    let delete = ["link", "delete", &settings.bridge];
    // It is not there if no Pod has run since the machine started.
    let deleted = tokio::process::Command::new("ip").args(delete).output();
    deleted.await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cni(directory: &Path) -> Cni {
        let settings = Settings {
            cni_conf_dir: directory.join("net.d"),
            ..Settings::default()
        };
        let bridged_packets = directory.join("bridge-nf-call-iptables");
        fs::write(&bridged_packets, "0\n").unwrap();
        Cni {
            bridged_packets,
            ..Cni::new(&settings, Path::new("/state"))
        }
    }

    #[test]
    fn without_the_module_of_the_kernel_the_network_says_so() {
        let root = tempfile::tempdir().unwrap();
        let cni = cni(root.path());
        cni.write("10.244.1.0/24").unwrap();
        assert_eq!(fs::read_to_string(&cni.bridged_packets).unwrap(), "1");
        fs::remove_file(&cni.bridged_packets).unwrap();
        let refused = cni.write("10.244.1.0/24").unwrap_err().to_string();
        assert!(refused.contains("modprobe br_netfilter"), "{refused}");
    }

    #[test]
    fn the_file_has_the_range_and_is_replaced_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let cni = cni(root.path());
        for range in ["10.244.1.0/24", "10.244.2.0/24"] {
            cni.write(range).unwrap();
            let text = fs::read_to_string(root.path().join("net.d").join(FILE)).unwrap();
            let list: serde_json::Value = serde_json::from_str(&text).unwrap();
            let bridge = &list["plugins"][0];
            assert_eq!(bridge["ipam"]["ranges"][0][0]["subnet"], range);
            assert_eq!(bridge["ipam"]["dataDir"], "/state/cni");
            assert_eq!(bridge["ipMasq"], serde_json::Value::Null);
        }
        let files = fs::read_dir(root.path().join("net.d")).unwrap();
        assert_eq!(files.count(), 1);
    }

    #[test]
    fn a_file_that_the_runtime_reads_before_is_named() {
        let root = tempfile::tempdir().unwrap();
        let cni = cni(root.path());
        cni.write("10.244.1.0/24").unwrap();
        for harmless in ["99-other.conflist", "00-notes.txt"] {
            fs::write(root.path().join("net.d").join(harmless), "").unwrap();
        }
        cni.write("10.244.1.0/24").unwrap();
        fs::write(root.path().join("net.d/05-other.conf"), "").unwrap();
        let refused = cni.write("10.244.1.0/24").unwrap_err().to_string();
        assert!(
            refused.starts_with("the runtime reads 05-other.conf in "),
            "{refused}"
        );
    }
}
