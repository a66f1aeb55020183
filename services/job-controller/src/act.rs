//! Act: executes actions.

use serde_json::json;
use setpoint_controller::{Client, Receipt, View as _, reference};
use setpoint_model::{Key, Target};
use setpoint_proto::batch::Job;
use setpoint_proto::core::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Reason};

use crate::plan::Tracked;
use crate::pod::{FAILURES, Failures, IGNORED_FAILURES, INDEX, TRACKING};
use crate::{Action, JobView};

/// The environment variable with the completion index.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

pub(crate) async fn act(
    client: &Client,
    job: &JobView,
    action: &Action,
) -> Result<Receipt, ApiError> {
    match action {
        Action::Adopt(pod) => adopt(client, job, pod).await,
        Action::Release(pod) => {
            let uid = &job.meta.uid;
            change(client, pod, |meta| {
                meta.owner_references.retain(|owner| owner.uid != *uid);
                meta.finalizers.retain(|finalizer| finalizer != TRACKING);
            })
            .await
        }
        Action::Create {
            name,
            index,
            failures,
        } => {
            let pod = new_pod(job, name, *index, *failures);
            let created = client.create_or_take(&job.meta, &pod, |_| true).await?;
            Ok(created.receipt())
        }
        Action::Untrack(pod) => Ok(untrack(client, pod).await?.0),
        Action::UntrackStray { pod, owner } => {
            if let Some(uid) = owner {
                ensure_gone(client, &job.meta.key, uid).await?;
            }
            Ok(untrack(client, pod).await?.0)
        }
        // With a resourceVersion: a Pod that was relabelled since may no longer belong to the Job.
        Action::Delete(pod) => client.delete_unchanged::<Pod>(pod).await,
        Action::Discard(pod) => {
            let (receipt, pod) = untrack(client, pod).await?;
            match pod {
                Some(pod) => client.delete_unchanged::<Pod>(&pod).await,
                None => Ok(receipt),
            }
        }
        // With a resourceVersion: a later version may have another time to live.
        Action::DeleteJob => {
            let job = Target::of(&job.meta);
            client
                .delete_unchanged_with::<Job>(&job, "Foreground")
                .await
        }
    }
}

/// Removes the tracking finalizer, and returns the version of the Pod without it; `None` if the Pod is gone.
async fn untrack(
    client: &Client,
    Tracked { pod, finalizers }: &Tracked,
) -> Result<(Receipt, Option<Target>), ApiError> {
    let Some(finalizers) = finalizers else {
        return Ok((Receipt::none(), Some(pod.clone())));
    };
    let patch = json!({"metadata": {
        "uid": pod.uid,
        "resourceVersion": pod.revision.to_string(),
        "finalizers": finalizers,
    }});
    match client.patch::<Pod>(&pod.key, "", patch).await {
        Err(error) if error.reason == Reason::NotFound => Ok((Receipt::none(), None)),
        patched => {
            let patched = patched?;
            let revision = patched.revision;
            Ok((
                patched.receipt(),
                Some(Target {
                    revision,
                    ..pod.clone()
                }),
            ))
        }
    }
}

/// Checks that the Job with this uid does not count its Pods any more. The cache of Jobs may lag behind that of Pods if
/// another controller has created them.
async fn ensure_gone(client: &Client, key: &Key, uid: &str) -> Result<(), ApiError> {
    let job = match client.get::<Job>(key).await {
        Err(error) if error.reason == Reason::NotFound => return Ok(()),
        job => JobView::of(job?),
    };
    let counts = job.external || job.finished().is_none();
    match counts && job.meta.uid == uid {
        true => Err(ApiError::new(
            Reason::Conflict,
            format!("Job {key} counts its Pods"),
        )),
        false => Ok(()),
    }
}

async fn adopt(client: &Client, job: &JobView, pod: &Target) -> Result<Receipt, ApiError> {
    client.ensure_alive::<Job>(&job.meta).await?;
    change(client, pod, |meta| {
        meta.owner_references.push(reference::<Job>(&job.meta));
        track(meta);
    })
    .await
}

fn track(meta: &mut ObjectMeta) {
    if !meta
        .finalizers
        .iter()
        .any(|finalizer| finalizer == TRACKING)
    {
        meta.finalizers.push(TRACKING.to_owned());
    }
}

/// Changes owners and finalizers of a Pod, including those that the view does not keep: the Pod is read first, and must
/// be the version that was observed.
async fn change(
    client: &Client,
    seen: &Target,
    change: impl FnOnce(&mut ObjectMeta),
) -> Result<Receipt, ApiError> {
    let mut meta = client.get::<Pod>(&seen.key).await?.metadata;
    change(&mut meta);
    let patch = json!({"metadata": {
        "uid": seen.uid,
        "resourceVersion": seen.revision.to_string(),
        "ownerReferences": meta.owner_references,
        "finalizers": meta.finalizers,
    }});
    Ok(client.patch::<Pod>(&seen.key, "", patch).await?.receipt())
}

fn new_pod(job: &JobView, name: &str, index: Option<usize>, failures: Option<Failures>) -> Pod {
    let mut pod = setpoint_workload::new_pod::<Job>(&job.meta, &job.template, name);
    track(&mut pod.metadata);
    pod.metadata.generate_name = job.prefix(index);
    let Some(index) = index else { return pod };
    let (meta, number) = (&mut pod.metadata, index.to_string());
    meta.labels.insert(INDEX.to_owned(), number.clone());
    meta.annotations.insert(INDEX.to_owned(), number);
    if let Some(Failures { counted, ignored }) = failures {
        meta.annotations
            .insert(FAILURES.to_owned(), counted.to_string());
        if ignored > 0 {
            meta.annotations
                .insert(IGNORED_FAILURES.to_owned(), ignored.to_string());
        }
    }
    pod.spec.hostname = format!("{}-{index}", job.meta.key.name);
    let containers = pod.spec.init_containers.iter_mut();
    containers
        .chain(&mut pod.spec.containers)
        .for_each(add_index_variable);
    pod
}

/// Adds the variable with the completion index, unless the user has set it.
fn add_index_variable(container: &mut Container) {
    if container
        .env
        .iter()
        .any(|variable| variable.name == INDEX_VARIABLE)
    {
        return;
    }
    let field = ObjectFieldSelector {
        field_path: format!("metadata.labels['{INDEX}']"),
        ..Default::default()
    };
    container.env.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(field),
            ..Default::default()
        }),
        ..Default::default()
    });
}
