//! The condition `Available` of an APIService, from its Service and endpoints. Reasons and messages are upstream's.

use jiff::Timestamp;
use setpoint_kinds::apiservice::AVAILABLE;
use setpoint_model::condition::{FALSE, TRUE};
use setpoint_proto::apiregistration::ApiServiceCondition;
use setpoint_proto::core::Service;
use setpoint_proto::discovery::{Endpoint, EndpointSlice};

use crate::outbound::ServiceAddress;

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    reason: &'static str,
    message: String,
}

impl Verdict {
    /// Returns that of a server that has answered.
    pub(super) fn passed() -> Self {
        Self {
            reason: "Passed",
            message: "all checks passed".to_owned(),
        }
    }

    /// Returns that of a server that has not answered its probe.
    pub(super) fn failed(why: String) -> Self {
        Self {
            reason: "FailedDiscoveryCheck",
            message: why,
        }
    }

    pub(super) fn is_passed(&self) -> bool {
        self.reason == "Passed"
    }

    /// Returns the condition.
    pub(super) fn condition(&self, now: Timestamp) -> ApiServiceCondition {
        ApiServiceCondition {
            r#type: AVAILABLE.into(),
            status: if self.is_passed() { TRUE } else { FALSE }.into(),
            last_transition_time: now.into(),
            reason: self.reason.into(),
            message: self.message.clone(),
        }
    }
}

/// Returns why a server cannot be available; `None` if it is to be probed.
pub(super) fn of_service(
    address: &ServiceAddress,
    service: Option<&Service>,
    slices: &[EndpointSlice],
) -> Option<Verdict> {
    let (name, namespace) = (&address.service.name, &address.service.namespace);
    let verdict = |reason, message| Some(Verdict { reason, message });
    let Some(service) = service else {
        let message = format!("service/{name} in {namespace:?} is not present");
        return verdict("ServiceNotFound", message);
    };
    if !matches!(service.spec.r#type.as_str(), "" | "ClusterIP") {
        return None;
    }
    let mut ports = service.spec.ports.iter();
    let Some(port) = ports.find(|port| port.port == i32::from(address.port)) else {
        let number = address.port;
        let message = format!("service/{name} in {namespace:?} is not listening on port {number}");
        return verdict("ServicePortError", message);
    };
    if slices.is_empty() {
        let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
        return verdict("EndpointsNotFound", message);
    }
    let port = port.name.as_str();
    if !slices.iter().any(|slice| serves(slice, port)) {
        let message = format!(
            "endpointslices for service/{name} in {namespace:?} have no addresses with port name {port:?}"
        );
        return verdict("MissingEndpoints", message);
    }
    None
}

fn serves(slice: &EndpointSlice, port: &str) -> bool {
    let is_ready = |endpoint: &Endpoint| endpoint.conditions.ready != Some(false);
    let mut ports = slice.ports.iter();
    slice.endpoints.iter().any(is_ready)
        && ports.any(|one| one.name.as_deref().unwrap_or_default() == port && one.port.is_some())
}

#[cfg(test)]
mod tests {
    use setpoint_model::Key;
    use setpoint_proto::core::ServicePort;
    use setpoint_proto::discovery::{EndpointConditions, EndpointPort};

    use super::*;

    fn service(r#type: &str, ports: &[(&str, i32)]) -> Service {
        let mut service = Service::default();
        service.spec.r#type = r#type.into();
        let ports = ports.iter().map(|(name, port)| ServicePort {
            name: (*name).into(),
            port: *port,
            ..Default::default()
        });
        service.spec.ports = ports.collect();
        service
    }

    fn slice(ready: &[Option<bool>], port: Option<&str>) -> EndpointSlice {
        let endpoints = ready.iter().map(|ready| Endpoint {
            addresses: vec!["10.0.0.1".into()],
            conditions: EndpointConditions {
                ready: *ready,
                ..Default::default()
            },
            ..Default::default()
        });
        let ports = port.into_iter().map(|name| EndpointPort {
            name: Some(name.into()),
            port: Some(8443),
            ..Default::default()
        });
        EndpointSlice {
            endpoints: endpoints.collect(),
            ports: ports.collect(),
            ..Default::default()
        }
    }

    /// The cases of upstream's `TestSync`.
    #[test]
    fn a_server_without_endpoints_is_not_available() {
        let address = ServiceAddress {
            service: Key::new("foo", "bar"),
            port: 443,
        };
        let cluster_ip = service("ClusterIP", &[("https", 443)]);
        let cases = [
            (
                None,
                vec![],
                Some(("ServiceNotFound", r#"service/bar in "foo" is not present"#)),
            ),
            (
                Some(service("ClusterIP", &[("https", 6443)])),
                vec![slice(&[None], Some("https"))],
                Some((
                    "ServicePortError",
                    r#"service/bar in "foo" is not listening on port 443"#,
                )),
            ),
            (
                Some(cluster_ip.clone()),
                vec![],
                Some((
                    "EndpointsNotFound",
                    r#"cannot find endpointslices for service/bar in "foo""#,
                )),
            ),
            (
                Some(cluster_ip.clone()),
                vec![
                    slice(&[Some(false)], Some("https")),
                    slice(&[], Some("https")),
                ],
                Some((
                    "MissingEndpoints",
                    r#"endpointslices for service/bar in "foo" have no addresses with port name "https""#,
                )),
            ),
            (
                Some(cluster_ip.clone()),
                vec![slice(&[None], Some("other"))],
                Some((
                    "MissingEndpoints",
                    r#"endpointslices for service/bar in "foo" have no addresses with port name "https""#,
                )),
            ),
            (
                Some(cluster_ip.clone()),
                vec![slice(&[None], Some("https"))],
                None,
            ),
            (
                Some(cluster_ip),
                vec![
                    slice(&[], Some("https")),
                    slice(&[Some(false), Some(true)], Some("https")),
                ],
                None,
            ),
            (
                Some(service("", &[("", 443)])),
                vec![slice(&[None], Some(""))],
                None,
            ),
            (Some(service("LoadBalancer", &[])), vec![], None),
            (Some(service("ExternalName", &[])), vec![], None),
        ];
        for (number, (service, slices, expected)) in cases.into_iter().enumerate() {
            let verdict = of_service(&address, service.as_ref(), &slices);
            let found = verdict
                .as_ref()
                .map(|one| (one.reason, one.message.as_str()));
            assert_eq!(found, expected, "case {number}");
        }
    }

    #[test]
    fn only_a_server_that_has_answered_is_available() {
        let now = Timestamp::now();
        let passed = Verdict::passed().condition(now);
        assert_eq!(
            (passed.status.as_str(), passed.reason.as_str()),
            ("True", "Passed")
        );
        let failed = Verdict::failed("no".into()).condition(now);
        assert_eq!(
            (
                failed.status.as_str(),
                failed.reason.as_str(),
                failed.message.as_str()
            ),
            ("False", "FailedDiscoveryCheck", "no")
        );
    }
}
