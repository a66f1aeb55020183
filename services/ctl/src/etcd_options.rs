//! The options of commands that speak to etcd itself.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use setpoint_store::etcd::Settings;
use setpoint_tls::{Credentials, Files};

use crate::advice::advised;
use crate::control_plane;
use crate::launcher::{ClusterSpec, Component, Pki, RunningProcess, StateDir, address, topology};

/// The etcd of another cluster than the local one.
#[derive(Args, Clone, Debug)]
#[group(skip)] // one of this name is that of each command
pub struct Options {
    /// Client URL of etcd, if it is another one than that of the local cluster; may be repeated
    #[arg(long, value_name = "URL")]
    etcd: Vec<String>,
    /// File with the certificates of the CAs of etcd, for URLs of HTTPS
    #[arg(long, value_name = "FILE", requires_all = ["etcd", "etcd_certificate_file", "etcd_key_file"])]
    etcd_ca_file: Option<PathBuf>,
    /// File with a certificate by which etcd recognises a client
    #[arg(long, value_name = "FILE", requires = "etcd_ca_file")]
    etcd_certificate_file: Option<PathBuf>,
    /// File with the private key of that certificate
    #[arg(long, value_name = "FILE", requires = "etcd_ca_file")]
    etcd_key_file: Option<PathBuf>,
}

impl Options {
    /// Returns the connection to the etcd that was named; `None` if none was.
    ///
    /// # Errors
    /// The files of its certificates cannot be read.
    pub fn named(&self) -> anyhow::Result<Option<Settings>> {
        if self.etcd.is_empty() {
            return Ok(None);
        }
        let files = [
            &self.etcd_ca_file,
            &self.etcd_certificate_file,
            &self.etcd_key_file,
        ];
        let files = match files {
            [Some(ca_file), Some(certificate_file), Some(key_file)] => Some(Files {
                ca_file: ca_file.clone(),
                certificate_file: certificate_file.clone(),
                key_file: key_file.clone(),
            }),
            _ => None,
        };
        let credentials = files.as_ref().map(Credentials::load).transpose();
        Ok(Some(Settings {
            endpoints: self.etcd.clone(),
            credentials: credentials.context("cannot use the certificate for etcd")?,
            ..Settings::default()
        }))
    }
}

/// Returns the connection to the etcd of the local cluster, which runs, or of that which parts have joined.
///
/// # Errors
/// It does not run, or has no certificates.
pub fn local(state_dir: &StateDir, spec: &ClusterSpec) -> anyhow::Result<Settings> {
    if let Some(component) = Component::all(state_dir)?.first() {
        return control_plane::etcd(state_dir, &component.plane);
    }
    let etcd = topology::etcd(state_dir, spec);
    let Some(port) = RunningProcess::find(state_dir, &etcd.name).and_then(|etcd| etcd.port())
    else {
        return Err(advised(
            "etcd does not run; start the cluster with `setpoint up`, or name another etcd with --etcd",
            "setpoint start, or setpoint up",
        ));
    };
    let gateway = topology::gateway(state_dir, spec, 0, &address(port));
    let files = state_dir.pki().etcd_client(&gateway.name);
    Ok(Settings {
        endpoints: vec![address(port)],
        credentials: Some(Pki::credentials(&files)?),
        ..Settings::default()
    })
}
