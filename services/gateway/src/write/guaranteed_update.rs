//! Guaranteed update: reads an object, computes the new one and commits it, and retries if the read was stale or
//! another write came first.

use setpoint_codec::Object;
use setpoint_model::Revision;
use setpoint_proto::ApiError;

use crate::admission::pipeline;
use crate::registry::target;
use crate::registry::{ObjectResponse, Registry, RequestContext, Target};
use crate::write::change::Change;
use crate::write::current::Current;
use crate::write::retry::Retry;
use crate::write::update::{Attempt, Update};

/// Computes the new object from the current one. The slot passes in a copy of the object of the request, if there is
/// one, and passes out the new object.
pub(crate) type Mutate<'p> =
    dyn FnMut(&Current, &mut Option<Box<dyn Object>>) -> Result<(), ApiError> + Send + 'p;

/// The result of an update.
pub(crate) enum Updated {
    /// The object after the update.
    Stored(ObjectResponse),
    /// The object before it was removed.
    Deleted(ObjectResponse),
}

impl Updated {
    fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        let (Self::Stored(response) | Self::Deleted(response)) = &mut self;
        response.warnings.extend(warnings);
        self
    }

    pub(crate) fn into_response(self) -> ObjectResponse {
        match self {
            Self::Stored(response) | Self::Deleted(response) => response,
        }
    }
}

impl Registry {
    /// Changes an object to the result of `mutate`, which is valid, as an update of `target`.
    pub(crate) async fn guaranteed_update(
        &self,
        context: &RequestContext,
        target: &Target,
        mutate: &mut Mutate<'_>,
    ) -> Result<Updated, ApiError> {
        let change = Change {
            validates: false,
            ..Change::update(target, 0)
        };
        self.change(context, target, change, mutate).await
    }

    /// Changes an object to the result of `mutate`; removes it if its deletion is complete.
    ///
    /// If an attempt with the cached object is refused, it is repeated with the stored one if that is newer. After a
    /// conflict it is repeated with the new current object, until the request times out. Each attempt begins from the
    /// request: the former one has copied values of an object that is not the current one.
    pub(crate) async fn change(
        &self,
        context: &RequestContext,
        target: &Target,
        change: Change<'_>,
        mutate: &mut Mutate<'_>,
    ) -> Result<Updated, ApiError> {
        target::set_span_attributes(target);
        let mut current = self.cached(target).await?;
        let mut retry = Retry::begin();
        loop {
            current = self.current_in_form(target, current).await?;
            let known = (current.revision, current.is_live);
            let draft = Update::new(self, context, target, &change, current, mutate);
            let passed = match pipeline::run(self.admission(), draft).await {
                Ok(passed) => passed,
                Err(error) => {
                    current = self.newer(target, known).await?.ok_or(error)?;
                    continue;
                }
            };
            match passed.outcome? {
                Attempt::Done(updated) => return Ok(updated.with_warnings(passed.warnings)),
                Attempt::Conflict(stored) => {
                    retry.wait().await?;
                    current = match stored {
                        Some(current) => current,
                        None => self.live(target).await?,
                    };
                }
            }
        }
    }

    /// Returns the stored object if it is newer than one from the cache.
    async fn newer(
        &self,
        target: &Target,
        (revision, is_live): (Revision, bool),
    ) -> Result<Option<Current>, ApiError> {
        if is_live {
            return Ok(None);
        }
        let live = self.live(target).await?;
        Ok(Some(live).filter(|live| live.revision != revision))
    }
}
