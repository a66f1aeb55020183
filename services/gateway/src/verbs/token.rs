//! The subresource `token` of ServiceAccounts, which issues tokens.

use std::borrow::Cow;

use jiff::Timestamp;
use setpoint_codec::{Kind, Object, kind_of, kinds};
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_model::Key;
use setpoint_model::time::seconds_after;
use setpoint_proto::authentication::{BoundObjectReference, TokenRequest};
use setpoint_proto::core::{Node, Pod, Secret, ServiceAccount};
use setpoint_proto::{ApiError, Reason, Resource};

use crate::cached::cached;
use crate::registry::{AtLeast, ObjectResponse, Registry, RequestContext, Target, errors, target};
use crate::request::service_account::{Bound, Claims, ISSUER, Reference, internal, username};
use crate::write::body::{Body, ValidateBody};

/// The range of the life of a token in seconds, and the default.
const SHORTEST: i64 = 10 * 60;
const LONGEST: i64 = 1 << 32;
const DEFAULT: i64 = 60 * 60;

/// The claims of the token that a valid request asks for.
struct ClaimsOf<'r> {
    registry: &'r Registry,
    claims: Claims,
}

impl ValidateBody for ClaimsOf<'_> {
    async fn validate(
        &mut self,
        target: &Target,
        body: &mut Box<dyn Object>,
        _context: &mut Cow<'_, RequestContext>,
    ) -> Result<(), ApiError> {
        let kind = body.kind();
        let request = body.downcast_mut::<TokenRequest>();
        let request = request.ok_or_else(|| unexpected(kind))?;
        self.claims = self.registry.complete(request, target).await?;
        Ok(())
    }
}

/// Returns the end of the life of a token.
fn expiry(claims: &Claims) -> Timestamp {
    Timestamp::from_second(claims.exp).unwrap_or(Timestamp::MAX)
}

impl Registry {
    /// Issues a token for a ServiceAccount.
    ///
    /// # Errors
    /// `NotFound` for the account or the object that the token is to be bound to, `Conflict` if a uid differs,
    /// `Invalid`.
    pub(crate) async fn issue_token(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        target::set_span_attributes(target);
        let claims = ClaimsOf {
            registry: self,
            claims: Claims::default(),
        };
        let body = Body::create(context, target, object, claims);
        let (body, warnings) = self.admit_body(body).await?;
        let mut request = expect_request(body.object)?;
        let claims = body.validation.claims;
        let key = self.tokens().keys.signing_key().await?;
        request.status.token = key.sign(&claims).map_err(internal)?;
        request.status.expiration_timestamp = expiry(&claims).into();
        let mut response = ObjectResponse::not_stored(request, Default::default());
        response.warnings = warnings;
        Ok(response)
    }

    /// Validates and completes a request for a token. Returns the claims of the token.
    async fn complete(
        &self,
        request: &mut TokenRequest,
        target: &Target,
    ) -> Result<Claims, ApiError> {
        let kind = Object::kind(request);
        check_metadata(request, target)?;
        let account = self.stored::<ServiceAccount>(&target.key()).await?;
        let meta = &mut request.metadata;
        if !meta.uid.is_empty() && meta.uid != account.metadata.uid {
            let why = format!(
                "the UID in the token request ({}) does not match the UID of the service account ({})",
                meta.uid, account.metadata.uid
            );
            return Err(conflict(kind, &target.name, &why));
        }
        meta.name.clone_from(&target.name);
        meta.namespace.clone_from(&target.namespace);
        meta.uid.clone_from(&account.metadata.uid);
        let now = Timestamp::now();
        meta.creation_timestamp = now.into();
        let spec = &mut request.spec;
        if spec.audiences.is_empty() {
            spec.audiences.push(ISSUER.into());
        }
        let seconds = *spec.expiration_seconds.get_or_insert(DEFAULT);
        validate_expiration(seconds).into_result(kind, "")?;
        let mut bound = Bound {
            namespace: target.namespace.clone(),
            serviceaccount: Reference::to(&*account),
            ..Default::default()
        };
        if let Some(to) = &spec.bound_object_ref {
            self.bind_token(&mut bound, to).await?;
        }
        Ok(Claims {
            iss: ISSUER.into(),
            sub: username(&bound),
            aud: spec.audiences.clone(),
            exp: seconds_after(now, seconds).as_second(),
            iat: now.as_second(),
            nbf: now.as_second(),
            jti: uuid::Uuid::new_v4().to_string(),
            bound,
        })
    }

