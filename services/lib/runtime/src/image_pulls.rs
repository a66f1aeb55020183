//! Pulls images, with exponential backoff after failures.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{self, Duration};

use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_task::catch_panic;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::image_access::ImageAccess;
use crate::image_records::{Record, Records};
use crate::image_service::{ImageService, Present, unavailable};
use crate::image_slots::Slots;
use crate::{Credential, Error, ImageOrigin, Keyring, Pull, Pulled, Wake};

/// Backoff after the first failed pull; doubled by each later one.
const INITIAL_BACKOFF: Duration = Duration::from_secs(10);
/// Maximum backoff.
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// The image pulls of this agent.
pub struct Images<S> {
    service: S,
    wake: Wake,
    slots: Slots,
    /// Decides which Pods may use images that are present; `None` if every Pod may use all.
    access: Option<ImageAccess>,
    pulls: Mutex<HashMap<ContainerKey, Attempts>>,
    records: Mutex<Records>,
}

/// Uid of a Pod and name of a container.
type ContainerKey = (String, String);

/// The pulls of one image for one container.
#[derive(Default)]
struct Attempts {
    in_progress: bool,
    pulled: Option<Pulled>,
    failure: Option<Failure>,
}

struct Failure {
    message: String,
    /// The number of pulls that have failed.
    times: u32,
    reported: bool,
    backoff: Duration,
    until: Instant,
}

impl<S: ImageService> Images<S> {
    /// Returns the pulls by an engine. With `access`, it decides on the use of images that are present.
    pub fn new(service: S, wake: Wake, access: Option<ImageAccess>) -> Self {
        Self {
            service,
            wake,
            slots: Slots::default(),
            access,
            pulls: Mutex::default(),
            records: Mutex::default(),
        }
    }

    /// Ensures that the image is present and returns its origin. If it has to be pulled, starts a pull in the
    /// background and wakes the Pod when that ends.
    ///
    /// # Errors
    /// [`Error::Image`] while the image is not available.
    pub async fn ensure(
        self: &Arc<Self>,
        pod: &Key,
        container_key: ContainerKey,
        image: &str,
        pull: Pull,
        keyring: &Keyring,
    ) -> Result<ImageOrigin, Error> {
        let present = match self.is_in_progress(&container_key) {
            true => None,
            false => self.service.find(image).await?,
        };
        if let Some(present) = present
            && pull != Pull::Always
            && self.may_use(image, &present, keyring)
        {
            self.records.lock().used(image, time::Instant::now());
            let attempts = self.pulls.lock().remove(&container_key);
            let pulled = attempts.and_then(|attempts| attempts.pulled);
            let origin = match self.access {
                Some(_) => ImageOrigin::Accessible,
                None => ImageOrigin::Present,
            };
            return Ok(pulled.map_or(origin, ImageOrigin::Pulled));
        }
        // One that is present and not for this Pod is as one that is not: its presence is nobody else's business.
        if pull == Pull::Never {
            let message =
                format!("Container image {image:?} is not present with pull policy of Never");
            return Err(unavailable(image, "ErrImageNeverPull", message, false));
        }
        self.fetch(pod, container_key, image, keyring)
    }

    /// Returns whether a Pod with these credentials may use an image that is present without a pull.
    fn may_use(&self, image: &str, present: &Present, keyring: &Keyring) -> bool {
        let access = self.access.as_ref();
        access.is_none_or(|access| !access.must_pull(image, &present.id, &keyring.lookup(image)))
    }

    /// Takes over what is known of pulls that an earlier agent has begun.
    pub async fn recover(&self) {
        let Some(access) = &self.access else {
            return;
        };
        match self.service.list().await {
            Ok(images) => access.recover(&images),
            Err(error) => warn!(error, "the images of the engine are unknown"),
        }
    }

    /// Returns whether a pull is in progress. The engine lists an image shortly before its pull ends.
    fn is_in_progress(&self, container_key: &ContainerKey) -> bool {
        let pulls = self.pulls.lock();
        pulls
            .get(container_key)
            .is_some_and(|attempts| attempts.in_progress)
    }

    /// Returns the images' engine.
    pub const fn service(&self) -> &S {
        &self.service
    }

    /// Returns what decides on the use of images.
    pub const fn access(&self) -> Option<&ImageAccess> {
        self.access.as_ref()
    }

    /// Returns the records of the images that this agent has pulled, after those in use were used now.
    pub fn records(&self, in_use: &HashSet<String>, now: time::Instant) -> HashMap<String, Record> {
        let mut records = self.records.lock();
        in_use.iter().for_each(|image| records.used(image, now));
        records.all().clone()
    }

    /// Forgets the pulls for the containers of a Pod.
    pub fn forget(&self, uid: &str) {
        self.pulls.lock().retain(|(owner, _), _| owner != uid);
    }

    /// Returns the result of a finished pull; otherwise starts one unless a pull is in progress or backs off.
    fn fetch(
        self: &Arc<Self>,
        pod: &Key,
        container_key: ContainerKey,
        image: &str,
        keyring: &Keyring,
    ) -> Result<ImageOrigin, Error> {
        let mut pulls = self.pulls.lock();
        let attempts = pulls.entry(container_key.clone()).or_default();
        if let Some(pulled) = attempts.pulled {
            pulls.remove(&container_key);
            return Ok(ImageOrigin::Pulled(pulled));
        }
        let backs_off = attempts
            .failure
            .as_ref()
            .is_some_and(|failure| failure.until > Instant::now());
        let begins = !attempts.in_progress && !backs_off;
        if begins {
            attempts.in_progress = true;
            let (this, pod, image) = (Arc::clone(self), pod.clone(), image.to_owned());
            let credentials = keyring.lookup(&image);
            let failures = attempts.failures();
            tokio::spawn(async move {
                let pull = this.pull(&pod, &container_key, &image, &credentials, failures);
                let pulled = catch_panic("image-pull", pull).await;
                if let Err(panicked) = pulled {
                    this.ended(&container_key, Err(panicked.to_string()));
                }
                (this.wake)(&pod);
            });
        }
        Err(attempts.waiting_error(image, begins))
    }

