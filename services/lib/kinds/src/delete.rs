//! The deletion of an object: its grace period, the finalizers of its propagation policy, and when it is complete.

use jiff::Timestamp;
use setpoint_codec::{Kind, Object};
use setpoint_model::time::seconds_after;
use setpoint_proto::meta::{DeleteOptions, ObjectMeta};

use crate::validation::metadata::{FOREGROUND, ORPHAN};

/// Begins the deletion of an object, or shortens its grace period.
pub fn begin_or_shorten(object: &mut dyn Object, options: &DeleteOptions, now: Timestamp) {
    let orphans = crate::of(object.kind()).orphans_by_default();
    set_propagation_finalizer(object.meta_mut(), options, orphans);
    // A negative grace period is an old form of "as soon as possible".
    let requested = options.grace_period_seconds;
    let requested = requested.map(|grace| if grace < 0 { 1 } else { grace });
    let meta = object.meta();
    match (meta.deletion_timestamp, meta.deletion_grace_period_seconds) {
        (Some(deadline), Some(grace)) if grace > 0 => {
            shorten(
                object.meta_mut(),
                deadline.timestamp(),
                grace,
                requested,
                now,
            );
        }
        (Some(_), Some(_)) => {}
        (first, _) => begin(object, requested, first.is_none(), now),
    }
}

/// Returns the warnings about a deletion with these options.
pub fn warnings(kind: &Kind, options: &DeleteOptions) -> Vec<String> {
    let has_policy = options.propagation_policy.is_some() || options.orphan_dependents.is_some();
    let warning = crate::of(kind).orphan_warning().filter(|_| !has_policy);
    warning.map(str::to_owned).into_iter().collect()
}

/// Returns whether the object is being deleted, its grace period is over, and no finalizer holds it.
pub fn is_complete(object: &dyn Object) -> bool {
    let meta = object.meta();
    meta.deletion_timestamp.is_some()
        && meta.deletion_grace_period_seconds == Some(0)
        && meta.finalizers.is_empty()
        && !crate::of(object.kind()).holds_deletion(object)
}

fn begin(object: &mut dyn Object, requested: Option<i64>, first: bool, now: Timestamp) {
    let rules = crate::of(object.kind());
    let (grace, counts) = (
        rules.begin_deletion(object, requested),
        rules.counts_generations(),
    );
    let meta = object.meta_mut();
    meta.generation = meta.generation.saturating_add(i64::from(first && counts));
    meta.deletion_timestamp = Some(seconds_after(now, grace).into());
    meta.deletion_grace_period_seconds = Some(grace);
}

/// Shortens the grace period to `requested` if that is less. It counts from the start of the deletion.
fn shorten(
    meta: &mut ObjectMeta,
    deadline: Option<Timestamp>,
    grace: i64,
    requested: Option<i64>,
    now: Timestamp,
) {
    let Some(requested) = requested.filter(|requested| *requested < grace) else {
        return;
    };
    // The start cannot be computed from a saturated deadline.
    let exact = deadline.filter(|deadline| deadline.as_second() < Timestamp::MAX.as_second());
    let began = exact.map(|deadline| seconds_after(deadline, grace.saturating_neg()));
    let began = began.filter(|began| *began <= now);
    let sooner = seconds_after(began.unwrap_or(now), requested);
    let (deadline, left) = match sooner < now {
        // It is over, but the node agent still removes the object, unless a period of 0 was requested.
        true => (now, requested.min(1)),
        false => (sooner, requested),
    };
    meta.deletion_timestamp = Some(deadline.into());
    meta.deletion_grace_period_seconds = Some(left);
}

