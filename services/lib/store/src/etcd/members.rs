//! Spreads calls over the members of etcd.
//!
//! 2026-11: we chose this over tonic's balancer, because the latter makes its connections by itself: it does not let
//! them use certificates that are renewed. Wrong once it takes a connector.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use setpoint_transport::EarlyEnd;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::transport::{self, Channel};
use tower::{Service, ServiceExt as _};

/// The time for which a member gets no calls after one has failed, unless all members have failed.
const EJECTION: Duration = Duration::from_secs(1);

/// The members of etcd. Each call goes to the next one in turn. Clones share the connections.
#[derive(Clone)]
pub(super) struct Members {
    members: Arc<[Member]>,
    next: Arc<AtomicUsize>,
}

/// A member.
struct Member {
    channel: EarlyEnd,
    /// The time at which a call failed for want of a connection.
    failed: Mutex<Option<Instant>>,
}

impl Members {
    /// Returns the members of these channels, of which there is at least one.
    pub(super) fn new(channels: impl IntoIterator<Item = Channel>) -> Self {
        let members = channels.into_iter().map(|channel| Member {
            channel: EarlyEnd::new(channel),
            failed: Mutex::new(None),
        });
        Self {
            members: members.collect(),
            next: Arc::default(),
        }
    }

    /// Returns the place of the next member that has not failed lately, or else of the next one.
    fn choose(&self) -> usize {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.members.len().max(1);
        let places = (0..count).map(|offset| next.wrapping_add(offset) % count);
        let mut working = places.filter(|place| self.is_working(*place));
        working.next().unwrap_or(next % count)
    }

    fn is_working(&self, place: usize) -> bool {
        let failed = self
            .members
            .get(place)
            .and_then(|member| *member.failed.lock());
        failed.is_none_or(|failed| failed.elapsed() > EJECTION)
    }

    async fn send(self, request: http::Request<Body>) -> Result<http::Response<Body>, Error> {
        let member = &self.members[self.choose()];
        let mut channel = member.channel.clone();
        let answer = async { channel.ready().await?.call(request).await }.await;
        *member.failed.lock() = answer.is_err().then(Instant::now);
        answer
    }
}

type Error = transport::Error;

impl Service<http::Request<Body>> for Members {
    type Response = http::Response<Body>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        self.clone().send(request).boxed()
    }
}

#[cfg(test)]
mod tests {
    use tonic::transport::Endpoint;

    use super::*;

    fn members(count: usize) -> Members {
        let nowhere = || Endpoint::from_static("http://127.0.0.1:1").connect_lazy();
        Members::new((0..count).map(|_| nowhere()))
    }

    fn fail(members: &Members, place: usize) {
        *members.members[place].failed.lock() = Some(Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_go_to_each_member_in_turn_but_to_those_that_failed_lately() {
        let members = members(3);
        let chosen = |count: usize| (0..count).map(|_| members.choose()).collect::<Vec<_>>();
        assert_eq!(chosen(4), [0, 1, 2, 0]);
        fail(&members, 1);
        assert!(!chosen(6).contains(&1));
        fail(&members, 0);
        fail(&members, 2);
        let of_all = chosen(6);
        assert!((0..3).all(|place| of_all.contains(&place)), "{of_all:?}");
        tokio::time::sleep(EJECTION * 2).await;
        fail(&members, 2);
        let others = chosen(6);
        assert!(others.contains(&1) && !others.contains(&2), "{others:?}");
    }

    #[tokio::test]
    async fn a_member_that_cannot_be_reached_is_left_out_after_the_first_call() {
        let members = members(2);
        let request = || http::Request::new(Body::empty());
        assert!(members.clone().oneshot(request()).await.is_err());
        assert_eq!(
            (members.is_working(0), members.is_working(1)),
            (false, true)
        );
    }
}
