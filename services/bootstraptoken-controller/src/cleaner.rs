//! The token-cleaner-controller: removes bootstrap tokens that have expired.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::client::Preconditions;
use setpoint_controller::{Client, Hosted, Inputs, Plan, Reader, Receipt, Reconciler};
use setpoint_model::{Key, Meta, bootstrap_token};
use setpoint_proto::core::Secret;
use setpoint_proto::{ApiError, Resource as _};

use crate::{TokenView, tokens};

/// The reconciler of tokens.
pub struct Cleaner(pub Reader<TokenView>);

/// Everything that the decision about one token depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The token.
    pub token: Arc<TokenView>,
    /// The time.
    pub now: Timestamp,
}

/// A write of the Secret of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Remove it, if it is as it was observed.
    Delete,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "token-cleaner-controller",
    resource: Secret::RESOURCE,
    run: |replica, settings, ()| {
        Box::pin(async move {
            let tokens = replica.client.informer().only(tokens());
            let controller = replica.controller(Cleaner(tokens.reader())).for_(tokens);
            replica.run(controller, settings).await
        })
    },
};

/// Plans for one token.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let expiry = bootstrap_token::expiry(&world.token.object);
    if let Some(expiry) = expiry.filter(|_| !world.token.meta.deleting) {
        match Duration::try_from(expiry.duration_since(world.now)) {
            Ok(left) if !left.is_zero() => plan.look_again(left),
            _ => plan.step(Action::Delete, "it has expired"),
        }
    }
    plan
}

impl Reconciler for Cleaner {
    type Object = Secret;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        let token = self.0.get(key)?;
        Some(World {
            token,
            now: inputs.now,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.token.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    async fn act(&self, client: &Client, world: &World, _: &Action) -> Result<Receipt, ApiError> {
        let seen = &world.token.meta;
        let same = Preconditions::unchanged(seen);
        let deleted = client.delete::<Secret>(&seen.key, same, None).await;
        Receipt::unless_gone(deleted.map(|deleted| deleted.receipt()))
    }
}
