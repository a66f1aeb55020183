//! Server-side apply: the verb `patch` with a configuration of the fields that its manager wants.

use std::borrow::Cow;

use serde_json::Value;
use setpoint_codec::fields::{self, ApplyError, Managers};
use setpoint_codec::{Kind, Object};
use setpoint_kinds::validation::metadata;
use setpoint_kinds::{self as kinds, update, versions};
use setpoint_model::Verb;
use setpoint_proto::{ApiError, Reason};

use crate::registry::{ObjectResponse, Registry, RequestContext, Subresource, Target, errors};
use crate::request::Attributes;
use crate::verbs::patch::Patch;
use crate::verbs::update::Precondition;
use crate::write::change::Change;
use crate::write::conversion::Ownership;
use crate::write::create::Owner;
use crate::write::current::Current;
use crate::write::field_manager;
use crate::write::retry::Retry;
use crate::write::scale;

impl Registry {
    /// Applies a configuration to an object, its status or its scale; creates the object if it does not exist.
    ///
    /// # Errors
    /// `Conflict` when another manager owns a field that it changes, and as [`Self::patch`].
    pub(crate) async fn apply(
        &self,
        context: &RequestContext,
        target: &Target,
        patch: &Patch,
    ) -> Result<ObjectResponse, ApiError> {
        let applied = match target.subresource {
            Subresource::Scale => scale::of(&*empty(target.form())?)?.kind(),
            _ => target.served,
        };
        check(applied, &patch.body)?;
        let patch = &*in_form(target, patch)?;
        let mut retry = Retry::begin();
        loop {
            let missing = match self.apply_to_stored(context, target, patch).await {
                Err(error) if error.reason == Reason::NotFound => error,
                result => return result,
            };
            if target.subresource != Subresource::None {
                return Err(missing);
            }
            match Box::pin(self.create_applied(context, target, patch)).await {
                // Another request has just created it.
                Err(error) if error.reason == Reason::AlreadyExists => retry.wait().await?,
                result => return result,
            }
        }
    }

    async fn apply_to_stored(
        &self,
        context: &RequestContext,
        target: &Target,
        patch: &Patch,
    ) -> Result<ObjectResponse, ApiError> {
        let written = target.written();
        let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
            let new = match target.subresource {
                Subresource::Scale => slot.insert(apply_scale(context, target, old, patch)?),
                _ => slot.insert(apply_object(context, target, old, patch)?),
            };
            update::prepare(&written, &*old.object, &mut **new)?;
            fields::keep_times(&*old.object, &mut **new);
            Ok(())
        };
        let ownership = match patch.force {
            true => Ownership::Taken,
            false => Ownership::Checked,
        };
        let change = Change {
            ownership,
            ..Change::update(target, patch.bytes)
        };
        let updated = self.change(context, &written, change, &mut mutate).await?;
        match target.subresource {
            Subresource::Scale => scale::response(updated.into_response()),
            _ => updated.into_response().served_as(target.served),
        }
    }

    async fn create_applied(
        &self,
        context: &RequestContext,
        target: &Target,
        patch: &Patch,
    ) -> Result<ObjectResponse, ApiError> {
        self.authorize(context, &Attributes::of_target(Verb::Create, target))
            .await?;
        let reset = field_manager::reset(target.form(), target.subresource);
        let edit = field_manager::edit(context, target.form(), target.subresource, &reset);
        let object = fields::apply(&edit, &*empty(target.form())?, &patch.body, patch.force);
        let mut object = object.map_err(|error| refused(error, target.form(), &patch.body))?;
        let meta = object.meta_mut();
        if meta.name.is_empty() {
            return Err(undeterminable(target));
        }
        metadata::match_target(meta, target)?;
        if !meta.uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                meta.uid
            );
            return Err(errors::conflict(target, why));
        }
        let object = versions::of_stored(object, target.served);
        let created = self
            .create_by(context, target, object, Owner::Recorded)
            .await?;
        Ok(created.having_created())
    }
}

