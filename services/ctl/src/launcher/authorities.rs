//! The CAs of a local cluster, and their change.
//!
//! ```text
//!          prepare                 switch                      remove_previous
//! steady ───────────▶ prepared ───────────▶ switched ─────────────────────────▶ steady
//!                     ca-next.{crt,key}     ca-previous.crt, ca-cross.crt
//!                     issues nothing yet,   ca.{crt,key} are the new one;
//!                     and is trusted        the previous one is trusted still
//! ```
//! The key of the previous CA is gone after the switch: it issues nothing more. Its last act is to sign the new CA: who
//! trusts the previous one alone, as kubeconfigs of users do, accepts servers with certificates by the new one until it
//! is removed.

mod keys;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use setpoint_tls::Files;
use setpoint_tls::authority::{Authority, Issued, Leaf, write_certificates};

use keys::Pair;

pub use keys::Keys;

/// The common names of the CAs of the cluster and of etcd. That of a later one ends with the time.
const CLUSTER: &str = "setpoint-ca";
const ETCD: &str = "setpoint-etcd-ca";

/// The stage of the change of a CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// There is one CA.
    Steady,
    /// The next CA is trusted, and issues nothing yet.
    Prepared,
    /// The new CA issues, and the previous one is trusted still.
    Switched,
}

/// The CAs of a cluster.
pub(crate) struct Authorities {
    /// That of processes, nodes and users.
    pub cluster: Issuer,
    /// That of etcd, and of gateways as its clients.
    pub etcd: Issuer,
}

impl Authorities {
    /// Reads the CAs of this folder, and makes those that are missing.
    pub fn load(directory: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            cluster: Issuer::load(directory, "ca", CLUSTER)?,
            etcd: Issuer::load(directory, "etcd-ca", ETCD)?,
        })
    }

    /// Returns the stage of their change, the earlier one if that of one CA has gone on.
    pub fn stage(&self) -> Stage {
        let [one, other] = self.each().map(|issuer| issuer.paths.stage());
        match (one, other) {
            (Stage::Prepared, _) | (_, Stage::Prepared) => Stage::Prepared,
            (Stage::Switched, _) | (_, Stage::Switched) => Stage::Switched,
            _ => Stage::Steady,
        }
    }

    /// Makes the next CAs.
    pub fn prepare(&self) -> anyhow::Result<()> {
        self.each().into_iter().try_for_each(Issuer::prepare)
    }

    /// Lets the next CAs issue.
    pub fn switch(&self) -> anyhow::Result<()> {
        self.each().into_iter().try_for_each(Issuer::switch)
    }

    /// Ends the trust in the previous CAs.
    pub fn remove_previous(&self) -> anyhow::Result<()> {
        let mut paths = self.each().into_iter().map(|issuer| &issuer.paths);
        paths.try_for_each(|paths| {
            remove(&paths.previous)?;
            remove(&paths.cross)
        })
    }

    /// Returns the time since the new CAs issue; zero if the clock was set back since.
    pub fn since_switch(&self) -> anyhow::Result<Duration> {
        let path = &self.cluster.paths.previous;
        let found = fs::metadata(path).and_then(|found| found.modified());
        let switched = found.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(switched.elapsed().unwrap_or_default())
    }

    fn each(&self) -> [&Issuer; 2] {
        [&self.cluster, &self.etcd]
    }

    /// Returns the CAs with their keys, for another machine.
    ///
    /// # Errors
    /// If they are being changed, or a file cannot be read.
    pub fn keys(&self) -> anyhow::Result<Keys> {
        if self.stage() != Stage::Steady {
            bail!("the CAs are being changed; `setpoint certs --remove-old-ca` ends that");
        }
        Ok(Keys {
            cluster: self.cluster.paths.read()?,
            etcd: self.etcd.paths.read()?,
        })
    }
}

/// A CA that issues certificates, and those that are trusted beside it.
pub(crate) struct Issuer {
    authority: Authority,
    /// The next CA or the previous one, in PEM.
    other: Option<String>,
    /// The certificate of this CA by the previous one, in PEM.
    cross: Option<String>,
    subject: &'static str,
    paths: Paths,
}

