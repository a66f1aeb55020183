//! TokenReview: the user that a token identifies. SelfSubjectReview: the user of the request.

use setpoint_kinds::Identity;
use setpoint_proto::authentication::{ExtraValue, SelfSubjectReview, TokenReview, UserInfo};
use setpoint_proto::{ApiError, Reason};

use crate::registry::AtLeast;
use crate::request::authentication::own_audiences;
use crate::reviews::{Answering, Question, Review};

impl Review for TokenReview {
    fn answer<'a>(&'a mut self, question: &'a Question<'a>) -> Answering<'a> {
        Box::pin(async move {
            let spec = &self.spec;
            if spec.token.is_empty() {
                let message = "token is required for TokenReview in authentication";
                return Err(ApiError::new(Reason::BadRequest, message));
            }
            let audiences = match spec.audiences.is_empty() {
                true => own_audiences().into(),
                false => spec.audiences.clone(),
            };
            self.status = Default::default();
            let authenticator = question.registry.authenticator();
            let verified =
                authenticator.authenticate_token(&spec.token, &audiences, AtLeast::Newest);
            match verified.await {
                Ok(verified) => {
                    self.status.authenticated = true;
                    self.status.user = user_info(&verified.user);
                    self.status.audiences = verified.audiences;
                }
                Err(why) => self.status.error = why,
            }
            Ok(())
        })
    }
}

impl Review for SelfSubjectReview {
    fn answer<'a>(&'a mut self, question: &'a Question<'a>) -> Answering<'a> {
        self.status.user_info = user_info(&question.context.user);
        Box::pin(async { Ok(()) })
    }
}

fn user_info(user: &Identity) -> UserInfo {
    let extra = user.extra.iter().map(|(name, values)| {
        let items = values.clone();
        (name.clone(), ExtraValue { items })
    });
    UserInfo {
        username: user.name.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: extra.collect(),
    }
}