    async fn pull(
        &self,
        pod: &Key,
        container_key: &ContainerKey,
        image: &str,
        credentials: &[Credential],
        failures: u32,
    ) {
        info!(%pod, image, "pulling the image");
        let asked = Instant::now();
        let Some(slot) = self.slots.take(image).await else {
            return;
        };
        let began = Instant::now();
        let outcome = self.recorded_pull(image, credentials, failures).await;
        drop(slot);
        let (took, waited) = (began.elapsed(), asked.elapsed());
        let present = self.service.find(image).await.ok().flatten();
        if let Some(access) = &self.access {
            match (&outcome, &present) {
                (Ok(credential), Some(present)) => access.pulled(image, &present.id, *credential),
                // Whether it is there is not known: the record of the pull stays.
                (Ok(_), None) => {}
                (Err(_), _) => access.failed(image),
            }
        }
        let bytes = present.map_or(0, |present| present.bytes);
        let pulled = Pulled {
            took,
            waited,
            bytes,
        };
        self.ended(container_key, outcome.map(|_| pulled));
    }

    /// Pulls an image, with a record that it was this agent.
    async fn recorded_pull<'a>(
        &self,
        image: &str,
        credentials: &'a [Credential],
        failures: u32,
    ) -> Result<Option<&'a Credential>, String> {
        if let Some(access) = &self.access {
            let begun = access.begin(image);
            begun.map_err(|error| {
                format!("Failed to record image pull intent for container image {image:?}: {error}")
            })?;
        }
        let pulled = self.pull_by(image, credentials, failures).await;
        if pulled.is_ok() {
            self.records.lock().pulled(image, time::Instant::now());
        }
        pulled
    }

    /// Pulls an image by the first of these credentials that its registry accepts, which is returned, without any if
    /// there are none.
    async fn pull_by<'a>(
        &self,
        image: &str,
        credentials: &'a [Credential],
        failures: u32,
    ) -> Result<Option<&'a Credential>, String> {
        if credentials.is_empty() {
            return self
                .service
                .pull(image, None, failures)
                .await
                .map(|()| None);
        }
        let mut refused = Vec::new();
        for credential in credentials {
            match self.service.pull(image, Some(credential), failures).await {
                Ok(()) => return Ok(Some(credential)),
                Err(message) if refused.contains(&message) => {}
                Err(message) => refused.push(message),
            }
        }
        Err(match refused.as_slice() {
            [message] => message.clone(),
            messages => format!("[{}]", messages.join(", ")),
        })
    }

    /// Records the result of a pull.
    fn ended(&self, container_key: &ContainerKey, outcome: Result<Pulled, String>) {
        if let Some(attempts) = self.pulls.lock().get_mut(container_key) {
            attempts.in_progress = false;
            match outcome {
                Ok(pulled) => attempts.pulled = Some(pulled),
                Err(message) => attempts.failed(message),
            }
        }
    }
}

impl Attempts {
    fn failures(&self) -> u32 {
        self.failure.as_ref().map_or(0, |failure| failure.times)
    }

    fn failed(&mut self, message: String) {
        let before = self.failure.as_ref().map(|failure| failure.backoff);
        let backoff = before.map_or(INITIAL_BACKOFF, |backoff| (backoff * 2).min(MAX_BACKOFF));
        self.failure = Some(Failure {
            message,
            times: self.failures().saturating_add(1),
            reported: false,
            backoff,
            until: Instant::now() + backoff,
        });
    }

    /// Returns the waiting reason: a failure is reported once as `ErrImagePull`, then as `ImagePullBackOff`.
    fn waiting_error(&mut self, image: &str, begins: bool) -> Error {
        let Some(failure) = &mut self.failure else {
            return unavailable(image, "ContainerCreating", String::new(), begins);
        };
        if std::mem::replace(&mut failure.reported, true) {
            let message = format!(
                "Back-off pulling image {image:?}: ErrImagePull: {}",
                failure.message
            );
            return unavailable(image, "ImagePullBackOff", message, begins);
        }
        unavailable(image, "ErrImagePull", failure.message.clone(), begins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(attempts: &mut Attempts) -> &'static str {
        match attempts.waiting_error("nginx", false) {
            Error::Image { reason, .. } => reason,
            _ => "",
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_pull_is_reported_once_and_doubles_its_backoff() {
        let mut attempts = Attempts::default();
        assert_eq!(reason(&mut attempts), "ContainerCreating");
        let mut backs_off = Vec::new();
        for times in 0..7 {
            assert_eq!(attempts.failures(), times);
            attempts.failed("no such host".into());
            let backoff = attempts
                .failure
                .as_ref()
                .map(|failure| failure.until - Instant::now());
            backs_off.push(backoff.unwrap_or_default().as_secs());
            assert_eq!(reason(&mut attempts), "ErrImagePull");
            assert_eq!(reason(&mut attempts), "ImagePullBackOff");
        }
        assert_eq!(backs_off, [10, 20, 40, 80, 160, 300, 300]);
    }
}
