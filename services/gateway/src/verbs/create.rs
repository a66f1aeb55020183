//! The verb `create`.

use setpoint_codec::Object;
use setpoint_model::{Revision, Verb};
use setpoint_proto::ApiError;
use setpoint_proto::core::Binding;

use crate::admission::pipeline;
use crate::registry::{
    ObjectResponse, Registry, RequestContext, Subresource, Target, errors, expect_kind,
};
use crate::request::audit::{Sent, own_write};
use crate::reviews::{self, Question};
use crate::write::body::Body;
use crate::write::create::{Create, Owner};

impl Registry {
    /// Stores a new object, or binds or evicts a Pod through a subresource.
    ///
    /// # Errors
    /// `AlreadyExists`, `Invalid`, `NotFound` for its namespace, `Forbidden` when the namespace is being deleted, …
    pub async fn create(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        match own_write(self.auditor(), &context.user, Verb::Create, target, || {
            Sent::Object(object.clone_box())
        }) {
            None => {
                self.create_by(context, target, object, Owner::Creator)
                    .await
            }
            Some(write) => {
                write
                    .record(self.create_by(context, target, object, Owner::Creator))
                    .await
            }
        }
    }

    /// Like [`Self::create`], with a given owner of the fields.
    pub(crate) async fn create_by(
        &self,
        context: &RequestContext,
        target: &Target,
        mut object: Box<dyn Object>,
        owner: Owner,
    ) -> Result<ObjectResponse, ApiError> {
        errors::check_writable(target)?;
        if object.downcast_ref::<Binding>().is_some() && object.kind() == target.served {
            return Box::pin(self.bind_named(context, target, object)).await;
        }
        if target.served.is_review {
            return Box::pin(self.review(context, target, object)).await;
        }
        // Boxed, since the future of every create would be as large as that of an eviction.
        match target.subresource {
            Subresource::Binding => return Box::pin(self.bind(context, target, object)).await,
            Subresource::Eviction => return Box::pin(self.evict(context, target, object)).await,
            Subresource::Token => return Box::pin(self.issue_token(context, target, object)).await,
            Subresource::None => object = expect_kind(object, target)?,
            _ => return Err(errors::not_allowed()),
        }
        let draft = Create::new(self, context, target, object, owner);
        let passed = pipeline::run(self.admission(), draft).await?;
        match passed.outcome {
            Ok(mut response) => {
                response.warnings = passed.warnings;
                response.served_as(target.served)
            }
            Err(mut error) => {
                error.warnings.splice(..0, passed.warnings);
                Err(error)
            }
        }
    }

    /// Answers a review.
    async fn review(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        let object = expect_kind(object, target)?;
        let body = Body::create(context, target, object, ());
        let (body, warnings) = self.admit_body(body).await?;
        let mut object = body.object;
        let question = Question {
            context,
            target,
            registry: self,
        };
        if let Some(answering) = reviews::answer(target.served, &mut *object, &question) {
            answering.await?;
        }
        let mut response = ObjectResponse::not_stored(object, Revision::default());
        response.warnings = warnings;
        Ok(response)
    }
}
