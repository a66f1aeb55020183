//! The subresource `log`: streams the log of a container from the agent of its node.

use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures::{StreamExt as _, TryStreamExt as _};
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use setpoint_codec::kinds;
use setpoint_proto::core::{Container, Node, Pod};
use setpoint_proto::setpoint::LogsRequest;
use setpoint_proto::setpoint::node_client::NodeClient;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::AtLeast;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::handler::ObjectRequest;
use super::query::Query;
use super::write_options;
use crate::agents;
use crate::registry::{Registry, RequestContext, Target};

/// The time within which an agent must begin to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the log of a container.
pub(super) async fn log(
    request: ObjectRequest,
    stop: Option<Extension<CancellationToken>>,
) -> Result<Response, ApiError> {
    let mut logs = logs_request(&request.query)?;
    let context = write_options::context(&request.query, &request.headers)?.as_user(&request.user);
    let (registry, route) = (&request.registry, &request.route);
    let pod: Pod = read(registry, &context, "Pod", &route.namespace, &route.name).await?;
    logs.namespace.clone_from(&pod.metadata.namespace);
    logs.pod.clone_from(&pod.metadata.name);
    logs.container = container(&pod, request.query.get("container"))?;
    let plain = [(CONTENT_TYPE, "text/plain")];
    if pod.spec.node_name.is_empty() {
        return Ok((plain, Body::empty()).into_response());
    }
    let node: Node = read(registry, &context, "Node", "", &pod.spec.node_name).await?;
    let mut agent = NodeClient::new(agents::connect(registry.peers(), &node).await?);
    let pieces = timeout(TIMEOUT, agent.logs(logs)).await;
    let pieces = pieces.map_err(|_| internal("the node's agent does not answer"))??;
    let pieces = pieces.into_inner();
    let pieces = pieces.map_ok(|piece| piece.data);
    let stop = stop.map(|Extension(stop)| stop).unwrap_or_default();
    let pieces = pieces.take_until(stop.cancelled_owned());
    Ok((plain, Body::from_stream(pieces)).into_response())
}

async fn read<T: prost::Message + Default>(
    registry: &Registry,
    context: &RequestContext,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<T, ApiError> {
    let kind = kinds().by_kind("v1", kind);
    let kind = kind.ok_or_else(|| internal("the kind is unknown"))?;
    let target = Target::new(kind, namespace, name, "")?;
    let found = registry.get(context, &target, AtLeast::Newest).await?;
    T::decode(found.raw).map_err(|error| internal(error.to_string()))
}

/// Returns the request to the agent, with the parameters of the query.
fn logs_request(query: &Query) -> Result<LogsRequest, ApiError> {
    let at_least = |name: &'static str, least: i64, words: &str| match query.number(name)? {
        Some(number) if number < least => Err(write_options::invalid("", name, words)),
        number => Ok(number),
    };
    let seconds = at_least("sinceSeconds", 1, "must be greater than 0")?;
    let time = match query.get("sinceTime") {
        None => None,
        Some(text) => {
            let time = text.parse::<Timestamp>();
            let time = time.map_err(|_| {
                write_options::invalid("", "sinceTime", "must be a time as RFC 3339 writes it")
            })?;
            Some(time.as_second())
        }
    };
    if seconds.is_some() && time.is_some() {
        let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        return Err(write_options::invalid("", "sinceSeconds", detail));
    }
    let now = Timestamp::now().as_second();
    Ok(LogsRequest {
        previous: query.flag("previous"),
        follow: query.flag("follow"),
        timestamps: query.flag("timestamps"),
        tail_lines: at_least("tailLines", 0, "must be greater than or equal to 0")?,
        since_seconds: seconds.map(|seconds| now.saturating_sub(seconds)).or(time),
        limit_bytes: at_least("limitBytes", 1, "must be greater than 0")?,
        ..LogsRequest::default()
    })
}

/// Returns the name of the requested container, by default the only one.
fn container(pod: &Pod, named: Option<&str>) -> Result<String, ApiError> {
    let (spec, name) = (&pod.spec, &pod.metadata.name);
    let refused = |message| Err(ApiError::new(Reason::BadRequest, message));
    let names = |containers: &[Container]| {
        let names: Vec<_> = containers.iter().map(|one| one.name.as_str()).collect();
        names.join(" ")
    };
    match (named, spec.containers.as_slice()) {
        (Some(named), containers) => {
            let mut all = containers.iter().chain(&spec.init_containers);
            match all.any(|container| container.name == named) {
                true => Ok(named.to_owned()),
                false => refused(format!("container {named} is not valid for pod {name}")),
            }
        }
        (None, [only]) if spec.init_containers.is_empty() => Ok(only.name.clone()),
        (None, containers) => {
            let mut message = format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                names(containers)
            );
            if !spec.init_containers.is_empty() {
                message += &format!(
                    " or one of the init containers: [{}]",
                    names(&spec.init_containers)
                );
            }
            refused(message)
        }
    }
}

fn internal(message: impl Into<String>) -> ApiError {
    ApiError::new(Reason::InternalError, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(init: &[&str], main: &[&str]) -> Pod {
        let containers = |names: &[&str]| {
            let container = |name: &&str| Container {
                name: (*name).into(),
                ..Container::default()
            };
            names.iter().map(container).collect()
        };
        let mut pod = Pod::default();
        pod.metadata.name = "web".into();
        (pod.spec.init_containers, pod.spec.containers) = (containers(init), containers(main));
        pod
    }

    fn message(pod: &Pod, named: Option<&str>) -> String {
        container(pod, named).expect_err("it is refused").message
    }

    #[test]
    fn the_only_container_needs_no_name() {
        assert_eq!(container(&pod(&[], &["main"]), None), Ok("main".to_owned()));
        assert_eq!(
            container(&pod(&["first"], &["main"]), Some("first")),
            Ok("first".to_owned())
        );
        assert_eq!(
            message(&pod(&[], &["a", "b"]), None),
            "a container name must be specified for pod web, choose one of: [a b]"
        );
        assert_eq!(
            message(&pod(&["first"], &["a"]), None),
            "a container name must be specified for pod web, choose one of: [a] or one of the init containers: [first]"
        );
        assert_eq!(
            message(&pod(&[], &["a"]), Some("b")),
            "container b is not valid for pod web"
        );
    }

    #[test]
    fn invalid_parameters_are_refused() {
        let refused = |text| logs_request(&Query::parse(text)).is_err();
        for text in [
            "tailLines=-1",
            "limitBytes=0",
            "sinceSeconds=0",
            "tailLines=x",
            "sinceTime=x",
        ] {
            assert!(refused(text), "{text}");
        }
        assert!(refused("sinceSeconds=5&sinceTime=2026-11-21T07:00:00Z"));
        let request = logs_request(&Query::parse(
            "tailLines=0&follow=true&sinceTime=1970-01-01T00:01:00Z",
        ))
        .unwrap();
        assert_eq!(
            (request.tail_lines, request.follow, request.since_seconds),
            (Some(0), true, Some(60))
        );
    }
}
