//! The certificates of a local cluster: two CAs, and a certificate for each process and for the administrator.
//!
//! ```text
//! pki/ca.crt, ca.key                  the CA of the cluster
//! pki/etcd-ca.crt, etcd-ca.key        the CA of etcd, by which it knows gateways
//! pki/ca-next.crt, …                  during a change of the CAs (`authorities`)
//! pki/<process>/ca.crt, tls.crt, tls.key
//! pki/gateway-<n>/etcd/…              the certificate that a gateway presents to etcd
//! pki/admin/…                         the administrator's
//! ```
//! Only the user of the cluster may enter the folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use setpoint_host::private;
use setpoint_tls::authority::{Issued, Leaf, Present};
use setpoint_tls::{Credentials, Files};

use super::authorities::{Authorities, Issuer, Stage};
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
struct Wanted {
    directory: PathBuf,
    leaf: Leaf,
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
        let authorities = Authorities::load(&self.directory)?;
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
            let issuer = authorities.of(&one.directory);
            if !one.is_present(issuer) {
                one.issue(issuer)?;
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
        let authorities = Authorities::load(&self.directory)?;
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
        let present = self.present();
        present.filter_map(move |(wanted, present)| is_due(&present, now).then_some(wanted))
    }

    /// Returns all certificates that there are, and what may take the place of each.
    fn present(&self) -> impl Iterator<Item = (Wanted, Present)> {
        self.directories().into_iter().filter_map(|directory| {
            let files = Files::in_directory(&directory);
            let present = Present::read(&files.certificate_file).ok()?;
            // Not the life of the present one: it may have been shortened by the end of its CA.
            let lifetime = match directory.ends_with(ADMINISTRATOR) {
                true => USER_LIFETIME,
                false => PROCESS_LIFETIME,
            };
            let leaf = Leaf {
                lifetime,
                ..present.leaf.clone()
            };
            Some((Wanted { directory, leaf }, present))
        })
    }

