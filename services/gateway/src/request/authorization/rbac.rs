//! The index of roles and bindings, which follows the watch cache.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::select_all;
use parking_lot::RwLock;
use prost::Message;
use setpoint_codec::{Kind, kind_of};
use setpoint_kinds::Identity;
use setpoint_proto::meta::StatusDetails;
use setpoint_proto::rbac::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding};
use setpoint_proto::{ApiError, EventType, Reason};
use setpoint_rbac::{Index, Request, Target, User, comparison_size, escalation};
use setpoint_store::cache::{AtLeast, Cache, Event, Filter, Start, WatchSpec};
use setpoint_task::{Backoff, supervise};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::Attributes;
use super::{Decision, Rules};
use crate::offload::offload;

/// The time for which a request waits for the roles to be read.
const WAIT: Duration = Duration::from_secs(5);
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(30);

/// Roles and bindings as of the watch cache.
pub(crate) struct Rbac {
    state: Arc<State>,
    _following: DropGuard,
}

#[derive(Default)]
struct State {
    index: RwLock<Index>,
    /// Whether the index has had all roles and bindings at some time.
    complete: watch::Sender<bool>,
}

impl Rbac {
    /// Starts to follow a cache, until dropped.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub(super) fn follow(cache: &Cache) -> Self {
        let (state, stop) = (Arc::new(State::default()), CancellationToken::new());
        let following = {
            let (state, cache) = (state.clone(), cache.clone());
            async move {
                let health = |_| {};
                supervise("rbac-index", health, || state.follow(&cache)).await;
            }
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(following));
        Self {
            state,
            _following: stop.drop_guard(),
        }
    }

    /// Waits until all roles and bindings have been read.
    ///
    /// # Errors
    /// `ServiceUnavailable` if that takes too long.
    pub(super) async fn complete(&self) -> Result<(), ApiError> {
        if *self.state.complete.borrow() {
            return Ok(());
        }
        let mut complete = self.state.complete.subscribe();
        let complete = complete.wait_for(|complete| *complete);
        match timeout(WAIT, complete).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(incomplete()),
        }
    }

    /// Returns whether a rule allows a request.
    pub(super) fn allows(&self, user: &Identity, attributes: &Attributes) -> bool {
        let index = self.state.index.read();
        index.decide(request(user, attributes)).allowed()
    }

    /// Decides about a request, with the reason.
    pub(super) fn decide(&self, user: &Identity, attributes: &Attributes) -> Decision {
        let index = self.state.index.read();
        let decision = index.decide(request(user, attributes));
        match decision.allowed() {
            true => Decision::allowed(decision.reason()),
            false => Decision::undecided(decision.reason()),
        }
    }

    /// Returns the rules of a user in a namespace.
    pub(super) fn rules_for(&self, user: &Identity, namespace: &str) -> Rules {
        let index = self.state.index.read();
        let found = index.rules_for(names(user), namespace);
        Rules {
            error: found.errors(),
            rules: found.rules.into_iter().cloned().collect(),
        }
    }

    /// Returns why a user may not grant rules in a namespace, or everywhere if that is empty; `None` if it has them
    /// itself.
    pub(crate) async fn escalation(
        &self,
        user: &Identity,
        namespace: &str,
        wanted: &[PolicyRule],
    ) -> Option<String> {
        let (rules, missing) = {
            let index = self.state.index.read();
            let owned = index.rules_for(names(user), namespace);
            let rules: Vec<_> = owned.rules.into_iter().cloned().collect();
            (rules, owned.missing)
        };
        // A large rule takes long to compare: nobody waits for the index or for a thread meanwhile.
        let size = comparison_size(&rules, wanted);
        offload(size, || {
            let owned = setpoint_rbac::Rules {
                rules: rules.iter().collect(),
                missing,
            };
            escalation(names(user), &owned, wanted)
        })
        .await
    }
}

