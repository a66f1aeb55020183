//! Mounts of `/proc`: parts of it must stay hidden, unless the users of the Pod are its own.

use std::collections::BTreeSet;

use setpoint_proto::core::PodSpec;
use setpoint_proto::meta::ObjectMeta;

use super::has_own_users;
use crate::Violation;
use crate::containers::names;
use crate::wording::{containers, quoted};

pub(super) fn always(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let unmasked = names(spec, |container| {
        let mount = container.setting(|context| context.proc_mount.as_deref());
        let mount = mount.filter(|mount| *mount != "Default");
        types.extend(mount);
        mount.is_some()
    });
    (!unmasked.is_empty()).then(|| {
        let detail = format!(
            "{} must not set securityContext.procMount to {}",
            containers(&unmasked),
            quoted(types)
        );
        Violation::new("procMount", detail)
    })
}

pub(super) fn of_host_users(meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    match has_own_users(spec) {
        true => None,
        false => always(meta, spec),
    }
}
