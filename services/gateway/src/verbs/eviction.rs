//! The subresource `eviction`: deletes a Pod unless its disruption budget forbids that.

use std::borrow::Cow;

use jiff::Timestamp;
use setpoint_codec::Object;
use setpoint_kinds::poddisruptionbudget as budget;
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_kinds::validation::metadata;
use setpoint_model::{Revision, Selector, condition, pod};
use setpoint_proto::core::{Pod, PodCondition};
use setpoint_proto::meta::{DeleteOptions, Status};
use setpoint_proto::policy::{Eviction, PodDisruptionBudget};
use setpoint_proto::{ApiError, Reason};

use crate::registry::{AtLeast, Filter, ObjectResponse, Registry, RequestContext, Target, errors};
use crate::verbs::delete;
use crate::write::body::{Body, ValidateBody};
use crate::write::change::Change;
use crate::write::current::Current;
use crate::write::retry::Retry;

const MESSAGE_OF_MANY: &str = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

/// The outcome of the check of the budgets of a Pod.
enum Verdict {
    /// It may be deleted.
    Allowed,
    /// It may be deleted only in the version that was checked, since a Pod that became ready needs another check.
    AllowedUnready { budget: String },
    /// There are several budgets.
    Ambiguous,
}

impl Registry {
    /// Deletes a Pod if its disruption budget allows it; the response is a `Status`.
    pub(crate) async fn evict(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        let options = Options::default();
        let body = Body::create(context, target, object, options);
        let (body, warnings) = self.admit_body(body).await?;
        let (context, Options(options)) = (body.context, body.validation);
        let mut answer = self.evict_pod(&context, target, &options).await?;
        answer.warnings.extend(warnings);
        Ok(answer)
    }

