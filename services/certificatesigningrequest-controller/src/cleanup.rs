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
