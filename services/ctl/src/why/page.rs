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
    use setpoint_proto::setpoint::{ReconcileOutcome, Step};

    use super::*;

    #[test]
    fn the_page_lists_waits_verdicts_steps_with_reasons_and_silent_replicas() {
        let pod = ObjectRef {
            resource: "pods".to_owned(),
            namespace: "production".to_owned(),
            name: "web-a".to_owned(),
        };
        let verdict = Verdict {
            node: "node-1".to_owned(),
            objections: vec!["Insufficient cpu".to_owned()],
            score: None,
        };
        let wait = Wait {
            reason: "Unschedulable".to_owned(),
            message: "0/1 nodes are available".to_owned(),
            verdicts: vec![verdict],
            ..Wait::default()
        };
        let reconcile = Reconcile {
            subject: Some(ObjectRef {
                resource: "replicasets.apps".to_owned(),
                name: "web".to_owned(),
                ..pod.clone()
            }),
            touched: Some(pod.clone()),
            outcome: ReconcileOutcome::Done.into(),
            times: 1,
            steps: vec![Step {
                action: "Create".to_owned(),
                because: "fewer Pods than replicas".to_owned(),
            }],
            ..Reconcile::default()
        };
        let observer = |instance: &str, silent: &str, reconciles| Observer {
            service: "replicaset-controller".to_owned(),
            instance: instance.to_owned(),
            silent: silent.to_owned(),
            reconciles,
        };
        let page = page(&WhyResponse {
            subject: Some(pod),
            kind: "Pod".to_owned(),
            waits: vec![wait],
            observers: vec![
                observer("replicaset-controller-0", "", vec![reconcile]),
                observer("replicaset-controller-1", "no answer", Vec::new()),
            ],
            ..WhyResponse::default()
        });
        for line in [
            "Name:        web-a",
            "State:       it does not exist any more",
            "  Unschedulable: 0/1 nodes are available",
            "    node-1: Insufficient cpu",
            "Reconciles of replicaset-controller-0:",
            "    Create, because: fewer Pods than replicas",
            "  replicaset-controller-1: no answer",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\n{page}");
        }
        assert!(page.contains(" on replicaset/web: done"), "{page}");
    }
}
