//! The world, served as `setpoint.v1.Objects`.

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use prost::Message as _;
use setpoint_proto::core::Event;
use setpoint_proto::setpoint::objects_server::Objects;
use setpoint_proto::setpoint::*;
use setpoint_proto::trace::Traced;
use setpoint_proto::{Any, ApiError, Cause, EventType, FENCE, Reason, WatchEvent};
use tonic::{Request, Response, Status};

use super::Fake;
use super::world::{World, error, is_in};

pub struct Service(pub Fake);

type Answer<T> = Result<Response<T>, Status>;

impl Service {
    /// Counts a call; does not come back while such calls hang.
    async fn arrive(&self, name: &'static str, writer: &str) {
        *self.0.world.lock().calls.entry(name).or_default() += 1;
        let mut changed = self.0.changed.subscribe();
        let hangs = |fault: &&str| [name, writer].contains(fault);
        let _ = changed
            .wait_for(|_| !self.0.faults().hang.iter().any(hangs))
            .await;
    }

    fn write<Q: Traced, A>(
        &self,
        mut request: Request<Q>,
        write: impl FnOnce(&mut World, Q, Cause) -> Result<A, ApiError>,
    ) -> Answer<A> {
        let header = |name| {
            let value = request.metadata().get(name);
            value.map(|text| text.to_str().unwrap().to_owned())
        };
        let fence = header(FENCE);
        let trace = request.get_mut().trace().take().unwrap_or_default();
        let cause = trace.validated().cause("", 0);
        let written = self.0.change(|world| {
            fence.map_or(Ok(()), |fence| world.check(&fence))?;
            write(world, request.into_inner(), cause)
        });
        Ok(Response::new(written?))
    }
}

#[tonic::async_trait]
impl Objects for Service {
    type WatchStream = BoxStream<'static, Result<WatchEvent, Status>>;

    async fn get(&self, request: Request<GetRequest>) -> Answer<Object> {
        self.arrive("Get", "").await;
        let GetRequest {
            resource,
            namespace,
            name,
            ..
        } = request.into_inner();
        let world = self.0.world.lock();
        Ok(Response::new(world.find(&resource, &namespace, &name)?))
    }

    async fn list(&self, request: Request<ListRequest>) -> Answer<ListResponse> {
        self.arrive("List", "").await;
        let request = request.into_inner();
        let world = self.0.world.lock();
        let skip: usize = request.r#continue.parse().unwrap_or_default();
        let all = world.select(
            &request.resource,
            &request.namespace,
            &request.field_selector,
        );
        let limit = usize::try_from(request.limit).unwrap();
        let items: Vec<_> = all.skip(skip).take(limit).cloned().collect();
        let next = match items.len() == limit {
            true => (skip + limit).to_string(),
            false => String::new(),
        };
        Ok(Response::new(ListResponse {
            r#continue: next,
            items,
            revision: world.revision.to_string(),
            remaining: None,
        }))
    }

    async fn create(&self, request: Request<CreateRequest>) -> Answer<Object> {
        self.arrive("Create", &request.get_ref().field_manager)
            .await;
        if let Some(refusal) = self.0.faults().refuse_creates {
            return Err(refusal.into());
        }
        self.write(request, |world, request, cause| {
            world.create(&request.resource, request.object.unwrap(), cause)
        })
    }

    async fn update(&self, request: Request<UpdateRequest>) -> Answer<Object> {
        self.arrive("Update", &request.get_ref().field_manager)
            .await;
        if let Some(refusal) = self.0.faults().refuse_updates {
            return Err(refusal.into());
        }
        let answer = self.write(request, |world, request, cause| {
            world.update(&request.resource, request.object.unwrap(), cause)
        });
        match self.0.faults().lose_answers {
            true => std::future::pending().await,
            false => answer,
        }
    }