impl State {
    async fn follow(&self, cache: &Cache) {
        let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY);
        loop {
            cache.synced().await;
            if let Err(error) = self.follow_until_error(cache, &mut backoff).await {
                tracing::debug!(%error, "following roles and bindings failed; trying again");
            }
            sleep(backoff.next_delay()).await;
        }
    }

    /// Reads all roles and bindings, replaces the index by one of them, and keeps that up to date. Until then, the
    /// index stays as it is.
    async fn follow_until_error(
        &self,
        cache: &Cache,
        backoff: &mut Backoff,
    ) -> Result<(), ApiError> {
        let kinds = [
            kind_of::<Role>(),
            kind_of::<ClusterRole>(),
            kind_of::<RoleBinding>(),
            kind_of::<ClusterRoleBinding>(),
        ];
        let mut watches = Vec::new();
        for kind in kinds {
            let spec = WatchSpec {
                filter: Filter::all(kind, ""),
                start: Start::Initial(AtLeast::Any),
                bookmarks: true,
            };
            watches.push(cache.watch(spec).await?);
        }
        let mut events = select_all(watches);
        let (mut index, mut initial) = (Index::default(), kinds.len());
        while initial > 0 {
            let Some(event) = events.next().await.transpose()? else {
                return Ok(());
            };
            match event.initial_events_end {
                true => initial -= 1,
                false => apply(&mut index, &event),
            }
        }
        *self.index.write() = index;
        self.complete.send_replace(true);
        backoff.reset();
        while let Some(event) = events.next().await.transpose()? {
            apply(&mut self.index.write(), &event);
        }
        Ok(())
    }
}

/// Applies a change. An object that cannot be read grants nothing.
fn apply(index: &mut Index, event: &Event) {
    let (object, kind) = (&event.object, event.object.kind);
    let exists = match event.r#type {
        EventType::Bookmark => return,
        EventType::Deleted => false,
        _ => true,
    };
    let (namespace, name) = (object.key.namespace.as_str(), object.key.name.as_str());
    if is::<Role>(kind) {
        match read(event, exists) {
            Some(role) => index.upsert_role(role),
            None => index.remove_role(namespace, name),
        }
    } else if is::<ClusterRole>(kind) {
        match read(event, exists) {
            Some(role) => index.upsert_cluster_role(role),
            None => index.remove_cluster_role(name),
        }
    } else if is::<RoleBinding>(kind) {
        match read(event, exists) {
            Some(binding) => index.upsert_role_binding(binding),
            None => index.remove_role_binding(namespace, name),
        }
    } else if is::<ClusterRoleBinding>(kind) {
        match read(event, exists) {
            Some(binding) => index.upsert_cluster_role_binding(binding),
            None => index.remove_cluster_role_binding(name),
        }
    }
}

fn is<T: setpoint_proto::Resource>(kind: &'static Kind) -> bool {
    kind == kind_of::<T>()
}

fn read<T: Message + Default>(event: &Event, exists: bool) -> Option<T> {
    let object = exists.then(|| T::decode(event.object.raw.as_ref()))?;
    if let Err(error) = &object {
        let key = &event.object.key;
        tracing::error!(?key, %error, "a role or binding cannot be decoded and grants nothing");
    }
    object.ok()
}

pub(super) fn names(user: &Identity) -> User<'_> {
    User {
        name: &user.name,
        groups: &user.groups,
    }
}

pub(super) fn request<'a>(user: &'a Identity, attributes: &'a Attributes) -> Request<'a> {
    let target = match &attributes.resource {
        Some(resource) => Target::Resource(setpoint_rbac::Resource {
            group: &resource.group,
            resource: &resource.resource,
            subresource: &resource.subresource,
            name: &resource.name,
            namespace: &resource.namespace,
        }),
        None => Target::Path(&attributes.path),
    };
    Request {
        user: names(user),
        verb: &attributes.verb,
        target,
    }
}

fn incomplete() -> ApiError {
    let message = "the roles and bindings have not been read yet, please retry";
    ApiError::new(Reason::ServiceUnavailable, message).with_details(StatusDetails {
        retry_after_seconds: 1,
        ..StatusDetails::default()
    })
}
