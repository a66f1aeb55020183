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

mod change;
mod wanted;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use setpoint_host::private;
use setpoint_tls::authority::{Issued, Leaf, Present};
use setpoint_tls::{Credentials, Files};

use super::authorities::{Authorities, Issuer, Keys, Stage};
use super::identity::{Identity, PROCESS_LIFETIME, USER_LIFETIME};
use super::topology::{ProcessSpec, service_of};
use wanted::is_due;

pub(crate) use wanted::Wanted;

/// The folder of the administrator's certificate.
const ADMINISTRATOR: &str = "admin";
/// The folder of a gateway's certificate for etcd, in that of the gateway.
const ETCD: &str = "etcd";

/// The certificates of a cluster.
#[derive(Clone, Debug)]
pub struct Pki {
    directory: PathBuf,
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
        let authorities = self.authorities()?;
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
        self.authorities()?.cluster.issue(&user.leaf())
    }

    /// Returns credentials for etcd that are not kept here.
    ///
    /// # Errors
    /// If the CA of etcd cannot be read or made.
    pub fn issue_for_etcd(&self) -> anyhow::Result<Credentials> {
        let _lock = self.lock()?;
        let issued = self.authorities()?.etcd.issue(&Identity::etcd().leaf())?;
        let credentials = Credentials::from_pem(&issued.ca, &issued.certificate, &issued.key);
        credentials.context("the certificate for etcd cannot be used")
    }

    /// Returns the CAs with their keys, for another machine of the cluster.
    ///
    /// # Errors
    /// If they are being changed, or cannot be read.
    pub fn keys(&self) -> anyhow::Result<Keys> {
        let _lock = self.lock()?;
        self.authorities()?.keys()
    }

    /// Writes the CAs of a cluster on another machine of it.
    ///
    /// # Errors
    /// If there are others, or a file cannot be written.
    pub fn install(&self, keys: &Keys) -> anyhow::Result<()> {
        let _lock = self.lock()?;
        keys.write(&self.directory)
    }

    /// Removes all of them. No process may use them.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn remove(&self) -> anyhow::Result<()> {
        fs::remove_dir_all(&self.directory)
            .with_context(|| format!("cannot delete {}", self.directory.display()))
    }

    /// Reads the CAs, or makes them.
    pub(crate) fn authorities(&self) -> anyhow::Result<Authorities> {
        Authorities::load(&self.directory)
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

#[cfg(test)]
mod tests;
