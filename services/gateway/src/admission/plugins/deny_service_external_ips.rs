//! Refuses external IPs of Services (upstream: the admission plugin DenyServiceExternalIPs). Users who may write a
//! Service could otherwise have the traffic to any address (CVE-2020-8554). Those that a Service has can stay.

use setpoint_kinds::Subresource;
use setpoint_proto::core::Service;

use super::{Plugin, Step};
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;

/// The plugin.
pub(super) struct DenyServiceExternalIps;

impl Plugin for DenyServiceExternalIps {
    fn check<'a>(&'a self, request: Attributes<'a>, _reader: &'a dyn Reader) -> Option<Step<'a>> {
        let writes = [Operation::Create, Operation::Update].contains(&request.operation);
        if !writes || request.subresource != Subresource::None {
            return None;
        }
        let new = request.object?.downcast_ref::<Service>()?;
        let old = request.old.and_then(|old| old.downcast_ref::<Service>());
        let known = old.map_or(&[][..], |old| &old.spec.external_ips);
        let is_known = new.spec.external_ips.iter().all(|ip| known.contains(ip));
        (!is_known).then(|| {
            let why = "Use of external IPs is denied by admission control";
            let refused = errors::forbidden(request.target, why, None);
            Box::pin(async { Err(refused) }) as Step<'a>
        })
    }
}
