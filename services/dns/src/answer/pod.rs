//! Names of Pods by their addresses.

use hickory_proto::rr::{Name, RecordType};
use setpoint_controller::View as _;

use super::name::parse_dashed;
use super::{Answer, PodMode, Records, Zone};
use crate::records::Index;

pub fn answer(
    zone: &Zone,
    index: &Index,
    asked: &Name,
    of: RecordType,
    namespace: &str,
    address: &str,
) -> Answer {
    if zone.pods == PodMode::Disabled || !index.has_namespace(namespace) {
        return Answer::NoName;
    }
    let Some(address) = parse_dashed(address) else {
        return Answer::NoName;
    };
    let mut pods = index.pods_at(address);
    let exists = pods.any(|pod| pod.meta().key.namespace == namespace);
    if zone.pods == PodMode::Verified && !exists {
        return Answer::NoName;
    }
    Records {
        answers: zone.addresses(asked, of, [address]).collect(),
        additionals: Vec::new(),
    }
    .into()
}
