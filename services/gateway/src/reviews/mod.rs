//! Reviews: questions to the gateway in the form of objects, which are answered and never stored.

mod authentication;
mod authorization;
mod binding;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::LazyLock;

use futures::future::BoxFuture;
use setpoint_codec::{Kind, Object};
use setpoint_proto::{ApiError, Body, for_each_review};

use crate::registry::{Registry, RequestContext, Target};

/// A request that creates a review.
pub(crate) struct Question<'a> {
    pub context: &'a RequestContext,
    pub target: &'a Target,
    pub registry: &'a Registry,
}

/// An answer that is under way.
pub(crate) type Answering<'a> = BoxFuture<'a, Result<(), ApiError>>;

/// A kind whose objects are answered.
pub(crate) trait Review: Body + Object {
    /// Validates the object and completes it with the answer.
    ///
    /// # Errors
    /// `Invalid` or `BadRequest` if the question is malformed.
    fn answer<'a>(&'a mut self, question: &'a Question<'a>) -> Answering<'a>;
}

/// The hook of [`Review`], with objects of any type.
trait Answerer: Send + Sync {
    fn answer<'a>(
        &self,
        object: &'a mut dyn Object,
        question: &'a Question<'a>,
    ) -> Option<Answering<'a>>;
}

struct AnswererOf<T>(PhantomData<fn() -> T>);

impl<T: Review> Answerer for AnswererOf<T> {
    fn answer<'a>(
        &self,
        object: &'a mut dyn Object,
        question: &'a Question<'a>,
    ) -> Option<Answering<'a>> {
        Some(object.downcast_mut::<T>()?.answer(question))
    }
}

macro_rules! answerers {
    ($($message:path => $name:literal,)*) => {
        /// The reviews, by the full name of their message.
        static ANSWERERS: LazyLock<HashMap<&str, &dyn Answerer>> = LazyLock::new(|| {
            HashMap::from([$((
                $name,
                &AnswererOf::<$message>(PhantomData) as &dyn Answerer,
            )),*])
        });
    };
}
for_each_review!(answerers);

/// Answers an object of the kind; `None` if the kind is not a review.
pub(crate) fn answer<'a>(
    kind: &Kind,
    object: &'a mut dyn Object,
    question: &'a Question<'a>,
) -> Option<Answering<'a>> {
    let answerer = ANSWERERS.get(kind.message.full_name())?;
    answerer.answer(object, question)
}
