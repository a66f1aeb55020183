//! A cluster that can be broken: processes or containers of this machine.

use std::net::SocketAddr;

use super::compose::Compose;
use super::local::Local;
use super::options::{Fault, Options};
use crate::reach::Reach;

/// Processes or containers.
pub enum Cluster {
    /// Started by `setpoint up`.
    Local(Local),
    /// Started by compose.
    Compose(Compose),
}

impl Cluster {
    /// The cluster that is meant, and the way to its API.
    pub async fn open(reach: &Reach, options: &Options) -> anyhow::Result<(Self, Reach)> {
        let Some(project) = &options.compose else {
            let local = Local::open(&reach.folder)?;
            local.ensure(options.fault, &options.service)?;
            return Ok((Self::Local(local), reach.clone()));
        };
        let compose = Compose::open(project).await?;
        let reach = match reach.given() {
            Some(_) => reach.clone(),
            None => reach.at(compose.published().await?),
        };
        Ok((Self::Compose(compose), reach))
    }

    /// The instances of a service that run.
    pub async fn replicas(&self, service: &str) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Local(local) => Ok(local.replicas(service)),
            Self::Compose(compose) => compose.replicas(service).await,
        }
    }

    /// Where the gateways tell their metrics.
    pub async fn gateways(&self) -> anyhow::Result<Vec<SocketAddr>> {
        match self {
            Self::Local(local) => Ok(local.gateways()),
            Self::Compose(compose) => compose.gateways().await,
        }
    }

    /// Breaks an instance.
    pub async fn inflict(&mut self, fault: Fault, name: &str) -> anyhow::Result<()> {
        match self {
            Self::Local(local) => local.inflict(fault, name).await,
            Self::Compose(compose) => compose.inflict(fault, name).await,
        }
    }

    /// Undoes what is broken, if anything is.
    pub async fn heal(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Local(local) => local.heal().await,
            Self::Compose(compose) => compose.heal().await,
        }
    }
}
