//! Several controllers in one process.

use std::process::ExitCode;

use futures::future::{BoxFuture, try_join_all};
use setpoint_host::{self as host, Host};

use crate::Replica;
use crate::replica::INFORMERS;
use crate::runtime::Settings;

/// A controller that a process can host, alone or beside others. Each has a Lease, metrics and a writer of its own name;
/// the connection, informers of the same view and the decision log are the process's.
#[derive(Clone, Copy)]
pub struct Hosted {
    /// Its name, such as `replicaset-controller`.
    pub name: &'static str,
    /// The kind of the objects that it reconciles.
    pub resource: &'static str,
    /// Makes the controller and runs it until the process shuts down; see [`Replica::run`].
    pub run: fn(Replica, Settings) -> BoxFuture<'static, anyhow::Result<()>>,
}

impl Hosted {
    /// Runs the process of a service that is this controller alone.
    #[tokio::main(worker_threads = 2)]
    pub async fn run_process(self) -> ExitCode {
        host::run(self.name, |host, settings| self.start(host, settings)).await
    }

    /// Runs the controller as a service of its own until shutdown.
    ///
    /// # Errors
    /// If the gateway's address is no URI, or the election's settings cannot work.
    pub async fn start(self, host: Host, settings: Settings) -> anyhow::Result<()> {
        let service = host.service();
        let replica = Replica::join(host, &settings.gateway, service, self.resource)?;
        (self.run)(replica, settings).await
    }

    /// Runs several controllers with the same settings until shutdown. `run` runs one of them: by [`Self::run`], unless it also
    /// has settings of its own.
    ///
    /// # Errors
    /// As [`Self::start`]; then all of them end.
    pub async fn start_all(
        controllers: Vec<Self>,
        host: Host,
        settings: Settings,
        run: impl Fn(Self, Replica, Settings) -> BoxFuture<'static, anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let service = host.service();
        let process = Replica::join(host, &settings.gateway, service, "")?;
        let start = |hosted: Self| {
            let replica = process.hosting(hosted.name, hosted.resource);
            run(hosted, replica, settings.clone())
        };
        let running: Vec<_> = controllers.into_iter().map(start).collect();
        // From now on, each of them has a check of its own.
        process.host.health().check(INFORMERS).pass();
        try_join_all(running).await?;
        process.leave().await;
        Ok(())
    }
}
