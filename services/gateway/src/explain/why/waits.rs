//! Finds the reasons for which an object waits, from its records: those that its kind knows, and those of all kinds.
//! Pure.

use std::collections::BTreeSet;

use setpoint_codec::Object;
use setpoint_kinds::waits::{self, newest, wait};
use setpoint_kinds::{self as kinds, StoredKind as _};
use setpoint_proto::core::Pod;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::setpoint::{ObjectRef, Observer, Wait};

/// The records that an explanation is derived from.
pub(super) struct Records {
    pub subject: ObjectRef,
    /// `None` if the object does not exist any more.
    pub object: Option<Box<dyn Object>>,
    /// The Pods that it controls and that are not ready.
    pub pods: Vec<(ObjectRef, Pod)>,
    pub observers: Vec<Observer>,
    pub now_ns: i64,
}

impl Records {
    /// Returns the records of an object: the subject, or one of its Pods.
    fn of<'a>(&'a self, subject: &'a ObjectRef) -> waits::Records<'a> {
        waits::Records {
            subject,
            pods: &self.pods,
            observers: &self.observers,
            now_ns: self.now_ns,
        }
    }
}

/// Returns what the object waits for: first its own state, then the Pods that it controls, then failed and scheduled
/// reconciles.
pub(super) fn waits(records: &Records) -> Vec<Wait> {
    let Some(object) = records.object.as_deref() else {
        return Vec::new();
    };
    let rules = kinds::of(object.kind());
    let mut waits: Vec<_> = deletion(object.meta()).into_iter().collect();
    waits.extend(rules.waits(object, &records.of(&records.subject)));
    waits.extend(blocked(records));
    waits.extend(reconciles(records, rules.waits_have_next_reconcile()));
    waits
}

fn deletion(meta: &ObjectMeta) -> Option<Wait> {
    let deadline = meta.deletion_timestamp.as_ref()?.timestamp();
    if !meta.finalizers.is_empty() {
        let finalizers = meta.finalizers.join(", ");
        let message = format!("it is being deleted, and kept by finalizers: {finalizers}");
        return Some(wait("Terminating", message));
    }
    let until = deadline.and_then(|deadline| i64::try_from(deadline.as_nanosecond()).ok());
    Some(Wait {
        until_ns: until.unwrap_or_default(),
        ..wait(
            "Terminating",
            "it is being deleted, and has until then to stop",
        )
    })
}

/// Returns what the Pods wait for.
fn blocked(records: &Records) -> Vec<Wait> {
    let of_pod = |(reference, pod): &(ObjectRef, Pod)| {
        let waits = pod.waits(&records.of(reference));
        let on = reference.clone();
        waits.into_iter().map(move |wait| Wait {
            on: Some(on.clone()),
            ..wait
        })
    };
    records.pods.iter().flat_map(of_pod).collect()
}

