//! Runs a request through policies and webhooks, in upstream's order.

use std::sync::Arc;

use setpoint_codec::fields::Managers;
use setpoint_codec::{Kind, Object};
use setpoint_kinds as kinds;
use setpoint_proto::ApiError;

use super::hooks::Snapshot;
use super::reinvocation::Reinvocation;
use super::request::document;
use super::request_data::RequestData;
use super::{Attributes, Operation, policy, webhook};
use crate::admission::Admission;
use setpoint_kinds::Target;

/// The passes of policies and of webhooks over a request.
#[derive(Default)]
struct Passes {
    policies: Reinvocation,
    webhooks: Reinvocation,
}

impl Passes {
    fn is_second_needed(&self) -> bool {
        self.policies.is_needed() || self.webhooks.is_needed()
    }
}

/// The hooks that a request passes, and the warnings so far.
pub(crate) struct Chain<'r> {
    admission: &'r Admission,
    /// `None` if there are none.
    hooks: Option<Arc<Snapshot>>,
    pub(crate) warnings: Vec<String>,
}

impl<'r> Chain<'r> {
    /// Returns the policies and webhooks of requests for a target; none without one.
    ///
    /// # Errors
    /// If the cache is not there yet.
    pub(crate) async fn of(
        admission: &'r Admission,
        target: Option<&Target>,
    ) -> Result<Self, ApiError> {
        let hooks = match target.filter(|target| !is_exempt(target.served)) {
            None => None,
            Some(_) => admission.hooks().current(admission.cache()).await?,
        };
        Ok(Self {
            admission,
            hooks,
            warnings: Vec::new(),
        })
    }

    /// Returns whether no hook applies.
    pub(crate) fn is_empty(&self) -> bool {
        self.hooks.is_none()
    }

    /// Returns whether policies or webhooks may change the object of the request.
    pub(crate) fn mutates(&self) -> bool {
        self.hooks.as_ref().is_some_and(|hooks| hooks.mutates())
    }

    /// Runs a request through mutating policies and webhooks. Returns whether they have changed its object, whose
    /// defaults are set then.
    ///
    /// # Errors
    /// If one of them denies the request.
    pub(crate) async fn mutate(
        &mut self,
        request: &Attributes<'_>,
        object: Option<&mut Box<dyn Object>>,
    ) -> Result<bool, ApiError> {
        match self.hooks.clone().filter(|_| self.mutates()) {
            // Boxed, since most requests never get here.
            Some(hooks) => Box::pin(self.mutate_by(&hooks, request, object)).await,
            None => Ok(false),
        }
    }

    async fn mutate_by(
        &mut self,
        hooks: &Snapshot,
        request: &Attributes<'_>,
        mut object: Option<&mut Box<dyn Object>>,
    ) -> Result<bool, ApiError> {
        let attributes = request.with_object(object.as_deref().map(|one| &**one));
        let data = RequestData::of(self.admission, &attributes).await?;
        let before = object.as_deref().map(|one| one.clone_box());
        let mut passes = Passes::default();
        self.pass(hooks, request, &data, &mut passes, object.as_deref_mut())
            .await?;
        if let Some(object) = object.as_deref_mut().filter(|_| passes.is_second_needed()) {
            self.admit_again(request, object).await?;
            self.pass(hooks, request, &data, &mut passes, Some(object))
                .await?;
        }
        Ok(match (before, object) {
            (Some(before), Some(object)) => {
                self.check_managers(&*before, &mut **object);
                document(&*before) != document(&**object)
            }
            _ => false,
        })
    }

    /// Runs a request through mutating policies, and then webhooks, once.
    async fn pass(
        &mut self,
        hooks: &Snapshot,
        request: &Attributes<'_>,
        data: &RequestData,
        passes: &mut Passes,
        mut object: Option<&mut Box<dyn Object>>,
    ) -> Result<(), ApiError> {
        let (admission, request) = (self.admission, *request);
        if let Some(object) = object.as_deref_mut() {
            passes.policies.begin(&document(&**object));
            let pass = policy::Pass {
                admission,
                request,
                data,
                passes: &mut passes.policies,
            };
            policy::mutate(pass, &hooks.mutating_policies, object).await?;
            passes.policies.end(document(&**object));
            passes.webhooks.begin(&document(&**object));
        }
        let pass = webhook::Pass {
            admission,
            request,
            data,
            passes: &mut passes.webhooks,
            warnings: &mut self.warnings,
        };
        webhook::mutate(pass, &hooks.mutating, object.as_deref_mut()).await?;
        if let Some(object) = object {
            passes.webhooks.end(document(&**object));
        }
        Ok(())
    }

    /// Repeats the built-in admission of a new object after a policy or webhook changed it.
    async fn admit_again(
        &self,
        request: &Attributes<'_>,
        object: &mut Box<dyn Object>,
    ) -> Result<(), ApiError> {
        let is_create = request.operation == Operation::Create;
        let Some(rules) = kinds::find(object.kind()).filter(|_| is_create) else {
            return Ok(());
        };
        let plugins = self.admission.plugins();
        plugins.admit(*request, &mut **object).await?;
        rules.fill_defaults(&mut **object);
        Ok(())
    }

    /// Restores managed fields that a webhook has made malformed.
    fn check_managers(&mut self, before: &dyn Object, object: &mut dyn Object) {
        let found = &object.meta().managed_fields;
        let Err(error) = Managers::decode(found) else {
            return;
        };
        self.warnings.push(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {error}"
        ));
        let kept = before.meta().managed_fields.clone();
        object.meta_mut().managed_fields = kept;
    }

    /// Runs a request that is about to be committed through validating policies and webhooks.
    ///
    /// # Errors
    /// If one of them denies it.
    pub(crate) async fn validate(&mut self, request: &Attributes<'_>) -> Result<(), ApiError> {
        match self.hooks.clone() {
            // Boxed, since most requests never get here.
            Some(hooks) => Box::pin(self.validate_by(&hooks, request)).await,
            None => Ok(()),
        }
    }

    async fn validate_by(
        &mut self,
        hooks: &Snapshot,
        request: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let data = RequestData::of(self.admission, request).await?;
        let (admission, warnings) = (self.admission, &mut self.warnings);
        policy::validate(admission, request, &data, &hooks.policies, warnings).await?;
        webhook::validate(admission, request, &data, &hooks.validating, warnings).await
    }

    /// Returns the error of a request, with the warnings so far.
    pub(crate) fn refused(self, mut error: ApiError) -> ApiError {
        error.warnings.splice(..0, self.warnings);
        error
    }
}

/// Returns whether no hook applies to requests for a kind: its objects could otherwise lock their own administrators
/// out.
fn is_exempt(kind: &Kind) -> bool {
    const EXEMPT: [&str; 6] = [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ];
    kind.group == "admissionregistration.k8s.io" && EXEMPT.contains(&kind.kind.as_str())
}
