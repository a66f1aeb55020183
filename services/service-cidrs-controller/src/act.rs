//! Act: executes actions.

use serde_json::json;
use setpoint_controller::client::ListOptions;
use setpoint_controller::{Client, Receipt};
use setpoint_proto::core::Service;
use setpoint_proto::networking::ServiceCidr;
use setpoint_proto::{ApiError, Reason};

use crate::address::addresses;
use crate::plan::{FINALIZER, ranges};
use crate::{Action, RangeView, World, blocks};

pub(crate) async fn act(
    client: &Client,
    world: &World,
    action: Action,
) -> Result<Receipt, ApiError> {
    let mut finalizers = world.range.object.metadata.finalizers.clone();
    match action {
        Action::Protect => finalizers.push(FINALIZER.to_owned()),
        Action::Release => {
            ensure_unused(client, world).await?;
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
    }
    set_finalizers(client, &world.range, &finalizers).await
}

/// Lists all Services: the cache may lag, and none may be left with an address of no range.
async fn ensure_unused(client: &Client, world: &World) -> Result<(), ApiError> {
    let own: Vec<_> = ranges(&world.range).collect();
    let mut found = None;
    let look = |service: Service| {
        let mut addresses = addresses(&service).into_iter();
        found = found.or(addresses.find(|address| blocks(&own, &world.others, *address)));
    };
    client.for_each(&ListOptions::default(), look).await?;
    match found {
        None => Ok(()),
        Some(address) => {
            let message = format!("a Service has the address {address}");
            Err(ApiError::new(Reason::Conflict, message))
        }
    }
}

/// Patches the version that was observed. Succeeds if it is gone.
async fn set_finalizers(
    client: &Client,
    range: &RangeView,
    finalizers: &[String],
) -> Result<Receipt, ApiError> {
    let meta = &range.meta;
    let patch = json!({"metadata": {
        "uid": meta.uid,
        "resourceVersion": meta.revision.to_string(),
        "finalizers": finalizers,
    }});
    let patched = client.patch::<ServiceCidr>(&meta.key, "", patch).await;
    Receipt::unless_gone(patched.map(|patched| patched.receipt()))
}
