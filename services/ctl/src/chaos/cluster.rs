//! The cluster that faults are injected into: processes or containers of this machine.

use anyhow::Context as _;

use super::compose::Compose;
use super::fenced::Gateways;
use super::local::Local;
use super::options::{Fault, Options};
use crate::connection::Connection;

/// A cluster of processes or of containers.
pub enum Cluster {
    /// Started by `setpoint up`.
    Local(Local),
    /// Started by compose.
    Compose(Compose),
}

impl Cluster {
    /// Finds the cluster of the options, and a connection to its API.
    ///
    /// # Errors
    /// No such cluster runs here, or it does not support the fault.
    pub async fn open(
        connection: &Connection,
        options: &Options,
    ) -> anyhow::Result<(Self, Connection)> {
        let Some(project) = &options.compose else {
            let local = Local::open(&connection.state_dir)?;
            local.check_supported(options.fault, &options.service)?;
            return Ok((Self::Local(local), connection.clone()));
        };
        // That which compose.yaml writes, unless the user names another.
        let written = connection.state_dir.state().join("compose/kubeconfig");
        let connection = connection.clone().or_kubeconfig(written);
        let credentials = connection.credentials()?;
        let credentials = credentials.context("a cluster of compose.yaml needs credentials")?;
        let compose = Compose::open(project, credentials).await?;
        let connection = match connection.given() {
            Some(_) => connection,
            None => connection.at(compose.published().await?),
        };
        Ok((Self::Compose(compose), connection))
    }

    /// Returns the names of the running instances of a service.
    pub async fn replicas(&self, service: &str) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Local(local) => Ok(local.replicas(service)),
            Self::Compose(compose) => compose.replicas(service).await,
        }
    }

    /// Returns the gateways, whose metrics are read.
    pub async fn gateways(&self) -> anyhow::Result<Gateways> {
        match self {
            Self::Local(local) => local.gateways(),
            Self::Compose(compose) => compose.gateways().await,
        }
    }

    /// Injects a fault into an instance.
    pub async fn inject(&mut self, fault: Fault, name: &str) -> anyhow::Result<()> {
        match self {
            Self::Local(local) => local.inject(fault, name).await,
            Self::Compose(compose) => compose.inject(fault, name).await,
        }
    }

    /// Undoes the current fault, if there is one.
    pub async fn heal(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Local(local) => local.heal().await,
            Self::Compose(compose) => compose.heal().await,
        }
    }
}
