//! The stream of a runtime's events.
//!
//! ```text
//! Asked ─▶ Begun ─▶ its end
//!   └────▶ None, of a runtime that sends none
//! ```
//! Some servers answer only with the first event: until then, whether there will be any is not known.

use std::mem;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use k8s_cri::v1::{ContainerEventResponse, GetEventsRequest};
use tonic::{Code, Response, Status, Streaming};

use super::client::Service;

type Stream = Streaming<ContainerEventResponse>;

/// The events of a runtime.
pub enum Events {
    /// They are asked for.
    Asked(BoxFuture<'static, Result<Response<Stream>, Status>>),
    /// They are sent.
    Begun(Box<Stream>),
    /// There are none.
    None,
}

/// The next message of a stream, or its end.
pub enum Next {
    /// The runtime has answered, with events or that it sends none.
    Answer,
    /// An event.
    Event(Box<ContainerEventResponse>),
    /// The end.
    End,
}

impl Events {
    /// Asks a runtime for its events.
    pub fn of(service: &Service) -> Self {
        let mut runtime = service.runtime();
        let asked = async move {
            let request = GetEventsRequest::default();
            runtime.get_container_events(request).await
        };
        Self::Asked(Box::pin(asked))
    }

    /// Returns whether the runtime sends events.
    pub const fn are_sent(&self) -> bool {
        matches!(self, Self::Begun(_))
    }

    /// Returns what comes next; waits forever if the runtime sends no events. Nothing is lost when dropped.
    ///
    /// # Errors
    /// The runtime's.
    pub async fn next(&mut self) -> Result<Next, Status> {
        match self {
            Self::Asked(asked) => {
                let answer = asked.await;
                drop(mem::replace(self, Self::None));
                match answer {
                    Ok(events) => *self = Self::Begun(Box::new(events.into_inner())),
                    Err(status) if status.code() == Code::Unimplemented => {}
                    Err(status) => return Err(status),
                }
                Ok(Next::Answer)
            }
            Self::Begun(events) => {
                let event = events.next().await.transpose()?;
                Ok(event.map_or(Next::End, |event| Next::Event(Box::new(event))))
            }
            Self::None => std::future::pending().await,
        }
    }
}
