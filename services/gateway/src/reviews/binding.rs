//! Binding: the verb `create` takes it for one of the subresource of its Pod, so it never gets here.

use setpoint_proto::core::Binding;

use crate::errors;
use crate::reviews::{Answering, Question, Review};

impl Review for Binding {
    fn answer<'a>(&'a mut self, _question: &'a Question<'a>) -> Answering<'a> {
        Box::pin(async { Err(errors::not_allowed()) })
    }
}
