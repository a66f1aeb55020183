//! The names that the resolver of a Pod asks for next: with them, one answer ends its walk along the search path.

use std::net::IpAddr;

use hickory_proto::rr::{Name, RecordType};
use setpoint_controller::View as _;

use super::Zone;
use crate::records::Index;

/// Returns the names that follow `asked` on the search path of the Pod with this address; none if `asked` is not the
/// first of a walk. `search` are the domains after those of the cluster.
pub fn expand(
    zone: &Zone,
    index: &Index,
    client: IpAddr,
    asked: &Name,
    of: RecordType,
    search: &[Name],
) -> Vec<Name> {
    let mut pods = index.pods_at(client).filter(|_| is_address(of));
    let Some(namespace) = pods.next().map(|pod| &*pod.meta().key.namespace) else {
        return Vec::new();
    };
    let path = [
        zone.name([namespace, "svc"]),
        zone.name(["svc"]),
        Some(zone.origin.clone()),
    ];
    let path: Vec<Name> = path.into_iter().flatten().collect();
    let Some(first) = path.first().filter(|first| first.zone_of(asked)) else {
        return Vec::new();
    };
    let own = usize::from(asked.num_labels().saturating_sub(first.num_labels()));
    let base: Vec<&[u8]> = asked.iter().take(own).collect();
    if base.is_empty() {
        return Vec::new();
    }
    let root = Name::root();
    let after = path.iter().skip(1).chain(search).chain([&root]);
    let names = after.map(|domain| Name::from_labels(base.iter().copied().chain(domain.iter())));
    names.filter_map(Result::ok).collect()
}

fn is_address(of: RecordType) -> bool {
    matches!(of, RecordType::A | RecordType::AAAA)
}
