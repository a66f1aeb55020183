//! The volumes of the containers of compose.yaml, each a folder here.
//!
//! ```text
//! pki/                both CAs, and the administrator's certificate; no other container has this volume
//! <service>/          ca.crt, tls.crt and tls.key of all replicas of a service, which follow them
//! gateway/etcd/       the same, for connections to etcd
//! front/ca.crt        for checks of the gateways
//! node-agent/         see `nodes`
//! state/compose/kubeconfig
//! ```
//! Keys can be read by the group of this process, which is that of the services.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use setpoint_host::private;
use setpoint_model::users::{self, MONITORING};
use setpoint_tls::Files;
use setpoint_tls::authority::write_certificates;

use super::nodes::Nodes;
use crate::launcher::proxy::PROXY;
use crate::launcher::topology::SERVICES;
use crate::launcher::{
    Authorities, Identity, Issuer, Kubeconfig, LOOPBACK, PROCESS_LIFETIME, Pki, Wanted,
};

/// The mode of keys.
const KEY: u32 = 0o640;
/// The load balancer, which knows gateways by their CA and passes connections through.
const FRONT: &str = "front";

/// The volumes.
pub struct Volumes {
    /// The folder of all volumes.
    pub root: PathBuf,
    /// The address of the API in the kubeconfig.
    pub server: String,
    /// Further DNS names and IPs of the gateways.
    pub names: Vec<String>,
    /// The file or folder whose owner gets the kubeconfig.
    pub owner_of: Option<PathBuf>,
}

impl Volumes {
    /// Makes what is missing, due for renewal, by another CA, or with other names. Returns what it has made.
    ///
    /// # Errors
    /// If a file cannot be read or written, or a name cannot be on a certificate.
    pub fn ensure(&self) -> anyhow::Result<Vec<String>> {
        let pki = self.pki();
        let _lock = pki.lock()?;
        let authorities = pki.authorities()?;
        self.nodes()
            .prepare()
            .context("cannot prepare the volume of node agents")?;
        let mut made = Vec::new();
        let administrator = self.administrator();
        if !administrator.is_present(&authorities.cluster) {
            administrator.issue(&authorities.cluster)?;
        }
        for (wanted, issuer) in self.wanted(&authorities) {
            if !wanted.is_present(issuer) {
                issue(&wanted, issuer)?;
                made.push(self.name_of(&wanted.directory));
            }
        }
        let ca = authorities.cluster.bundle();
        if fs::read_to_string(self.ca_of_front()).ok().as_ref() != Some(&ca) {
            write_certificates(&self.ca_of_front(), &[&ca])?;
        }
        if self.write_kubeconfig()? {
            made.push("kubeconfig".to_owned());
        }
        Ok(made)
    }

    /// Returns the name of something that has not been made.
    ///
    /// # Errors
    /// If the CAs cannot be read.
    pub fn missing(&self) -> anyhow::Result<Option<String>> {
        let pki = self.pki();
        let _lock = pki.lock()?;
        let authorities = pki.authorities()?;
        let mut wanted = self.wanted(&authorities);
        let missing = wanted.find(|(wanted, issuer)| !wanted.is_present(issuer));
        let missing = missing.map(|(wanted, _)| self.name_of(&wanted.directory));
        let files = [self.ca_of_front(), self.kubeconfig()];
        let mut files = files.iter().filter(|file| !file.exists());
        Ok(missing.or_else(|| files.next().map(|file| self.name_of(file))))
    }

    /// Returns whether a node has asked for a certificate and has none yet.
    pub fn is_asked(&self) -> bool {
        self.nodes().is_asked()
    }

    fn pki(&self) -> Pki {
        Pki::new(self.root.join("pki"))
    }

    fn nodes(&self) -> Nodes {
        Nodes::new(&self.root)
    }

    fn ca_of_front(&self) -> PathBuf {
        Files::in_directory(&self.root.join(FRONT)).ca_file
    }

    fn kubeconfig(&self) -> PathBuf {
        self.root.join("state/compose/kubeconfig")
    }

    fn name_of(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .display()
            .to_string()
    }

    fn administrator(&self) -> Wanted {
        Wanted {
            directory: self.root.join("pki/admin"),
            leaf: Identity::administrator().leaf(),
        }
    }

