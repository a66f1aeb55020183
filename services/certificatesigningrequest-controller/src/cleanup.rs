//! When a request is removed, as upstream's cleaner. Pure.

use std::time::Duration;

use jiff::Timestamp;

use crate::RequestView;

/// The time for which a request with a decision is kept.
const DECIDED: Duration = Duration::from_secs(3600);
/// The time for which a request without one is kept.
const PENDING: Duration = Duration::from_secs(24 * 3600);

/// Returns the time until the request is removed, and the reason; zero if it is due.
pub(crate) fn due(request: &RequestView, now: Timestamp) -> Option<(Duration, &'static str)> {
    let created = request.meta.created?;
    let until = |since: Timestamp, kept: Duration| {
        let end = since.saturating_add(kept).unwrap_or(Timestamp::MAX);
        Duration::try_from(end.duration_since(now)).unwrap_or_default()
    };
    let decided = |of: &str| {
        let condition = request.condition(of)?;
        let at = condition.last_update_time.timestamp();
        Some(at.unwrap_or(created))
    };
    let conditions = [
        ("Denied", "it was denied an hour ago"),
        ("Failed", "it failed an hour ago"),
        ("Approved", "it was approved an hour ago"),
    ];
    let decisions = conditions
        .into_iter()
        .filter_map(|(of, because)| Some((until(decided(of)?, DECIDED), because)));
    let expiry = request.expires.map(|expires| {
        (
            until(expires, Duration::ZERO),
            "its certificate has expired",
        )
    });
    let pending = request.is_pending().then(|| {
        let because = "nobody decided on it for a day";
        (until(created, PENDING), because)
    });
    let due = decisions.chain(expiry).chain(pending);
    due.min_by_key(|(wait, _)| *wait)
}

#[cfg(test)]
mod tests {
    use setpoint_controller::View as _;
    use setpoint_proto::certificates::{
        CertificateSigningRequest, CertificateSigningRequestCondition,
    };

    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + second)
    }

    /// A condition, and the second of its last update.
    type Decision = (&'static str, Option<u64>);

    fn request(conditions: &[Decision], expires: Option<u64>) -> RequestView {
        let mut object = CertificateSigningRequest::default();
        object.metadata.creation_timestamp = at(0).into();
        let conditions = conditions.iter().map(|(of, updated)| {
            let mut condition = CertificateSigningRequestCondition {
                r#type: (*of).to_owned(),
                ..CertificateSigningRequestCondition::default()
            };
            if let Some(second) = updated {
                condition.last_update_time = at(*second).into();
            }
            condition
        });
        object.status.conditions = conditions.collect();
        RequestView {
            is_issued: expires.is_some(),
            expires: expires.map(at),
            ..RequestView::of(object)
        }
    }

    #[test]
    fn the_first_reason_to_remove_a_request_counts() {
        let (denied, failed, approved, expired, pending) = (
            "it was denied an hour ago",
            "it failed an hour ago",
            "it was approved an hour ago",
            "its certificate has expired",
            "nobody decided on it for a day",
        );
        // Decisions, the second of expiry, and that of the removal with its reason.
        #[rustfmt::skip]
        let cases: &[(&[Decision], Option<u64>, u64, &str)] = &[
            (&[], None, 86_400, pending),
            (&[("Denied", Some(10))], None, 3_610, denied),
            (&[("Failed", Some(10))], None, 3_610, failed),
            (&[("Approved", Some(10))], None, 3_610, approved),
            (&[("Approved", Some(30)), ("Failed", Some(20)), ("Denied", Some(40))], None, 3_620, failed),
            (&[("Approved", Some(10))], Some(700), 700, expired),
            (&[("Approved", Some(10))], Some(9_000), 3_610, approved),
            (&[], Some(90_000), 90_000, expired),
            // Without a time, a decision is as old as the request.
            (&[("Approved", None)], None, 3_600, approved),
        ];
        for (conditions, expires, end, because) in cases {
            let request = request(conditions, *expires);
            for age in [0, end - 1, *end, end + 1] {
                let wait = Duration::from_secs(end.saturating_sub(age));
                let found = due(&request, at(age));
                assert_eq!(found, Some((wait, *because)), "{conditions:?} {age}");
            }
        }
    }
}