impl Issuer {
    fn load(directory: &Path, name: &str, subject: &'static str) -> anyhow::Result<Self> {
        let paths = Paths::new(directory, name);
        if paths.next.exists() && paths.previous.exists() {
            // A switch was interrupted.
            paths.install()?;
        }
        let authority = Authority::load_or_create(subject, &paths.certificate, &paths.key)?;
        let other = match paths.stage() {
            Stage::Steady => None,
            Stage::Prepared => read(&paths.next)?,
            Stage::Switched => read(&paths.previous)?,
        };
        Ok(Self {
            authority,
            other,
            cross: read(&paths.cross)?,
            subject,
            paths,
        })
    }

    /// Returns the CA itself.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Returns the certificates of the CAs to trust, in PEM.
    pub fn bundle(&self) -> String {
        let own = [self.authority.certificate()].into_iter();
        own.chain(self.other.as_deref()).collect()
    }

    /// Issues a certificate. Its CAs are those to trust.
    pub fn issue(&self, leaf: &Leaf) -> anyhow::Result<Issued> {
        let issued = self.authority.issue(leaf)?;
        Ok(self.completed(issued))
    }

    /// Adds to a certificate those that clients need which trust the previous CA alone.
    fn completed(&self, mut issued: Issued) -> Issued {
        issued.ca = self.bundle();
        issued.certificate.extend(self.cross.as_deref());
        issued
    }

    /// Writes the certificates of the CAs to trust.
    pub fn write_bundle(&self, files: &Files) -> anyhow::Result<()> {
        Ok(write_certificates(&files.ca_file, &[&self.bundle()])?)
    }

    fn prepare(&self) -> anyhow::Result<()> {
        if self.paths.stage() == Stage::Steady {
            // Another name: it tells the two apart where only names are shown.
            let name = format!("{}-{}", self.subject, Timestamp::now().as_second());
            Authority::create(&name)?.write(&self.paths.next, &self.paths.next_key)?;
        }
        Ok(())
    }

    fn switch(&self) -> anyhow::Result<()> {
        if self.paths.stage() == Stage::Prepared {
            self.sign_next()?;
            self.paths.install()?;
        }
        Ok(())
    }

    /// Signs the next CA by this one, which is the previous one from now on.
    pub fn sign_next(&self) -> anyhow::Result<()> {
        let paths = &self.paths;
        let next = Authority::load(&paths.next, &paths.next_key)?;
        let cross = self.authority.cross_sign(&next)?;
        write_certificates(&paths.cross, &[&cross])?;
        Ok(write_certificates(
            &paths.previous,
            &[self.authority.certificate()],
        )?)
    }
}

/// The files of a CA.
struct Paths {
    certificate: PathBuf,
    key: PathBuf,
    next: PathBuf,
    next_key: PathBuf,
    previous: PathBuf,
    cross: PathBuf,
}

impl Paths {
    fn new(directory: &Path, name: &str) -> Self {
        let file = |end: &str| directory.join(format!("{name}{end}"));
        Self {
            certificate: file(".crt"),
            key: file(".key"),
            next: file("-next.crt"),
            next_key: file("-next.key"),
            previous: file("-previous.crt"),
            cross: file("-cross.crt"),
        }
    }

    fn stage(&self) -> Stage {
        match (self.next.exists(), self.previous.exists()) {
            (_, true) => Stage::Switched,
            (true, false) => Stage::Prepared,
            (false, false) => Stage::Steady,
        }
    }

    fn read(&self) -> anyhow::Result<Pair> {
        let text =
            |path: &Path| read(path)?.with_context(|| format!("{} is missing", path.display()));
        Ok(Pair {
            certificate: text(&self.certificate)?,
            key: text(&self.key)?,
        })
    }

    /// Puts the next CA in the place of the CA. May be repeated after a crash.
    fn install(&self) -> anyhow::Result<()> {
        let next = Authority::load(&self.next, &self.next_key)?;
        next.write(&self.certificate, &self.key)?;
        remove(&self.next)?;
        remove(&self.next_key)
    }
}

fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => {
            Ok(Some(read.with_context(|| {
                format!("cannot read {}", path.display())
            })?))
        }
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
