//! Act: executes actions.

use setpoint_controller::{Client, Receipt};
use setpoint_model::Revision;
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use setpoint_proto::{ApiError, NOT_TRANSFORMABLE, Reason};

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

/// Deletes an object, if it is still that object. Its dependants are in the namespace as well.
async fn delete(client: &Client, item: &Item) -> Result<Receipt, ApiError> {
    let options = DeleteOptions {
        preconditions: Some(Preconditions {
            uid: Some(item.uid.clone()),
            ..Preconditions::default()
        }),
        propagation_policy: Some("Background".to_owned()),
        ..DeleteOptions::default()
    };
    match client.delete_object(&item.reference(), options).await {
        // It may be one that is corrupt.
        Err(error) if error.reason == Reason::InternalError && !is_encrypted(&error) => {
            delete_unreadable(client, item).await.map_err(|_| error)?;
        }
        deleted => drop(deleted?),
    }
    // The next reconcile reads the content anew, from no cache.
    Ok(Receipt::none())
}

/// Returns whether an object could not be decrypted: it is not corrupt, but readable with its key. The namespace waits
/// for that, or for somebody who deletes the object in spite of it.
fn is_encrypted(error: &ApiError) -> bool {
    error.message.contains(NOT_TRANSFORMABLE)
}

/// Deletes an object that cannot be read; the gateway refuses this for any other. As nothing can be created in the
/// namespace, it is the only one of its name.
async fn delete_unreadable(client: &Client, item: &Item) -> Result<Revision, ApiError> {
    let options = DeleteOptions {
        ignore_store_read_error_with_cluster_breaking_potential: Some(true),
        ..DeleteOptions::default()
    };
    client.delete_object(&item.reference(), options).await
}

/// Removes the finalizer of the content from the version of the namespace that was observed. Those of others hold it
/// until they remove them.
async fn finalize(client: &Client, world: &World) -> Result<Receipt, ApiError> {
    let mut namespace = world.namespace.object.clone();
    namespace.spec.finalizers.retain(|held| held != CONTENT);
    Ok(client.update_part(&namespace, "finalize").await?.receipt())
}
