//! A replica of a service that works through the gateway: its client, the Lease that announces it, its Events, its
//! decision log, and the checks of its readiness.

use setpoint_host::Host;
use tokio::sync::watch;

use crate::{Client, Controller, DecisionLog, Informer, Membership, Reconciler, Recorder, View};
use crate::{client, runtime};

/// A replica, from its connection to its last Event.
pub struct Replica {
    /// The process.
    pub host: Host,
    /// The client of the gateway.
    pub client: Client,
    /// The recorder of Events.
    pub events: Recorder,
    /// The log of its decisions, served beside health and metrics.
    pub decision_log: DecisionLog,
    membership: Membership,
}

impl Replica {
    /// Connects and announces a replica that reconciles objects of `resource`. Its Events are from `component`.
    ///
    /// # Errors
    /// If the gateway's address is no URI.
    pub fn join(
        host: Host,
        settings: &client::Settings,
        component: &str,
        resource: &'static str,
    ) -> Result<Self, client::Error> {
        let client = Client::connect(settings, host.service())?;
        let events = Recorder::new(client.clone(), component, host.instance());
        let replica = Self::announce(host, client, events, resource);
        let routes = replica.decision_log.routes();
        replica.host.offer(routes.into_axum_router());
        Ok(replica)
    }

    /// Announces a replica that has a client and a recorder already.
    ///
    /// The decision log is not served: the caller offers [`DecisionLog::routes`] together with routes of its own.
    pub fn announce(host: Host, client: Client, events: Recorder, resource: &'static str) -> Self {
        let (service, instance) = (host.service(), host.instance());
        let membership = Membership::announce(client.clone(), service, instance, host.advertised());
        let decision_log = DecisionLog::new(service, instance, resource);
        let tasks = host.health().check("background-tasks");
        tasks.follow(client.tasks().health());
        Self {
            client,
            events,
            decision_log,
            membership,
            host,
        }
    }

    /// Returns an informer over all objects of the view's kind.
    pub fn informer<V: View>(&self) -> Informer<V> {
        self.client.informer()
    }

    /// Makes the process ready once `synced` is true.
    pub fn ready_when(&self, synced: watch::Receiver<bool>) {
        self.host.health().check("informers").pass_when(synced);
    }

    /// Runs a controller until the process shuts down, then leaves.
    ///
    /// # Errors
    /// If the election's settings cannot work.
    pub async fn run<R: Reconciler>(
        self,
        controller: Controller<R>,
        settings: runtime::Settings,
    ) -> anyhow::Result<()> {
        let controller = controller
            .settings(settings)
            .decision_log(&self.decision_log);
        self.ready_when(controller.ready());
        let (instance, shutdown) = (self.host.instance().to_owned(), self.host.shutdown());
        controller.run(instance, shutdown).await?;
        self.leave().await;
        Ok(())
    }

    /// Writes the last Events and removes the Lease that announces the replica.
    pub async fn leave(self) {
        tokio::join!(self.membership.leave(), self.events.finish());
    }
}
