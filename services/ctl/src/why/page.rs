//! Formats the answer of `setpoint why` in the style of `kubectl describe`.

use std::fmt::Write as _;

use setpoint_proto::setpoint::{
    EventSummary, Flap, Manager, ObjectRef, Observer, Reconcile, Verdict, Wait, WhyResponse,
};

use crate::time_format::{relative, short};

/// Number of reconciles shown for each process.
const MAX_RECONCILES: usize = 5;
/// Number of steps shown for a reconcile.
const MAX_STEPS: usize = 6;
/// Number of nodes shown for a scheduling decision.
const MAX_NODES: usize = 10;

/// Formats all sections, the most important first.
pub fn page(answer: &WhyResponse) -> String {
    let mut page = Page::default();
    page.head(answer);
    page.part("Waits for", &answer.waits, Page::wait);
    page.part("Flaps", &answer.flaps, Page::flap);
    page.reconciles(answer);
    page.part("Written by", &answer.managers, Page::manager);
    page.part("Events", &answer.events, Page::event);
    page.silent(&answer.observers);
    page.0
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, indent: usize, text: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "{:indent$}{text}", "");
    }

    fn field(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.line(0, &format!("{:<13}{value}", format!("{name}:")));
        }
    }

    fn part<T>(&mut self, name: &str, entries: &[T], entry: impl Fn(&mut Self, &T)) {
        if entries.is_empty() {
            return;
        }
        self.line(0, &format!("{name}:"));
        entries.iter().for_each(|one| entry(self, one));
    }

    fn head(&mut self, answer: &WhyResponse) {
        let subject = answer.subject.clone().unwrap_or_default();
        self.field("Name", &subject.name);
        self.field("Namespace", &subject.namespace);
        self.field("Kind", &answer.kind);
        let gone = (!answer.exists).then_some("it does not exist any more");
        self.field("State", gone.unwrap_or_default());
        let generation = match answer.generation {
            0 => String::new(),
            generation => format!(", generation {generation}"),
        };
        if !answer.revision.is_empty() {
            self.field("Revision", &format!("{}{generation}", answer.revision));
        }
        let owners: Vec<_> = answer.owners.iter().map(named).collect();
        self.field("Controlled", &owners.join(" ◀ "));
        let Some(cause) = &answer.cause else { return };
        let name = if answer.exists {
            "Last write"
        } else {
            "Deleted"
        };
        let term = match cause.term {
            0 => String::new(),
            term => format!(" in its term {term}"),
        };
        let writer = match cause.writer.as_str() {
            "" => "an unknown writer",
            writer => writer,
        };
        let when = relative(cause.written_ns);
        let depth = match cause.depth {
            0 => "not caused by another write".to_owned(),
            1 => "caused by another write".to_owned(),
            depth => format!("caused by a chain of {depth} writes"),
        };
        self.field(name, &format!("{when} by {writer}{term}, {depth}"));
        let trace = cause.trace_id().map(|id| id.to_string());
        self.field("Trace", &trace.unwrap_or_default());
    }

    fn wait(&mut self, wait: &Wait) {
        let on = wait.on.as_ref().map(|on| format!("{}: ", named(on)));
        let until = match wait.until_ns {
            0 => String::new(),
            until => format!(" ({})", relative(until)),
        };
        let (
            on,
            Wait {
                reason, message, ..
            },
        ) = (on.unwrap_or_default(), wait);
        self.line(2, &format!("{on}{reason}{until}: {message}"));
        self.verdicts(&wait.verdicts, wait.more_verdicts, 4);
    }

    fn verdicts(&mut self, verdicts: &[Verdict], more: u32, indent: usize) {
        for verdict in verdicts.iter().take(MAX_NODES) {
            let text = match verdict.score {
                Some(score) => format!("score {score}"),
                None if verdict.objections.is_empty() => "fits".to_owned(),
                None => verdict.objections.join(", "),
            };
            self.line(indent, &format!("{}: {text}", verdict.node));
        }
        self.more(
            verdicts.len().saturating_sub(MAX_NODES) + more as usize,
            "nodes",
            indent,
        );
    }

    fn more(&mut self, more: usize, what: &str, indent: usize) {
        if more > 0 {
            self.line(indent, &format!("… and {more} more {what}"));
        }
    }

    fn flap(&mut self, flap: &Flap) {
        let managers = flap.managers.join(" and ");
        let (field, when) = (&flap.field, relative(flap.last_ns));
        self.line(
            2,
            &format!(
                "{managers} undo each other's writes of {field} (reported {} times, last {when})",
                flap.count
            ),
        );
    }

    fn reconciles(&mut self, answer: &WhyResponse) {
        let observers = answer.observers.iter();
        for observer in observers.filter(|observer| !observer.reconciles.is_empty()) {
            let Observer {
                service, instance, ..
            } = observer;
            let name = match instance.starts_with(service.as_str()) {
                true => instance.clone(),
                false => format!("{service} {instance}"),
            };
            self.line(0, &format!("Reconciles of {name}:"));
            for reconcile in observer.reconciles.iter().take(MAX_RECONCILES) {
                self.reconcile(reconcile, answer.subject.as_ref());
            }
            self.more(
                observer.reconciles.len().saturating_sub(MAX_RECONCILES),
                "reconciles",
                2,
            );
        }
    }

    fn reconcile(&mut self, reconcile: &Reconcile, explained: Option<&ObjectRef>) {
        let other = reconcile
            .subject
            .as_ref()
            .filter(|one| Some(*one) != explained);
        let about = other.map(|one| format!(" on {}", named(one)));
        let times = match reconcile.times {
            0 | 1 => String::new(),
            times => format!(" ({times} times)"),
        };
        let when = relative(reconcile.last_ns);
        let head = format!(
            "{when}{}: {}{times}",
            about.unwrap_or_default(),
            reconcile.outcome()
        );
        self.line(2, &format!("{head}{}", circumstances(reconcile)));
        if !reconcile.error.is_empty() {
            self.line(4, &reconcile.error);
        }
        for step in reconcile.steps.iter().take(MAX_STEPS) {
            self.line(4, &format!("{}, because: {}", step.action, step.because));
        }
        let left_out =
            reconcile.steps.len().saturating_sub(MAX_STEPS) + reconcile.more_steps as usize;
        self.more(left_out, "steps", 4);
        self.verdicts(&reconcile.verdicts, reconcile.more_verdicts, 6);
    }

    fn manager(&mut self, manager: &Manager) {
        let fields = manager.fields.join(", ");
        let more = match manager.more_fields {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let when = relative(manager.written_ns);
        self.line(2, &format!("{} ({when}): {fields}{more}", manager.name));
    }

    fn event(&mut self, event: &EventSummary) {
        let times = match event.count {
            0 | 1 => String::new(),
            count => format!(" (x{count})"),
        };
        let EventSummary {
            r#type,
            reason,
            message,
            component,
            ..
        } = event;
        let when = relative(event.last_ns);
        self.line(
            2,
            &format!(
                "{:<8} {reason:<18} {when}{times}  {component}  {message}",
                r#type
            ),
        );
    }

    fn silent(&mut self, observers: &[Observer]) {
        let silent: Vec<_> = observers
            .iter()
            .filter(|one| !one.silent.is_empty())
            .collect();
        self.part("Did not answer", &silent, |page, one| {
            page.line(2, &format!("{}: {}", one.instance, one.silent));
        });
    }
}

