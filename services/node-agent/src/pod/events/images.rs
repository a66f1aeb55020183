//! Events about the images of containers.

use setpoint_proto::core::{Container, Pod};
use setpoint_runtime::ImageOrigin;

use super::Events;
use crate::pod::duration;
use crate::pod::world::WaitingReason;

impl Events {
    /// Records where the container's image came from.
    pub fn pulled(&self, pod: &Pod, container: &Container, origin: ImageOrigin) {
        let Container { name, image, .. } = container;
        match origin {
            ImageOrigin::Unused => {}
            ImageOrigin::Present => self.normal(pod, Some(name), "Pulled", || {
                format!("Container image {image:?} already present on machine")
            }),
            ImageOrigin::Accessible => self.normal(pod, Some(name), "Pulled", || {
                format!(
                    "Container image {image:?} already present on machine and can be accessed by the pod"
                )
            }),
            ImageOrigin::Pulled(pulled) => self.normal(pod, Some(name), "Pulled", || {
                format!(
                    "Successfully pulled image {image:?} in {} ({} including waiting). Image size: {} bytes.",
                    duration::print(pulled.took),
                    duration::print(pulled.waited),
                    pulled.bytes
                )
            }),
        }
    }

    /// Records why an image of a container is unavailable, and that a pull has begun if `pulling`.
    pub fn image_unavailable(
        &self,
        pod: &Pod,
        container: &str,
        image: &str,
        waiting: &WaitingReason,
        pulling: bool,
    ) {
        match (&*waiting.reason, pulling) {
            ("ContainerCreating", _) | ("ImagePullBackOff", true) => {}
            _ => self.image_error(pod, container, image, waiting),
        }
        if pulling {
            self.normal(pod, Some(container), "Pulling", || {
                format!("Pulling image {image:?}")
            });
        }
    }

    fn image_error(&self, pod: &Pod, name: &str, image: &str, waiting: &WaitingReason) {
        let WaitingReason { reason, message } = waiting;
        match &**reason {
            "ErrImagePull" => self.warning(pod, Some(name), "Failed", || {
                format!("Failed to pull image {image:?}: {message}")
            }),
            "ImagePullBackOff" => self.normal(pod, Some(name), "BackOff", || {
                format!("Back-off pulling image {image:?}")
            }),
            "InvalidImageName" => {
                self.warning(pod, Some(name), "InspectFailed", || message.clone());
            }
            reason => self.warning(pod, Some(name), reason, || message.clone()),
        }
        self.warning(pod, Some(name), "Failed", || format!("Error: {reason}"));
    }

    /// Records that Secrets with credentials of registries cannot be retrieved, if there are any such.
    pub fn missing_pull_secrets(&self, pod: &Pod, names: &[&str]) {
        if !names.is_empty() {
            self.warning(pod, None, "FailedToRetrieveImagePullSecret", || {
                let names = names.join(", ");
                format!(
                    "Unable to retrieve some image pull secrets ({names}); attempting to pull the image may not succeed."
                )
            });
        }
    }
}
