//! The certificates of a local cluster: two CAs, and a certificate for each process and for the administrator.
//!
//! ```text
//! pki/ca.crt, ca.key                  the CA of the cluster
//! pki/etcd-ca.crt, etcd-ca.key        the CA of etcd, by which it knows gateways
//! pki/<process>/ca.crt, tls.crt, tls.key
//! pki/gateway-<n>/etcd/…              the certificate that a gateway presents to etcd
//! pki/admin/…                         the administrator's
//! ```
//! Only the user of the cluster may enter the folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use setpoint_host::private;
use setpoint_tls::authority::{Authority, Issued, Leaf, Present, write_certificates};
use setpoint_tls::{Credentials, Files, Validity};

use super::identity::{Identity, PROCESS_LIFETIME, USER_LIFETIME};
use super::topology::{ProcessSpec, service_of};

/// The folder of the administrator's certificate.
const ADMINISTRATOR: &str = "admin";
/// The folder of a gateway's certificate for etcd, in that of the gateway.
const ETCD: &str = "etcd";

/// The certificates of a cluster.
#[derive(Clone, Debug)]
pub struct Pki {
    directory: PathBuf,
}

/// A certificate that a cluster should have.
pub(crate) struct Wanted {
    /// The folder of its files.
    pub directory: PathBuf,
    /// Its content.
    pub leaf: Leaf,
}

impl Pki {
    /// Returns those of this folder.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the files of the process `<service>-<n>`.
    pub fn files(&self, process: &str) -> Files {
        Files::in_directory(&self.directory.join(process))
    }

    /// Returns the files of the administrator.
    pub fn administrator(&self) -> Files {
        self.files(ADMINISTRATOR)
    }

    /// Returns the files with which `gateway-<n>` connects to etcd.
    pub fn etcd_client(&self, gateway: &str) -> Files {
        Files::in_directory(&self.directory.join(gateway).join(ETCD))
    }

    /// Returns the credentials of these files, once the cluster has been started.
    ///
    /// # Errors
    /// If they are missing or malformed.
    pub fn credentials(files: &Files) -> anyhow::Result<Credentials> {
        let credentials = Credentials::load(files);
        credentials.context("the cluster has no usable certificates; `setpoint certs` makes them")
    }

    /// Makes the certificates of these processes and of the administrator: those that are missing, due for renewal, by
    /// another CA, or with other names. Returns the number of those that it has made.
    ///
    /// # Errors
    /// If a file cannot be read or written, or a name cannot be on a certificate.
    pub fn ensure<'p>(
        &self,
        processes: impl IntoIterator<Item = &'p ProcessSpec>,
    ) -> anyhow::Result<usize> {
        let _lock = self.lock()?;
        let authorities = self.authorities()?;
        let mut wanted = vec![self.wanted(ADMINISTRATOR, &Identity::administrator())];
        for process in processes {
            let Some(identity) = &process.identity else {
                continue;
            };
            wanted.push(self.wanted(&process.name, identity));
            if process.service == "gateway" {
                let folder = format!("{}/{ETCD}", process.name);
                wanted.push(self.wanted(&folder, &Identity::service(process.service)));
            }
        }
        let mut made = 0;
        for one in wanted {
            let authority = authorities.of(&one.directory);
            if !one.is_present(authority) {
                one.issue(authority)?;
                made += 1;
            }
        }
        Ok(made)
    }

    /// Renews each certificate that has passed two thirds of its life, and those that have expired. Returns their
    /// folders.
    ///
    /// # Errors
    /// The first of those that cannot be renewed; the others are renewed.
    pub fn renew_due(&self) -> anyhow::Result<Vec<String>> {
        let due: Vec<_> = self.due().collect();
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let _lock = self.lock()?;
        let authorities = self.authorities()?;
        let (mut renewed, mut failed) = (Vec::new(), None);
        // Read again: another process may have renewed them before this one got the lock.
        for wanted in self.due() {
            match wanted.issue(authorities.of(&wanted.directory)) {
                Ok(()) => renewed.push(self.name_of(&wanted.directory)),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(renewed), Err)
    }

    /// Returns what takes the place of each certificate that is due.
    fn due(&self) -> impl Iterator<Item = Wanted> {
        let now = Timestamp::now();
        self.directories().into_iter().filter_map(move |directory| {
            let files = Files::in_directory(&directory);
            let present = Present::read(&files.certificate_file).ok()?;
            // Not the life of the present one: it may have been shortened by the end of its CA.
            let lifetime = match directory.ends_with(ADMINISTRATOR) {
                true => USER_LIFETIME,
                false => PROCESS_LIFETIME,
            };
            let leaf = Leaf {
                lifetime,
                ..present.leaf
            };
            is_due(present.validity, now).then_some(Wanted { directory, leaf })
        })
    }

    fn name_of(&self, directory: &Path) -> String {
        let name = directory.strip_prefix(&self.directory);
        name.unwrap_or(directory).display().to_string()
    }

    /// Creates the folder and waits until no other process writes to it.
    pub(crate) fn lock(&self) -> anyhow::Result<Flock<File>> {
        private::create_dir_all(&self.directory)
            .with_context(|| format!("cannot create {}", self.directory.display()))?;
        let path = self.directory.join("lock");
        let file = File::create(&path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, errno)| anyhow!("cannot lock {}: {errno}", path.display()))
    }

    /// Issues a certificate of a user, which lives a year and is not kept here.
    ///
    /// # Errors
    /// If the CA cannot be read or made.
    pub fn issue_user(&self, user: &Identity) -> anyhow::Result<Issued> {
        let _lock = self.lock()?;
        Ok(self.authorities()?.cluster.issue(&user.leaf())?)
    }

    /// Reads the CAs, or makes them.
    pub(crate) fn authorities(&self) -> anyhow::Result<Authorities> {
        let authority = |name: &str, subject: &str| {
            let [certificate, key] =
                ["crt", "key"].map(|end| self.directory.join(format!("{name}.{end}")));
            Authority::load_or_create(subject, &certificate, &key)
        };
        Ok(Authorities {
            cluster: authority("ca", "setpoint-ca")?,
            etcd: authority("etcd-ca", "setpoint-etcd-ca")?,
        })
    }

    fn wanted(&self, folder: &str, identity: &Identity) -> Wanted {
        Wanted {
            directory: self.directory.join(folder),
            leaf: identity.leaf(),
        }
    }

    /// Returns the folders that may have a certificate.
    fn directories(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(&self.directory).into_iter().flatten();
        let found = found.flatten().map(|entry| entry.path());
        found
            .flat_map(|path| [path.clone(), path.join(ETCD)])
            .collect()
    }
}

