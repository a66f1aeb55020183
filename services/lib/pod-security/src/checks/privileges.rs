//! Privileged containers, privileges that a process gets later, and host processes of Windows.

use setpoint_proto::core::{PodSpec, WindowsSecurityContextOptions};
use setpoint_proto::meta::ObjectMeta;

use super::is_of_windows;
use crate::Violation;
use crate::containers::names;
use crate::wording::{containers, setters};

pub(super) fn privileged(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let privileged = names(spec, |container| {
        container.setting(|context| context.privileged) == Some(true)
    });
    (!privileged.is_empty()).then(|| {
        let containers = containers(&privileged);
        let detail = format!("{containers} must not set securityContext.privileged=true");
        Violation::new("privileged", detail)
    })
}

pub(super) fn escalation(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let escalating = names(spec, |container| {
        container.setting(|context| context.allow_privilege_escalation) != Some(false)
    });
    (!escalating.is_empty()).then(|| {
        let containers = containers(&escalating);
        let detail =
            format!("{containers} must set securityContext.allowPrivilegeEscalation=false");
        Violation::new("allowPrivilegeEscalation != false", detail)
    })
}

/// There is nothing to set for containers of Windows.
pub(super) fn escalation_unless_windows(meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    match is_of_windows(spec) {
        true => None,
        false => escalation(meta, spec),
    }
}

pub(super) fn host_process(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let is_set = |options: Option<&WindowsSecurityContextOptions>| {
        options.is_some_and(|options| options.host_process == Some(true))
    };
    let context = spec.security_context.as_ref();
    let of_pod = context.and_then(|context| context.windows_options.as_ref());
    let of_containers = names(spec, |container| {
        is_set(container.setting(|context| context.windows_options.as_ref()))
    });
    let setters = setters(is_set(of_pod), &of_containers)?;
    let detail = format!("{setters} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation::new("hostProcess", detail))
}
