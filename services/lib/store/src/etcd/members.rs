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

/// The members of etcd. Each call goes to the next one in turn of those in the settings, and to others only while none
/// of these works. Clones share the connections.
#[derive(Clone)]
pub(super) struct Members {
    members: Arc<RwLock<Vec<Arc<Member>>>>,
    /// The number of those in the settings, which are the first.
    preferred: usize,
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
    /// Returns whether a call may go to the member. After a failure that is one for each time of `EJECTION`, so that
    /// not many wait for a machine that is gone.
    fn takes_call(&self) -> bool {
        let mut failed = self.failed.lock();
        match *failed {
            None => true,
            Some(at) if at.elapsed() <= EJECTION => false,
            Some(_) => {
                *failed = Some(Instant::now());
                true
            }
        }
    }
}

impl Members {
    /// Returns the members with these URLs, those of the settings, by channels to them. There is at least one.
    pub(super) fn new(channels: impl IntoIterator<Item = (String, Channel)>) -> Self {
        let members = channels
            .into_iter()
            .map(|(url, channel)| Arc::new(Member::new(url, channel)));
        let members: Vec<_> = members.collect();
        Self {
            preferred: members.len(),
            members: Arc::new(RwLock::new(members)),
            next: Arc::default(),
        }
    }

    /// Lets calls go to the members with these URLs, too, from now on, and no longer to others that are not in the
    /// settings. Connections to those that there were before are kept; calls that are under way go on.
    ///
    /// # Errors
    /// The first one of `channel`, after which nothing has changed.
    pub(super) fn replace<E>(
        &self,
        urls: &[String],
        channel: impl Fn(&str) -> Result<Channel, E>,
    ) -> Result<(), E> {
        let before = self.members.read().clone();
        let (preferred, others) = before.split_at(self.preferred);
        let is_other = |url: &&String| preferred.iter().all(|member| member.url != **url);
        let members = urls.iter().filter(is_other).map(|url| {
            let known = others.iter().find(|member| member.url == *url);
            match known {
                Some(known) => Ok(Arc::clone(known)),
                None => Ok(Arc::new(Member::new(url.clone(), channel(url)?))),
            }
        });
        let members: Vec<_> = members.collect::<Result<_, E>>()?;
        *self.members.write() = [preferred, &members].concat();
        Ok(())
    }

    /// Returns the next member that has not failed lately, of those in the settings if there is one; or else the next
    /// one; `None` if there are none at all.
    fn choose(&self) -> Option<Arc<Member>> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let members = self.members.read();
        let (preferred, others) = members.split_at(self.preferred);
        let working = working(preferred, next).or_else(|| working(others, next));
        let any = next.checked_rem(members.len()).map(|at| &members[at]);
        working.or(any).map(Arc::clone)
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

/// Returns the next of these members that takes a call.
fn working(members: &[Arc<Member>], next: usize) -> Option<&Arc<Member>> {
    let (before, after) = members.split_at(next.checked_rem(members.len())?);
    let mut in_turn = after.iter().chain(before);
    in_turn.find(|member| member.takes_call())
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
        // One call each shows whether they work again.
        let mut others = chosen(2);
        others.sort();
        assert_eq!(others, ["0", "1"]);
    }

    #[tokio::test]
    async fn a_member_that_cannot_be_reached_is_left_out_after_the_first_call() {
        let members = members(2);
        let request = || http::Request::new(Body::empty());
        assert!(members.clone().oneshot(request()).await.is_err());
        let working: Vec<_> = {
            let all = members.members.read();
            all.iter().map(|member| member.takes_call()).collect()
        };
        assert_eq!(working, [false, true]);
    }

    #[tokio::test]
    async fn members_that_join_get_calls_while_none_of_the_settings_works() {
        let members = members(1);
        let clone = members.clone();
        let replace = |urls: &[&str]| {
            let urls: Vec<_> = urls.iter().map(ToString::to_string).collect();
            members.replace(&urls, |_| Ok::<_, Infallible>(nowhere()))
        };
        replace(&["0", "1", "2"]).unwrap();
        assert_eq!(chosen(&clone, 2), ["0", "0"]);
        fail(&members, 0);
        fail(&members, 1);
        assert_eq!(chosen(&clone, 2), ["2", "2"]);
        replace(&["1", "3"]).unwrap();
        assert_eq!(chosen(&clone, 2), ["3", "3"], "1 has failed lately");
        let refused = members.replace(&["4".to_owned()], |url| Err(url.to_owned()));
        assert_eq!(refused, Err("4".to_owned()));
        assert_eq!(chosen(&clone, 1), ["3"]);
    }

    /// Else each call in turn would wait for a machine that is gone.
    #[tokio::test(start_paused = true)]
    async fn a_member_that_has_failed_gets_one_call_at_a_time() {
        let members = members(2);
        fail(&members, 0);
        tokio::time::sleep(EJECTION * 2).await;
        let tried = chosen(&members, 20);
        assert_eq!(tried.iter().filter(|url| *url == "0").count(), 1);
    }
}
