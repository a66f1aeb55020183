//! Capabilities: `baseline` allows those that container runtimes give anyway, `restricted` one.

use std::collections::BTreeSet;

use setpoint_proto::core::{Capabilities, PodSpec};
use setpoint_proto::meta::ObjectMeta;

use super::is_of_windows;
use crate::Violation;
use crate::containers::{Container, names};
use crate::wording::{containers, quoted};

const DEFAULT: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

pub(super) fn baseline(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let detail = added(spec, DEFAULT)?;
    Some(Violation::new("non-default capabilities", detail))
}

pub(super) fn restricted(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let keeping = names(spec, |container| {
        let capabilities = of(container);
        !capabilities.is_some_and(|capabilities| capabilities.drop.iter().any(|one| one == "ALL"))
    });
    let kept = (!keeping.is_empty()).then(|| {
        let containers = containers(&keeping);
        format!("{containers} must set securityContext.capabilities.drop=[\"ALL\"]")
    });
    let added = added(spec, &["NET_BIND_SERVICE"]);
    let details: Vec<_> = kept.into_iter().chain(added).collect();
    let violation = || Violation::new("unrestricted capabilities", details.join("; "));
    (!details.is_empty()).then(violation)
}

/// Capabilities of containers of Windows cannot be set.
pub(super) fn restricted_unless_windows(meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    match is_of_windows(spec) {
        true => None,
        false => restricted(meta, spec),
    }
}

fn of<'a>(container: &Container<'a>) -> Option<&'a Capabilities> {
    container.setting(|context| context.capabilities.as_ref())
}

/// Returns the containers that add other capabilities than the allowed ones, as a detail.
fn added(spec: &PodSpec, allowed: &[&str]) -> Option<String> {
    let mut forbidden = BTreeSet::new();
    let adding = names(spec, |container| {
        let added = of(container).map_or(&[][..], |capabilities| &capabilities.add);
        let others = added.iter().filter(|one| !allowed.contains(&one.as_str()));
        let others: Vec<_> = others.collect();
        forbidden.extend(others.iter().map(|name| name.as_str()));
        !others.is_empty()
    });
    (!adding.is_empty()).then(|| {
        format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&adding),
            quoted(forbidden)
        )
    })
}
