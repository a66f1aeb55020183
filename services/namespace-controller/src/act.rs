//! Act: executes actions.

use setpoint_controller::{Client, Receipt};
use setpoint_proto::ApiError;
use setpoint_proto::meta::{DeleteOptions, Preconditions};

use crate::plan::CONTENT;
use crate::{Action, Item, World};

pub(crate) async fn act(
    client: &Client,
    world: &World,
    action: &Action,
) -> Result<Receipt, ApiError> {
    Receipt::unless_gone(match action {
        Action::Delete(item) => delete(client, item).await,
        Action::Finalize => finalize(client, world).await,
    })
}

/// Deletes an object, if it is still that object. Its dependants are in the namespace as well. One that cannot be read has no uid; as
/// nothing can be created in the namespace, it is the only one of its name.
async fn delete(client: &Client, item: &Item) -> Result<Receipt, ApiError> {
    let options = match item.uid.is_empty() {
        true => DeleteOptions {
            ignore_store_read_error_with_cluster_breaking_potential: Some(true),
            ..DeleteOptions::default()
        },
        false => DeleteOptions {
            preconditions: Some(Preconditions {
                uid: Some(item.uid.clone()),
                ..Preconditions::default()
            }),
            propagation_policy: Some("Background".to_owned()),
            ..DeleteOptions::default()
        },
    };
    client.delete_object(&item.reference(), options).await?;
    // The next reconcile reads the content anew, from no cache.
    Ok(Receipt::none())
}

/// Removes the finalizer of the content from the version of the namespace that was observed. Those of others hold it until they
/// remove them.
async fn finalize(client: &Client, world: &World) -> Result<Receipt, ApiError> {
    let mut namespace = world.namespace.object.clone();
    namespace.spec.finalizers.retain(|held| held != CONTENT);
    Ok(client.update_part(&namespace, "finalize").await?.receipt())
}
