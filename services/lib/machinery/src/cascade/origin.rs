//! Which of its causes a round follows from.
//!
//! We chose the youngest trace over the first one: what a round does is explained by the newest intent, and an old
//! trace must not swallow what others began since. It would be wrong if a newer trace woke keys that it has nothing to
//! do with; those rounds find nothing to do, and leave no span. Within that trace the last write is the parent, since
//! the round saw the world after it. All the others are linked.

use std::time::Duration;

use setpoint_proto::{Cause, Lineage, Traceparent};

/// Where a round comes from.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Origin<'c> {
    /// Whose trace it continues; without one it begins its own.
    pub(super) parent: Option<&'c Cause>,
    /// What else made it necessary.
    pub(super) links: Vec<&'c Cause>,
    /// Where its writes stand.
    pub(super) lineage: Lineage,
}

impl<'c> Origin<'c> {
    /// The write that it continues the trace of, and the span of that.
    pub(super) fn parent(&self) -> Option<(&'c Cause, Traceparent)> {
        let write = self.parent?;
        Some((write, write.traceparent?))
    }

    pub(super) fn of(causes: &'c [Cause], now_ns: i64, age: Duration) -> Self {
        // Of equals the first: `max_by_key` would take the last.
        let newest = causes.iter().rev().max_by_key(|cause| rank(cause));
        let Some(newest) = newest else {
            return Self::default();
        };
        let others = causes.iter().filter(|&cause| cause != newest);
        match is_old(newest, now_ns, age) {
            true => Self {
                links: std::iter::once(newest).chain(others).collect(),
                ..Self::default()
            },
            false => Self {
                parent: Some(newest),
                links: others.collect(),
                lineage: Lineage::after(newest),
            },
        }
    }
}

/// Traced before untraced, then the youngest trace, then its last write.
pub(crate) fn rank(cause: &Cause) -> (bool, i64, i64) {
    (
        cause.traceparent.is_some(),
        cause.began_ns,
        cause.written_ns,
    )
}

fn is_old(cause: &Cause, now_ns: i64, age: Duration) -> bool {
    let lived = u128::try_from(now_ns.saturating_sub(cause.began_ns)).unwrap_or_default();
    cause.began_ns > 0 && lived > age.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(600);
    const SECOND: i64 = 1_000_000_000;

    fn cause(trace: u8, began: i64, written: i64) -> Cause {
        Cause {
            traceparent: format!("00-{trace:032x}-{written:016x}-01").parse().ok(),
            began_ns: began * SECOND,
            written_ns: written * SECOND,
            depth: 2,
            ..Cause::default()
        }
    }

    fn origin(causes: &[Cause], now: i64) -> Origin<'_> {
        Origin::of(causes, now * SECOND, AGE)
    }

    #[test]
    fn of_one_trace_the_last_write_is_the_parent() {
        let causes = [cause(1, 10, 11), cause(1, 10, 13), cause(1, 10, 12)];
        let origin = origin(&causes, 20);
        assert_eq!(origin.parent, Some(&causes[1]));
        assert_eq!(origin.links, [&causes[0], &causes[2]]);
        assert_eq!(origin.lineage.depth, 3);
        assert_eq!(origin.lineage.began_ns, 10 * SECOND);
    }

    #[test]
    fn of_several_traces_the_youngest_goes_on_and_the_others_are_linked() {
        let causes = [cause(1, 10, 19), cause(2, 15, 16)];
        let origin = origin(&causes, 20);
        assert_eq!(origin.parent, Some(&causes[1]));
        assert_eq!(origin.links, [&causes[0]]);
    }

    #[test]
    fn an_old_trace_is_left_with_a_link_back() {
        let causes = [cause(1, 10, 500)];
        assert_eq!(origin(&causes, 610).parent, Some(&causes[0]));
        let cut = origin(&causes, 611);
        assert_eq!((cut.parent, cut.links), (None, vec![&causes[0]]));
        assert_eq!(cut.lineage, Lineage::default());
    }

    #[test]
    fn an_untraced_write_takes_nobodys_place() {
        let untraced = Cause {
            began_ns: 19 * SECOND,
            ..Cause::default()
        };
        let causes = [untraced, cause(1, 10, 11)];
        assert_eq!(origin(&causes, 20).parent, Some(&causes[1]));
        assert_eq!(origin(&[], 20), Origin::default());
    }
}
