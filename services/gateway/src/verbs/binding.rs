//! The subresource `binding`: assigns a Pod to a node, once.

use std::borrow::Cow;

use jiff::Timestamp;
use setpoint_codec::{Object, kind_of};
use setpoint_kinds as kinds;
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::metadata;
use setpoint_model::{Verb, names};
use setpoint_proto::core::{Binding, Pod};
use setpoint_proto::meta::Status;
use setpoint_proto::{ApiError, Reason};

use crate::registry::{ObjectResponse, Registry, RequestContext, Target, errors};
use crate::request;
use crate::verbs::update::Precondition;
use crate::write::body::{Body, ValidateBody};
use crate::write::change::Change;
use crate::write::current::Current;

impl Registry {
    /// Assigns the Pod that a `Binding` in the collection `bindings` names, as its subresource does.
    pub(crate) async fn bind_named(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        let name = &object.meta().name;
        if name.is_empty() {
            let message = "Name parameter required.";
            return Err(ApiError::new(Reason::BadRequest, message));
        }
        let pod = Target::new(kind_of::<Pod>(), &target.namespace, name, "binding")?;
        self.authorize(context, &request::Attributes::of_target(Verb::Create, &pod))
            .await?;
        self.bind(context, &pod, object).await
    }

    /// Assigns an object to the node of a `Binding`, and gives it the labels and annotations of that; the response is a
    /// `Status`.
    pub(crate) async fn bind(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        let node = NodeName::default();
        let body = Body::create(context, target, object, node);
        let (body, warnings) = self.admit_body(body).await?;
        let (object, NodeName(node)) = (body.object, body.validation);
        let precondition = Precondition::of(&*object);
        let whole = Target::whole(target.served, &target.key());
        let now = Timestamp::now();
        let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
            precondition.check(target, old)?;
            let pod = slot.insert(old.object.clone_box());
            let bound = kinds::of(target.kind).bind(&mut **pod, &node, now);
            bound.map_err(|why| errors::conflict(target, why))?;
            let (meta, given) = (pod.meta_mut(), object.meta());
            meta.labels.extend(given.labels.clone());
            meta.annotations.extend(given.annotations.clone());
            Ok(())
        };
        let updated = self
            .change(context, &whole, Change::admitted(), &mut mutate)
            .await?;
        let status = Status {
            status: "Success".into(),
            code: 201,
            ..Default::default()
        };
        let revision = updated.into_response().revision;
        let mut response = ObjectResponse::not_stored(Box::new(status), revision);
        response.warnings = warnings;
        Ok(response)
    }
}

/// The node that a valid `Binding` names.
#[derive(Default)]
struct NodeName(String);

impl ValidateBody for NodeName {
    async fn validate(
        &mut self,
        target: &Target,
        body: &mut Box<dyn Object>,
        _context: &mut Cow<'_, RequestContext>,
    ) -> Result<(), ApiError> {
        self.0 = node_of(&**body, target)?;
        Ok(())
    }
}

/// Returns the node that a valid `Binding` names.
fn node_of(object: &dyn Object, pod: &Target) -> Result<String, ApiError> {
    let bad = |message: String| ApiError::new(Reason::BadRequest, message);
    let Some(binding) = object.downcast_ref::<Binding>() else {
        return Err(bad(format!(
            "expected v1 Binding, found {}",
            object.kind().kind
        )));
    };
    let mut meta = binding.metadata.clone();
    if !meta.name.is_empty() && meta.name != pod.name {
        return Err(bad(
            "name in URL does not match name in Binding object".into()
        ));
    }
    metadata::match_target(&mut meta, pod)?;
    let mut errors = FieldErrors::default();
    let check_name = names::validate_dns_subdomain;
    metadata::validate(object.kind(), &meta, check_name, &mut errors);
    errors.into_result(object.kind(), &meta.name)?;
    let target = &binding.target;
    if !["", "Node"].contains(&target.kind.as_str()) {
        return Err(bad(format!(
            "target.kind: Unsupported value: {:?}: supported values: \"Node\", \"<empty>\"",
            target.kind
        )));
    }
    if target.name.is_empty() {
        return Err(bad("target.name: Required value".into()));
    }
    Ok(target.name.clone())
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kinds;

    use super::*;

    #[test]
    fn a_binding_must_name_a_node() {
        let kind = kinds().by_resource("pods").unwrap();
        let pod = Target::new(kind, "default", "web", "binding").unwrap();
        let mut binding = Binding::default();
        assert!(node_of(&binding, &pod).is_err());
        binding.target.name = "node-1".into();
        assert_eq!(node_of(&binding, &pod).unwrap(), "node-1");
        binding.target.kind = "Pod".into();
        assert!(node_of(&binding, &pod).is_err());
        assert!(node_of(&Pod::default(), &pod).is_err());
    }
}
