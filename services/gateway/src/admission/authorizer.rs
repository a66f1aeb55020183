//! The variable `authorizer`: policies can ask what the user of the request, or a ServiceAccount, may do.

use std::fmt;
use std::sync::Arc;

use setpoint_cel::{Decision, Question};
use setpoint_kinds::Identity;
use setpoint_model::selector::{Fields, Selector};

use super::Attributes;
use crate::request::authorization::Authorizer;
use crate::request::{self, Resource, service_account};

/// The authorizer of the gateway, asked for the user of a request.
pub(super) struct OfUser {
    pub authorizer: Arc<Authorizer>,
    pub user: Identity,
}

impl fmt::Debug for OfUser {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("OfUser").field(&self.user).finish()
    }
}

impl setpoint_cel::Authorizer for OfUser {
    fn decide(&self, question: &Question) -> Decision {
        let account = question.service_account.as_ref();
        let account = account.map(|(namespace, name)| service_account::identity(namespace, name));
        let user = account.as_ref().unwrap_or(&self.user);
        let decision = self.authorizer.decide(user, &attributes(question));
        Decision {
            allowed: decision.allowed,
            reason: decision.reason,
        }
    }
}

fn attributes(question: &Question) -> request::Attributes {
    let verb = question.verb.clone();
    if !question.path.is_empty() {
        return request::Attributes::of_path(verb, &question.path);
    }
    let resource = Resource {
        group: question.group.clone(),
        version: "*".into(),
        resource: question.resource.clone(),
        subresource: question.subresource.clone(),
        namespace: question.namespace.clone(),
        name: question.name.clone(),
    };
    let fields = Fields::parse(&question.field_selector).unwrap_or_default();
    request::Attributes {
        fields: fields.requirements().to_vec(),
        labels: Selector::parse(&question.label_selector).unwrap_or_default(),
        ..request::Attributes::of_resource(verb, resource)
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