    /// Returns the certificate that each container should have, and the CA that issues it.
    fn wanted<'a>(
        &self,
        authorities: &'a Authorities,
    ) -> impl Iterator<Item = (Wanted, &'a Issuer)> {
        let services = SERVICES
            .into_iter()
            .filter(|service| *service != "node-agent")
            .chain([PROXY]);
        let services =
            services.map(|service| (service, &authorities.cluster, self.service(service)));
        let client_of_etcd = Identity::service("gateway");
        let others = [
            ("prometheus", &authorities.cluster, prometheus()),
            ("gateway/etcd", &authorities.etcd, client_of_etcd),
            (
                "etcd",
                &authorities.etcd,
                reached_as("etcd", Identity::etcd()),
            ),
        ];
        let all = services.chain(others).map(|(folder, issuer, identity)| {
            let wanted = Wanted {
                directory: self.root.join(folder),
                leaf: identity.leaf(),
            };
            (wanted, issuer)
        });
        let nodes = self.nodes().wanted().collect::<Vec<_>>().into_iter();
        all.chain(nodes.map(|wanted| (wanted, &authorities.cluster)))
    }

    /// Returns the identity of all replicas of a service. The name of a scaled service is that of each replica.
    fn service(&self, service: &str) -> Identity {
        let identity = reached_as(service, Identity::service(service));
        match service {
            "gateway" => identity.reached_at([FRONT]).api(&self.names),
            _ => identity,
        }
    }

    /// Writes the kubeconfig, unless it is there. Returns whether it has.
    fn write_kubeconfig(&self) -> anyhow::Result<bool> {
        let path = self.kubeconfig();
        let files = Files::in_directory(&self.administrator().directory);
        let kubeconfig = Kubeconfig::read(self.server.clone(), &files)?;
        if fs::read_to_string(&path).is_ok_and(|present| present == kubeconfig.text()) {
            return Ok(false);
        }
        let folder = self.root.join("state/compose");
        private::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let new = path.with_extension("new");
        kubeconfig.write(&new)?;
        self.give(&new);
        // Those that the engine has made are of root, as this process is.
        [self.root.join("state"), folder]
            .iter()
            .filter(|path| is_own(path))
            .for_each(|path| self.give(path));
        fs::rename(&new, &path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(true)
    }

    /// Gives a file to the owner of the checkout, if that is possible.
    fn give(&self, path: &Path) {
        let Some(owner) = self.owner_of.as_ref().and_then(|of| fs::metadata(of).ok()) else {
            return;
        };
        if let Err(error) = chown(path, Some(owner.uid()), Some(owner.gid())) {
            eprintln!(
                "{} remains one of this process's user: {error}",
                path.display()
            );
        }
    }
}

/// Returns whether the path is one of root.
fn is_own(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.uid() == 0)
}

/// Returns the identity with the names of a container.
fn reached_as(service: &str, identity: Identity) -> Identity {
    identity.reached_at([service, "localhost", LOOPBACK, "::1"])
}

/// Returns the identity of Prometheus, which may read metrics.
fn prometheus() -> Identity {
    Identity {
        lifetime: PROCESS_LIFETIME,
        ..Identity::user(&users::of_service("prometheus"), &[MONITORING])
    }
}

/// Issues a certificate. The files appear once the group may read the key, so that a service that follows them reads
/// all of them.
fn issue(wanted: &Wanted, issuer: &Issuer) -> anyhow::Result<()> {
    let new = wanted.directory.join("new");
    fs::create_dir_all(&new).with_context(|| format!("cannot create {}", new.display()))?;
    let (made, files) = (
        Files::in_directory(&new),
        Files::in_directory(&wanted.directory),
    );
    issuer.write_bundle(&made)?;
    issuer.issue(&wanted.leaf)?.write(&made)?;
    fs::set_permissions(&made.key_file, Permissions::from_mode(KEY))?;
    for (from, to) in [
        (made.ca_file, files.ca_file),
        (made.key_file, files.key_file),
        (made.certificate_file, files.certificate_file),
    ] {
        fs::rename(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
    }
    let _ = fs::remove_dir(&new);
    Ok(())
}
