//! Connections to containers, Pods, Services and nodes: they are admitted as other requests, and nothing is written.

use setpoint_codec::Object;
use setpoint_model::Verb;
use setpoint_proto::ApiError;

use crate::admission::Operation;
use crate::registry::{Registry, RequestContext, Subresource, Target};
use crate::request::Attributes;
use crate::write::body::Body;

impl Registry {
    /// Lets policies and webhooks change and validate the options of a connection. Returns them.
    ///
    /// # Errors
    /// If one of them denies it.
    pub(crate) async fn connect(
        &self,
        context: &RequestContext,
        target: &Target,
        options: Box<dyn Object>,
    ) -> Result<Box<dyn Object>, ApiError> {
        if target.subresource != Subresource::Proxy {
            // As upstream, also for a connection that is opened by GET.
            self.authorize(context, &Attributes::of_target(Verb::Create, target))
                .await?;
        }
        let body = Body {
            operation: Operation::Connect,
            ..Body::create(context, target, options, ())
        };
        let (body, _) = self.admit_body(body).await?;
        Ok(body.object)
    }
}