/// Sets the finalizer of the propagation policy: dependants are orphaned first, deleted first, or neither. Without a
/// policy, finalizers that are set decide, then `orphans`.
fn set_propagation_finalizer(meta: &mut ObjectMeta, options: &DeleteOptions, orphans: bool) {
    let is_set = |name: &str| meta.finalizers.iter().any(|finalizer| finalizer == name);
    let decided = is_set(ORPHAN) || is_set(FOREGROUND);
    let policy = match (&options.propagation_policy, options.orphan_dependents) {
        (Some(policy), _) => policy.as_str(),
        (None, Some(true)) => "Orphan",
        (None, None) if orphans && !decided => "Orphan",
        (None, None) => return,
        (None, Some(false)) => "Background",
    };
    let is_policy = |finalizer: &String| [ORPHAN, FOREGROUND].contains(&finalizer.as_str());
    meta.finalizers.retain(|finalizer| !is_policy(finalizer));
    match policy {
        "Orphan" => meta.finalizers.push(ORPHAN.into()),
        "Foreground" => meta.finalizers.push(FOREGROUND.into()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::apps::Deployment;
    use setpoint_proto::core::{Namespace, Pod};

    use super::*;

    fn bound_pod() -> Pod {
        let mut pod = Pod::default();
        pod.spec.node_name = "node-1".into();
        pod
    }

    fn with_grace(grace: i64) -> DeleteOptions {
        DeleteOptions {
            grace_period_seconds: Some(grace),
            ..Default::default()
        }
    }

    #[test]
    fn a_grace_period_can_be_shortened_but_not_extended() {
        let (mut pod, now) = (bound_pod(), Timestamp::from_second(1_000).unwrap());
        let deadline = |pod: &Pod| {
            pod.metadata
                .deletion_timestamp
                .and_then(|time| time.timestamp())
        };
        begin_or_shorten(&mut pod, &DeleteOptions::default(), now);
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(30));
        assert_eq!(deadline(&pod), Timestamp::from_second(1_030).ok());
        begin_or_shorten(&mut pod, &with_grace(60), now);
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(30));
        begin_or_shorten(&mut pod, &DeleteOptions::default(), now);
        assert_eq!(deadline(&pod), Timestamp::from_second(1_030).ok());
        begin_or_shorten(&mut pod, &with_grace(5), now);
        assert_eq!(deadline(&pod), Timestamp::from_second(1_005).ok());
        begin_or_shorten(&mut pod, &with_grace(0), now);
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(0));
    }

    /// Checks F1.
    #[test]
    fn the_longest_grace_periods_do_not_overflow() {
        let now = Timestamp::from_second(1_000).unwrap();
        for grace in [i64::MAX, i64::MAX / 2, 300_000_000_000] {
            let mut pod = bound_pod();
            pod.spec.termination_grace_period_seconds = Some(grace);
            begin_or_shorten(&mut pod, &DeleteOptions::default(), now);
            assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(grace));
            begin_or_shorten(&mut pod, &with_grace(grace.saturating_sub(1)), now);
            begin_or_shorten(&mut pod, &with_grace(5), now);
            let deadline = pod.metadata.deletion_timestamp.unwrap().timestamp();
            assert_eq!(deadline, Timestamp::from_second(1_005).ok(), "{grace}");
        }
    }

    /// Checks F1.
    #[test]
    fn a_negative_grace_period_is_one_second() {
        let (mut pod, now) = (bound_pod(), Timestamp::from_second(1_000).unwrap());
        begin_or_shorten(&mut pod, &with_grace(i64::MIN), now);
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(1));
    }

    #[test]
    fn a_shortened_grace_period_counts_from_the_start_of_the_deletion() {
        let (mut pod, now) = (bound_pod(), Timestamp::from_second(1_000).unwrap());
        begin_or_shorten(&mut pod, &with_grace(30), now);
        let later = Timestamp::from_second(1_010).unwrap();
        begin_or_shorten(&mut pod, &with_grace(20), later);
        let deadline = |pod: &Pod| pod.metadata.deletion_timestamp.unwrap().timestamp();
        assert_eq!(deadline(&pod), Timestamp::from_second(1_020).ok());
        begin_or_shorten(&mut pod, &with_grace(5), later);
        assert_eq!(deadline(&pod), Some(later));
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(1));
    }

    #[test]
    fn a_deletion_increments_the_generation_once() {
        let (mut web, now) = (Deployment::default(), Timestamp::UNIX_EPOCH);
        web.metadata.generation = 4;
        begin_or_shorten(&mut web, &DeleteOptions::default(), now);
        begin_or_shorten(&mut web, &DeleteOptions::default(), now);
        assert_eq!(web.metadata.generation, 5);
    }

    #[test]
    fn the_propagation_policy_sets_its_finalizer() {
        let policy = |policy: &str| DeleteOptions {
            propagation_policy: Some(policy.into()),
            ..Default::default()
        };
        let mut meta = ObjectMeta::default();
        set_propagation_finalizer(&mut meta, &policy("Orphan"), false);
        assert_eq!(meta.finalizers, [ORPHAN]);
        set_propagation_finalizer(&mut meta, &DeleteOptions::default(), false);
        assert_eq!(meta.finalizers, [ORPHAN]);
        set_propagation_finalizer(&mut meta, &policy("Foreground"), false);
        assert_eq!(meta.finalizers, [FOREGROUND]);
        set_propagation_finalizer(&mut meta, &policy("Background"), true);
        assert!(meta.finalizers.is_empty());
        set_propagation_finalizer(&mut meta, &DeleteOptions::default(), false);
        assert!(meta.finalizers.is_empty());
        set_propagation_finalizer(&mut meta, &DeleteOptions::default(), true);
        assert_eq!(meta.finalizers, [ORPHAN]);
        set_propagation_finalizer(&mut meta, &policy("Foreground"), false);
        set_propagation_finalizer(&mut meta, &DeleteOptions::default(), true);
        assert_eq!(meta.finalizers, [FOREGROUND]);
    }

    #[test]
    fn a_deletion_is_complete_without_a_grace_period_and_finalizers() {
        let mut pod = Pod::default();
        assert!(!is_complete(&pod));
        pod.metadata.deletion_timestamp = Some(Default::default());
        pod.metadata.deletion_grace_period_seconds = Some(30);
        assert!(!is_complete(&pod));
        pod.metadata.deletion_grace_period_seconds = Some(0);
        assert!(is_complete(&pod));
        pod.metadata.finalizers.push("a.io/b".into());
        assert!(!is_complete(&pod));
        let mut namespace = Namespace::default();
        namespace.metadata.deletion_timestamp = Some(Default::default());
        namespace.metadata.deletion_grace_period_seconds = Some(0);
        namespace.spec.finalizers.push("kubernetes".into());
        assert!(!is_complete(&namespace));
    }
}
