//! Act: executes actions, and records Events about them in upstream's words.

use serde_json::json;
use setpoint_controller::{Client, Receipt, Recorder, Whole, events};
use setpoint_proto::ApiError;
use setpoint_proto::core::{LoadBalancerIngress, LoadBalancerStatus, Service};

use crate::plan::NO_NODE;
use crate::{Action, FINALIZER, Ingress};

pub(crate) async fn act(
    client: &Client,
    service: &Whole<Service>,
    action: &Action,
) -> Result<Receipt, ApiError> {
    let own = &service.object.metadata.finalizers;
    let written = match action {
        Action::Protect => {
            let all = own.iter().map(String::as_str).chain([FINALIZER]);
            set_finalizers(client, service, all.collect()).await
        }
        Action::Release => {
            let others = own.iter().map(String::as_str);
            let others = others.filter(|finalizer| *finalizer != FINALIZER);
            set_finalizers(client, service, others.collect()).await
        }
        Action::SetIngress(Ingress(ingress)) => set_ingress(client, service, ingress.clone()).await,
        Action::ClearIngress => set_ingress(client, service, Vec::new()).await,
        Action::ReportTaken(_) | Action::ReportNoNode => return Ok(Receipt::none()),
    };
    Receipt::unless_gone(written)
}

/// Replaces the finalizers of the version that was observed.
async fn set_finalizers(
    client: &Client,
    service: &Whole<Service>,
    finalizers: Vec<&str>,
) -> Result<Receipt, ApiError> {
    let meta = &service.meta;
    let patch = json!({"metadata": {
        "uid": meta.uid,
        "resourceVersion": meta.revision.to_string(),
        "finalizers": finalizers,
    }});
    let written = client.patch::<Service>(&meta.key, "", patch).await?;
    Ok(written.receipt())
}

/// Replaces the addresses of the version that was observed.
async fn set_ingress(
    client: &Client,
    service: &Whole<Service>,
    ingress: Vec<LoadBalancerIngress>,
) -> Result<Receipt, ApiError> {
    let mut status = service.object.status.clone();
    status.load_balancer = LoadBalancerStatus { ingress };
    client
        .update_status_of::<Service>(&service.meta, status)
        .await
}

/// Records the Event of an action.
pub(crate) fn record(
    events: &Recorder,
    service: &Whole<Service>,
    action: &Action,
    result: &Result<Receipt, ApiError>,
) {
    let about = events::reference::<Service>(&service.meta);
    let failed = |problem: &str| {
        let message = format!("Error syncing load balancer: {problem}");
        events.warning(&about, "SyncLoadBalancerFailed", message);
    };
    if let Err(error) = result {
        if events::is_reported(error) {
            failed(&error.message);
        }
        return;
    }
    let had_none = service.object.status.load_balancer.ingress.is_empty();
    let (reason, message) = match action {
        Action::Protect => ("EnsuringLoadBalancer", "Ensuring load balancer"),
        Action::SetIngress(Ingress(ingress)) if ingress.is_empty() => return,
        Action::SetIngress(_) if had_none => ("EnsuredLoadBalancer", "Ensured load balancer"),
        Action::SetIngress(_) => (
            "UpdatedLoadBalancer",
            "Updated load balancer with new hosts",
        ),
        Action::ClearIngress => ("DeletingLoadBalancer", "Deleting load balancer"),
        Action::Release => ("DeletedLoadBalancer", "Deleted load balancer"),
        Action::ReportTaken(problem) => return failed(problem),
        Action::ReportNoNode => return events.warning(&about, "UnAvailableLoadBalancer", NO_NODE),
    };
    events.normal(&about, reason, message);
}
