//! The verb `patch`: JSON patch, merge patch, strategic merge patch, and server-side apply.

mod unfit;

use serde_json::Value;
use setpoint_codec::{Kind, Object, patch};
use setpoint_kinds::{self as kinds, update, versions};
use setpoint_model::Verb;
use setpoint_proto::meta::ManagedFieldsEntry;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::{ApiError, Reason};

use crate::registry::{ObjectResponse, Registry, RequestContext, Subresource, Target, errors};
use crate::request::audit::{Sent, own_write};
use crate::verbs::update::Precondition;
use crate::write::change::Change;
use crate::write::current::Current;
use crate::write::field_manager;
use crate::write::scale;

/// Checks the JSON of a patched object before it is decoded. Returns warnings.
pub type Check = fn(&'static Kind, &[u8]) -> Result<Vec<String>, ApiError>;

/// A patch of an object.
#[derive(Clone)]
pub struct Patch {
    /// The format of `body`.
    pub r#type: Type,
    /// The patch.
    pub body: Value,
    /// The length of the body in bytes.
    pub bytes: usize,
    /// Whether fields of other managers are taken from them, when a configuration is applied.
    pub force: bool,
    /// The check of the patched object.
    pub check: Check,
}

impl Registry {
    /// Patches an object, its status or its scale. A patch without a resourceVersion applies to the current object. A
    /// configuration that is applied may create the object.
    ///
    /// # Errors
    /// `Conflict` when the patch has a resourceVersion or a uid that is not the current one, `NotFound`, `Invalid`, …
    pub async fn patch(
        &self,
        context: &RequestContext,
        target: &Target,
        patch: &Patch,
    ) -> Result<ObjectResponse, ApiError> {
        match own_write(self.auditor(), &context.user, Verb::Patch, target, || {
            Sent::Patch(&patch.body, patch.bytes)
        }) {
            None => self.patch_part(context, target, patch).await,
            Some(write) => write.record(self.patch_part(context, target, patch)).await,
        }
    }

    async fn patch_part(
        &self,
        context: &RequestContext,
        target: &Target,
        patch: &Patch,
    ) -> Result<ObjectResponse, ApiError> {
        errors::check_writable(target)?;
        if target.subresource.is_request() || target.subresource == Subresource::Finalize {
            return Err(errors::not_allowed());
        }
        if patch.r#type == Type::Apply {
            return self.apply(context, target, patch).await;
        }
        if patch.r#type == Type::Strategic && target.kind.is_custom() {
            return Err(no_merge_rules());
        }
        let written = target.written();
        let mut warnings = Vec::new();
        let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
            let new;
            (new, warnings) = patch.apply(target, old)?;
            let new = if target.subresource == Subresource::Scale {
                let scaled = slot.insert(old.object.clone_box());
                let replicas = scale::replicas_of(&*new, target)?;
                kinds::of(target.kind).set_replicas(&mut **scaled, replicas);
                scaled
            } else {
                slot.insert(new)
            };
            update::prepare(&written, &*old.object, &mut **new)?;
            field_manager::updated(context, target.subresource, old, &mut **new);
            Ok(())
        };
        let change = Change::update(target, patch.bytes);
        let updated = self.change(context, &written, change, &mut mutate).await?;
        let mut response = updated.into_response();
        if target.subresource == Subresource::Scale {
            response = scale::response(response)?;
        }
        response.warnings.splice(..0, warnings);
        response.served_as(target.served)
    }
}

impl Patch {
    /// Returns the patched object or scale, and warnings.
    fn apply(
        &self,
        target: &Target,
        old: &Current,
    ) -> Result<(Box<dyn Object>, Vec<String>), ApiError> {
        let mut now = old.object.clone_box();
        now.meta_mut().resource_version = old.revision.to_string();
        now = match target.subresource {
            Subresource::Scale => Box::new(scale::of(&*now)?),
            _ => versions::of_stored(now, target.served),
        };
        let kind = now.kind();
        let document = errors::readable(serde_json::from_slice(&now.to_json()))?;
        let patched = self.apply_to(kind, document)?;
        let json = patched.to_string();
        let warnings = (self.check)(kind, json.as_bytes())?;
        let decoded = kind.from_json(json.as_bytes());
        let decoded = decoded.map_err(|error| unfit::error(self, kind, &patched, error))?;
        let mut new = versions::to_stored(decoded);
        if resets_managers(&patched) {
            new.meta_mut().managed_fields = vec![ManagedFieldsEntry::default()];
        }
        Precondition::of(&*new).check(target, old)?;
        Ok((new, warnings))
    }

    fn apply_to(&self, kind: &Kind, document: Value) -> Result<Value, ApiError> {
        let body = self.body.clone();
        let patched = match self.r#type {
            Type::Json => patch::json(kind, document, body)?,
            Type::Merge => patch::merge(kind, document, body)?,
            Type::Strategic => patch::strategic(kind, document, body)?,
            Type::Apply | Type::Unspecified => {
                let message = "the patch type is not supported; use a JSON patch, a merge patch or a strategic merge patch";
                return Err(ApiError::new(Reason::UnsupportedMediaType, message));
            }
        };
        Ok(patched)
    }
}

/// The error of a strategic merge patch of a custom kind, whose schema has no rules for it.
fn no_merge_rules() -> ApiError {
    let message = "a strategic merge patch needs merge rules, which custom kinds do not have";
    ApiError::new(Reason::UnsupportedMediaType, message)
}

/// Returns whether a document has an empty list of managed fields, which ends their tracking. Messages cannot tell it
/// from a missing one, but from one empty entry, which means the same.
pub(crate) fn resets_managers(document: &Value) -> bool {
    let managers = document.pointer("/metadata/managedFields");
    managers
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty)
}