fn circumstances(reconcile: &Reconcile) -> String {
    let mut text = String::new();
    let writers: Vec<_> = reconcile
        .causes
        .iter()
        .map(|cause| cause.writer.as_str())
        .collect();
    let mut known: Vec<&str> = Vec::new();
    for writer in writers.into_iter().filter(|writer| !writer.is_empty()) {
        if !known.contains(&writer) {
            known.push(writer);
        }
    }
    // Writing to a String does not fail.
    if !known.is_empty() {
        let _ = write!(text, ", woken by {}", known.join(", "));
    }
    if reconcile.attempt > 1 {
        let _ = write!(text, ", attempt {}", reconcile.attempt);
    }
    let _ = write!(text, ", took {}", short(reconcile.took_ns));
    if reconcile.next_ns > 0 {
        let _ = write!(text, ", next attempt {}", relative(reconcile.next_ns));
    }
    text
}

fn named(subject: &ObjectRef) -> String {
    let kind = subject.resource.split('.').next().unwrap_or_default();
    let kind = kind.strip_suffix('s').unwrap_or(kind);
    format!("{kind}/{}", subject.name)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use setpoint_proto::Cause;
    use setpoint_proto::setpoint::{ReconcileOutcome, Step};

    use super::*;

    fn reference(resource: &str, name: &str) -> ObjectRef {
        ObjectRef {
            resource: resource.to_owned(),
            namespace: "production".to_owned(),
            name: name.to_owned(),
        }
    }

    fn observer(service: &str, silent: &str, reconciles: Vec<Reconcile>) -> Observer {
        Observer {
            service: service.to_owned(),
            instance: format!("{service}-0"),
            silent: silent.to_owned(),
            reconciles,
        }
    }

    fn step(action: &str, because: &str) -> Step {
        Step {
            action: action.to_owned(),
            because: because.to_owned(),
        }
    }

    /// Returns the answer for a Pod that fits nowhere. No time is known, since the page has distances from now.
    fn unschedulable() -> WhyResponse {
        let pod = reference("pods", "web-5d9f-x");
        let set = reference("replicasets.apps", "web-5d9f");
        let message = "0/2 nodes are available: 2 Insufficient cpu.".to_owned();
        let verdict = |node: &str| Verdict {
            node: node.to_owned(),
            objections: vec!["Insufficient cpu".to_owned()],
            score: None,
        };
        let wait = Wait {
            reason: "Unschedulable".to_owned(),
            message: message.clone(),
            verdicts: vec![verdict("node-1"), verdict("node-2")],
            ..Wait::default()
        };
        let refused = Reconcile {
            subject: Some(pod.clone()),
            outcome: ReconcileOutcome::Waiting.into(),
            attempt: 1,
            times: 3,
            steps: vec![step("MarkUnschedulable", &message)],
            verdicts: wait.verdicts.clone(),
            causes: vec![writer("replicaset-controller"), writer("node-agent")],
            ..Reconcile::default()
        };
        let created = Reconcile {
            subject: Some(set.clone()),
            touched: Some(pod.clone()),
            outcome: ReconcileOutcome::Failed.into(),
            attempt: 2,
            error: "Timeout: the gateway did not answer".to_owned(),
            steps: vec![step(
                "Create { name: \"web-5d9f-x\" }",
                "fewer Pods than replicas",
            )],
            ..Reconcile::default()
        };
        WhyResponse {
            subject: Some(pod),
            kind: "Pod".to_owned(),
            exists: true,
            revision: "42".to_owned(),
            generation: 1,
            owners: vec![set, reference("deployments.apps", "web")],
            cause: Some(Cause {
                term: 3,
                depth: 2,
                ..writer("scheduler")
            }),
            managers: vec![Manager {
                name: "replicaset-controller".to_owned(),
                fields: vec![
                    "metadata.labels.app".to_owned(),
                    "spec.containers".to_owned(),
                ],
                more_fields: 7,
                ..Manager::default()
            }],
            waits: vec![wait],
            observers: vec![
                observer("replicaset-controller", "", vec![created]),
                observer("scheduler", "", vec![refused]),
                observer("node-agent", "no answer within 1s", Vec::new()),
            ],
            events: vec![EventSummary {
                r#type: "Warning".to_owned(),
                reason: "FailedScheduling".to_owned(),
                message,
                count: 3,
                component: "scheduler".to_owned(),
                ..EventSummary::default()
            }],
            ..WhyResponse::default()
        }
    }

    fn writer(name: &str) -> Cause {
        Cause {
            writer: name.to_owned(),
            ..Cause::default()
        }
    }

    #[test]
    fn the_page_says_what_a_pod_waits_for_and_what_its_controllers_decided() {
        expect![[r#"
            Name:        web-5d9f-x
            Namespace:   production
            Kind:        Pod
            Revision:    42, generation 1
            Controlled:  replicaset/web-5d9f ◀ deployment/web
            Last write:  at an unknown time by scheduler in its term 3, caused by a chain of 2 writes
            Waits for:
              Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.
                node-1: Insufficient cpu
                node-2: Insufficient cpu
            Reconciles of replicaset-controller-0:
              at an unknown time on replicaset/web-5d9f: failed, attempt 2, took 0ms
                Timeout: the gateway did not answer
                Create { name: "web-5d9f-x" }, because: fewer Pods than replicas
            Reconciles of scheduler-0:
              at an unknown time: waiting (3 times), woken by replicaset-controller, node-agent, took 0ms
                MarkUnschedulable, because: 0/2 nodes are available: 2 Insufficient cpu.
                  node-1: Insufficient cpu
                  node-2: Insufficient cpu
            Written by:
              replicaset-controller (at an unknown time): metadata.labels.app, spec.containers and 7 more
            Events:
              Warning  FailedScheduling   at an unknown time (x3)  scheduler  0/2 nodes are available: 2 Insufficient cpu.
            Did not answer:
              node-agent-0: no answer within 1s
        "#]].assert_eq(&page(&unschedulable()));
    }

    #[test]
    fn the_page_of_a_deleted_object_has_the_managers_that_undid_each_other() {
        expect![[r#"
            Name:        shared
            Namespace:   production
            Kind:        ConfigMap
            State:       it does not exist any more
            Deleted:     at an unknown time by kubectl-delete, not caused by another write
            Flaps:
              argocd and kubectl-edit undo each other's writes of data.color (reported 4 times, last at an unknown time)
        "#]].assert_eq(&page(&WhyResponse {
            subject: Some(reference("configmaps", "shared")),
            kind: "ConfigMap".to_owned(),
            cause: Some(writer("kubectl-delete")),
            flaps: vec![Flap {
                field: "data.color".to_owned(),
                managers: vec!["argocd".to_owned(), "kubectl-edit".to_owned()],
                count: 4,
                ..Flap::default()
            }],
            ..WhyResponse::default()
        }));
    }
}