    /// Only Events are patched.
    async fn patch(&self, request: Request<PatchRequest>) -> Answer<Object> {
        self.arrive("Patch", &request.get_ref().field_manager).await;
        self.write(request, |world, request, cause| {
            let old = world.find(&request.resource, &request.namespace, &request.name)?;
            let event: Event = old.object.unwrap().unpack()?;
            let mut event = serde_json::to_value(&event).unwrap();
            let patch: serde_json::Value = serde_json::from_slice(&request.patch).unwrap();
            for (field, value) in patch.as_object().unwrap() {
                event[field] = value.clone();
            }
            let event: Event = serde_json::from_value(event).unwrap();
            world.update(&request.resource, Any::pack(&event), cause)
        })
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Answer<Object> {
        self.arrive("Delete", "").await;
        self.write(request, |world, request, _| {
            world.remove(&request.resource, &request.namespace, &request.name)
        })
    }

    async fn watch(&self, request: Request<WatchRequest>) -> Answer<Self::WatchStream> {
        self.arrive("Watch", "").await;
        let request = request.into_inner();
        if request.send_initial_events {
            *self.0.world.lock().calls.entry("Initial").or_default() += 1;
        }
        let cursor = Cursor::new(self.0.clone(), request)?;
        let batches = stream::try_unfold(cursor, |mut cursor| async {
            let batch = cursor.next().await?;
            let events = stream::iter(batch.into_iter().map(Ok::<_, Status>));
            Ok::<_, Status>(Some((events, cursor)))
        });
        Ok(Response::new(batches.try_flatten().boxed()))
    }
}

/// One watcher.
struct Cursor {
    fake: Fake,
    request: WatchRequest,
    after: u64,
    initial: bool,
    epoch: u64,
    bookmarks: u64,
}

impl Cursor {
    fn new(fake: Fake, request: WatchRequest) -> Result<Self, ApiError> {
        let world = fake.world.lock();
        let after = request.revision.parse().unwrap_or(world.revision);
        if after < world.compacted {
            return Err(error(Reason::Expired, "too old resource version".into()));
        }
        let initial = request.send_initial_events;
        let (epoch, bookmarks) = (world.epoch, world.bookmarks);
        drop(world);
        Ok(Self {
            fake,
            request,
            after,
            initial,
            epoch,
            bookmarks,
        })
    }

    async fn next(&mut self) -> Result<Vec<WatchEvent>, Status> {
        let mut changed = self.fake.changed.subscribe();
        loop {
            if self.fake.world.lock().epoch != self.epoch {
                return Err(error(Reason::ServiceUnavailable, "going away".into()).into());
            }
            let batch = match std::mem::take(&mut self.initial) {
                true => self.state(),
                false => self.news(),
            };
            if !batch.is_empty() {
                return Ok(batch);
            }
            let _ = changed.changed().await;
        }
    }

    fn state(&mut self) -> Vec<WatchEvent> {
        let mut world = self.fake.world.lock();
        let WatchRequest {
            resource,
            namespace,
            field_selector,
            ..
        } = &self.request;
        let objects = world.select(resource, namespace, field_selector);
        let mut events: Vec<_> = objects.map(|o| event(EventType::Added, o)).collect();
        self.after = world.revision;
        match world.faults.break_initial_after {
            Some(n) => {
                events.truncate(n);
                world.epoch += 1;
            }
            None => events.push(bookmark(world.revision, true)),
        }
        events
    }

    fn news(&mut self) -> Vec<WatchEvent> {
        let world = self.fake.world.lock();
        let WatchRequest {
            resource,
            namespace,
            field_selector,
            ..
        } = &self.request;
        let until = match world.faults.mute {
            Some((muted, until)) if muted == resource => until,
            _ => world.revision,
        };
        let new = world.log.iter().filter(|change| {
            change.revision > self.after
                && change.revision <= until
                && change.resource == *resource
                && is_in(&change.object, resource, namespace, field_selector)
        });
        let mut events: Vec<_> = new
            .map(|change| event(change.kind, &change.object))
            .collect();
        self.after = self.after.max(until);
        if self.bookmarks < world.bookmarks && self.after == world.revision {
            self.bookmarks = world.bookmarks;
            events.push(bookmark(world.revision, false));
        }
        events
    }
}

fn event(kind: EventType, object: &Object) -> WatchEvent {
    WatchEvent {
        r#type: kind.into(),
        object: object.encode_to_vec().into(),
        initial_events_end: false,
    }
}

fn bookmark(revision: u64, initial_events_end: bool) -> WatchEvent {
    let object = Object {
        revision: revision.to_string(),
        ..Object::default()
    };
    WatchEvent {
        initial_events_end,
        ..event(EventType::Bookmark, &object)
    }
}
