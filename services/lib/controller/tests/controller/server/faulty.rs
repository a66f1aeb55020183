//! The service `setpoint.v1.Objects` as the gateway answers it, with faults.

use std::time::Duration;

use axum::Router;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use prost::Message as _;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::objects_server::Objects;
use setpoint_proto::setpoint::*;
use setpoint_proto::{ApiError, Reason, WatchEvent};
use tokio::sync::{mpsc, watch};
use tonic::{Request, Response, Status};

use super::Calls;

/// The injected faults.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Calls of this name (`Watch` …) and writes of this writer are never answered.
    pub hang: Vec<&'static str>,
    /// The answers to writes, which are carried out.
    pub answers: Answers,
    /// Calls of this name fail with this error.
    pub refuse: Option<(&'static str, ApiError)>,
    /// Watches of this resource hold back the changes after this revision.
    pub mute: Option<(&'static str, u64)>,
    /// Watches break after this number of events of the initial state.
    pub break_initial_after: Option<usize>,
}

/// The answers of a gateway.
#[derive(Clone, Copy, Debug, Default)]
pub enum Answers {
    #[default]
    Prompt,
    /// None arrive.
    Lost,
    /// Each arrives after this time.
    Late(Duration),
    /// Each request arrives twice, and is answered the second time.
    Doubled,
}

#[derive(Default)]
pub struct State {
    pub faults: Faults,
    /// Watches of an earlier epoch break.
    pub epoch: u64,
    /// Watches cannot resume from before this revision.
    pub compacted: u64,
}

pub struct Faulty {
    pub gateway: ObjectsClient<Router>,
    pub state: watch::Receiver<State>,
    pub calls: Calls,
}

type Answer<T> = Result<Response<T>, Status>;

impl Faulty {
    /// Counts a call and returns a client for it, unless such calls fail; does not return while they hang.
    async fn call(
        &self,
        name: &'static str,
        writer: &str,
    ) -> Result<ObjectsClient<Router>, Status> {
        self.count(name);
        let hangs = |fault: &&str| [name, writer].contains(fault);
        let mut state = self.state.clone();
        let state = state.wait_for(|state| !state.faults.hang.iter().any(hangs));
        match &state.await.map_err(gone)?.faults.refuse {
            Some((refused, error)) if *refused == name => Err(error.clone().into()),
            _ => Ok(self.gateway.clone()),
        }
    }

    /// Carries out a write.
    async fn answer<T: Clone, F>(
        &self,
        gateway: ObjectsClient<Router>,
        request: Request<T>,
        write: impl Fn(ObjectsClient<Router>, Request<T>) -> F,
    ) -> Answer<Object>
    where
        F: Future<Output = Answer<Object>>,
    {
        let mut again = Request::new(request.get_ref().clone());
        request.metadata().clone_into(again.metadata_mut());
        let answer = write(gateway.clone(), request).await;
        let answers = self.state.borrow().faults.answers;
        match answers {
            Answers::Prompt => answer,
            Answers::Lost => std::future::pending().await,
            Answers::Late(by) => {
                tokio::time::sleep(by).await;
                answer
            }
            Answers::Doubled => write(gateway, again).await,
        }
    }

    fn count(&self, name: &'static str) {
        *self.calls.lock().entry(name).or_default() += 1;
    }
}

fn gone<E>(_: E) -> Status {
    unavailable("the test is over")
}

fn unavailable(why: &str) -> Status {
    ApiError::new(Reason::ServiceUnavailable, why).into()
}

#[tonic::async_trait]
impl Objects for Faulty {
    type WatchStream = BoxStream<'static, Result<WatchEvent, Status>>;

    async fn get(&self, request: Request<GetRequest>) -> Answer<Object> {
        self.call("Get", "").await?.get(request).await
    }

    async fn list(&self, request: Request<ListRequest>) -> Answer<ListResponse> {
        self.call("List", "").await?.list(request).await
    }

    async fn create(&self, request: Request<CreateRequest>) -> Answer<Object> {
        let gateway = self
            .call("Create", &request.get_ref().field_manager)
            .await?;
        let create = |mut gateway: ObjectsClient<Router>, request| async move {
            gateway.create(request).await
        };
        self.answer(gateway, request, create).await
    }

    async fn update(&self, request: Request<UpdateRequest>) -> Answer<Object> {
        let gateway = self
            .call("Update", &request.get_ref().field_manager)
            .await?;
        let update = |mut gateway: ObjectsClient<Router>, request| async move {
            gateway.update(request).await
        };
        self.answer(gateway, request, update).await
    }

    async fn patch(&self, request: Request<PatchRequest>) -> Answer<Object> {
        let writer = &request.get_ref().field_manager;
        self.call("Patch", writer).await?.patch(request).await
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Answer<Object> {
        let gateway = self.call("Delete", "").await?;
        let delete = |mut gateway: ObjectsClient<Router>, request| async move {
            gateway.delete(request).await
        };
        self.answer(gateway, request, delete).await
    }

    async fn watch(&self, request: Request<WatchRequest>) -> Answer<Self::WatchStream> {
        let mut gateway = self.call("Watch", "").await?;
        let asked = request.get_ref().clone();
        if asked.send_initial_events {
            self.count("Initial");
        }
        let (epoch, compacted) = {
            let state = self.state.borrow();
            (state.epoch, state.compacted)
        };
        let after = asked.revision.parse::<u64>();
        if after.is_ok_and(|after| after < compacted) {
            return Err(ApiError::new(Reason::Expired, "too old resource version").into());
        }
        let watcher = Watcher {
            resource: asked.resource,
            initial: asked.send_initial_events,
            sent: 0,
            epoch,
            state: self.state.clone(),
            events: read_ahead(gateway.watch(request).await?.into_inner()),
        };
        let events = stream::try_unfold(watcher, |mut watcher| async {
            Ok(Some((watcher.next().await?, watcher)))
        });
        Ok(Response::new(events.boxed()))
    }
}

/// Takes all events as they come: the gateway ends a watch whose events are not taken.
fn read_ahead(
    mut events: tonic::Streaming<WatchEvent>,
) -> mpsc::UnboundedReceiver<Result<WatchEvent, Status>> {
    let (send, receive) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let passed = async {
            while let Some(event) = events.next().await {
                let _ = send.send(event);
            }
        };
        tokio::select! {
            () = passed => {}
            () = send.closed() => {}
        }
    });
    receive
}

