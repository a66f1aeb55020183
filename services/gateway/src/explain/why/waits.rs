//! What an object waits for: a pure function of recorded facts.

use std::collections::BTreeSet;

use serde_json::Value;
use setpoint_proto::setpoint::{Observer, Subject, Wait};

use super::pod::{self, condition, list, text};
use crate::kinds::Role;

/// All that the answer is drawn from.
pub(super) struct Facts {
    pub subject: Subject,
    pub role: Role,
    /// As JSON; `None` once it is gone.
    pub object: Option<Value>,
    /// The Pods that it is made of and that are not ready.
    pub pods: Vec<(Subject, Value)>,
    pub observers: Vec<Observer>,
    pub now_ns: i64,
}

/// What it waits for: what holds it itself first, then what holds those that it needs, then who looks again when.
pub(super) fn waits(facts: &Facts) -> Vec<Wait> {
    let Some(object) = &facts.object else {
        return Vec::new();
    };
    let mut waits: Vec<_> = deletion(object).into_iter().collect();
    match facts.role {
        Role::Pod => waits.extend(pod::waits(object, &facts.subject, &facts.observers)),
        Role::Workload => {
            waits.extend(rollout(object));
            waits.extend(blocked(facts));
        }
        Role::Other => {}
    }
    waits.extend(failures(facts));
    waits
}

fn wait(reason: &str, message: impl Into<String>) -> Wait {
    Wait {
        reason: reason.to_owned(),
        message: message.into(),
        ..Wait::default()
    }
}

fn deletion(object: &Value) -> Option<Wait> {
    let deadline = object.pointer("/metadata/deletionTimestamp")?.as_str()?;
    let finalizers = list(object, "/metadata/finalizers").iter();
    let finalizers: Vec<_> = finalizers.filter_map(Value::as_str).collect();
    let message = match finalizers.as_slice() {
        [] => "it is being deleted, and has until then to stop".to_owned(),
        names => format!(
            "it is being deleted, and kept by finalizers: {}",
            names.join(", ")
        ),
    };
    let until = deadline.parse::<jiff::Timestamp>().ok();
    let until = until.and_then(|until| i64::try_from(until.as_nanosecond()).ok());
    Some(Wait {
        until_ns: until.filter(|_| finalizers.is_empty()).unwrap_or_default(),
        ..wait("Terminating", message)
    })
}