/// Returns the patch with a configuration in the form that the request is processed in, which then has the managers'
/// fields.
fn in_form<'p>(target: &Target, patch: &'p Patch) -> Result<Cow<'p, Patch>, ApiError> {
    if target.served == target.form() || target.subresource == Subresource::Scale {
        return Ok(Cow::Borrowed(patch));
    }
    let (served, body) = (target.served, &patch.body);
    // The conversion would drop unknown fields.
    let fit = fields::validate(served, body);
    fit.map_err(|problem| refused(ApplyError::Unfit(problem), served, body))?;
    let object = served.from_json(body.to_string().as_bytes())?;
    let mut stored = patch.clone();
    stored.body = fields::document(&*versions::to_stored(object));
    Ok(Cow::Owned(stored))
}

/// Returns the object with the configuration applied.
fn apply_object(
    context: &RequestContext,
    target: &Target,
    old: &Current,
    patch: &Patch,
) -> Result<Box<dyn Object>, ApiError> {
    let reset = field_manager::reset(target.form(), target.subresource);
    let edit = field_manager::edit(context, target.form(), target.subresource, &reset);
    let live = with_revision(old);
    let applied = fields::apply(&edit, &*live, &patch.body, patch.force);
    let applied = applied.map_err(|error| refused(error, target.form(), &patch.body))?;
    Precondition::of(&*applied).check(target, old)?;
    Ok(applied)
}

/// Returns the object with the configuration applied to its scale.
fn apply_scale(
    context: &RequestContext,
    target: &Target,
    old: &Current,
    patch: &Patch,
) -> Result<Box<dyn Object>, ApiError> {
    let live = scale::of(&*with_revision(old))?;
    let kind = live.kind();
    let parent = Managers::decode(&old.object.meta().managed_fields).unwrap_or_default();
    let mut managers = fields::of_scale(&parent, kind);
    let reset = field_manager::reset(kind, target.subresource);
    let edit = field_manager::edit(context, kind, target.subresource, &reset);
    let applied = fields::apply_for(&edit, &mut managers, &live, &patch.body, patch.force);
    let applied = applied.map_err(|error| refused(error, kind, &patch.body))?;
    Precondition::of(&*applied).check(target, old)?;
    let replicas = scale::replicas_of(&*applied, target)?;
    let mut new = old.object.clone_box();
    kinds::of(target.kind).set_replicas(&mut *new, replicas);
    let managers = fields::to_parent(&parent, &managers, kind, target.form());
    new.meta_mut().managed_fields = managers.encode();
    Ok(new)
}

fn with_revision(old: &Current) -> Box<dyn Object> {
    let mut live = old.object.clone_box();
    live.meta_mut().resource_version = old.revision.to_string();
    live
}

fn empty(kind: &'static Kind) -> Result<Box<dyn Object>, ApiError> {
    errors::readable(kind.decode(&[]))
}

/// Checks that a configuration is of the kind of its target, and does not set managers itself.
fn check(kind: &Kind, config: &Value) -> Result<(), ApiError> {
    let found = group_version_kind(config);
    if !config.is_object() {
        return bad("error decoding YAML: the configuration is not an object".to_owned());
    }
    if found != format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind) {
        return bad(format!("invalid object type: {found}"));
    }
    match config.pointer("/metadata/managedFields") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => bad("metadata.managedFields must be nil".to_owned()),
    }
}

/// Returns the kind that a configuration claims to be, as upstream shows it: `apps/v1, Kind=Deployment`.
fn group_version_kind(config: &Value) -> String {
    let text = |field| {
        config
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let version = text("apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    format!("{group}/{version}, Kind={}", text("kind"))
}

/// Returns the error of a configuration that cannot be applied. Upstream answers those that do not fit their kind with
/// 500; here no request causes an internal error.
fn refused(error: ApplyError, kind: &Kind, config: &Value) -> ApiError {
    match error {
        ApplyError::Conflicts(conflicts) => conflicts.into(),
        ApplyError::Malformed(problem) => ApiError::new(Reason::BadRequest, problem),
        ApplyError::Unfit(problem) => {
            let text = |at| {
                config
                    .pointer(at)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            let of = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
            let message = format!(
                "failed to create typed patch object ({namespace}/{name}; {of}): {problem}"
            );
            ApiError::new(Reason::BadRequest, message)
        }
    }
}

fn undeterminable(target: &Target) -> ApiError {
    let message = format!(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        target.name
    );
    ApiError::new(Reason::BadRequest, message)
}

fn bad<T>(message: String) -> Result<T, ApiError> {
    Err(ApiError::new(Reason::BadRequest, message))
}
