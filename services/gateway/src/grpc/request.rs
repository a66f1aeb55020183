//! Converts fields of gRPC requests to the registry's types.

use setpoint_codec::{Kind, KindTable, Object};
use setpoint_model::selector::{Fields, Selector};
use setpoint_model::{Key, Revision};
use setpoint_proto::{Any, ApiError, Reason, TraceContext};
use tonic::{Extensions, Request};

use crate::offload::offload;
use crate::registry::{AtLeast, Filter, Registry, RequestContext, Target, errors};
use crate::request::impersonation::Actor;
use crate::request::{Attributes, audit};

/// The caller of a method.
pub(super) struct Caller {
    /// Until the caller is identified, its user is nobody.
    pub(super) context: RequestContext,
    /// The properties of its connection.
    pub(super) extensions: Extensions,
}

/// Returns the caller of a request, and its message. `trace` takes the trace out of that.
pub(super) fn open<M>(
    request: Request<M>,
    trace: impl FnOnce(&mut M) -> Option<TraceContext>,
) -> Result<(Caller, M), ApiError> {
    let (metadata, extensions, mut message) = request.into_parts();
    let header = |name| metadata.get(name).and_then(|value| value.to_str().ok());
    let context = RequestContext::from_headers(header)?.within(trace(&mut message));
    let caller = Caller {
        context,
        extensions,
    };
    Ok((caller, message))
}

impl Caller {
    /// Sets the user, who may act as another for what the call asks.
    ///
    /// # Errors
    /// `Forbidden` if it may not act as that one.
    pub(super) async fn identified(
        mut self,
        registry: &Registry,
        asked: &[Attributes],
    ) -> Result<Self, ApiError> {
        if let Some(actor) = self.extensions.remove::<Actor>() {
            audit::begin(actor.user(), asked);
            let (impersonation, authorizer) = (registry.impersonation(), registry.authorizer());
            self.context.user = impersonation.resolve(authorizer, actor, asked).await?;
        }
        Ok(self)
    }

    /// Sets the field manager, and whether it is a dry run.
    pub(super) fn writing(mut self, field_manager: String, dry_run: bool) -> Self {
        self.context = self.context.by(field_manager).dry(dry_run);
        self
    }
}

/// Returns the kind of a plural with its group.
pub(super) fn kind(kinds: &KindTable, resource: &str) -> Result<&'static Kind, ApiError> {
    kinds.by_resource(resource).ok_or_else(|| {
        let message = format!("the server doesn't have a resource type {resource:?}");
        ApiError::new(Reason::NotFound, message)
    })
}

/// Returns the target of a request.
pub(super) fn target(
    kinds: &KindTable,
    resource: &str,
    namespace: &str,
    name: &str,
    subresource: &str,
) -> Result<Target, ApiError> {
    Target::new(kind(kinds, resource)?, namespace, name, subresource)
}

/// Like [`target`], for a request that must name an object.
pub(super) fn named(
    kinds: &KindTable,
    resource: &str,
    namespace: &str,
    name: &str,
    subresource: &str,
) -> Result<Target, ApiError> {
    if name.is_empty() {
        return Err(bad_request("name: Required value"));
    }
    let target = target(kinds, resource, namespace, name, subresource)?;
    stored(target.served)?;
    Ok(target)
}

/// Returns a kind with stored objects; `MethodNotAllowed` for a review, which can only be created.
pub(super) fn stored(kind: &'static Kind) -> Result<&'static Kind, ApiError> {
    match kind.is_review {
        true => Err(errors::not_allowed()),
        false => Ok(kind),
    }
}

/// Returns the filter of a list or watch.
pub(super) fn filter(
    kinds: &KindTable,
    resource: &str,
    namespace: &str,
    labels: &str,
    fields: &str,
) -> Result<Filter, ApiError> {
    let labels = Selector::parse(labels).map_err(|error| bad_request(error.to_string()))?;
    let fields = Fields::parse(fields).map_err(|error| bad_request(error.to_string()))?;
    Filter::new(stored(kind(kinds, resource)?)?, namespace, labels, &fields)
}

/// Returns the collection that a filter selects from.
pub(super) fn collection(filter: &Filter) -> Target {
    Target::whole(filter.served(), &Key::new(filter.namespace(), ""))
}

/// Returns the minimum revision of a read; by default, the read is linearizable.
pub(super) fn at_least(text: &str) -> Result<AtLeast, ApiError> {
    Ok(match text {
        "" => AtLeast::Newest,
        "0" => AtLeast::Any,
        text => AtLeast::Revision(revision(text)?),
    })
}

/// Parses a revision.
pub(super) fn revision(text: &str) -> Result<Revision, ApiError> {
    text.parse()
        .map_err(|_| bad_request(format!("revision {text:?} is invalid")))
}

/// Decodes the object of a request.
pub(super) async fn object(
    kinds: &KindTable,
    any: Option<Any>,
) -> Result<Box<dyn Object>, ApiError> {
    let any = any.ok_or_else(|| bad_request("object: Required value"))?;
    let kind = kinds.by_message(&any.type_url, &any.value);
    let kind = kind.ok_or_else(|| bad_request(format!("type {:?} is unknown", any.type_url)))?;
    Ok(offload(any.value.len(), || kind.decode(&any.value)).await?)
}

pub(super) fn bad_request(message: impl Into<String>) -> ApiError {
    ApiError::new(Reason::BadRequest, message)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Pod;

    use super::*;

    #[test]
    fn a_read_is_linearizable_by_default() {
        assert_eq!(at_least("").unwrap(), AtLeast::Newest);
        assert_eq!(at_least("0").unwrap(), AtLeast::Any);
        assert_eq!(
            at_least("7").unwrap(),
            AtLeast::Revision(Revision::from_raw(7))
        );
        assert_eq!(at_least("x").unwrap_err().reason, Reason::BadRequest);
    }

    #[tokio::test]
    async fn malformed_fields_are_bad_requests() {
        let kinds = KindTable::default();
        assert_eq!(kind(&kinds, "cats").unwrap_err().reason, Reason::NotFound);
        assert_eq!(
            object(&kinds, None).await.unwrap_err().reason,
            Reason::BadRequest
        );
        let mut any = Any::pack(&Pod::default());
        assert!(object(&kinds, Some(any.clone())).await.is_ok());
        any.value = "\u{ff}".into();
        assert_eq!(
            object(&kinds, Some(any.clone())).await.unwrap_err().reason,
            Reason::BadRequest
        );
        any.type_url.clear();
        assert_eq!(
            object(&kinds, Some(any)).await.unwrap_err().reason,
            Reason::BadRequest
        );
        assert!(named(&kinds, "pods", "default", "", "").is_err());
        assert!(filter(&kinds, "pods", "", "a in", "").is_err());
    }
}
