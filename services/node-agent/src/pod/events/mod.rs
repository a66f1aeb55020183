//! Events about Pods, with the kubelet's reasons and messages where it has them.

mod images;
mod node;
mod placeholder;
mod resize;
mod told;

use std::sync::Arc;

use setpoint_controller::{Recorder, events};
use setpoint_proto::core::{Container, ContainerStatus, ObjectReference, Pod, PodStatus};

use crate::pod::ephemeral;
use crate::pod::health::ProbeKind;
use crate::pod::plan::KillReason;
use crate::pod::status::{DEADLINE, REJECTED};

use self::told::Told;

/// Maximum length of an Event's message in bytes.
const MAX_MESSAGE: usize = 1024;

/// Records Events about Pods, unless Events are disabled.
#[derive(Clone)]
pub struct Events {
    recorder: Option<Recorder>,
    /// The remarks about nodes that were recorded.
    told: Arc<Told>,
}

impl Events {
    /// Returns a recorder of Events; `None` disables them.
    pub fn new(recorder: Option<Recorder>) -> Self {
        let told = Arc::default();
        Self { recorder, told }
    }

    /// Records that a container was started.
    pub fn started(&self, pod: &Pod, name: &str) {
        self.normal(pod, Some(name), "Created", || {
            format!("Created container: {name}")
        });
        self.normal(pod, Some(name), "Started", || {
            format!("Started container {name}")
        });
    }

    /// Records that the Pod's resolver configuration is not all that it asks for.
    pub fn dns_config(&self, pod: &Pod, message: String) {
        self.warning(pod, None, "DNSConfigForming", || message);
    }

    /// Records that a container is being stopped.
    pub fn stopping(&self, pod: &Pod, container: &str) {
        self.normal(pod, Some(container), "Killing", || {
            format!("Stopping container {container}")
        });
    }

    /// Records that a container is being killed, and whether it will be restarted.
    pub fn killing(&self, pod: &Pod, container: &str, reason: KillReason, restarts: bool) {
        self.normal(pod, Some(container), "Killing", || {
            let why = match reason {
                KillReason::PostStart => return "FailedPostStartHook".to_owned(),
                KillReason::Resize => {
                    return format!("Container {container} resize requires restart");
                }
                KillReason::Liveness => "failed liveness probe",
                KillReason::Startup => "failed startup probe",
            };
            let end = if restarts { ", will be restarted" } else { "" };
            format!("Container {container} {why}{end}")
        });
    }

    /// Records a failed execution of a probe.
    pub fn unhealthy(&self, pod: &Pod, container: &str, kind: ProbeKind, why: &str) {
        self.warning(pod, Some(container), "Unhealthy", || {
            format!("{kind} probe failed: {why}")
        });
    }

    /// Records that a probe could not be executed.
    pub fn probe_errored(&self, pod: &Pod, container: &str, kind: ProbeKind, why: &str) {
        self.warning(pod, Some(container), "Unhealthy", || {
            format!("{kind} probe errored and resulted in unknown state: {why}")
        });
    }

    /// Records a remark about a probe that passed.
    pub fn probe_warning(&self, pod: &Pod, container: &str, kind: ProbeKind, remark: &str) {
        self.warning(pod, Some(container), "ProbeWarning", || {
            format!("{kind} probe warning: {remark}")
        });
    }

    /// Records a failed postStart hook. Its error may hold secrets of the container and is not named.
    pub fn failed_post_start(&self, pod: &Pod, container: &str) {
        self.warning(pod, Some(container), "FailedPostStartHook", || {
            "PostStartHook failed".to_owned()
        });
    }

    /// Records a failed preStop hook.
    pub fn failed_pre_stop(&self, pod: &Pod, container: &str) {
        self.warning(pod, Some(container), "FailedPreStopHook", || {
            "PreStopHook failed".to_owned()
        });
    }

    /// Records that a container cannot be started.
    pub fn failed(&self, pod: &Pod, container: &Container, message: &str) {
        self.warning(pod, Some(&container.name), "Failed", || {
            format!("Error: {message}")
        });
    }

    /// Records that a volume cannot be set up.
    pub fn failed_mount(&self, pod: &Pod, message: &str) {
        self.warning(pod, None, "FailedMount", || message.to_owned());
    }

    /// Records that the Pod cannot be connected to the network of its node yet.
    pub fn network_not_ready(&self, pod: &Pod, why: &str) {
        self.warning(pod, None, "NetworkNotReady", || {
            format!("network is not ready: {why}")
        });
    }

    /// Records that the sandbox cannot be created.
    pub fn sandbox_failed(&self, pod: &Pod, message: &str) {
        if !message.is_empty() {
            self.warning(pod, None, "FailedCreatePodSandBox", || {
                format!("Failed to create pod sandbox: {message}")
            });
        }
    }

    /// Records the Events that belong to a new status: backoff, exceeded deadline, rejection.
    pub fn status_updated(&self, pod: &Pod, status: &PodStatus) {
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
        if let Some(message) = status.message.strip_prefix(REJECTED) {
            self.warning(pod, None, &status.reason, || message.to_owned());
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
            let message = shortened(message());
            recorder.warning(&reference(pod, container), reason, message);
        }
    }
}

/// Cuts a message to the maximum length of an Event's. Those of probes have the output of containers.
pub fn shortened(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    message
}

fn backs_off(container: &ContainerStatus) -> bool {
    let waiting = container.state.waiting.as_ref();
    waiting.is_some_and(|waiting| waiting.reason == "CrashLoopBackOff")
}

fn reference(pod: &Pod, container: Option<&str>) -> ObjectReference {
    let mut reference = events::reference_to(pod);
    if let Some(name) = container {
        let mut init = pod.spec.init_containers.iter();
        let field = match ephemeral::named(&pod.spec, name) {
            Some(_) => "ephemeralContainers",
            None if init.any(|container| container.name == name) => "initContainers",
            None => "containers",
        };
        reference.field_path = format!("spec.{field}{{{name}}}");
    }
    reference
}
