//! Events, with the reasons and messages of upstream.

use setpoint_controller::{Receipt, Recorder, events};
use setpoint_model::condition::{self, TRUE};
use setpoint_proto::ApiError;
use setpoint_proto::batch::{Job, JobStatus};
use setpoint_workload::PodWrite;

use crate::job::{COMPLETE, FAILED, SUSPENDED};
use crate::{Action, JobView, Tracked};

/// Records an Event about a Pod that was created or deleted.
pub(crate) fn record(
    events: &Recorder,
    job: &JobView,
    action: &Action,
    result: &Result<Receipt, ApiError>,
) {
    let write = match action {
        Action::Create { name, .. } => PodWrite::Create(name),
        Action::Delete(pod) | Action::Discard(Tracked { pod, .. }) => {
            PodWrite::Delete(&pod.key.name)
        }
        _ => return,
    };
    write.record(events, &events::reference::<Job>(&job.meta), result);
}

/// Records the conditions that a status which was written has changed.
pub(crate) fn record_status(events: &Recorder, job: &JobView, status: &JobStatus) {
    let about = events::reference::<Job>(&job.meta);
    let of = |status: &JobStatus, kind| {
        condition::get(&status.conditions, kind).map(|condition| condition.status == TRUE)
    };
    let became = |kind| of(status, kind).filter(|_| of(status, kind) != of(&job.status, kind));
    if job.gang && job.status.start_time.is_none() && status.start_time.is_some() {
        let message = "spec.scheduling is ignored: Pods are scheduled one by one";
        events.warning(&about, "Unsupported", message);
    }
    match became(SUSPENDED) {
        Some(true) => events.normal(&about, "Suspended", "Job suspended"),
        Some(false) => events.normal(&about, "Resumed", "Job resumed"),
        None => {}
    }
    if became(COMPLETE) == Some(true) {
        let wanted = job
            .completions
            .and_then(|completions| i32::try_from(completions).ok());
        if wanted.is_some_and(|wanted| status.succeeded > wanted) {
            let message = "Too many succeeded pods running after completion count reached";
            events.warning(&about, "TooManySucceededPods", message);
        }
        events.normal(&about, "Completed", "Job completed");
    }
    let failed = condition::get(&status.conditions, FAILED);
    if let Some(failed) = failed.filter(|_| became(FAILED) == Some(true)) {
        events.warning(&about, &failed.reason, failed.message.clone());
    }
}
