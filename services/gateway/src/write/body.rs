//! The draft of a request that stores nothing itself: the body of a subresource such as `binding`, a review, a
//! connection.

use std::borrow::Cow;
use std::future::Future;

use setpoint_codec::Object;
use setpoint_proto::ApiError;

use crate::admission::pipeline::{self, Committed, Draft, Effect};
use crate::admission::{Attributes, Chain, Operation, Reservation};
use crate::registry::{Registry, RequestContext, Target};

/// The validation of a body.
pub(crate) trait ValidateBody: Send {
    /// Validates the body of a request for a target, and completes it. May turn the request into a dry run.
    ///
    /// # Errors
    /// `Invalid`, or the reason why the request cannot be fulfilled.
    fn validate(
        &mut self,
        target: &Target,
        body: &mut Box<dyn Object>,
        context: &mut Cow<'_, RequestContext>,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;
}

/// No validation.
impl ValidateBody for () {
    async fn validate(
        &mut self,
        _target: &Target,
        _body: &mut Box<dyn Object>,
        _context: &mut Cow<'_, RequestContext>,
    ) -> Result<(), ApiError> {
        Ok(())
    }
}

/// A request with a body. What it asks for is done once it is admitted.
pub(crate) struct Body<'a, V> {
    pub context: Cow<'a, RequestContext>,
    pub target: &'a Target,
    pub operation: Operation,
    pub object: Box<dyn Object>,
    /// The validation, with what it has found out.
    pub validation: V,
}

impl<'a, V: ValidateBody> Body<'a, V> {
    /// Returns the creation of a subresource or of a review.
    pub(crate) fn create(
        context: &'a RequestContext,
        target: &'a Target,
        object: Box<dyn Object>,
        validation: V,
    ) -> Self {
        Self {
            context: Cow::Borrowed(context),
            target,
            operation: Operation::Create,
            object,
            validation,
        }
    }
}

impl Registry {
    /// Runs a body through all steps of a write. Returns it with the warnings.
    ///
    /// # Errors
    /// That of the first step that fails.
    pub(crate) async fn admit_body<'a, V: ValidateBody>(
        &self,
        body: Body<'a, V>,
    ) -> Result<(Body<'a, V>, Vec<String>), ApiError> {
        let passed = pipeline::run(self.admission(), body).await?;
        Ok((passed.outcome, passed.warnings))
    }
}

impl<V: ValidateBody> Draft for Body<'_, V> {
    type Outcome = Self;

    fn hooked(&self) -> Option<&Target> {
        Some(self.target)
    }

    async fn set_defaults(&mut self) -> Result<(), ApiError> {
        Ok(())
    }

    fn request(&self) -> Attributes<'_> {
        attributes(&self.context, self.target, self.operation)
    }

    fn object(&self) -> &dyn Object {
        &*self.object
    }

    fn parts(&mut self) -> (Attributes<'_>, &mut dyn Object) {
        let request = attributes(&self.context, self.target, self.operation);
        (request, &mut *self.object)
    }

    async fn mutate(&mut self, chain: &mut Chain<'_>) -> Result<(), ApiError> {
        let request = attributes(&self.context, self.target, self.operation);
        chain.mutate(&request, Some(&mut self.object)).await?;
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), ApiError> {
        Ok(())
    }

    async fn validate(&mut self) -> Result<(), ApiError> {
        let (target, object, context) = (self.target, &mut self.object, &mut self.context);
        self.validation.validate(target, object, context).await
    }

    async fn validate_by(&mut self, chain: &mut Chain<'_>) -> Result<(), ApiError> {
        let request = self.request().with_object(Some(&*self.object));
        chain.validate(&request).await
    }

    fn effect(&self) -> Effect {
        Effect::Nothing
    }

    async fn commit(self, _reservation: Reservation) -> Committed<Self> {
        Committed::Ended(self)
    }
}

/// Returns the request as plugins and hooks see it, without the body.
fn attributes<'a>(
    context: &'a RequestContext,
    target: &'a Target,
    operation: Operation,
) -> Attributes<'a> {
    Attributes {
        operation,
        ..Attributes::of_create(context, target)
    }
}