/// A watch.
struct Watcher {
    resource: String,
    /// Whether the events are those of the initial state.
    initial: bool,
    sent: usize,
    epoch: u64,
    state: watch::Receiver<State>,
    events: mpsc::UnboundedReceiver<Result<WatchEvent, Status>>,
}

impl Watcher {
    /// Returns the next event, unless the watch breaks first.
    async fn next(&mut self) -> Result<WatchEvent, Status> {
        let (mut state, epoch) = (self.state.clone(), self.epoch);
        let event = tokio::select! {
            biased;
            _ = state.wait_for(|state| state.epoch != epoch) => return Err(unavailable("going away")),
            event = self.passed() => event?,
        };
        let breaks_after = self.state.borrow().faults.break_initial_after;
        if self.initial && breaks_after == Some(self.sent) {
            return Err(unavailable("going away"));
        }
        self.sent += 1;
        self.initial &= !event.initial_events_end;
        Ok(event)
    }

    /// Returns the next event once it is not held back. The initial state always passes.
    async fn passed(&mut self) -> Result<WatchEvent, Status> {
        let event = self.events.recv().await.ok_or_else(|| gone(()))??;
        let object = Object::decode(event.object.clone()).map_err(gone)?;
        let revision: u64 = object.revision.parse().map_err(gone)?;
        let (initial, resource) = (self.initial, &self.resource);
        let is_held = |mute: (&str, u64)| mute.0 == resource && revision > mute.1;
        let passes = |state: &State| initial || !state.faults.mute.is_some_and(is_held);
        self.state.wait_for(passes).await.map_err(gone)?;
        Ok(event)
    }
}
