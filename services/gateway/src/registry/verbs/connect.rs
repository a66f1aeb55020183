//! Connections to containers, Pods, Services and nodes: they are admitted as other requests, and nothing is written.

use setpoint_codec::Object;
use setpoint_model::Verb;
use setpoint_proto::ApiError;

use crate::admission::{Attributes, Chain};
use crate::registry::{Registry, RequestContext, Subresource, Target};
use crate::request;
use crate::request::authorization::authorize;

impl Registry {
    /// Lets policies and webhooks change and judge the options of a connection. Returns them.
    ///
    /// # Errors
    /// If one of them denies it.
    pub(crate) async fn connect(
        &self,
        context: &RequestContext,
        target: &Target,
        mut options: Box<dyn Object>,
    ) -> Result<Box<dyn Object>, ApiError> {
        if target.subresource != Subresource::Proxy {
            // As upstream, also for a connection that is opened by GET.
            authorize(
                &context.user,
                &request::Attributes::of_target(Verb::Create, target),
            )?;
        }
        let mut chain = Chain::of(self, target).await?;
        if chain.is_empty() {
            return Ok(options);
        }
        let request = Attributes::of_connect(context, target);
        let judged = async {
            chain.mutate(&request, Some(&mut options)).await?;
            chain.judge(&request.with_object(Some(&*options))).await
        };
        match judged.await {
            Ok(()) => Ok(options),
            Err(error) => Err(chain.refused(error)),
        }
    }
}
