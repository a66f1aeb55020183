//! Act: executes actions. Each write has the uid of its object as a precondition, so that it can be repeated.

use setpoint_controller::{Client, Receipt, Recorder};
use setpoint_model::owner::Reference;
use setpoint_proto::ApiError;
use setpoint_proto::meta::{DeleteOptions, OwnerReference, Preconditions};
use setpoint_proto::setpoint::RemoveMetadataRequest;

use crate::{Action, Item};

const INVALID_NAMESPACE: &str = "OwnerRefInvalidNamespace";

pub(crate) async fn act(
    client: &Client,
    events: &Recorder,
    action: &Action,
) -> Result<Receipt, ApiError> {
    let acted = match action {
        Action::Delete(item, policy) => delete(client, item, policy).await,
        Action::RemoveOwners(item, owners) => {
            let owners = owners.clone();
            let parts = RemoveMetadataRequest {
                owners,
                ..identity(item)
            };
            client.remove_metadata(parts).await
        }
        Action::Unblock(item) => {
            let parts = RemoveMetadataRequest {
                unblock_owners: true,
                ..identity(item)
            };
            client.remove_metadata(parts).await
        }
        Action::RemoveFinalizer(item, finalizer) => {
            let parts = RemoveMetadataRequest {
                finalizers: vec![(*finalizer).to_owned()],
                ..identity(item)
            };
            client.remove_metadata(parts).await
        }
        Action::Report(item, Reference(reference)) => {
            let message = message(&item.key.namespace, reference);
            events.warning(&item.object_reference(), INVALID_NAMESPACE, message);
            Ok(())
        }
    };
    // The next reconcile reads the object anew, from no cache.
    Receipt::unless_gone(acted.map(|()| Receipt::none()))
}

/// Deletes the version of an object whose owners were read.
async fn delete(client: &Client, item: &Item, policy: &str) -> Result<(), ApiError> {
    let options = DeleteOptions {
        preconditions: Some(Preconditions {
            uid: Some(item.uid.clone()),
            resource_version: Some(item.revision.to_string()),
        }),
        propagation_policy: Some(policy.to_owned()),
        ..DeleteOptions::default()
    };
    let deleted = client.delete_object(&item.reference(), options).await;
    deleted.map(|_| ())
}

fn identity(item: &Item) -> RemoveMetadataRequest {
    RemoveMetadataRequest {
        resource: item.resource.clone(),
        namespace: item.key.namespace.clone(),
        name: item.key.name.clone(),
        uid: item.uid.clone(),
        ..RemoveMetadataRequest::default()
    }
}

fn message(namespace: &str, owner: &OwnerReference) -> String {
    format!(
        "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {}] does not exist in namespace {namespace:?}",
        owner.api_version, owner.kind, owner.name, owner.uid
    )
}
