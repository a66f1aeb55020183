//! Act: executes actions and records Events about them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use setpoint_controller::{Client, Receipt, Recorder, events, reference};
use setpoint_model::cron::zone;
use setpoint_proto::ApiError;
use setpoint_proto::batch::{CronJob, Job};
use setpoint_proto::meta::ObjectMeta;

use crate::job::SCHEDULED;
use crate::{Action, CronJobView, World};

pub(crate) async fn act(
    client: &Client,
    world: &World,
    action: &Action,
) -> Result<Receipt, ApiError> {
    match action {
        // It is recorded by `record`.
        Action::Tell(_) => Ok(Receipt::none()),
        Action::Create { name, time } => {
            let job = new_job(world, name, *time);
            let cronjob = &world.cronjob.meta;
            let created = client.create_or_take(cronjob, &job, |_| true).await?;
            Ok(created.receipt())
        }
        Action::Delete(job) => client.delete_unchanged_with::<Job>(job, "Background").await,
    }
}

/// Records an Event with the reason and message of upstream. Errors that the next reconcile resolves are not recorded.
pub(crate) fn record(
    events: &Recorder,
    cronjob: &CronJobView,
    action: &Action,
    result: &Result<Receipt, ApiError>,
) {
    let about = events::reference::<CronJob>(&cronjob.meta);
    match (action, result) {
        (Action::Tell(note), _) => match note.warns {
            true => events.warning(&about, note.reason, &*note.message),
            false => events.normal(&about, note.reason, &*note.message),
        },
        (Action::Create { name, .. }, Ok(_)) => {
            events.normal(&about, "SuccessfulCreate", format!("Created job {name}"));
        }
        (Action::Delete(job), Ok(_)) => {
            let message = format!("Deleted job {}", job.key.name);
            events.normal(&about, "SuccessfulDelete", message);
        }
        (_, Err(error)) if !events::is_reported(error) => {}
        (Action::Create { .. }, Err(error)) => {
            let message = format!("Error creating job: {error}");
            events.warning(&about, "FailedCreate", message);
        }
        (Action::Delete(_), Err(error)) => {
            events.warning(&about, "FailedDelete", format!("Deleted job: {error}"));
        }
    }
}

/// Returns the Job of a scheduled time.
pub fn new_job(world: &World, name: &str, time: Timestamp) -> Job {
    let (cronjob, from) = (&world.cronjob, &world.cronjob.template.metadata);
    let mut annotations = from.annotations.clone();
    annotations.insert(SCHEDULED.to_owned(), scheduled_text(world, time));
    Job {
        metadata: ObjectMeta {
            name: name.to_owned(),
            namespace: cronjob.meta.key.namespace.clone(),
            labels: from.labels.clone(),
            annotations,
            owner_references: vec![reference::<CronJob>(&cronjob.meta)],
            ..Default::default()
        },
        spec: cronjob.template.spec.clone(),
        ..Default::default()
    }
}

/// Returns a time in the zone of the CronJob, in the form of RFC 3339; in UTC if the CronJob names none.
fn scheduled_text(world: &World, time: Timestamp) -> String {
    let zone = zone(
        world.cronjob.time_zone.as_deref().unwrap_or_default(),
        &world.local,
    );
    let time = time.to_zoned(zone.unwrap_or(TimeZone::UTC));
    match time.offset().is_zero() {
        true => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        false => time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    }
}
