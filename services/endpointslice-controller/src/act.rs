//! Act: executes actions, and records Events about those that fail.

use setpoint_controller::{Client, Receipt, Recorder, Whole, events};
use setpoint_proto::ApiError;
use setpoint_proto::core::{Endpoints, Service};
use setpoint_proto::discovery::EndpointSlice;

use crate::Action;

pub(crate) async fn act(
    client: &Client,
    events: &Recorder,
    service: &Whole<Service>,
    action: &Action,
) -> Result<Receipt, ApiError> {
    match action {
        Action::Create(slice) => {
            let created = client.create_or_take(&service.meta, &**slice, |_| true);
            Ok(created.await?.receipt())
        }
        Action::Update(slice) => Ok(client.update(&**slice).await?.receipt()),
        Action::Delete(slice) => client.delete_unchanged::<EndpointSlice>(slice).await,
        Action::CreateEndpoints(endpoints) => Ok(client.create(&**endpoints).await?.receipt()),
        Action::UpdateEndpoints(endpoints) => Ok(client.update(&**endpoints).await?.receipt()),
        Action::Report(problem) => {
            report(events, service, problem);
            Ok(Receipt::none())
        }
    }
}

/// Records an Event, with the reason and message of upstream, about a write that failed.
pub(crate) fn record(
    events: &Recorder,
    service: &Whole<Service>,
    action: &Action,
    result: &Result<Receipt, ApiError>,
) {
    let Err(error) = result else { return };
    if !events::is_reported(error) {
        return;
    }
    let (key, error) = (&service.meta.key, &error.message);
    let endpoints = |endpoints: &Endpoints| events::reference_to(endpoints);
    match action {
        Action::CreateEndpoints(new) => {
            let message = format!("Failed to create endpoint for service {key}: {error}");
            events.warning(&endpoints(new), "FailedToCreateEndpoint", message);
        }
        Action::UpdateEndpoints(new) => {
            let message = format!("Failed to update endpoint {key}: {error}");
            events.warning(&endpoints(new), "FailedToUpdateEndpoint", message);
        }
        _ => report(events, service, error),
    }
}

/// Records an Event about slices that lack endpoints.
fn report(events: &Recorder, service: &Whole<Service>, problem: &str) {
    let about = events::reference::<Service>(&service.meta);
    let key = &service.meta.key;
    let message = format!("Error updating Endpoint Slices for Service {key}: {problem}");
    events.warning(&about, "FailedToUpdateEndpointSlices", message);
}
