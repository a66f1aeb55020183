//! The subresource `scale`: the number of replicas.

use setpoint_codec::Object;
use setpoint_kinds as kinds;
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_kinds::validation::metadata;
use setpoint_model::names;
use setpoint_proto::ApiError;
use setpoint_proto::autoscaling::{Scale, ScaleSpec, ScaleStatus};
use setpoint_proto::meta::ObjectMeta;

use crate::registry::{ObjectResponse, Target, errors};

/// Returns the scale of an object; `MethodNotAllowed` if its kind has none.
pub(crate) fn of(object: &dyn Object) -> Result<Scale, ApiError> {
    let replicas = kinds::of(object.kind()).scale(object);
    let replicas = replicas.ok_or_else(errors::not_allowed)?;
    let meta = object.meta();
    Ok(Scale {
        metadata: ObjectMeta {
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            creation_timestamp: meta.creation_timestamp,
            ..Default::default()
        },
        spec: ScaleSpec {
            replicas: replicas.desired,
        },
        status: ScaleStatus {
            replicas: replicas.observed,
            selector: replicas
                .selector
                .map(|selector| selector.to_string())
                .unwrap_or_default(),
        },
    })
}

/// Returns the response to a read of the scale of an object.
///
/// # Errors
/// `InternalError` if the object does not say how many replicas are wanted, as upstream.
pub(crate) fn read(whole: ObjectResponse) -> Result<ObjectResponse, ApiError> {
    let encoded = whole.encoded();
    let object = whole.into_object()?;
    let replicas = kinds::of(object.kind()).scale(&*object);
    match replicas.and_then(|replicas| replicas.unknown) {
        Some(why) => Err(errors::internal(&why)),
        None => response(encoded.with_object(object)),
    }
}

/// Returns the response to a write of the scale of an object.
pub(crate) fn response(whole: ObjectResponse) -> Result<ObjectResponse, ApiError> {
    let (revision, warnings) = (whole.revision, whole.warnings.clone());
    let scale = of(&*whole.into_object()?)?;
    let mut response = ObjectResponse::not_stored(Box::new(scale), revision);
    response.warnings = warnings;
    Ok(response)
}

/// Returns the number of replicas of a valid `Scale`.
pub(crate) fn replicas_of(object: &dyn Object, target: &Target) -> Result<i32, ApiError> {
    let Some(scale) = object.downcast_ref::<Scale>() else {
        let message = format!(
            "expected autoscaling/v1 Scale, found {}",
            object.kind().kind
        );
        return Err(ApiError::new(setpoint_proto::Reason::BadRequest, message));
    };
    let mut meta = scale.metadata.clone();
    metadata::match_target(&mut meta, target)?;
    let mut errors = FieldErrors::default();
    metadata::validate(
        object.kind(),
        &meta,
        names::validate_dns_subdomain,
        &mut errors,
    );
    errors.non_negative(
        &FieldPath::root("spec").field("replicas"),
        scale.spec.replicas,
    );
    errors.into_result(object.kind(), &target.name)?;
    Ok(scale.spec.replicas)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::apps::Deployment;
    use setpoint_proto::meta::LabelSelector;

    use super::*;

    #[test]
    fn a_scale_has_the_desired_and_observed_replicas_and_the_selector() {
        let mut web = Deployment::default();
        web.metadata.name = "web".into();
        web.metadata.namespace = "shop".into();
        web.metadata.uid = "5be0".into();
        web.metadata.resource_version = "7".into();
        web.metadata.generation = 2;
        web.metadata.creation_timestamp = jiff::Timestamp::UNIX_EPOCH.into();
        web.spec.replicas = Some(3);
        web.status.replicas = 2;
        web.spec.selector = Some(LabelSelector {
            match_labels: [("app".to_owned(), "web".to_owned())].into(),
            ..Default::default()
        });
        let scale = of(&web).unwrap();
        assert_eq!((scale.spec.replicas, scale.status.replicas), (3, 2));
        assert_eq!(scale.status.selector, "app=web");
        let identity = ObjectMeta {
            generation: 0,
            ..web.metadata.clone()
        };
        assert_eq!(scale.metadata, identity);
        kinds::of(Object::kind(&web)).set_replicas(&mut web, 5);
        assert_eq!(web.spec.replicas, Some(5));
    }
}
