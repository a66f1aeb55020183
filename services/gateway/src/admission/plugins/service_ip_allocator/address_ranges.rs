//! The ranges from which Services get cluster IPs: that of the settings, and those of ServiceCIDRs.

use std::net::Ipv4Addr;

use setpoint_kinds::servicecidr;
use setpoint_model::{Cidr, condition};
use setpoint_proto::networking::ServiceCidr;

/// The ranges from which Services get cluster IPs, in the order in which they are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddressRanges {
    ranges: Vec<Cidr>,
    /// The address of the Service `kubernetes`, which requests it.
    reserved: Ipv4Addr,
}

impl AddressRanges {
    /// Returns the range of the settings, then those of all ServiceCIDRs that are ready. One without the condition
    /// `Ready` is, as upstream: no controller may run. The range of the settings is left out while a ServiceCIDR
    /// `kubernetes` that has it is being deleted.
    pub(super) fn new(default: Cidr, reserved: Ipv4Addr, all: &[ServiceCidr]) -> Self {
        let ends = |one: &ServiceCidr| {
            one.metadata.name == servicecidr::DEFAULT
                && one.metadata.deletion_timestamp.is_some()
                && ranges(one).any(|range| default.is_within(range))
        };
        let default = (!all.iter().any(ends)).then_some(default);
        let further = all.iter().filter(|one| is_ready(one)).flat_map(ranges);
        let mut unique = Vec::new();
        for range in default.into_iter().chain(further) {
            if !unique.contains(&range) {
                unique.push(range);
            }
        }
        Self {
            ranges: unique,
            reserved,
        }
    }

    /// Returns upstream's reason why a Service cannot have an address; `None` if it can.
    pub(super) fn refusal(&self, address: Ipv4Addr) -> Option<String> {
        let mut within = self.ranges.iter().filter(|range| range.contains(address));
        let Some(first) = within.clone().next() else {
            return Some("the provided network does not match the current range".to_owned());
        };
        let assignable = within.any(|range| hosts(*range).contains(&address.to_bits()));
        (!assignable).then(|| {
            format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is {}",
                first.prefixed()
            )
        })
    }

    /// Returns a free address of the first range that has one, at random.
    pub(super) fn free(&self, is_free: impl Fn(&Ipv4Addr) -> bool) -> Option<Ipv4Addr> {
        let mut ranges = self.ranges.iter();
        ranges.find_map(|range| {
            let addresses = super::from_random(hosts(*range)).map(Ipv4Addr::from);
            let mut free =
                addresses.filter(|address| *address != self.reserved && is_free(address));
            free.next()
        })
    }
}

fn is_ready(range: &ServiceCidr) -> bool {
    let ready = condition::get(&range.status.conditions, "Ready");
    range.metadata.deletion_timestamp.is_none()
        && ready.is_none_or(|ready| ready.status == condition::TRUE)
}

/// Returns the ranges of IPv4 of a ServiceCIDR.
fn ranges(range: &ServiceCidr) -> impl Iterator<Item = Cidr> {
    let texts = range.spec.cidrs.iter();
    texts.filter_map(|text| text.parse().ok())
}

/// Returns the addresses of a range that Services may have: all but the network's own and the last.
fn hosts(range: Cidr) -> std::ops::Range<u32> {
    range.first().to_bits().saturating_add(1)..range.last().to_bits()
}

#[cfg(test)]
mod tests {
    use setpoint_proto::meta::Condition;

    use super::*;

    fn range(name: &str, cidr: &str, ready: &str, deleting: bool) -> ServiceCidr {
        let mut range = servicecidr::default_range(cidr);
        range.metadata.name = name.into();
        range.metadata.deletion_timestamp = deleting.then(|| jiff::Timestamp::UNIX_EPOCH.into());
        if !ready.is_empty() {
            range.status.conditions.push(Condition {
                r#type: "Ready".into(),
                status: ready.into(),
                ..Condition::default()
            });
        }
        range
    }

    fn of(all: &[ServiceCidr]) -> AddressRanges {
        let default: Cidr = "10.96.0.0/29".parse().unwrap();
        AddressRanges::new(default, Ipv4Addr::new(10, 96, 0, 1), all)
    }

    fn texts(ranges: &AddressRanges) -> Vec<String> {
        ranges.ranges.iter().map(|range| range.prefixed()).collect()
    }

    #[test]
    fn ranges_that_are_not_ready_or_being_deleted_are_left_out() {
        let mut dual = range("dual", "fd00::/112", "True", false);
        dual.spec.cidrs.push("10.5.0.0/24".into());
        let found = of(&[
            range("kubernetes", "10.96.0.0/29", "True", false),
            range("without condition", "10.1.0.0/24", "", false),
            range("not ready", "10.2.0.0/24", "False", false),
            range("deleted", "10.3.0.0/24", "True", true),
            dual,
        ]);
        assert_eq!(
            texts(&found),
            ["10.96.0.0/29", "10.1.0.0/24", "10.5.0.0/24"]
        );
        let ending = range("kubernetes", "10.96.0.0/29", "True", true);
        let covering = range("covering", "10.96.0.0/16", "True", false);
        assert_eq!(texts(&of(&[ending, covering])), ["10.96.0.0/16"]);
        let former = range("kubernetes", "10.7.0.0/16", "True", true);
        assert_eq!(texts(&of(&[former])), ["10.96.0.0/29"]);
    }

    #[test]
    fn an_address_of_no_range_is_refused_in_upstreams_words() {
        let found = of(&[range("second", "10.88.0.0/24", "True", false)]);
        let why = |text: &str| found.refusal(text.parse().unwrap());
        assert_eq!(why("10.96.0.1"), None);
        assert_eq!(why("10.88.0.254"), None);
        let mismatch = "the provided network does not match the current range";
        assert_eq!(why("10.89.0.7").as_deref(), Some(mismatch));
        let edge = "the provided IP (10.88.0.255) is not in the valid range. The range of valid IPs is 10.88.0.0/24";
        assert_eq!(why("10.88.0.255").as_deref(), Some(edge));
        // An address at the end of one range may be within another.
        let within = of(&[range("large", "10.96.0.0/24", "True", false)]);
        assert_eq!(within.refusal(Ipv4Addr::new(10, 96, 0, 7)), None);
    }

    #[test]
    fn the_next_range_is_used_once_the_first_is_full() {
        let second = range("second", "10.88.0.0/30", "True", false);
        let tiny = range("tiny", "10.77.0.0/31", "True", false);
        let found = of(&[tiny, second]);
        let mut taken = Vec::new();
        while let Some(address) = found.free(|address| !taken.contains(address)) {
            taken.push(address);
        }
        let first = taken.iter().position(|one| one.octets()[1] == 88);
        assert_eq!((first, taken.len()), (Some(5), 7), "{taken:?}");
        assert!(!taken.contains(&Ipv4Addr::new(10, 96, 0, 1)));
    }
}
