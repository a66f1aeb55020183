//! The containers of a Pod, of all three lists. A check that read one list only could be passed by the others
//! (CVE-2023-2727, CVE-2023-2728).

use setpoint_proto::core::{
    self, ContainerPort, EphemeralContainer, Lifecycle, PodSpec, Probe, SecurityContext,
};

/// The fields of a container, an init container or an ephemeral container that checks read.
#[derive(Clone, Copy)]
pub(crate) struct Container<'a> {
    pub name: &'a str,
    pub security_context: Option<&'a SecurityContext>,
    pub ports: &'a [ContainerPort],
    pub probes: [Option<&'a Probe>; 3],
    pub lifecycle: Option<&'a Lifecycle>,
}

impl<'a> Container<'a> {
    /// Returns a part of its security context, if that is set.
    pub(crate) fn setting<T>(
        &self,
        part: impl FnOnce(&'a SecurityContext) -> Option<T>,
    ) -> Option<T> {
        self.security_context.and_then(part)
    }
}

/// Reads the fields from either message of a container: those of all lists have them, but not one type.
macro_rules! container {
    ($message:expr) => {{
        let message = $message;
        Container {
            name: &message.name,
            security_context: message.security_context.as_ref(),
            ports: &message.ports,
            probes: [
                message.liveness_probe.as_ref(),
                message.readiness_probe.as_ref(),
                message.startup_probe.as_ref(),
            ],
            lifecycle: message.lifecycle.as_ref(),
        }
    }};
}

impl<'a> From<&'a core::Container> for Container<'a> {
    fn from(container: &'a core::Container) -> Self {
        container!(container)
    }
}

impl<'a> From<&'a EphemeralContainer> for Container<'a> {
    fn from(container: &'a EphemeralContainer) -> Self {
        container!(&container.ephemeral_container_common)
    }
}

/// Returns the containers of all lists, in upstream's order.
pub(crate) fn all(spec: &PodSpec) -> impl Iterator<Item = Container<'_>> {
    let init = spec.init_containers.iter().map(Container::from);
    let main = spec.containers.iter().map(Container::from);
    let ephemeral = spec.ephemeral_containers.iter().map(Container::from);
    init.chain(main).chain(ephemeral)
}

/// Returns the names of the containers that a rule selects.
pub(crate) fn names<'a>(
    spec: &'a PodSpec,
    is_selected: impl FnMut(&Container<'a>) -> bool,
) -> Vec<&'a str> {
    let selected = all(spec).filter(is_selected);
    selected.map(|container| container.name).collect()
}
