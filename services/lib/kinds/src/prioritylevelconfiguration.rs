//! PriorityLevelConfiguration: limits the requests of a priority level that are executed at a time.

use setpoint_proto::flowcontrol::{
    ExemptPriorityLevelConfiguration, LimitResponse, LimitedPriorityLevelConfiguration,
    PriorityLevelConfiguration, QueuingConfiguration,
};

use super::{Paths, StoredKind, flowcontrol, status};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const EXEMPT: &str = "exempt";
const DEFAULT_SHARES: i32 = 30;
const DEFAULT_QUEUES: i32 = 64;
const DEFAULT_HAND_SIZE: i32 = 8;
const DEFAULT_QUEUE_LENGTH: i32 = 50;
const MOST_QUEUES: i32 = 10_000_000;
/// The bits of the hash from which a flow's queues are dealt.
const HASH_BITS: f64 = 60.0;

impl StoredKind for PriorityLevelConfiguration {
    const STATUS_RESETS: Paths = &[&["spec"], &["metadata"]];
    status::status_items!();

    fn fill_defaults(&mut self) {
        if let Some(exempt) = &mut self.spec.exempt {
            exempt.nominal_concurrency_shares.get_or_insert(0);
            exempt.lendable_percent.get_or_insert(0);
        }
        let Some(limited) = &mut self.spec.limited else {
            return;
        };
        limited
            .nominal_concurrency_shares
            .get_or_insert(DEFAULT_SHARES);
        limited.lendable_percent.get_or_insert(0);
        if let Some(queuing) = &mut limited.limit_response.queuing {
            for (value, default) in [
                (&mut queuing.hand_size, DEFAULT_HAND_SIZE),
                (&mut queuing.queues, DEFAULT_QUEUES),
                (&mut queuing.queue_length_limit, DEFAULT_QUEUE_LENGTH),
            ] {
                if *value == 0 {
                    *value = default;
                }
            }
        }
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (spec, path) = (&self.spec, FieldPath::root("spec"));
        let name = self.metadata.name.as_str();
        if (name == EXEMPT) != (spec.r#type == "Exempt") {
            let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
            errors.invalid(&path.field("type"), &spec.r#type, detail);
        }
        let (limited, exempt) = (path.field("limited"), path.field("exempt"));
        match (spec.r#type.as_str(), &spec.limited, &spec.exempt) {
            ("Exempt", of, own) => {
                if of.is_some() {
                    errors.forbidden(&limited, "must be nil if the type is not Limited");
                }
                if let Some(own) = own {
                    validate_exempt(own, &exempt, errors);
                }
            }
            ("Limited", own, of) => {
                if of.is_some() {
                    errors.forbidden(&exempt, "must be nil if the type is Limited");
                }
                match own {
                    Some(own) => validate_limited(own, &limited, errors),
                    None => errors.required(&limited, "must not be empty when type is Limited"),
                }
            }
            (other, ..) => {
                errors.unsupported(&path.field("type"), other, &["Exempt", "Limited"]);
            }
        }
        validate_mandatory(self, &path, errors);
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        let types = self.status.conditions.iter().map(|one| one.r#type.as_str());
        flowcontrol::validate_condition_types(types, errors);
    }
}

/// Requires that the levels that every cluster has keep their values; of `exempt`, all but the field of that name.
fn validate_mandatory(
    level: &PriorityLevelConfiguration,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let name = level.metadata.name.as_str();
    let mut all = flowcontrol::mandatory_levels();
    let Some(mut fixed) = all.find(|fixed| fixed.metadata.name == name) else {
        return;
    };
    let mut except = "";
    if name == EXEMPT {
        fixed.spec.exempt.clone_from(&level.spec.exempt);
        except = " except the 'spec.exempt' field";
    }
    if fixed.spec != level.spec {
        let detail = format!("spec of '{name}'{except} must equal the fixed value");
        errors.invalid(path, &level.spec, detail);
    }
}

fn validate_exempt(
    exempt: &ExemptPriorityLevelConfiguration,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_shares(exempt.nominal_concurrency_shares, path, errors);
    validate_percent(exempt.lendable_percent, path, errors);
}

fn validate_limited(
    limited: &LimitedPriorityLevelConfiguration,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_shares(limited.nominal_concurrency_shares, path, errors);
    validate_response(
        &limited.limit_response,
        &path.field("limitResponse"),
        errors,
    );
    validate_percent(limited.lendable_percent, path, errors);
    if let Some(percent @ ..0) = limited.borrowing_limit_percent {
        let detail = "if specified, must be a non-negative integer";
        errors.invalid(&path.field("borrowingLimitPercent"), percent, detail);
    }
}

fn validate_shares(shares: Option<i32>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(shares @ ..0) = shares {
        let path = path.field("nominalConcurrencyShares");
        errors.invalid(&path, shares, "must be a non-negative integer");
    }
}

fn validate_percent(percent: Option<i32>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(percent) = percent
        && !(0..=100).contains(&percent)
    {
        let path = path.field("lendablePercent");
        errors.invalid(&path, percent, "must be between 0 and 100, inclusive");
    }
}

fn validate_response(response: &LimitResponse, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let queuing = path.field("queuing");
    match (response.r#type.as_str(), &response.queuing) {
        ("Reject", None) => {}
        ("Reject", Some(_)) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            errors.forbidden(&queuing, detail);
        }
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.required(&queuing, detail);
        }
        ("Queue", Some(of)) => validate_queuing(of, &queuing, errors),
        (other, _) => errors.unsupported(&path.field("type"), other, &["Queue", "Reject"]),
    }
}

fn validate_queuing(
    queuing: &QueuingConfiguration,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    const POSITIVE: &str = "must be positive";
    let (queues, hand) = (queuing.queues, queuing.hand_size);
    if queuing.queue_length_limit <= 0 {
        let path = path.field("queueLengthLimit");
        errors.invalid(&path, queuing.queue_length_limit, POSITIVE);
    }
    let at = path.field("queues");
    if queues <= 0 {
        errors.invalid(&at, queues, POSITIVE);
    } else if queues > MOST_QUEUES {
        let detail = format!("must not be greater than {MOST_QUEUES}");
        errors.invalid(&at, queues, detail);
    }
    let at = path.field("handSize");
    let bits = (f64::from(queues).log2() * f64::from(hand)).ceil();
    if hand <= 0 {
        errors.invalid(&at, hand, POSITIVE);
    } else if hand > queues {
        let detail = format!("should not be greater than queues ({queues})");
        errors.invalid(&at, hand, detail);
    } else if bits > HASH_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        );
        errors.invalid(&at, hand, detail);
    }
}
