//! One check of a server: its Service, its endpoints, a probe; then its documents and the condition.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::Request;
use http::header::USER_AGENT;
use jiff::Timestamp;
use setpoint_codec::{Object, kind_of};
use setpoint_model::endpointslice::SERVICE_NAME;
use setpoint_model::{Key, condition};
use setpoint_proto::apiregistration::ApiService;
use setpoint_proto::core::Service;
use setpoint_proto::discovery::EndpointSlice;
use setpoint_proto::{ApiError, Reason};
use tokio::time::timeout;

use super::verdict::{Verdict, of_service};
use crate::aggregation::{Remote, set_user, system_user};
use crate::registry::{AtLeast, Cached, Filter, Registry, RequestContext, Target, errors};
use crate::write::current::Current;

/// The time in which a server must answer a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of probes of a server that has not answered the first: one of its endpoints may be gone.
const FURTHER_PROBES: usize = 4;
/// The manager of the writes.
const CONTROLLER: &str = "kube-aggregator";

/// Checks a server. Returns whether the probe has passed or needs no retry.
///
/// # Errors
/// If the cache is not there, or the condition cannot be written.
pub(super) async fn check(registry: &Registry, remote: &Remote) -> Result<bool, ApiError> {
    let address = remote.server.address();
    let service = service(registry, &address.service).await?;
    let slices = slices(registry, &address.service).await?;
    let impossible = of_service(address, service.as_ref(), &slices);
    let is_probed = impossible.is_none();
    let verdict = match impossible {
        Some(verdict) => verdict,
        None => probe(registry, remote).await?,
    };
    // Before others learn that it is available.
    match verdict.is_passed() {
        true => remote.fetch_documents(registry).await,
        false => remote.forget_freshness(),
    }
    write(registry, remote, &verdict).await?;
    Ok(verdict.is_passed() || !is_probed)
}

async fn service(registry: &Registry, key: &Key) -> Result<Option<Service>, ApiError> {
    let kind = kind_of::<Service>();
    let found = registry.cache().get(kind, key, AtLeast::Any).await?;
    found.map(|found| decode(&found)).transpose()
}

async fn slices(registry: &Registry, service: &Key) -> Result<Vec<EndpointSlice>, ApiError> {
    let all = Filter::all(kind_of::<EndpointSlice>(), service.namespace.as_str());
    let listed = registry.cache().list(&all, AtLeast::Any).await?.items;
    let own = listed
        .iter()
        .filter(|slice| slice.labels().get(SERVICE_NAME) == Some(&service.name));
    own.map(|slice| decode(slice)).collect()
}

fn decode<T: prost::Message + Default>(found: &Cached) -> Result<T, ApiError> {
    errors::readable(T::decode(found.raw.as_ref()))
}

/// Reads the resources of the server. As upstream, its certificate is not verified: the response only says that there
/// is one.
async fn probe(registry: &Registry, remote: &Remote) -> Result<Verdict, ApiError> {
    let certificate = registry
        .aggregator()
        .front_proxy
        .certificate(registry)
        .await?;
    let attempt = || async {
        let url = remote.server.url(&remote.path());
        let failed = |why: String| format!("failing or missing response from {url}: {why}");
        let request = Request::get(&url).header(USER_AGENT, "setpoint-gateway");
        let request = request.body(Body::empty());
        let mut request = request.map_err(|error| failed(error.to_string()))?;
        set_user(request.headers_mut(), &system_user());
        let response = remote.server.probe(Arc::clone(&certificate), request);
        match timeout(PROBE_TIMEOUT, response).await {
            Err(_) => Err(failed(format!("Get {url:?}: context deadline exceeded"))),
            Ok(Err(error)) => Err(failed(format!("Get {url:?}: {error}"))),
            Ok(Ok(response)) if response.status().is_success() => Ok(()),
            Ok(Ok(response)) => {
                let code = response.status().as_u16();
                Err(failed(format!("bad status from {url}: {code}")))
            }
        }
    };
    let Err(mut why) = attempt().await else {
        return Ok(Verdict::passed());
    };
    let mut attempts: FuturesUnordered<_> = (0..FURTHER_PROBES).map(|_| attempt()).collect();
    while let Some(attempt) = attempts.next().await {
        match attempt {
            Ok(()) => return Ok(Verdict::passed()),
            // Always the same of several, so that the condition does not change with the order.
            Err(other) => why = why.min(other),
        }
    }
    Ok(Verdict::failed(why))
}

/// Writes the condition of an APIService that still has this server, if it says something else.
async fn write(registry: &Registry, remote: &Remote, verdict: &Verdict) -> Result<(), ApiError> {
    let wanted = verdict.condition(Timestamp::now());
    let context = RequestContext::of_server().by(CONTROLLER);
    let target = Target::whole(kind_of::<ApiService>(), &Key::new("", &remote.name));
    let address = remote.server.address();
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        let new = slot.insert(old.object.clone_box());
        if let Some(new) = new.downcast_mut::<ApiService>()
            && let Some(service) = &new.spec.service
            && Key::new(&service.namespace, &service.name) == address.service
        {
            condition::set(&mut new.status.conditions, wanted.clone());
        }
        Ok(())
    };
    let written = registry
        .guaranteed_update(&context, &target, &mut mutate)
        .await;
    match written {
        Err(error) if error.reason != Reason::NotFound => Err(error),
        _ => Ok(()),
    }
}
