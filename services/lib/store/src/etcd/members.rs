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
use parking_lot::{Mutex, RwLock};
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
    members: Arc<RwLock<Vec<Arc<Member>>>>,
    next: Arc<AtomicUsize>,
}

/// A member, or one of its addresses.
struct Member {
    url: String,
    channel: EarlyEnd,
    /// The time at which a call failed for want of a connection.
    failed: Mutex<Option<Instant>>,
}

impl Member {
    fn is_working(&self) -> bool {
        let failed = *self.failed.lock();
        failed.is_none_or(|failed| failed.elapsed() > EJECTION)
    }
}

impl Members {
    /// Returns the members with these URLs, by channels to them. There is at least one.
    pub(super) fn new(channels: impl IntoIterator<Item = (String, Channel)>) -> Self {
        let members = channels
            .into_iter()
            .map(|(url, channel)| Arc::new(Member::new(url, channel)));
        Self {
            members: Arc::new(RwLock::new(members.collect())),
            next: Arc::default(),
        }
    }

    /// Lets calls go to the members with these URLs from now on, of which there is at least one. Connections to those
    /// that there were before are kept; calls that are under way go on.
    ///
    /// # Errors
    /// The first one of `channel`, after which nothing has changed.
    pub(super) fn replace<E>(
        &self,
        urls: &[String],
        channel: impl Fn(&str) -> Result<Channel, E>,
    ) -> Result<(), E> {
        let before = self.members.read().clone();
        let members = urls.iter().map(|url| {
            let known = before.iter().find(|member| member.url == *url);
            match known {
                Some(known) => Ok(Arc::clone(known)),
                None => Ok(Arc::new(Member::new(url.clone(), channel(url)?))),
            }
        });
        let members: Vec<_> = members.collect::<Result<_, E>>()?;
        *self.members.write() = members;
        Ok(())
    }

    /// Returns the next member that has not failed lately, or else the next one; `None` if there are none at all.
    fn choose(&self) -> Option<Arc<Member>> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let members = self.members.read();
        let begin = next.checked_rem(members.len())?;
        let (before, after) = members.split_at(begin);
        let mut in_turn = after.iter().chain(before);
        let working = in_turn.find(|member| member.is_working());
        working.or(after.first()).map(Arc::clone)
    }

    async fn send(self, request: http::Request<Body>) -> Result<http::Response<Body>, Error> {
        let member = self.choose().expect("there is at least one member");
        let mut channel = member.channel.clone();
        let answer = async { channel.ready().await?.call(request).await }.await;
        *member.failed.lock() = answer.is_err().then(Instant::now);
        answer
    }
}

impl Member {
    fn new(url: String, channel: Channel) -> Self {
        Self {
            url,
            channel: EarlyEnd::new(channel),
            failed: Mutex::new(None),
        }
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
    use std::convert::Infallible;

    use tonic::transport::Endpoint;

    use super::*;

    fn nowhere() -> Channel {
        Endpoint::from_static("http://127.0.0.1:1").connect_lazy()
    }

    fn members(count: usize) -> Members {
        Members::new((0..count).map(|place| (place.to_string(), nowhere())))
    }

    fn fail(members: &Members, place: usize) {
        *members.members.read()[place].failed.lock() = Some(Instant::now());
    }

    fn chosen(members: &Members, count: usize) -> Vec<String> {
        let chosen = (0..count).map(|_| members.choose().unwrap().url.clone());
        chosen.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn calls_go_to_each_member_in_turn_but_to_those_that_failed_lately() {
        let members = members(3);
        let chosen = |count: usize| chosen(&members, count);
        assert_eq!(chosen(4), ["0", "1", "2", "0"]);
        fail(&members, 1);
        assert!(!chosen(6).contains(&"1".to_owned()));
        fail(&members, 0);
        fail(&members, 2);
        let of_all = chosen(6);
        assert!(
            ["0", "1", "2"]
                .iter()
                .all(|url| of_all.contains(&(*url).to_owned())),
            "{of_all:?}"
        );
        tokio::time::sleep(EJECTION * 2).await;
        fail(&members, 2);
        let others = chosen(6);
        assert!(
            others.contains(&"1".to_owned()) && !others.contains(&"2".to_owned()),
            "{others:?}"
        );
    }

    #[tokio::test]
    async fn a_member_that_cannot_be_reached_is_left_out_after_the_first_call() {
        let members = members(2);
        let request = || http::Request::new(Body::empty());
        assert!(members.clone().oneshot(request()).await.is_err());
        let working: Vec<_> = {
            let all = members.members.read();
            all.iter().map(|member| member.is_working()).collect()
        };
        assert_eq!(working, [false, true]);
    }

    #[tokio::test]
    async fn members_that_join_get_calls_and_those_that_stay_keep_their_connections() {
        let members = members(2);
        fail(&members, 1);
        let urls = ["1", "2"].map(str::to_owned);
        let clone = members.clone();
        let replaced = members.replace(&urls, |_| Ok::<_, Infallible>(nowhere()));
        replaced.unwrap();
        assert_eq!(chosen(&clone, 3), ["2", "2", "2"], "1 has failed lately");
        let refused = members.replace(&["3".to_owned()], |url| Err(url.to_owned()));
        assert_eq!(refused, Err("3".to_owned()));
        assert!(chosen(&clone, 2).iter().all(|url| url == "2"));
    }
}
