//! `setpoint kubeconfig`: makes a client certificate for a user of the local cluster.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::advice::advised;
use crate::launcher::{ClusterSpec, Component, Identity, Joining, Kubeconfig, StateDir, address};

/// Options of `setpoint kubeconfig`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Name of the user, as roles and bindings name it
    #[arg(long, value_name = "NAME")]
    user: String,
    /// Group of the user; may be repeated
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// File to write, which only its owner may read [default: the standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes a kubeconfig with a new certificate. It is valid for a year, and nothing takes it back earlier.
pub fn kubeconfig(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    let gateway = Component::read(state_dir, Joining::Gateway)?;
    let spec = match gateway {
        Some(gateway) => Some(gateway.plane.spec),
        None => ClusterSpec::load(state_dir)?,
    };
    let Some(spec) = spec else {
        let place = state_dir.shown(state_dir.state());
        return Err(advised(
            format!("no cluster runs in {place}"),
            "./deploy/up",
        ));
    };
    let groups: Vec<_> = options.groups.iter().map(String::as_str).collect();
    let user = Identity::user(&options.user, &groups);
    let user = state_dir.pki().issue_user(&user)?;
    let kubeconfig = Kubeconfig::new(address(spec.gateways[0]), user);
    match &options.output {
        Some(path) => kubeconfig.write(path)?,
        None => print!("{}", kubeconfig.text()),
    }
    Ok(ExitCode::SUCCESS)
}
