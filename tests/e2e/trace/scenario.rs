//! The steps of a user on a Deployment, and the traces that each must produce.

use std::collections::BTreeSet;

use setpoint_tests::trace::Trace;
use setpoint_tests::{ELECTED, Process, eventually};

use super::picture;
use super::watched::{CASCADE, POD, Path, Watched};
use crate::web::{apply, pods, text, until_ready};

/// Minimum share of a trace's duration that spans must cover.
const EXPLAINED: f64 = 0.95;

pub fn an_apply(watched: &Watched) {
    apply(&watched.kubectl);
    until_ready(&watched.kubectl, 3);
    let to_the_set: Path<'_> = &[
        (
            "gateway",
            "POST /apis/apps/v1/namespaces/{namespace}/deployments",
        ),
        ("deployment-controller", "reconcile"),
        ("deployment-controller", "Create"),
        ("gateway", "POST replicasets"),
    ];
    let pods = [to_the_set, &POD[..7]].concat();
    let whole = [to_the_set, POD].concat();
    let started = [to_the_set, &POD[..6], &[("node-agent", "Start")]].concat();
    let paths: [(Path<'_>, usize); 3] = [(&pods, 3), (&whole, 1), (&started, 3)];
    let trace = complete_cascade(watched, &paths, 0);
    assert_eq!(trace.follow(&started).len(), 3, "{}", trace.tree());
    actions_have_reasons(&trace);
    events_are_marked(&trace);
    the_terminal_shows(watched, &trace);
    picture::shows(watched, &trace);
}

fn the_terminal_shows(watched: &Watched, trace: &Trace) {
    let url = watched.jaeger.url();
    let asked = format!("trace deployment/web-frontend -n production --jaeger {url}");
    let output = watched.cluster.setpoint_at(0, &asked);
    assert!(output.success, "{}", output.stderr);
    let link = format!("{url}/trace/{}\n", trace.id);
    assert!(output.stdout.ends_with(&link), "{}", output.stdout);
    for word in CASCADE
        .iter()
        .chain(&["the best of the nodes that fit", "delivery"])
    {
        assert!(
            output.stdout.contains(word),
            "no {word} in\n{}",
            output.stdout
        );
    }
}

pub fn a_scale(watched: &Watched) {
    watched
        .kubectl
        .ok("scale deployment/web-frontend -n production --replicas=4");
    until_ready(&watched.kubectl, 4);
    let whole = [
        &[
            (
                "gateway",
                "PATCH /apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
            ),
            ("deployment-controller", "reconcile"),
            ("deployment-controller", "Scale"),
            ("gateway", "PATCH replicasets"),
        ][..],
        POD,
    ];
    complete_cascade(watched, &[(&whole.concat(), 1)], 0);
}

pub fn a_rollout(watched: &Watched) {
    watched
        .kubectl
        .ok("set image deployment/web-frontend -n production nginx=nginx:1.26");
    rolled_out(watched);
    let whole = [
        &[
            (
                "gateway",
                "PATCH /apis/apps/v1/namespaces/{namespace}/deployments/{name}",
            ),
            ("deployment-controller", "reconcile"),
            ("deployment-controller", "Create"),
            ("gateway", "POST replicasets"),
        ][..],
        POD,
    ];
    // The old Pods are deleted in the same trace.
    complete_cascade(watched, &[(&whole.concat(), 1)], 4);
}

pub fn a_deleted_pod(watched: &Watched) {
    let victim = text(&pods(&watched.kubectl)[0], "/metadata/name").to_owned();
    watched
        .kubectl
        .ok(&format!("delete pod {victim} -n production --wait=true"));
    until_ready(&watched.kubectl, 4);
    let deletion = (
        "gateway",
        "DELETE /api/v1/namespaces/{namespace}/pods/{name}",
    );
    let replaced = [&[deletion][..], POD].concat();
    complete_cascade(watched, &[(&replaced, 1)], 1);
}

pub fn a_stopped_leader(watched: &mut Watched) {
    for service in ELECTED {
        let leader = roll_out_and(watched, service, Process::stop);
        complete_cascade(watched, &[], 0);
        watched.cluster.process(&leader).restart();
    }
}

/// A killed process loses its last batch of spans, so spans may lack their parents.
pub fn a_killed_leader(watched: &mut Watched) {
    for service in ELECTED {
        let leader = roll_out_and(watched, service, Process::kill);
        assert_single(watched, &watched.cascade(&[], |_| None));
        watched.cluster.process(&leader).restart();
    }
}

/// Calls that fail during the restart are retried, and a stopping gateway exports its spans.
pub fn a_restarted_gateway(watched: &mut Watched) {
    roll_out(watched, "restarted");
    let gateway = watched.cluster.process("gateway-0");
    assert!(gateway.stop(), "it exits without an error");
    gateway.restart();
    eventually("the rollout is complete", || {
        let status = watched
            .kubectl
            .run("rollout status deployment/web-frontend -n production --timeout=60s");
        status.success.then_some(()).ok_or(status.stderr)
    });
    assert_single(watched, &watched.cascade(&[], has_orphans));
}

fn has_orphans(trace: &Trace) -> Option<String> {
    let orphans = trace.orphans();
    (!orphans.is_empty()).then(|| format!("orphans: {orphans:?}"))
}

fn roll_out(watched: &Watched, tag: &str) {
    watched.kubectl.ok(&format!(
        "set image deployment/web-frontend -n production nginx=nginx:{tag}"
    ));
}

/// Starts a rollout, calls `end` on the leader, and waits until the rollout is complete and another replica leads.
fn roll_out_and<T>(
    watched: &mut Watched,
    service: &str,
    end: impl Fn(&mut Process) -> T,
) -> String {
    let leader = watched.cluster.leader(service);
    roll_out(watched, &leader);
    end(watched.cluster.process(&leader));
    rolled_out(watched);
    // If the rollout was complete before the leader ended, the lease is taken over only now.
    eventually("another replica leads", || {
        let now = watched.cluster.leader(service);
        (now != leader).then_some(()).ok_or(now)
    });
    leader
}

/// Asserts that heartbeats and reads have no traces.
pub fn no_other_traces(watched: &Watched) {
    for trace in watched.jaeger.traces() {
        let root = trace.roots()[0];
        let reads = ["GET", "HEAD", "LIST", "WATCH"];
        assert!(
            !reads.iter().any(|read| root.name.starts_with(read)),
            "{}",
            trace.tree()
        );
        assert!(
            !root.name.contains("leases") && !root.name.contains("events"),
            "{}",
            trace.tree()
        );
    }
}

fn rolled_out(watched: &Watched) {
    watched
        .kubectl
        .ok("rollout status deployment/web-frontend -n production --timeout=60s");
}

/// Returns the complete cascade, with at least `deletes` deleted Pods, and asserts that it is complete.
fn complete_cascade(watched: &Watched, paths: &[(Path<'_>, usize)], deletes: usize) -> Trace {
    let trace = watched.cascade(paths, |trace| {
        let deleted = trace.spans.iter().filter(|span| span.name == "DELETE pods");
        let (deleted, explained) = (deleted.count(), trace.explained());
        let lacks = deleted < deletes || explained < EXPLAINED;
        let lacks = lacks
            .then(|| format!("{deleted} Pods are deleted, {explained} of its time is explained"));
        lacks.or_else(|| has_orphans(trace))
    });
    assert_complete(watched, &trace);
    trace
}

/// Asserts that no parent is missing, that spans cover the time, and that it is a single trace.
fn assert_complete(watched: &Watched, trace: &Trace) {
    let tree = trace.tree();
    assert!(trace.orphans().is_empty(), "{tree}");
    assert!(
        trace.explained() >= EXPLAINED,
        "{}\n{tree}",
        trace.explained()
    );
    assert_single(watched, trace);
}

/// Asserts that the trace has one root and spans of all services of a rollout, and that no other trace reconciles.
fn assert_single(watched: &Watched, trace: &Trace) {
    let tree = trace.tree();
    assert_eq!(trace.roots().len(), 1, "{tree}");
    let services: BTreeSet<_> = CASCADE.into();
    assert_eq!(trace.services(), services, "{tree}");
    let began = trace.spans[0].start;
    let others =
        watched.jaeger.traces().into_iter().filter(|other| {
            other.id != trace.id && other.spans.iter().any(|span| span.start >= began)
        });
    // The manifest also has a namespace, which gets its account and its CA bundle from the controller-manager.
    let about = |other: &Trace| {
        other.tree().contains("reconcile") && !other.services().contains("controller-manager")
    };
    let others: Vec<_> = others.filter(about).map(|other| other.tree()).collect();
    assert!(others.is_empty(), "{others:#?}\nbesides\n{tree}");
}

/// Asserts that the Events shown by `kubectl describe` are events of the spans that caused them.
fn events_are_marked(trace: &Trace) {
    for (service, name, event) in [
        ("deployment-controller", "Create", "ScalingReplicaSet"),
        ("replicaset-controller", "Create", "SuccessfulCreate"),
        ("scheduler", "schedule", "Successfully assigned production/"),
    ] {
        let spans = trace.spans.iter().filter(|span| span.service == service);
        let marks: Vec<_> = spans.filter(|span| span.name == name).collect();
        let marked = marks
            .iter()
            .any(|span| span.marks.iter().any(|mark| mark.contains(event)));
        assert!(marked, "no {event} in {marks:#?}");
    }
}

fn actions_have_reasons(trace: &Trace) {
    for span in &trace.spans {
        let tag = |key: &str| {
            span.tag(key)
                .and_then(|value| value.as_str())
                .unwrap_or_default()
        };
        match (&*span.service, &*span.name) {
            ("gateway", name) if name.starts_with("POST") || name.starts_with("PUT") => {
                assert_eq!(
                    tag("span.kind").len() + tag("k8s.namespace.name").len(),
                    "production".len(),
                    "{name}: {:?}",
                    span.tags
                );
            }
            (_, "reconcile") => {
                assert!(!tag("setpoint.object").is_empty() && !tag("setpoint.outcome").is_empty());
                assert!(!tag("setpoint.revision").is_empty(), "{:?}", span.tags);
                assert!(
                    span.tag("setpoint.generation").is_some()
                        && span.tag("setpoint.attempt").is_some()
                );
            }
            (_, "Create" | "Scale" | "Start" | "schedule") => assert!(!tag("because").is_empty()),
            _ => {}
        }
    }
}