    /// Binds a token to the object of a reference, and with a Pod to its node.
    async fn bind_token(
        &self,
        bound: &mut Bound,
        to: &BoundObjectReference,
    ) -> Result<(), ApiError> {
        let own = Key::new(&bound.namespace, &to.name);
        let kind = kinds().by_kind(&to.api_version, &to.kind);
        let uid = if kind == Some(kind_of::<Pod>()) {
            let pod = self.stored::<Pod>(&own).await?;
            let account = &bound.serviceaccount.name;
            if pod.spec.service_account_name != *account {
                let message = format!(
                    "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
                );
                return Err(ApiError::new(Reason::BadRequest, message));
            }
            bound.node = self.node_of(&pod).await?;
            bound.pod.insert(Reference::to(&*pod)).uid.clone()
        } else if kind == Some(kind_of::<Secret>()) {
            let secret = self.stored::<Secret>(&own).await?;
            bound.secret.insert(Reference::to(&*secret)).uid.clone()
        } else if kind == Some(kind_of::<Node>()) {
            let node = self.stored::<Node>(&Key::new("", &to.name)).await?;
            bound.node.insert(Reference::to(&*node)).uid.clone()
        } else {
            let version = match to.api_version.contains('/') {
                true => to.api_version.clone(),
                false => format!("/{}", to.api_version),
            };
            let message = format!(
                "cannot bind token to object of type {version}, Kind={}",
                to.kind
            );
            return Err(ApiError::new(Reason::BadRequest, message));
        };
        match kind {
            Some(kind) if !to.uid.is_empty() && to.uid != uid => {
                let why = format!(
                    "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
                    to.uid
                );
                Err(conflict(kind, &to.name, &why))
            }
            _ => Ok(()),
        }
    }

    /// Returns the node of a Pod; without its uid if it does not exist.
    async fn node_of(&self, pod: &Pod) -> Result<Option<Reference>, ApiError> {
        let name = pod.spec.node_name.clone();
        if name.is_empty() {
            return Ok(None);
        }
        match self.stored::<Node>(&Key::new("", &name)).await {
            Ok(node) => Ok(Some(Reference::to(&*node))),
            Err(error) if error.reason == Reason::NotFound => Ok(Some(Reference {
                name,
                uid: String::new(),
            })),
            Err(error) => Err(error),
        }
    }

    /// Returns an object in the newest version.
    async fn stored<T: Resource + Object>(&self, key: &Key) -> Result<Box<T>, ApiError> {
        let found = cached(self.cache(), key, AtLeast::Newest).await?;
        found.ok_or_else(|| errors::not_found(kind_of::<T>(), &key.name))
    }
}

fn expect_request(object: Box<dyn Object>) -> Result<Box<TokenRequest>, ApiError> {
    let kind = object.kind();
    object.into_any().downcast().map_err(|_| unexpected(kind))
}

fn unexpected(kind: &Kind) -> ApiError {
    let message = format!(
        "expected authentication.k8s.io/v1 TokenRequest, found {}",
        kind.kind
    );
    ApiError::new(Reason::BadRequest, message)
}

fn check_metadata(request: &TokenRequest, target: &Target) -> Result<(), ApiError> {
    let (meta, path) = (&request.metadata, FieldPath::root("metadata"));
    for (field, sent, own) in [
        ("name", &meta.name, &target.name),
        ("namespace", &meta.namespace, &target.namespace),
    ] {
        if !sent.is_empty() && sent != own {
            let mut errors = FieldErrors::default();
            let detail = format!("must match the service account {field} if specified");
            errors.invalid(&path.field(field), sent, detail);
            return errors.into_result(Object::kind(request), &target.name);
        }
    }
    Ok(())
}

fn validate_expiration(seconds: i64) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let path = FieldPath::root("spec");
    let path = path.field("expirationSeconds");
    if seconds < SHORTEST {
        let detail = "may not specify a duration less than 10 minutes";
        errors.invalid(&path, seconds, detail);
    }
    if seconds > LONGEST {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.invalid(&path, seconds, detail);
    }
    errors
}

/// Returns `Conflict` about an object. Upstream names the kind where other errors name the plural.
fn conflict(kind: &Kind, name: &str, why: &str) -> ApiError {
    let dot = if kind.group.is_empty() { "" } else { "." };
    let (kind, group) = (&kind.kind, &kind.group);
    let message = format!("Operation cannot be fulfilled on {kind}{dot}{group} {name:?}: {why}");
    ApiError::new(Reason::Conflict, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_lives_between_ten_minutes_and_2_to_the_32_seconds() {
        assert_eq!(validate_expiration(SHORTEST).count(), 0);
        assert_eq!(validate_expiration(LONGEST).count(), 0);
        assert_eq!(validate_expiration(SHORTEST - 1).count(), 1);
        assert_eq!(validate_expiration(LONGEST + 1).count(), 1);
    }
}
