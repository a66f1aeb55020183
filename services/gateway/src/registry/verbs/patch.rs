//! `patch`: a part of an object changed, in any of three ways.

use serde_json::Value;
use setpoint_codec::{Kind, Object, patch};
use setpoint_model::Verb;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::{ApiError, Reason};

use crate::kinds;
use crate::registry::verbs::scale;
use crate::registry::verbs::update::{Precondition, revise};
use crate::registry::write::current::Current;
use crate::registry::{ObjectResponse, Registry, RequestContext, Subresource, Target, errors};

/// Looks at the JSON of a patched object before it is read, and answers with warnings or refuses it.
pub type Check = fn(&'static Kind, &[u8]) -> Result<Vec<String>, ApiError>;

/// A change in part.
pub struct Patch {
    /// How `body` is meant.
    pub r#type: Type,
    /// The patch.
    pub body: Value,
    /// The length of its text.
    pub bytes: usize,
    /// How strictly the outcome is read.
    pub check: Check,
}

impl Registry {
    /// Changes an object, its status or its scale in part. A patch that names no revision applies to whatever is there.
    ///
    /// # Errors
    /// `Conflict` when the patch names a revision or a uid that is not the newest, `NotFound`, `Invalid`, …
    pub async fn patch(
        &self,
        context: &RequestContext,
        target: &Target,
        patch: &Patch,
    ) -> Result<ObjectResponse, ApiError> {
        self.allow(context, Verb::Patch, target)?;
        if target.subresource == Subresource::Binding {
            return Err(errors::not_allowed());
        }
        let whole = Target::whole(target.kind, &target.key());
        let mut warnings = Vec::new();
        let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
            let (new, heard) = patch.apply(target, old)?;
            warnings = heard;
            if target.subresource != Subresource::Scale {
                return revise(target, old, slot.insert(new));
            }
            let scaled = slot.insert(old.object.clone_box());
            let replicas = scale::replicas_of(&*new, target)?;
            kinds::of(target.kind).set_replicas(&mut **scaled, replicas);
            revise(&whole, old, scaled)
        };
        let updated = self
            .guaranteed_update(context, &whole, None, patch.bytes, &mut mutate)
            .await?;
        let mut response = updated.into_response();
        if target.subresource == Subresource::Scale {
            response = scale::response(response)?;
        }
        response.warnings = warnings;
        Ok(response)
    }
}

impl Patch {
    /// The patched object (or scale), and what to warn of.
    fn apply(
        &self,
        target: &Target,
        old: &Current,
    ) -> Result<(Box<dyn Object>, Vec<String>), ApiError> {
        let mut now = old.object.clone_box();
        now.meta_mut().resource_version = old.revision.to_string();
        if target.subresource == Subresource::Scale {
            now = Box::new(scale::of(&*now)?);
        }
        let kind = now.kind();
        let document = errors::readable(serde_json::from_slice(&now.to_json()))?;
        let patched = self.apply_to(kind, document)?;
        let json = patched.to_string();
        let warnings = (self.check)(kind, json.as_bytes())?;
        let new = kind.from_json(json.as_bytes())?;
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
                let message =
                    "the patch type is not supported: json, merge and strategic merge patches are";
                return Err(ApiError::new(Reason::UnsupportedMediaType, message));
            }
        };
        Ok(patched)
    }
}
