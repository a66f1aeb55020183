//! A replica of a service that works through the gateway: its client, the Lease that announces it, its Events, its
//! decision log, and the checks of its readiness.

use setpoint_host::Host;
use tokio::sync::watch;

use crate::{Controller, Gateway, Informer, Journal, Presence, Reconciler, Recorder, View};
use crate::{controller, gateway};

/// A replica, from its connection to its last Event.
pub struct Replica {
    /// The process.
    pub host: Host,
    /// The client of the gateway.
    pub gateway: Gateway,
    /// The recorder of Events.
    pub events: Recorder,
    /// The log of its decisions, served beside health and metrics.
    pub journal: Journal,
    presence: Presence,
}

impl Replica {
    /// Connects and announces a replica that reconciles objects of `resource`. Its Events are from `component`.
    ///
    /// # Errors
    /// If the gateway's address is no URI.
    pub fn join(
        host: Host,
        settings: &gateway::Settings,
        component: &str,
        resource: &'static str,
    ) -> Result<Self, gateway::Error> {
        let (service, instance) = (host.service(), host.instance());
        let gateway = Gateway::connect(settings, service)?;
        let presence = Presence::announce(gateway.clone(), service, instance, host.advertised());
        let events = Recorder::new(gateway.clone(), component, instance);
        let journal = Journal::new(service, instance, resource);
        host.offer(journal.routes().into_axum_router());
        let tasks = host.health().check("background-tasks");
        tasks.follow(gateway.tasks().health());
        Ok(Self {
            gateway,
            events,
            journal,
            presence,
            host,
        })
    }

    /// Returns an informer over all objects of the view's kind.
    pub fn informer<V: View>(&self) -> Informer<V> {
        self.gateway.informer()
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
        settings: controller::Settings,
    ) -> anyhow::Result<()> {
        let controller = controller.settings(settings).journal(&self.journal);
        self.ready_when(controller.ready());
        let (instance, shutdown) = (self.host.instance().to_owned(), self.host.shutdown());
        controller.run(instance, shutdown).await?;
        self.leave().await;
        Ok(())
    }

    /// Writes the last Events and removes the Lease that announces the replica.
    pub async fn leave(self) {
        tokio::join!(self.presence.leave(), self.events.finish());
    }
}