/// The CAs of a cluster.
pub(crate) struct Authorities {
    /// That of the cluster.
    pub cluster: Authority,
    /// That of etcd and its clients.
    pub etcd: Authority,
}

impl Authorities {
    /// Returns the one that issues the certificate in this folder.
    fn of(&self, directory: &Path) -> &Authority {
        let name = directory.file_name().and_then(|name| name.to_str());
        match name.map(service_of) {
            Some(ETCD) => &self.etcd,
            _ => &self.cluster,
        }
    }
}

impl Wanted {
    /// Returns whether the folder has such a certificate by this CA, which is not due.
    pub(crate) fn is_present(&self, authority: &Authority) -> bool {
        let files = Files::in_directory(&self.directory);
        let ca = fs::read_to_string(&files.ca_file);
        if Credentials::load(&files).is_err() || ca.ok().as_deref() != Some(authority.certificate())
        {
            return false;
        }
        let present = Present::read(&files.certificate_file);
        present.is_ok_and(|present| {
            let leaf = Leaf {
                lifetime: self.leaf.lifetime,
                ..present.leaf
            };
            leaf == self.leaf && !is_due(present.validity, Timestamp::now())
        })
    }

    pub(crate) fn issue(&self, authority: &Authority) -> anyhow::Result<()> {
        private::create_dir_all(&self.directory)
            .with_context(|| format!("cannot create {}", self.directory.display()))?;
        let files = Files::in_directory(&self.directory);
        write_certificates(&files.ca_file, &[authority.certificate()])?;
        authority.issue(&self.leaf)?.write(&files)?;
        Ok(())
    }
}