/// What the object says of itself.
fn rollout(object: &Value) -> Vec<Wait> {
    let mut waits = Vec::new();
    let number = |path| {
        object
            .pointer(path)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    let (written, seen) = (
        number("/metadata/generation"),
        number("/status/observedGeneration"),
    );
    if seen < written {
        let message = format!("generation {written} was not acted upon yet; {seen} was");
        waits.push(wait("NotObserved", message));
    }
    if object.pointer("/spec/paused") == Some(&Value::Bool(true)) {
        waits.push(wait(
            "Paused",
            "its rollout is paused: kubectl rollout resume goes on",
        ));
    }
    for (r#type, bad) in [("Progressing", "False"), ("ReplicaFailure", "True")] {
        if let Some(condition) = condition(object, r#type).filter(|one| one["status"] == bad) {
            waits.push(wait(
                text(condition, "/reason"),
                text(condition, "/message"),
            ));
        }
    }
    let (wanted, ready) = (number("/spec/replicas"), number("/status/readyReplicas"));
    if ready < wanted {
        waits.push(wait(
            "NotReady",
            format!("{ready} of {wanted} Pods are ready"),
        ));
    }
    waits
}

/// What the Pods wait for that it is made of.
fn blocked(facts: &Facts) -> Vec<Wait> {
    let of_pod = |(subject, pod): &(Subject, Value)| {
        let waits = pod::waits(pod, subject, &facts.observers);
        let on = subject.clone();
        waits.into_iter().map(move |wait| Wait {
            on: Some(on.clone()),
            ..wait
        })
    };
    facts.pods.iter().flat_map(of_pod).collect()
}

/// Services whose last look at it failed, or that look again later. Of several replicas the last one to look counts.
fn failures(facts: &Facts) -> Vec<Wait> {
    let services = facts.observers.iter().map(|one| one.service.as_str());
    let services: BTreeSet<_> = services.collect();
    let next = services.into_iter().filter_map(|service| {
        let round = pod::newest(&facts.observers, service, &facts.subject)?;
        // What the scheduler and the node agent wait for is told with its reasons.
        let told = facts.role == Role::Pod;
        let (reason, message) = match round.error.as_str() {
            "" if told || round.next_ns <= facts.now_ns => return None,
            "" => ("NextLook", format!("{service} looks again by itself")),
            error => {
                let message = format!("{service}, attempt {}: {error}", round.attempt);
                ("Failing", message)
            }
        };
        Some(Wait {
            until_ns: round.next_ns,
            ..wait(reason, message)
        })
    });
    next.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use setpoint_proto::setpoint::{Observer, Round, Step, Verdict};

    use super::*;
    use crate::kinds;

    const NOW: i64 = 1_000;

    fn subject(resource: &str, name: &str) -> Subject {
        Subject {
            resource: resource.to_owned(),
            namespace: "production".to_owned(),
            name: name.to_owned(),
        }
    }

    fn facts(kind: &str, object: Value) -> Facts {
        let known = setpoint_codec::kinds().by_any_name(kind);
        Facts {
            subject: subject("any", "web"),
            role: kinds::of(known.expect("it is stored")).role(),
            object: Some(object),
            pods: Vec::new(),
            observers: Vec::new(),
            now_ns: NOW,
        }
    }

    fn observer(service: &str, subject: &Subject, round: Round) -> Observer {
        Observer {
            service: service.to_owned(),
            rounds: vec![Round {
                subject: Some(subject.clone()),
                ..round
            }],
            ..Observer::default()
        }
    }

    fn told(facts: &Facts) -> Vec<(String, String, i64)> {
        let told = waits(facts).into_iter();
        told.map(|wait| (wait.reason, wait.message, wait.until_ns))
            .collect()
    }

    fn told_of(reason: &str, message: &str, until_ns: i64) -> (String, String, i64) {
        (reason.to_owned(), message.to_owned(), until_ns)
    }

    fn refused(subject: &Subject) -> Observer {
        let because = "0/1 nodes are available: 1 Insufficient cpu.";
        let round = Round {
            outcome: "waiting".to_owned(),
            next_ns: 5_000,
            steps: vec![Step {
                action: "Refuse".to_owned(),
                because: because.to_owned(),
            }],
            verdicts: vec![Verdict::default()],
            ..Round::default()
        };
        observer("scheduler", subject, round)
    }

    #[test]
    fn what_is_gone_or_as_it_should_be_waits_for_nothing() {
        let ready = json!({"spec": {"replicas": 1}, "status": {"readyReplicas": 1}});
        assert_eq!(told(&facts("Deployment", ready)), []);
        let mut gone = facts("Pod", json!({}));
        gone.object = None;
        assert_eq!(told(&gone), []);
        let pod = json!({"spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}});
        assert_eq!(told(&facts("Pod", pod)), []);
    }

    #[test]
    fn a_pod_without_a_node_waits_as_the_scheduler_says_or_else_as_its_condition_says() {
        let condition = json!({"type": "PodScheduled", "status": "False", "message": "no room"});
        let pod = json!({"status": {"conditions": [condition]}});
        let mut facts = facts("Pod", pod);
        assert_eq!(told(&facts), [told_of("Unschedulable", "no room", 0)]);
        facts.observers = vec![refused(&facts.subject)];
        let message = "0/1 nodes are available: 1 Insufficient cpu.";
        assert_eq!(told(&facts), [told_of("Unschedulable", message, 5_000)]);
        facts.object = Some(json!({"spec": {"schedulingGates": [{"name": "g"}]}}));
        assert_eq!(told(&facts)[0].0, "SchedulingGated");
    }

    #[test]
    fn a_container_that_rests_says_until_when_and_how_it_ended() {
        let status = json!({
            "name": "a", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
            "lastState": {"terminated": {"exitCode": 3}},
        });
        let pod = json!({"spec": {"nodeName": "n"}, "status": {"containerStatuses": [status]}});
        let mut facts = facts("Pod", pod);
        let round = Round {
            next_ns: 7_000,
            ..Round::default()
        };
        facts.observers = vec![observer("node-agent", &facts.subject, round)];
        let message = "container a: back-off; it ended with exit code 3 and was restarted 2 times";
        assert_eq!(told(&facts), [told_of("CrashLoopBackOff", message, 7_000)]);
    }

    #[test]
    fn a_rollout_is_blocked_by_the_pods_that_are_not_ready() {
        let deployment = json!({
            "metadata": {"generation": 2}, "spec": {"replicas": 3, "paused": true},
            "status": {"observedGeneration": 1, "readyReplicas": 2, "conditions": [
                {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"}]},
        });
        let mut facts = facts("Deployment", deployment);
        let pod = subject("pods", "web-a");
        facts.observers = vec![refused(&pod)];
        facts.pods = vec![(pod.clone(), json!({}))];
        let reasons: Vec<_> = told(&facts).into_iter().map(|one| one.0).collect();
        let expected = [
            "NotObserved",
            "Paused",
            "ProgressDeadlineExceeded",
            "NotReady",
            "Unschedulable",
        ];
        assert_eq!(reasons, expected);
        assert_eq!(waits(&facts)[4].on, Some(pod));
    }

    #[test]
    fn of_several_replicas_the_last_one_to_look_counts() {
        let mut facts = facts("ConfigMap", json!({}));
        let round = |last_ns, error: &str| Round {
            last_ns,
            error: error.to_owned(),
            attempt: 4,
            next_ns: 5_000,
            ..Round::default()
        };
        let failed = observer("a", &facts.subject, round(1, "Forbidden: no"));
        facts.observers = vec![failed];
        assert_eq!(
            told(&facts),
            [told_of("Failing", "a, attempt 4: Forbidden: no", 5_000)]
        );
        let later = observer("a", &facts.subject, round(2, ""));
        facts.observers.push(later);
        assert_eq!(told(&facts)[0].0, "NextLook");
    }

    #[test]
    fn what_is_being_deleted_is_held_by_its_finalizers_or_its_grace() {
        let at = "1970-01-01T00:00:02Z";
        let object = json!({"metadata": {"deletionTimestamp": at, "finalizers": ["a/b"]}});
        let (reason, message, until) = told(&facts("ConfigMap", object)).remove(0);
        assert!(reason == "Terminating" && message.ends_with("a/b") && until == 0);
        let object = json!({"metadata": {"deletionTimestamp": at}});
        assert_eq!(told(&facts("ConfigMap", object))[0].2, 2_000_000_000);
    }
}