/// Returns the services whose last reconcile of the object failed, or whose next one is scheduled. Of several replicas,
/// the most recent reconcile counts. A scheduled reconcile is left out if the waits of the kind have it: `explained`.
fn reconciles(records: &Records, explained: bool) -> Vec<Wait> {
    let services = records.observers.iter().map(|one| one.service.as_str());
    let services: BTreeSet<_> = services.collect();
    let next = services.into_iter().filter_map(|service| {
        let last = newest(&records.observers, service, &records.subject)?;
        let (reason, message) = match last.error.as_str() {
            "" if explained || last.next_ns <= records.now_ns => return None,
            "" => ("NextLook", format!("{service} looks again by itself")),
            error => {
                let message = format!("{service}, attempt {}: {error}", last.attempt);
                ("Failing", message)
            }
        };
        Some(Wait {
            until_ns: last.next_ns,
            ..wait(reason, message)
        })
    });
    next.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use setpoint_codec::kinds;
    use setpoint_model::Key;
    use setpoint_model::replicas::{NODE_AGENT, SCHEDULER};
    use setpoint_proto::setpoint::{Reconcile, ReconcileOutcome, Step, Verdict};

    use super::*;

    const NOW: i64 = 1_000;

    fn reference(resource: &str, name: &str) -> ObjectRef {
        Key::new("production", name).in_resource(resource)
    }

    fn object(kind: &str, json: Value) -> Option<Box<dyn Object>> {
        let kind = kinds().by_any_name(kind).unwrap();
        Some(kind.from_json(json.to_string().as_bytes()).unwrap())
    }

    fn records(kind: &str, json: Value) -> Records {
        Records {
            subject: reference("any", "web"),
            object: object(kind, json),
            pods: Vec::new(),
            observers: Vec::new(),
            now_ns: NOW,
        }
    }

    fn observer(service: &str, subject: &ObjectRef, reconcile: Reconcile) -> Observer {
        Observer {
            service: service.to_owned(),
            reconciles: vec![Reconcile {
                subject: Some(subject.clone()),
                ..reconcile
            }],
            ..Observer::default()
        }
    }

    fn found(records: &Records) -> Vec<(String, String, i64)> {
        let found = waits(records).into_iter();
        found
            .map(|wait| (wait.reason, wait.message, wait.until_ns))
            .collect()
    }

    fn expected(reason: &str, message: &str, until_ns: i64) -> (String, String, i64) {
        (reason.to_owned(), message.to_owned(), until_ns)
    }

    fn refused(subject: &ObjectRef) -> Observer {
        let because = "0/1 nodes are available: 1 Insufficient cpu.";
        let reconcile = Reconcile {
            outcome: ReconcileOutcome::Waiting.into(),
            next_ns: 5_000,
            steps: vec![Step {
                action: "Refuse".to_owned(),
                because: because.to_owned(),
            }],
            verdicts: vec![Verdict::default()],
            ..Reconcile::default()
        };
        observer(SCHEDULER, subject, reconcile)
    }

    #[test]
    fn a_deleted_or_ready_object_waits_for_nothing() {
        let ready = json!({"spec": {"replicas": 1}, "status": {"readyReplicas": 1}});
        assert_eq!(found(&records("Deployment", ready)), []);
        let mut gone = records("Pod", json!({}));
        gone.object = None;
        assert_eq!(found(&gone), []);
        let pod = json!({"spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}});
        assert_eq!(found(&records("Pod", pod)), []);
    }

    #[test]
    fn a_pod_without_a_node_waits_for_the_reason_of_the_scheduler_or_of_its_condition() {
        let condition = json!({"type": "PodScheduled", "status": "False", "message": "no room"});
        let pod = json!({"status": {"conditions": [condition]}});
        let mut records = records("Pod", pod);
        assert_eq!(found(&records), [expected("Unschedulable", "no room", 0)]);
        records.observers = vec![refused(&records.subject)];
        let message = "0/1 nodes are available: 1 Insufficient cpu.";
        assert_eq!(found(&records), [expected("Unschedulable", message, 5_000)]);
        records.object = object("Pod", json!({"spec": {"schedulingGates": [{"name": "g"}]}}));
        assert_eq!(found(&records)[0].0, "SchedulingGated");
    }

    #[test]
    fn a_container_in_backoff_waits_until_the_agents_next_reconcile() {
        let status = json!({
            "name": "a", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
            "lastState": {"terminated": {"exitCode": 3}},
        });
        let pod = json!({"spec": {"nodeName": "n"}, "status": {"containerStatuses": [status]}});
        let mut records = records("Pod", pod);
        let reconcile = Reconcile {
            next_ns: 7_000,
            ..Reconcile::default()
        };
        records.observers = vec![observer(NODE_AGENT, &records.subject, reconcile)];
        let message = "container a: back-off; it ended with exit code 3 and was restarted 2 times";
        assert_eq!(
            found(&records),
            [expected("CrashLoopBackOff", message, 7_000)]
        );
    }

    #[test]
    fn a_rollout_is_blocked_by_the_pods_that_are_not_ready() {
        let deployment = json!({
            "metadata": {"generation": 2}, "spec": {"replicas": 3, "paused": true},
            "status": {"observedGeneration": 1, "readyReplicas": 2, "conditions": [
                {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"}]},
        });
        let mut records = records("Deployment", deployment);
        let pod = reference("pods", "web-a");
        records.observers = vec![refused(&pod)];
        records.pods = vec![(pod.clone(), Pod::default())];
        let reasons: Vec<_> = found(&records).into_iter().map(|one| one.0).collect();
        let all = [
            "NotObserved",
            "Paused",
            "ProgressDeadlineExceeded",
            "NotReady",
            "Unschedulable",
        ];
        assert_eq!(reasons, all);
        assert_eq!(waits(&records)[4].on, Some(pod));
    }

    #[test]
    fn a_daemon_set_waits_for_its_nodes() {
        let mut set = json!({
            "metadata": {"generation": 2}, "spec": {"updateStrategy": {"type": "OnDelete"}},
            "status": {"observedGeneration": 2, "desiredNumberScheduled": 3, "numberReady": 2,
                       "updatedNumberScheduled": 1, "numberMisscheduled": 1},
        });
        let found = |set: &Value| found(&records("DaemonSet", set.clone()));
        let misplaced = "1 nodes have a Pod and should not run one";
        let outdated =
            "1 of 3 Pods are of the current template; OnDelete: one is updated when it is deleted";
        let all = [
            expected("Misscheduled", misplaced, 0),
            expected("NotUpdated", outdated, 0),
            expected("NotReady", "2 of 3 Pods are ready", 0),
        ];
        assert_eq!(found(&set), all);
        set["status"] = json!({"observedGeneration": 2, "desiredNumberScheduled": 1,
                               "numberReady": 1, "updatedNumberScheduled": 1});
        assert_eq!(found(&set), []);
    }

    #[test]
    fn of_several_replicas_the_most_recent_reconcile_counts() {
        let mut records = records("ConfigMap", json!({}));
        let reconcile = |last_ns, error: &str| Reconcile {
            last_ns,
            error: error.to_owned(),
            attempt: 4,
            next_ns: 5_000,
            ..Reconcile::default()
        };
        let failed = observer("a", &records.subject, reconcile(1, "Forbidden: no"));
        records.observers = vec![failed];
        assert_eq!(
            found(&records),
            [expected("Failing", "a, attempt 4: Forbidden: no", 5_000)]
        );
        let later = observer("a", &records.subject, reconcile(2, ""));
        records.observers.push(later);
        assert_eq!(found(&records)[0].0, "NextLook");
    }

    #[test]
    fn a_deletion_waits_for_finalizers_or_the_grace_period() {
        let at = "1970-01-01T00:00:02Z";
        let object = json!({"metadata": {"deletionTimestamp": at, "finalizers": ["a/b"]}});
        let (reason, message, until) = found(&records("ConfigMap", object)).remove(0);
        assert!(reason == "Terminating" && message.ends_with("a/b") && until == 0);
        let object = json!({"metadata": {"deletionTimestamp": at}});
        assert_eq!(found(&records("ConfigMap", object))[0].2, 2_000_000_000);
    }
}
