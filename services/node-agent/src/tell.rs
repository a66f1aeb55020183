//! What people are told about a Pod, in the kubelet's words where it has words for it.

use setpoint_controller::{Recorder, events};
use setpoint_proto::core::{Container, ContainerStatus, ObjectReference, Pod, PodStatus};

use crate::duration;
use crate::runtime::Origin;
use crate::status::DEADLINE;
use crate::world::Trouble;

/// The number of fields that one Event names; its message has at most 1024 bytes.
const MOST_FIELDS: usize = 10;

/// Writes Events, unless they are switched off.
#[derive(Clone)]
pub struct Tell {
    recorder: Option<Recorder>,
}

impl Tell {
    /// With a recorder; without one, nobody is told anything.
    pub fn new(recorder: Option<Recorder>) -> Self {
        Self { recorder }
    }

    /// Sees to it that what was told is written now, since nothing more will be.
    pub async fn finish(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.finish().await;
        }
    }

    /// A container was started, in place of which perhaps only a placeholder runs.
    pub fn started(&self, pod: &Pod, container: &Container, attempt: u32, placeholder: bool) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        let about = reference(pod, Some(&container.name));
        let Container { name, image, .. } = container;
        recorder.normal(&about, "Created", format!("Created container: {name}"));
        recorder.normal(&about, "Started", format!("Started container {name}"));
        if placeholder && attempt == 0 {
            let message = format!(
                "Image {image:?} is not run: there is no container engine here, and container {name} names no command. A placeholder process stands in for it"
            );
            recorder.warning(&about, "Placeholder", message);
        }
    }

    /// Fields of a Pod have no effect here.
    pub fn unsupported(&self, pod: &Pod, fields: &[String]) {
        if fields.is_empty() {
            return;
        }
        self.warning(pod, None, "Unsupported", || {
            let (named, more) = fields.split_at(fields.len().min(MOST_FIELDS));
            let more = match more.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("Without effect on this node: {}{more}", named.join(", "))
        });
    }

    /// A container is asked to stop.
    pub fn stopping(&self, pod: &Pod, container: &str) {
        self.normal(pod, Some(container), "Killing", || {
            format!("Stopping container {container}")
        });
    }

    /// A container cannot be started.
    pub fn failed(&self, pod: &Pod, container: &Container, message: &str) {
        self.warning(pod, Some(&container.name), "Failed", || {
            format!("Error: {message}")
        });
    }

    /// A container has its image.
    pub fn with_image(&self, pod: &Pod, container: &Container, origin: Origin) {
        let Container { name, image, .. } = container;
        match origin {
            Origin::Nowhere => {}
            Origin::Machine => self.normal(pod, Some(name), "Pulled", || {
                format!("Container image {image:?} already present on machine")
            }),
            Origin::Registry(pulled) => self.normal(pod, Some(name), "Pulled", || {
                format!(
                    "Successfully pulled image {image:?} in {} ({} including waiting). Image size: {} bytes.",
                    duration::print(pulled.took),
                    duration::print(pulled.waited),
                    pulled.bytes
                )
            }),
        }
    }

    /// A container waits for its image, a pull of which has perhaps just begun.
    pub fn without_image(
        &self,
        pod: &Pod,
        container: &Container,
        trouble: &Trouble,
        pulling: bool,
    ) {
        match (trouble.reason, pulling) {
            ("ContainerCreating", _) | ("ImagePullBackOff", true) => {}
            _ => self.no_image(pod, container, trouble),
        }
        if pulling {
            self.normal(pod, Some(&container.name), "Pulling", || {
                format!("Pulling image {:?}", container.image)
            });
        }
    }

    fn no_image(&self, pod: &Pod, container: &Container, trouble: &Trouble) {
        let Container { name, image, .. } = container;
        let Trouble { reason, message } = trouble;
        match *reason {
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

    /// A Pod waits for a volume.
    pub fn failed_mount(&self, pod: &Pod, message: &str) {
        self.warning(pod, None, "FailedMount", || message.to_owned());
    }

    /// A Pod has no room to run in.
    pub fn no_sandbox(&self, pod: &Pod, message: &str) {
        if !message.is_empty() {
            self.warning(pod, None, "FailedCreatePodSandBox", || {
                format!("Failed to create pod sandbox: {message}")
            });
        }
    }

    /// A new status is reported.
    pub fn reported(&self, pod: &Pod, status: &PodStatus) {
        let all = status
            .init_container_statuses
            .iter()
            .chain(&status.container_statuses);
        for container in all.filter(|container| backs_off(container)) {
            let message = || {
                let meta = &pod.metadata;
                format!(
                    "Back-off restarting failed container {} in pod {}_{}({})",
                    container.name, meta.name, meta.namespace, meta.uid
                )
            };
            self.warning(pod, Some(&container.name), "BackOff", message);
        }
        if status.reason == DEADLINE {
            self.normal(pod, None, DEADLINE, || status.message.clone());
        }
        if status.phase == "Failed" && status.reason.starts_with("OutOf") {
            let message = || {
                status
                    .message
                    .trim_start_matches("Pod was rejected: ")
                    .to_owned()
            };
            self.warning(pod, None, &status.reason, message);
        }
    }

    fn normal(
        &self,
        pod: &Pod,
        container: Option<&str>,
        reason: &str,
        message: impl FnOnce() -> String,
    ) {
        if let Some(recorder) = &self.recorder {
            recorder.normal(&reference(pod, container), reason, message());
        }
    }

    fn warning(
        &self,
        pod: &Pod,
        container: Option<&str>,
        reason: &str,
        message: impl FnOnce() -> String,
    ) {
        if let Some(recorder) = &self.recorder {
            recorder.warning(&reference(pod, container), reason, message());
        }
    }
}

fn backs_off(container: &ContainerStatus) -> bool {
    let waiting = container.state.waiting.as_ref();
    waiting.is_some_and(|waiting| waiting.reason == "CrashLoopBackOff")
}

fn reference(pod: &Pod, container: Option<&str>) -> ObjectReference {
    let mut reference = events::reference_to(pod);
    if let Some(name) = container {
        let init = pod
            .spec
            .init_containers
            .iter()
            .any(|container| container.name == name);
        let field = if init { "initContainers" } else { "containers" };
        reference.field_path = format!("spec.{field}{{{name}}}");
    }
    reference
}