/// Returns whether two thirds of the life have passed.
fn is_due(validity: Validity, now: Timestamp) -> bool {
    let life = validity.not_after.duration_since(validity.not_before);
    validity.remaining(now) < life / 3
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::SignedDuration;

    use super::super::ClusterSpec;
    use super::super::StateDir;
    use super::super::topology::stages;
    use super::*;

    struct Fixture {
        _root: tempfile::TempDir,
        processes: Vec<ProcessSpec>,
        pki: Pki,
    }

    impl Fixture {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let state_dir = StateDir::find(root.path(), None);
            let stages = stages(&state_dir, &ClusterSpec::default());
            Self {
                processes: stages.into_iter().flatten().collect(),
                pki: state_dir.pki(),
                _root: root,
            }
        }

        fn ensure(&self) -> usize {
            self.pki.ensure(&self.processes).unwrap()
        }

        /// Returns the user and the groups of each certificate by folder.
        fn users(&self) -> BTreeMap<String, (String, Vec<String>)> {
            let found = self.pki.directories().into_iter().filter_map(|directory| {
                let files = Files::in_directory(&directory);
                let leaf = Present::read(&files.certificate_file).ok()?.leaf;
                Some((self.pki.name_of(&directory), (leaf.name, leaf.groups)))
            });
            found.collect()
        }

        /// Replaces a certificate by one with this time left of its life, which began an hour ago with that of its CA.
        fn age(&self, folder: &str, left: SignedDuration) {
            let directory = self.pki.directory.join(folder);
            let files = Files::in_directory(&directory);
            let leaf = Present::read(&files.certificate_file).unwrap().leaf;
            let authorities = self.pki.authorities().unwrap();
            let authority = authorities.of(&directory);
            let validity = Validity {
                not_before: authority.validity().not_before,
                not_after: Timestamp::now() + left,
            };
            let issued = authority.issue_for(&leaf, validity).unwrap();
            issued.write(&files).unwrap();
        }
    }

    #[test]
    fn each_process_has_an_identity_of_its_own() {
        let fixture = Fixture::new();
        // 13 processes, a gateway as a client of etcd, and the administrator; none for the process of certificates.
        assert_eq!(fixture.ensure(), 15);
        let users = fixture.users();
        let user = |folder: &str| {
            let (user, groups) = &users[folder];
            (user.as_str(), groups.join(","))
        };
        let services = "system:setpoint".to_owned();
        assert_eq!(
            user("gateway-0"),
            ("system:setpoint:gateway", services.clone())
        );
        assert_eq!(
            user("scheduler-1"),
            ("system:setpoint:scheduler", services.clone())
        );
        assert_eq!(
            user("gateway-0/etcd"),
            ("system:setpoint:gateway", services)
        );
        assert_eq!(
            user("node-agent-0"),
            ("system:node:node-0", "system:nodes".to_owned())
        );
        let simulated = "system:setpoint:simulated-nodes";
        assert_eq!(
            user("node-agent-2"),
            (
                "system:setpoint:simulated-nodes:simulated",
                simulated.to_owned()
            )
        );
        assert_eq!(user("admin"), ("system:admin", "system:masters".to_owned()));
        assert!(!users.contains_key("certs-0"));
    }

    #[test]
    fn etcd_and_its_clients_have_a_ca_of_their_own() {
        let fixture = Fixture::new();
        fixture.ensure();
        let ca = |folder: &str| {
            fs::read_to_string(fixture.pki.directory.join(folder).join("ca.crt")).unwrap()
        };
        assert_eq!(ca("etcd-0"), ca("gateway-0/etcd"));
        assert_eq!(ca("gateway-0"), ca("admin"));
        assert_ne!(ca("etcd-0"), ca("gateway-0"));
    }

    #[test]
    fn certificates_are_kept_until_they_are_due_or_their_names_change() {
        let fixture = Fixture::new();
        fixture.ensure();
        assert_eq!(fixture.ensure(), 0);
        fixture.age("gateway-0", SignedDuration::from_mins(31));
        assert_eq!(fixture.ensure(), 0, "more than a third of its life is left");
        fixture.age("gateway-0", SignedDuration::from_mins(29));
        assert_eq!(fixture.ensure(), 1);
        let mut processes = fixture.processes.clone();
        for process in &mut processes {
            let identity = process.identity.take();
            process.identity = identity.map(|identity| match process.service {
                "gateway" => identity.reached_at(["example.com"]),
                _ => identity,
            });
        }
        assert_eq!(fixture.pki.ensure(&processes).unwrap(), 1);
    }

    #[test]
    fn a_renewed_certificate_says_what_the_one_before_said() {
        let fixture = Fixture::new();
        fixture.ensure();
        assert_eq!(fixture.pki.renew_due().unwrap(), Vec::<String>::new());
        let before = fixture.users();
        fixture.age("scheduler-0", SignedDuration::from_mins(-1));
        fixture.age("gateway-0/etcd", SignedDuration::from_mins(1));
        let mut renewed = fixture.pki.renew_due().unwrap();
        renewed.sort();
        assert_eq!(renewed, ["gateway-0/etcd", "scheduler-0"]);
        assert_eq!(fixture.users(), before);
        assert_eq!(fixture.ensure(), 0, "names are the same, too");
    }

    #[test]
    fn a_certificate_by_another_ca_is_replaced() {
        let fixture = Fixture::new();
        let made = fixture.ensure();
        for file in ["ca.crt", "ca.key"] {
            fs::remove_file(fixture.pki.directory.join(file)).unwrap();
        }
        assert_eq!(fixture.ensure(), made - 2, "all but those of etcd");
    }
}
