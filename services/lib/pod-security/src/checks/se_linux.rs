//! Options of SELinux: types of containers only, and neither user nor role.

use std::collections::BTreeSet;

use setpoint_proto::core::{PodSpec, SeLinuxOptions};
use setpoint_proto::meta::ObjectMeta;

use crate::Violation;
use crate::containers::names;
use crate::wording::{number, quoted, setters};

const TYPES: &[&str] = &[
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];

pub(super) fn since_0(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    check(spec, &TYPES[..4])
}

pub(super) fn since_31(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    check(spec, TYPES)
}

/// The forbidden options of a Pod.
#[derive(Default)]
struct Forbidden<'a> {
    types: BTreeSet<&'a str>,
    user: bool,
    role: bool,
}

impl<'a> Forbidden<'a> {
    /// Adds the forbidden ones of some options. Returns whether there are any.
    fn add(&mut self, options: &'a SeLinuxOptions, allowed: &[&str]) -> bool {
        let (user, role) = (!options.user.is_empty(), !options.role.is_empty());
        let is_type_forbidden = !allowed.contains(&options.r#type.as_str());
        if is_type_forbidden {
            self.types.insert(&options.r#type);
        }
        self.user |= user;
        self.role |= role;
        is_type_forbidden || user || role
    }

    fn details(self) -> String {
        let mut details = Vec::new();
        if !self.types.is_empty() {
            let noun = number("type", "types", self.types.len());
            details.push(format!("{noun} {}", quoted(self.types)));
        }
        if self.user {
            details.push("user may not be set".to_owned());
        }
        if self.role {
            details.push("role may not be set".to_owned());
        }
        details.join("; ")
    }
}

fn check(spec: &PodSpec, allowed: &[&str]) -> Option<Violation> {
    let mut forbidden = Forbidden::default();
    let context = spec.security_context.as_ref();
    let of_pod = context.and_then(|context| context.se_linux_options.as_ref());
    let pod = of_pod.is_some_and(|options| forbidden.add(options, allowed));
    let containers = names(spec, |container| {
        let options = container.setting(|context| context.se_linux_options.as_ref());
        options.is_some_and(|options| forbidden.add(options, allowed))
    });
    let setters = setters(pod, &containers)?;
    let details = forbidden.details();
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {details}");
    Some(Violation::new("seLinuxOptions", detail))
}
