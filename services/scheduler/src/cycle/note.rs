//! The entries of the decision log.

use setpoint_controller::decision_log::Note;
use setpoint_controller::{ObjectRef, Step};
use setpoint_proto::Resource as _;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::Verdict;

use super::Decided;
use crate::plan::Action;
use crate::pod::PodView;
use crate::reason::FilterReason;

/// Records the decision and the verdicts on the nodes.
pub fn describe(decided: &Decided, step: &Step<Action>, note: &mut Note) {
    match &step.action {
        Action::Bind { node, score, .. } => {
            let chosen = Verdict {
                node: node.clone(),
                score: Some(*score),
                ..Verdict::default()
            };
            note.say(format!("Bind to {node}"), step.because, None);
            note.verdicts(vec![chosen], 0);
        }
        Action::BindVolumes { node, choices, .. } => {
            let text = format!("Bind {} claims to volumes on {node}", choices.len());
            note.say(text, step.because, None);
            note.waits();
        }
        Action::MarkUnschedulable {
            message, against, ..
        } => {
            let verdict = |(node, reasons): &(String, Vec<FilterReason>)| Verdict {
                node: node.clone(),
                objections: reasons.iter().map(|reason| format!("{reason:#}")).collect(),
                score: None,
            };
            let verdicts: Vec<_> = against.iter().map(verdict).collect();
            let more = decided.nodes.saturating_sub(verdicts.len());
            note.say("MarkUnschedulable".to_owned(), message, None);
            note.verdicts(verdicts, more);
            note.waits();
        }
        Action::Preempt { victim, node, .. } => {
            let text = format!("Preempt {} on {node}", victim.meta.key);
            note.say(text, step.because, Some(object_ref(victim)));
        }
        Action::Withdraw { nominated, .. } => {
            let text = format!("Withdraw the nomination of {}", nominated.meta.key);
            note.say(text, step.because, Some(object_ref(nominated)));
        }
    }
}

fn object_ref(pod: &PodView) -> ObjectRef {
    pod.meta.key.clone().in_resource(Pod::RESOURCE)
}
