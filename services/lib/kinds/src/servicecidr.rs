//! ServiceCIDR: at most one range of each IP family; a second one may be added later.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::networking::ServiceCidr;

use super::{Paths, StoredKind, status};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::{ip, metadata};

/// The name of the object with the range of the gateway's settings, which the gateway creates.
pub const DEFAULT: &str = "kubernetes";
const IMMUTABLE: &str = "field is immutable";

impl StoredKind for ServiceCidr {
    const STATUS_RESETS: Paths = &[&["spec"], &["metadata"]];

    status::status_items!(uncounted);

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
        metadata::keep_for_status(&mut self.metadata, &old.metadata);
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        validate(&self.spec.cidrs, errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let path = path.field("cidrs");
        let (new, old) = (&self.spec.cidrs, &old.spec.cidrs);
        let adds_second = (old.len(), new.len()) == (1, 2);
        if old.len() != new.len() && !adds_second {
            return errors.invalid(&path, new, IMMUTABLE);
        }
        for (index, (new, old)) in new.iter().zip(old).enumerate() {
            errors.immutable(&path.index(index), new, old);
        }
        if adds_second {
            validate(new, errors);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        (column == "CIDRs").then(|| self.spec.cidrs.join(",").into())
    }
}

/// Returns the object with the range from which Services get addresses.
pub fn default_range(cidr: &str) -> ServiceCidr {
    let mut range = ServiceCidr::default();
    range.metadata.name = DEFAULT.into();
    range.spec.cidrs.push(cidr.to_owned());
    range
}

fn validate(ranges: &[String], errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    let path = path.field("cidrs");
    if ranges.is_empty() {
        return errors.required(&path, "at least one CIDR required");
    }
    if ranges.len() > 2 {
        return errors.invalid(&path, ranges, "may only hold up to 2 values");
    }
    for (index, range) in ranges.iter().enumerate() {
        ip::validate_canonical_range(range, &path.index(index), errors);
    }
    let families = ranges.iter().filter_map(|range| ip::parse_range(range));
    let families: Vec<_> = families.map(|(address, _)| address.is_ipv4()).collect();
    if let [first, second] = families[..]
        && first == second
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid(&path, ranges, detail);
    }
}
