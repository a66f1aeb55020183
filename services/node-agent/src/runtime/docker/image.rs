//! Images: there, on their way, or not to be had, and then tried again ever more rarely.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error as Refusal;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::TryStreamExt as _;
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_task::catch_panic;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tracing::info;

use super::{absent, refused};
use crate::runtime::{Error, Origin, Pull, Pulled, Wake};

/// A pull in which nothing happens for so long is given up.
const STALLED: Duration = Duration::from_secs(60);
/// The rest after the first pull that failed; each later one is twice as long.
const FIRST: Duration = Duration::from_secs(10);
/// No rest is longer.
const LONGEST: Duration = Duration::from_secs(300);
/// More at once would only share the same line.
const AT_ONCE: usize = 4;

/// What the agent knows of the images that its containers wait for.
pub struct Images {
    client: bollard::Docker,
    wake: Wake,
    slots: Semaphore,
    pulls: Mutex<HashMap<Who, Attempts>>,
}

/// The uid of a Pod, and the name of one of its containers.
type Who = (String, String);

/// The attempts at one image for one container.
#[derive(Default)]
struct Attempts {
    under_way: bool,
    pulled: Option<Pulled>,
    failure: Option<Failure>,
}

struct Failure {
    message: String,
    told: bool,
    rest: Duration,
    until: Instant,
}

impl Images {
    pub fn new(client: bollard::Docker, wake: Wake) -> Self {
        Self {
            client,
            wake,
            slots: Semaphore::new(AT_ONCE),
            pulls: Mutex::default(),
        }
    }

    /// Sees to it that the image is there, and says where from. While it is not, says why; wakes the Pod when that
    /// changes.
    ///
    /// # Errors
    /// [`Error::Image`] as long as it is not there.
    pub async fn ensure(
        self: &Arc<Self>,
        pod: &Key,
        who: Who,
        image: &str,
        pull: Pull,
    ) -> Result<Origin, Error> {
        let there = !self.is_under_way(&who) && self.is_there(image).await?;
        if there && pull != Pull::Always {
            let attempts = self.pulls.lock().remove(&who);
            let pulled = attempts.and_then(|attempts| attempts.pulled);
            return Ok(pulled.map_or(Origin::Machine, Origin::Registry));
        }
        if pull == Pull::Never {
            let message =
                format!("Container image {image:?} is not present with pull policy of Never");
            return Err(unavailable("ErrImageNeverPull", message, false));
        }
        self.fetch(pod, who, image)
    }

    /// The engine has an image a moment before its pull is over.
    fn is_under_way(&self, who: &Who) -> bool {
        let pulls = self.pulls.lock();
        pulls.get(who).is_some_and(|attempts| attempts.under_way)
    }

    async fn is_there(&self, image: &str) -> Result<bool, Error> {
        match self.client.inspect_image(image).await {
            Ok(_) => Ok(true),
            Err(error) if absent(&error) => Ok(false),
            Err(Refusal::DockerResponseServerError {
                status_code: 400,
                message,
            }) => {
                let message = format!("Failed to apply default image tag {image:?}: {message}");
                Err(unavailable("InvalidImageName", message, false))
            }
            Err(error) => Err(refused(format!("look at image {image}"), error)),
        }
    }

    /// Forgets what the containers of a Pod waited for.
    pub fn forget(&self, uid: &str) {
        self.pulls.lock().retain(|(owner, _), _| owner != uid);
    }

    /// How it stands with a pull; begins one if it is time to.
    fn fetch(self: &Arc<Self>, pod: &Key, who: Who, image: &str) -> Result<Origin, Error> {
        let mut pulls = self.pulls.lock();
        let attempts = pulls.entry(who.clone()).or_default();
        if let Some(pulled) = attempts.pulled {
            pulls.remove(&who);
            return Ok(Origin::Registry(pulled));
        }
        let rests = attempts
            .failure
            .as_ref()
            .is_some_and(|failure| failure.until > Instant::now());
        let begins = !attempts.under_way && !rests;
        if begins {
            attempts.under_way = true;
            let (this, pod, image) = (Arc::clone(self), pod.clone(), image.to_owned());
            tokio::spawn(async move {
                let pulled = catch_panic("image-pull", this.pull(&pod, &who, &image)).await;
                if let Err(panicked) = pulled {
                    this.ended(&who, Err(panicked.to_string()));
                }
                (this.wake)(&pod);
            });
        }
        Err(attempts.say(image, begins))
    }