    /// Issues all certificates again. Those of processes live for `lifetime` if one is given.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn reissue(&self, lifetime: Option<Duration>) -> anyhow::Result<usize> {
        let _lock = self.lock()?;
        let authorities = Authorities::load(&self.directory)?;
        self.reissue_by(&authorities, lifetime)
    }

    fn reissue_by(
        &self,
        authorities: &Authorities,
        lifetime: Option<Duration>,
    ) -> anyhow::Result<usize> {
        let mut made = 0;
        for (mut wanted, _) in self.present() {
            if let Some(lifetime) = lifetime.filter(|_| !wanted.directory.ends_with(ADMINISTRATOR))
            {
                wanted.leaf.lifetime = lifetime;
            }
            wanted.issue(authorities.of(&wanted.directory))?;
            made += 1;
        }
        Ok(made)
    }

    /// Returns the stage of a change of the CAs.
    ///
    /// # Errors
    /// If a CA cannot be read or made.
    pub fn stage(&self) -> anyhow::Result<Stage> {
        let _lock = self.lock()?;
        Ok(Authorities::load(&self.directory)?.stage())
    }

    /// Makes the next CAs, unless there are some, and lets all processes trust them.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn prepare_authorities(&self) -> anyhow::Result<()> {
        let _lock = self.lock()?;
        Authorities::load(&self.directory)?.prepare()?;
        self.write_bundles()
    }

    /// Lets the next CAs issue, which all processes must trust by now, and issues all certificates again. Returns their
    /// number.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn switch_authorities(&self) -> anyhow::Result<usize> {
        let _lock = self.lock()?;
        Authorities::load(&self.directory)?.switch()?;
        self.reissue_by(&Authorities::load(&self.directory)?, None)
    }

    /// Ends the trust in the previous CAs, after certificates that are still by them were issued again.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn remove_previous_authorities(&self) -> anyhow::Result<()> {
        let _lock = self.lock()?;
        let authorities = Authorities::load(&self.directory)?;
        for (wanted, present) in self.present() {
            let issuer = authorities.of(&wanted.directory);
            if !present.is_by(issuer.authority()) {
                wanted.issue(issuer)?;
            }
        }
        authorities.remove_previous()?;
        self.write_bundles()
    }

    /// Writes the CAs to trust beside each certificate.
    fn write_bundles(&self) -> anyhow::Result<()> {
        let authorities = Authorities::load(&self.directory)?;
        let mut present = self.present();
        present.try_for_each(|(wanted, _)| {
            let files = Files::in_directory(&wanted.directory);
            authorities.of(&wanted.directory).write_bundle(&files)
        })
    }

    fn name_of(&self, directory: &Path) -> String {
        let name = directory.strip_prefix(&self.directory);
        name.unwrap_or(directory).display().to_string()
    }

    /// Creates the folder and waits until no other process writes to it.
    fn lock(&self) -> anyhow::Result<Flock<File>> {
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
        Authorities::load(&self.directory)?
            .cluster
            .issue(&user.leaf())
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

impl Authorities {
    /// Returns the one that issues the certificate in this folder.
    fn of(&self, directory: &Path) -> &Issuer {
        let name = directory.file_name().and_then(|name| name.to_str());
        match name.map(service_of) {
            Some(ETCD) => &self.etcd,
            _ => &self.cluster,
        }
    }
}

impl Wanted {
    /// Returns whether the folder has such a certificate by this CA, which is not due.
    fn is_present(&self, issuer: &Issuer) -> bool {
        let files = Files::in_directory(&self.directory);
        let ca = fs::read_to_string(&files.ca_file);
        if Credentials::load(&files).is_err() || ca.ok() != Some(issuer.bundle()) {
            return false;
        }
        let present = Present::read(&files.certificate_file);
        present.is_ok_and(|present| {
            let leaf = Leaf {
                lifetime: self.leaf.lifetime,
                ..present.leaf.clone()
            };
            let is_due = is_due(&present, Timestamp::now());
            leaf == self.leaf && !is_due && present.is_by(issuer.authority())
        })
    }

    fn issue(&self, issuer: &Issuer) -> anyhow::Result<()> {
        private::create_dir_all(&self.directory)
            .with_context(|| format!("cannot create {}", self.directory.display()))?;
        let files = Files::in_directory(&self.directory);
        issuer.write_bundle(&files)?;
        issuer.issue(&self.leaf)?.write(&files)?;
        Ok(())
    }
}

/// Returns whether two thirds of the life have passed, without the time before it was issued.
fn is_due(present: &Present, now: Timestamp) -> bool {
    let third = present.leaf.lifetime / 3;
    let left = Duration::try_from(present.validity.remaining(now));
    left.unwrap_or_default() <= third
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::SignedDuration;
    use setpoint_tls::Validity;
    use setpoint_tls::authority::Authority;

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
            let fixture = Self {
                processes: stages.into_iter().flatten().collect(),
                pki: state_dir.pki(),
                _root: root,
            };
            let _lock = fixture.pki.lock().unwrap();
            let made = Timestamp::now() - SignedDuration::from_hours(5);
            for name in ["ca", "etcd-ca"] {
                let authority = Authority::create_at(name, made).unwrap();
                let file = |end| fixture.pki.directory.join(format!("{name}.{end}"));
                authority.write(&file("crt"), &file("key")).unwrap();
            }
            fixture
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

        /// Replaces a certificate by one with this time left of a life of three hours.
        fn age(&self, folder: &str, left: SignedDuration) {
            let directory = self.pki.directory.join(folder);
            let files = Files::in_directory(&directory);
            let leaf = Present::read(&files.certificate_file).unwrap().leaf;
            let authorities = Authorities::load(&self.pki.directory).unwrap();
            let authority = authorities.of(&directory).authority();
            let not_after = Timestamp::now() + left;
            let validity = Validity {
                // An hour before it was issued.
                not_before: not_after - SignedDuration::from_hours(4),
                not_after,
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
        fixture.age("gateway-0", SignedDuration::from_mins(61));
        assert_eq!(fixture.ensure(), 0, "more than a third of its life is left");
        fixture.age("gateway-0", SignedDuration::from_mins(59));
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

    /// Returns the certificates of the CAs that a process trusts.
    fn trusted(fixture: &Fixture, folder: &str) -> usize {
        let file = fixture.pki.directory.join(folder).join("ca.crt");
        let text = fs::read_to_string(file).unwrap();
        text.matches("BEGIN CERTIFICATE").count()
    }

    #[test]
    fn a_change_of_the_cas_goes_on_where_it_was_interrupted() {
        let fixture = Fixture::new();
        let made = fixture.ensure();
        let pki = &fixture.pki;
        let old = fs::read_to_string(pki.directory.join("ca.crt")).unwrap();
        let leaf = pki.directory.join("gateway-0").join("tls.crt");
        let before = fs::read(&leaf).unwrap();
        for _ in 0..2 {
            pki.prepare_authorities().unwrap();
            assert_eq!(pki.stage().unwrap(), Stage::Prepared);
        }
        assert_eq!(
            fs::read(&leaf).unwrap(),
            before,
            "nothing is by the next CA"
        );
        assert_eq!(fixture.ensure(), 0);
        for folder in ["gateway-0", "gateway-0/etcd", "etcd-0", "admin"] {
            assert_eq!(trusted(&fixture, folder), 2, "{folder}");
        }
        // As if the switch had ended before the next CA was installed.
        let cross = pki.directory.join("ca-cross.crt");
        Authorities::load(&pki.directory)
            .unwrap()
            .cluster
            .sign_next()
            .unwrap();
        assert!(cross.exists());
        assert_eq!(pki.switch_authorities().unwrap(), made);
        assert_eq!(pki.stage().unwrap(), Stage::Switched);
        assert_ne!(
            fs::read_to_string(pki.directory.join("ca.crt")).unwrap(),
            old
        );
        for left in ["ca-next.crt", "ca-next.key", "etcd-ca-next.key"] {
            assert!(!pki.directory.join(left).exists(), "{left}");
        }
        assert_eq!(fixture.ensure(), 0);
        assert_eq!(trusted(&fixture, "gateway-0"), 2);

        pki.remove_previous_authorities().unwrap();
        assert_eq!(pki.stage().unwrap(), Stage::Steady);
        assert_eq!(trusted(&fixture, "gateway-0"), 1);
        assert_eq!(trusted(&fixture, "etcd-0"), 1);
        assert_eq!(fixture.ensure(), 0);
    }
}
