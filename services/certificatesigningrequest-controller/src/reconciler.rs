//! The controller: its informer, and its implementation of [`Reconciler`].

use std::sync::Arc;

use setpoint_controller::events::{is_reported, reference};
use setpoint_controller::{
    Client, Hosted, Inputs, Plan, Reader, Receipt, Reconciler, Recorder, Replica, runtime,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::certificates::CertificateSigningRequest;
use setpoint_proto::{ApiError, Resource as _};

use crate::{Action, RequestView, Signing, World, act, plan};

/// The reconciler of CertificateSigningRequests.
pub struct Requests {
    /// The requests.
    pub requests: Reader<RequestView>,
    /// The settings of the signer.
    pub settings: Arc<Signing>,
    /// The recorder of Events.
    pub events: Recorder,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted<Signing> = Hosted {
    name: "certificatesigningrequest-controller",
    resource: CertificateSigningRequest::RESOURCE,
    run: |replica, settings, own| Box::pin(run(replica, settings, own)),
};

async fn run(
    replica: Replica,
    settings: runtime::Settings,
    signing: Signing,
) -> anyhow::Result<()> {
    let reconciler = Requests {
        requests: replica.reader(),
        settings: Arc::new(signing),
        events: replica.events.clone(),
    };
    let requests = replica.informer::<RequestView>();
    let controller = replica.controller(reconciler).for_(requests);
    replica.run(controller, settings).await
}

impl Reconciler for Requests {
    type Object = CertificateSigningRequest;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        Some(World {
            request: self.requests.get(key)?,
            now: inputs.now,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.request.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, &self.settings, &world.request, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        if let (Action::Sign(_), Err(error)) = (action, result)
            && is_reported(error)
        {
            let about = reference::<CertificateSigningRequest>(&world.request.meta);
            self.events
                .warning(&about, "SigningError", error.message.clone());
        }
    }
}
