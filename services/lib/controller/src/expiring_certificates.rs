//! Events about certificates of a process that are about to expire.

use setpoint_host::certificates::{Certificates, EXPIRING};
use setpoint_model::Key;
use setpoint_model::replicas::NAMESPACE;
use setpoint_proto::Resource as _;
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::ObjectReference;
use tokio_util::task::AbortOnDropHandle;

use crate::events::reference_to;
use crate::{Client, Recorder, membership};

/// Records a warning about the Lease that announces a replica for each of its certificates that is about to expire, one
/// until the certificate is renewed. Ends when the result is dropped.
pub(crate) fn report(
    certificates: Certificates,
    client: Client,
    events: Recorder,
    instance: &str,
) -> AbortOnDropHandle<()> {
    let reporter = Reporter {
        certificates,
        client,
        events,
        lease: Key::new(NAMESPACE, membership::name(instance)),
    };
    let task = async move {
        let tasks = reporter.client.tasks().clone();
        tasks.supervise("certificates", "", || reporter.run()).await;
    };
    AbortOnDropHandle::new(tokio::spawn(task))
}

struct Reporter {
    certificates: Certificates,
    client: Client,
    events: Recorder,
    lease: Key,
}

impl Reporter {
    async fn run(&self) {
        let mut expiries = self.certificates.expiries();
        loop {
            let message = expiries.next().await.to_string();
            self.events.warning(&self.about().await, EXPIRING, message);
        }
    }

    /// Returns a reference to the Lease, without a uid if it does not exist yet.
    async fn about(&self) -> ObjectReference {
        match self.client.get::<Lease>(&self.lease).await {
            Ok(lease) => reference_to(&lease),
            Err(_) => ObjectReference {
                kind: Lease::KIND.to_owned(),
                api_version: Lease::API_VERSION.to_owned(),
                namespace: self.lease.namespace.clone(),
                name: self.lease.name.clone(),
                ..ObjectReference::default()
            },
        }
    }
}
