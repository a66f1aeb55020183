//! A replica of a service that works through the gateway: its client, the Lease that announces it, its Events, its
//! decision log, and the checks of its readiness.

use std::sync::Arc;

use setpoint_host::{Check, Host};
use setpoint_model::users;
use setpoint_proto::coordination::Lease;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::client::ListOptions;
use crate::expiring_certificates;
use crate::informer::SharedInformers;
use crate::{
    Client, Controller, DecisionLog, Informer, Membership, Reader, Reconciler, Recorder, View,
    Whole,
};
use crate::{client, runtime};

/// The readiness check of the informers of a process.
pub(crate) const INFORMERS: &str = "informers";

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
    /// The name of its Lease and its metrics.
    name: &'static str,
    informers: Arc<SharedInformers>,
    /// `None` for one of several controllers of a process that is announced as a whole.
    membership: Option<Membership>,
    /// Reports certificates that are about to expire; `None` as `membership` is.
    _certificates: Option<AbortOnDropHandle<()>>,
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
        let client = Client::connect_with(settings, host.credentials().cloned(), host.service())?;
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
        let known = host.certificates().clone();
        let certificates =
            expiring_certificates::report(known, client.clone(), events.clone(), instance);
        let decision_log = DecisionLog::new(service, instance, resource);
        // Before a check that passes: the process is not ready until its informers are.
        host.health().check(INFORMERS);
        let informers = Arc::new(SharedInformers::new(client.clone()));
        let tasks = host.health().check("background-tasks");
        tasks.follow(client.tasks().health());
        Self {
            client,
            events,
            decision_log,
            name: service,
            informers,
            membership: Some(membership),
            _certificates: Some(certificates),
            host,
        }
    }

    /// Returns the replica of a controller that this process hosts under a name of its own: same connection, informers
    /// and decision log, other user, writer and component of Events.
    ///
    /// The user is `system:setpoint:<name>`, which the user of the process must be allowed to impersonate.
    pub(crate) fn hosting(&self, name: &'static str, resource: &'static str) -> Self {
        let user = users::of_service(name);
        let client = self.client.writing_as(name).acting_as(&user, &[]);
        let hosted = Self {
            events: Recorder::new(client.clone(), name, self.host.instance()),
            client,
            decision_log: self.decision_log.of_kind(resource),
            name,
            informers: self.informers.clone(),
            membership: None,
            _certificates: None,
            host: self.host.clone(),
        };
        hosted.informers_check();
        hosted
    }

    /// Returns an informer over all objects of the view's kind, shared by the controllers of the process.
    pub fn informer<V: View>(&self) -> Informer<V> {
        self.informers.informer(ListOptions::default())
    }

    /// Returns a reader of [`Self::informer`]'s cache. It is filled once that informer is given to a controller.
    pub fn reader<V: View>(&self) -> Reader<V> {
        self.informer().reader()
    }

    /// Returns a function of a changed object that also gets the reader of another kind, for the triggers of a
    /// controller.
    pub fn with_reader<V: View, T, K, F: Fn(&Reader<V>, &T) -> K>(
        &self,
        keys: F,
    ) -> impl Fn(&T) -> K + use<V, T, K, F> {
        let reader = self.reader();
        move |changed| keys(&reader, changed)
    }

    /// Returns a controller of the replica's name.
    pub fn controller<R: Reconciler>(&self, reconciler: R) -> Controller<R> {
        Controller::new(self.name, reconciler, self.client.clone()).decision_log(&self.decision_log)
    }

    /// Returns an informer over the Leases of all elections of the process.
    fn leases(&self, settings: &runtime::Settings) -> Informer<Whole<Lease>> {
        let all = ListOptions {
            namespace: settings.election.namespace.clone(),
            ..ListOptions::default()
        };
        self.informers.informer(all)
    }

    /// Makes the process ready once `synced` is true, among other conditions.
    pub fn ready_when(&self, synced: watch::Receiver<bool>) {
        self.informers_check().pass_when(synced);
    }

    fn informers_check(&self) -> Check {
        self.host.health().check(match &self.membership {
            Some(_) => INFORMERS.to_owned(),
            None => format!("{INFORMERS} of {}", self.name),
        })
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
        let controller = match &self.membership {
            Some(_) => controller,
            None => controller.leases(self.leases(&settings)),
        };
        let controller = controller.settings(settings);
        self.ready_when(controller.ready());
        let (instance, shutdown) = (self.host.instance().to_owned(), self.host.shutdown());
        controller.run(instance, shutdown).await?;
        self.leave().await;
        Ok(())
    }

    /// Writes the last Events and removes the Lease that announces the replica.
    pub async fn leave(self) {
        let leave = async {
            if let Some(membership) = self.membership {
                membership.leave().await;
            }
        };
        tokio::join!(leave, self.events.finish());
    }
}
