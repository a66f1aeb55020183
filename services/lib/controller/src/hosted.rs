//! Several controllers in one process.

use std::process::ExitCode;

use futures::future::{BoxFuture, try_join_all};
use setpoint_host::settings::{Error, Extension, Layers, Merged};
use setpoint_host::{self as host, Host};

use crate::Replica;
use crate::replica::INFORMERS;
use crate::runtime::Settings;

/// A controller that a process can host, alone or beside others. Each has a user (`system:setpoint:<name>`), a Lease,
/// metrics and a writer of its own name; the connection, informers of the same view, which read as the user of the
/// process, and the decision log are the process's.
///
/// `S` are the settings of the controller itself, beside those that every controller has.
///
/// ```
/// use setpoint_controller::runtime::Settings;
/// use setpoint_controller::{Hosted, Replica};
/// use setpoint_proto::Resource as _;
/// use setpoint_proto::core::ConfigMap;
///
/// pub const CONTROLLER: Hosted = Hosted {
///     name: "mirror-controller",
///     resource: ConfigMap::RESOURCE,
///     run: |replica, settings, ()| Box::pin(run(replica, settings)),
/// };
///
/// async fn run(replica: Replica, settings: Settings) -> anyhow::Result<()> {
///     // let controller = replica.controller(Mirrors { … }).for_(replica.informer());
///     // replica.run(controller, settings).await
/// #   Ok(())
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Hosted<S = ()> {
    /// Its name, such as `replicaset-controller`.
    pub name: &'static str,
    /// The kind of the objects that it reconciles.
    pub resource: &'static str,
    /// Makes the controller and runs it until the process shuts down; see [`Replica::run`].
    pub run: fn(Replica, Settings, S) -> BoxFuture<'static, anyhow::Result<()>>,
}

impl Hosted {
    /// Runs the process of a service that is this controller alone.
    pub fn run_process(self) -> ExitCode {
        self.run_process_with("")
    }
}

impl<S: host::Settings> Hosted<S> {
    /// Returns it with its own settings.
    fn with(&self, own: S) -> Configured {
        let run = self.run;
        Configured {
            name: self.name,
            resource: self.resource,
            run: Box::new(move |replica, settings| run(replica, settings, own)),
        }
    }

    /// Runs the process of a service that is this controller alone, with its own settings in the table of this name.
    #[tokio::main(worker_threads = 2)]
    pub async fn run_process_with(self, table: &'static str) -> ExitCode {
        let own = Own {
            controller: &self,
            table,
        };
        host::run_with(self.name, own, |host, settings, controller| {
            controller.start(host, settings)
        })
        .await
    }
}

/// A [`Hosted`] controller, whatever the type of its settings.
pub trait AnyHosted: Send + Sync {
    /// Returns its name, such as `replicaset-controller`.
    fn name(&self) -> &'static str;
    /// Adds its own settings, if it has any, as the table of this name.
    fn declare(&self, table: &str, layers: &mut Layers);
    /// Reads its own settings from the table of this name.
    ///
    /// # Errors
    /// The first value that is not valid, in one line.
    fn configure(&self, table: &str, merged: &Merged) -> Result<Configured, Error>;
    /// Returns it with the defaults of its own settings.
    fn with_defaults(&self) -> Configured;
    /// Returns the template of the settings file of its process, with its own settings in the table of this name.
    fn template(&self, table: &'static str) -> String;
}

impl<S: host::Settings> AnyHosted for Hosted<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn declare(&self, table: &str, layers: &mut Layers) {
        layers.table::<S>(table);
    }

    fn configure(&self, table: &str, merged: &Merged) -> Result<Configured, Error> {
        Ok(self.with(merged.table::<S>(table)?))
    }

    fn with_defaults(&self) -> Configured {
        self.with(S::default())
    }

    fn template(&self, table: &'static str) -> String {
        let own = Own {
            controller: self,
            table,
        };
        host::settings::template::<Settings>(self.name, &own)
    }
}

/// Reads the settings of a controller that has a process of its own.
struct Own<'a> {
    controller: &'a dyn AnyHosted,
    table: &'static str,
}

impl Extension for Own<'_> {
    type Settings = Configured;

    fn declare(&self, layers: &mut Layers) {
        self.controller.declare(self.table, layers);
    }

    fn read(&self, merged: &Merged) -> Result<Configured, Error> {
        self.controller.configure(self.table, merged)
    }
}

type Run = dyn FnOnce(Replica, Settings) -> BoxFuture<'static, anyhow::Result<()>> + Send;

/// A controller with its own settings.
pub struct Configured {
    /// Its name, such as `replicaset-controller`.
    pub name: &'static str,
    /// The kind of the objects that it reconciles.
    pub resource: &'static str,
    run: Box<Run>,
}

impl Configured {
    /// Runs the controller on a replica that has joined, until shutdown.
    ///
    /// # Errors
    /// If the election's settings cannot work.
    pub async fn run(self, replica: Replica, settings: Settings) -> anyhow::Result<()> {
        (self.run)(replica, settings).await
    }

    /// Runs the controller as a service of its own until shutdown.
    ///
    /// # Errors
    /// If the gateway's address is no URI, or the election's settings cannot work.
    async fn start(self, host: Host, settings: Settings) -> anyhow::Result<()> {
        let service = host.service();
        let replica = Replica::join(host, &settings.gateway, service, self.resource)?;
        (self.run)(replica, settings).await
    }

    /// Runs several controllers until shutdown, with the same settings beside their own.
    ///
    /// # Errors
    /// If the gateway's address is no URI, or the election's settings cannot work; then all of them end.
    pub async fn start_all(
        controllers: Vec<Self>,
        host: Host,
        settings: Settings,
    ) -> anyhow::Result<()> {
        let service = host.service();
        let process = Replica::join(host, &settings.gateway, service, "")?;
        let start = |configured: Self| {
            let replica = process.hosting(configured.name, configured.resource);
            (configured.run)(replica, settings.clone())
        };
        let running: Vec<_> = controllers.into_iter().map(start).collect();
        // From now on, each of them has a check of its own.
        process.host.health().check(INFORMERS).pass();
        try_join_all(running).await?;
        process.leave().await;
        Ok(())
    }
}