    async fn evict_pod(
        &self,
        context: &RequestContext,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<ObjectResponse, ApiError> {
        let whole = Target::whole(target.kind, &target.key());
        let Some((pod, revision)) = self.evict_at_once(context, &whole, options).await? else {
            return Ok(answer("Success", "", 201));
        };
        match self.consult_budgets(context, &pod).await? {
            Verdict::Ambiguous => return Ok(answer("Failure", MESSAGE_OF_MANY, 500)),
            Verdict::Allowed => self.remove_evicted(context, &whole, options).await?,
            Verdict::AllowedUnready { budget } => {
                let unchanged = if_at(options, revision);
                let removed = self.remove_evicted(context, &whole, &unchanged).await;
                let retry = !names_revision(options);
                removed.map_err(|error| match error.reason {
                    Reason::Conflict if retry => budget::still_processed(&budget),
                    _ => error,
                })?;
            }
        }
        Ok(answer("Success", "", 201))
    }

    /// Deletes a Pod that no budget protects since it does not run. Returns the current Pod if it does run.
    async fn evict_at_once(
        &self,
        context: &RequestContext,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Option<(Pod, Revision)>, ApiError> {
        let mut retry = Retry::begin();
        loop {
            let current = self.live(target).await?;
            let pod = pod_of(&current, target)?;
            if !ignores_budgets(pod) {
                return Ok(Some((pod.clone(), current.revision)));
            }
            let may_start = !pod::is_terminal(pod) && pod.metadata.deletion_timestamp.is_none();
            let options = match may_start {
                true => &if_at(options, current.revision),
                false => options,
            };
            match self.remove_evicted(context, target, options).await {
                Err(error) if error.reason == Reason::Conflict && !names_revision(options) => {}
                Err(error) if error.reason == Reason::Conflict && may_start => {}
                outcome => return outcome.map(|()| None),
            }
            retry.wait().await?;
        }
    }

    /// Checks the budgets of a Pod that runs, and uses up a disruption if the Pod is ready.
    async fn consult_budgets(
        &self,
        context: &RequestContext,
        pod: &Pod,
    ) -> Result<Verdict, ApiError> {
        let budgets = self.budgets_of(pod).await?;
        let budget = match budgets.as_slice() {
            [] => return Ok(Verdict::Allowed),
            [one] => one,
            _ => return Ok(Verdict::Ambiguous),
        };
        let name = budget.metadata.name.clone();
        if !pod::is_ready(pod) && budget::ignores_unready(budget) {
            return Ok(Verdict::AllowedUnready { budget: name });
        }
        let kind = setpoint_codec::kind_of::<PodDisruptionBudget>();
        let target = Target::new(kind, &pod.metadata.namespace, &name, "")?;
        let now = Timestamp::now();
        let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
            let mut new = old.object.clone_box();
            let budget = new.as_any_mut().downcast_mut::<PodDisruptionBudget>();
            let budget = budget.ok_or_else(errors::not_allowed)?;
            budget::disrupt(budget, &pod.metadata.name, now)?;
            *slot = Some(new);
            Ok(())
        };
        self.guaranteed_update(context, &target, &mut mutate)
            .await?;
        Ok(Verdict::Allowed)
    }

    async fn budgets_of(&self, pod: &Pod) -> Result<Vec<PodDisruptionBudget>, ApiError> {
        let kind = setpoint_codec::kind_of::<PodDisruptionBudget>();
        let filter = Filter::all(kind, pod.metadata.namespace.as_str());
        let mut budgets = Vec::new();
        let listed = self.cache().list(&filter, AtLeast::Newest).await?;
        for cached in listed.complete(kind)?.items {
            let budget = errors::readable(cached.decode())?.into_any();
            if let Ok(budget) = budget.downcast::<PodDisruptionBudget>()
                && selects(&budget, pod)
            {
                budgets.push(*budget);
            }
        }
        Ok(budgets)
    }

    /// Adds the condition that says why the Pod is deleted, and deletes it.
    async fn remove_evicted(
        &self,
        context: &RequestContext,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<(), ApiError> {
        let mut options = options.clone();
        if !context.dry_run {
            let revision = self.mark_evicted(context, target, &options).await?;
            if names_revision(&options) {
                options = if_at(&options, revision);
            }
        }
        let deleted = self.delete_admitted(context, target, &options).await;
        deleted.map(drop)
    }

    async fn mark_evicted(
        &self,
        context: &RequestContext,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Revision, ApiError> {
        let precondition = delete::precondition(options);
        let now = Timestamp::now();
        let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
            delete::check(&precondition, target, old)?;
            let mut pod = pod_of(old, target)?.clone();
            condition::set(&mut pod.status.conditions, evicted(now));
            *slot = Some(Box::new(pod));
            Ok(())
        };
        let change = Change::admitted();
        let updated = self.change(context, target, change, &mut mutate).await?;
        Ok(updated.into_response().revision)
    }
}

/// The options of a valid `Eviction`.
#[derive(Default)]
struct Options(DeleteOptions);

impl ValidateBody for Options {
    async fn validate(
        &mut self,
        target: &Target,
        body: &mut Box<dyn Object>,
        context: &mut Cow<'_, RequestContext>,
    ) -> Result<(), ApiError> {
        self.0 = options_of(&**body, target, context.dry_run)?;
        if is_dry(&self.0) && !context.dry_run {
            context.to_mut().dry_run = true;
        }
        Ok(())
    }
}

/// Returns the options of a valid `Eviction`, with the dry run of the request.
fn options_of(object: &dyn Object, target: &Target, dry: bool) -> Result<DeleteOptions, ApiError> {
    let bad = |message: String| ApiError::new(Reason::BadRequest, message);
    let kind = object.kind();
    let Some(eviction) = object.downcast_ref::<Eviction>() else {
        return Err(bad(format!("not a Eviction object: {}", kind.kind)));
    };
    let mut meta = eviction.metadata.clone();
    if meta.name != target.name {
        return Err(bad(
            "name in URL does not match name in Eviction object".into()
        ));
    }
    metadata::match_target(&mut meta, target)?;
    let options = eviction.delete_options.clone().unwrap_or_default();
    let unsafe_read = options.ignore_store_read_error_with_cluster_breaking_potential;
    if unsafe_read == Some(true) {
        let mut errors = FieldErrors::default();
        let path = FieldPath::root("deleteOptions");
        let at = path.field("ignoreStoreReadErrorWithClusterBreakingPotential");
        let detail = "can not be set for pod eviction, try after removing the option";
        errors.invalid(&at, true, detail);
        errors.into_result(kind, &target.name)?;
    }
    if dry && options.dry_run.len() > 1 {
        let own = options.dry_run.join(" ");
        return Err(ApiError::new(
            Reason::InternalError,
            format!("Non-matching dry-run options in request and content: [All] and [{own}]"),
        ));
    }
    Ok(options)
}

fn is_dry(options: &DeleteOptions) -> bool {
    options.dry_run.iter().any(|stage| stage == "All")
}

fn names_revision(options: &DeleteOptions) -> bool {
    let preconditions = options.preconditions.as_ref();
    preconditions.is_some_and(|wanted| wanted.resource_version.is_some())
}

/// Returns the options for this revision only, unless they name one.
fn if_at(options: &DeleteOptions, revision: Revision) -> DeleteOptions {
    let mut options = options.clone();
    let preconditions = options.preconditions.get_or_insert_default();
    preconditions.resource_version = Some(revision.to_string());
    options
}

fn pod_of<'a>(current: &'a Current, target: &Target) -> Result<&'a Pod, ApiError> {
    let pod = current.object.downcast_ref::<Pod>();
    pod.ok_or_else(|| errors::not_found(target.kind, &target.name))
}

/// Returns whether no budget protects the Pod, since it does not run or is deleted anyway.
fn ignores_budgets(pod: &Pod) -> bool {
    let waits = pod.status.phase == "Pending";
    waits || pod::is_terminal(pod) || pod.metadata.deletion_timestamp.is_some()
}

/// Returns whether the budget protects the Pod. An invalid selector protects none.
fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.selector.as_ref();
    let selector = selector.and_then(|selector| Selector::from_label_selector(selector).ok());
    selector.is_some_and(|selector| selector.matches(&pod.metadata.labels))
}

fn evicted(now: Timestamp) -> PodCondition {
    PodCondition {
        r#type: "DisruptionTarget".into(),
        status: condition::TRUE.into(),
        reason: "EvictionByEvictionAPI".into(),
        message: "Eviction API: evicting".into(),
        last_transition_time: now.into(),
        ..Default::default()
    }
}

fn answer(status: &str, message: &str, code: i32) -> ObjectResponse {
    let status = Status {
        status: status.into(),
        message: message.into(),
        code,
        ..Default::default()
    };
    ObjectResponse::not_stored(Box::new(status), Revision::default())
}
