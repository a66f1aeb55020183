//! The variable `authorizer`: policies can ask what the user of the request may do. Everything is allowed, as to
//! requests.

use setpoint_cel::{Authorizer, Decision, Question};

use super::Attributes;
use crate::request::authorization::REASON;

/// The authorizer of the gateway.
#[derive(Debug)]
pub(super) struct Everything;

impl Authorizer for Everything {
    fn decide(&self, _question: &Question) -> Decision {
        Decision {
            allowed: true,
            reason: REASON.into(),
        }
    }
}

/// Returns the question about the resource of a request.
pub(super) fn about(request: &Attributes<'_>) -> Question {
    let target = request.target;
    Question {
        group: target.served.group.clone(),
        resource: target.served.plural.clone(),
        subresource: target.subresource.name().to_owned(),
        namespace: request.namespace().to_owned(),
        name: target.name.clone(),
        ..Question::default()
    }
}
