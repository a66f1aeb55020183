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

impl<'a> From<&'a core::Container> for Container<'a> {
    fn from(container: &'a core::Container) -> Self {
        Self {
            name: &container.name,
            security_context: container.security_context.as_ref(),
            ports: &container.ports,
            probes: [
                container.liveness_probe.as_ref(),
                container.readiness_probe.as_ref(),
                container.startup_probe.as_ref(),
            ],
            lifecycle: container.lifecycle.as_ref(),
        }
    }
}

impl<'a> From<&'a EphemeralContainer> for Container<'a> {
    fn from(container: &'a EphemeralContainer) -> Self {
        let container = &container.ephemeral_container_common;
        Self {
            name: &container.name,
            security_context: container.security_context.as_ref(),
            ports: &container.ports,
            probes: [
                container.liveness_probe.as_ref(),
                container.readiness_probe.as_ref(),
                container.startup_probe.as_ref(),
            ],
            lifecycle: container.lifecycle.as_ref(),
        }
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