    async fn pull(&self, pod: &Key, who: &Who, image: &str) {
        info!(%pod, image, "pulling");
        let asked = Instant::now();
        let Ok(slot) = self.slots.acquire().await else {
            return;
        };
        let began = Instant::now();
        let outcome = self.download(image).await;
        drop(slot);
        let (took, waited) = (began.elapsed(), asked.elapsed());
        let bytes = self.size(image).await;
        let pulled = Pulled {
            took,
            waited,
            bytes,
        };
        self.ended(who, outcome.map(|()| pulled));
    }

    /// Notes how a pull ended.
    fn ended(&self, who: &Who, outcome: Result<Pulled, String>) {
        if let Some(attempts) = self.pulls.lock().get_mut(who) {
            attempts.under_way = false;
            match outcome {
                Ok(pulled) => attempts.pulled = Some(pulled),
                Err(message) => attempts.failed(message),
            }
        }
    }

    async fn size(&self, image: &str) -> i64 {
        let found = self.client.inspect_image(image).await.ok();
        found.and_then(|image| image.size).unwrap_or_default()
    }

    async fn download(&self, image: &str) -> Result<(), String> {
        let (name, tag) = reference(image);
        let options = CreateImageOptionsBuilder::default()
            .from_image(name)
            .tag(tag)
            .build();
        let mut progress = self.client.create_image(Some(options), None, None);
        loop {
            match timeout(STALLED, progress.try_next()).await {
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(Refusal::DockerResponseServerError { message, .. })) => return Err(message),
                Ok(Err(error)) => return Err(error.to_string()),
                Err(_) => return Err(format!("no progress for {} s", STALLED.as_secs())),
            }
        }
    }
}

impl Attempts {
    fn failed(&mut self, message: String) {
        let before = self.failure.as_ref().map(|failure| failure.rest);
        let rest = before.map_or(FIRST, |rest| (rest * 2).min(LONGEST));
        self.failure = Some(Failure {
            message,
            told: false,
            rest,
            until: Instant::now() + rest,
        });
    }

    /// A failure is told once as what it is, and then as what is rested from.
    fn say(&mut self, image: &str, begins: bool) -> Error {
        let Some(failure) = &mut self.failure else {
            return unavailable("ContainerCreating", String::new(), begins);
        };
        if std::mem::replace(&mut failure.told, true) {
            let message = format!(
                "Back-off pulling image {image:?}: ErrImagePull: {}",
                failure.message
            );
            return unavailable("ImagePullBackOff", message, begins);
        }
        unavailable("ErrImagePull", failure.message.clone(), begins)
    }
}

fn unavailable(reason: &'static str, message: String, pulling: bool) -> Error {
    Error::Image {
        reason,
        message,
        pulling,
    }
}

/// The name of an image, and its tag or digest: without one, the engine would fetch every tag there is.
fn reference(image: &str) -> (&str, &str) {
    if let Some((name, digest)) = image.split_once('@') {
        return (name, digest);
    }
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, "latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_is_the_latest() {
        assert_eq!(reference("nginx"), ("nginx", "latest"));
        assert_eq!(reference("nginx:1.25"), ("nginx", "1.25"));
        assert_eq!(reference("here:5000/nginx"), ("here:5000/nginx", "latest"));
        assert_eq!(reference("nginx@sha256:ab"), ("nginx", "sha256:ab"));
    }

    fn reason(attempts: &mut Attempts) -> &'static str {
        match attempts.say("nginx", false) {
            Error::Image { reason, .. } => reason,
            _ => "",
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_pull_is_told_once_and_rests_twice_as_long_each_time() {
        let mut attempts = Attempts::default();
        assert_eq!(reason(&mut attempts), "ContainerCreating");
        let mut rests = Vec::new();
        for _ in 0..7 {
            attempts.failed("no such host".into());
            let rest = attempts
                .failure
                .as_ref()
                .map(|failure| failure.until - Instant::now());
            rests.push(rest.unwrap_or_default().as_secs());
            assert_eq!(reason(&mut attempts), "ErrImagePull");
            assert_eq!(reason(&mut attempts), "ImagePullBackOff");
        }
        assert_eq!(rests, [10, 20, 40, 80, 160, 300, 300]);
    }
}
