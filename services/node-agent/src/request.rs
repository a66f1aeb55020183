//! What a container asks of its runtime, read off its spec. Pure.

use setpoint_model::quantity::Amount;
use setpoint_proto::core::{Container, PodSpec};

use crate::runtime::{Limits, Pull, Security};

/// When its image is to be fetched.
pub fn pull(container: &Container) -> Pull {
    match container.image_pull_policy.as_str() {
        "Always" => Pull::Always,
        "Never" => Pull::Never,
        _ => Pull::IfNotPresent,
    }
}

/// How much it may use.
pub fn limits(container: &Container) -> Limits {
    let resources = &container.resources;
    let limit = |name| resources.limits.get(name);
    let amount = |found: Option<&setpoint_proto::meta::Quantity>| {
        found.and_then(|quantity| Amount::parse(&quantity.string).ok())
    };
    let share = resources.requests.get("cpu").or(limit("cpu"));
    Limits {
        millicpu_share: amount(share).map_or(0, Amount::millis),
        millicpu: amount(limit("cpu")).map_or(0, Amount::millis),
        memory: amount(limit("memory")).map_or(0, Amount::value),
    }
}

/// What it may do: what it asks for, but never everything.
pub fn security(spec: &PodSpec, container: &Container) -> Security {
    let pod = spec.security_context.clone().unwrap_or_default();
    let own = container.security_context.clone().unwrap_or_default();
    let user = own.run_as_user.or(pod.run_as_user);
    let group = own.run_as_group.or(pod.run_as_group);
    let groups = pod.supplemental_groups.iter().chain(pod.fs_group.as_ref());
    let capabilities = own.capabilities.unwrap_or_default();
    let some = capabilities.add.into_iter();
    Security {
        user: match (user, group) {
            (Some(user), Some(group)) => format!("{user}:{group}"),
            (Some(user), None) => user.to_string(),
            (None, _) => String::new(),
        },
        groups: groups.map(ToString::to_string).collect(),
        read_only: own.read_only_root_filesystem.unwrap_or_default(),
        no_new_privileges: own.allow_privilege_escalation == Some(false),
        add: some.filter(|name| name != "ALL").collect(),
        drop: capabilities.drop,
    }
}

/// What it asks for and does not get: silence would be a lie.
pub fn ignored(container: &Container, images: bool) -> Vec<&'static str> {
    let security = container.security_context.as_ref();
    let privileged = security.is_some_and(|security| {
        let add = security
            .capabilities
            .as_ref()
            .map(|asked| asked.add.as_slice());
        security.privileged == Some(true)
            || add.unwrap_or_default().iter().any(|name| name == "ALL")
    });
    let limits = !container.resources.limits.is_empty();
    let asked = [
        (container.readiness_probe.is_some(), "readinessProbe"),
        (container.liveness_probe.is_some(), "livenessProbe"),
        (container.startup_probe.is_some(), "startupProbe"),
        (container.lifecycle.is_some(), "lifecycle"),
        (privileged, "securityContext.privileged"),
        (
            !images && !container.volume_mounts.is_empty(),
            "volumeMounts",
        ),
        (!images && limits, "resources.limits"),
    ];
    let ignored = asked.into_iter().filter(|(asked, _)| *asked);
    ignored.map(|(_, field)| field).collect()
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{Capabilities, SecurityContext};
    use setpoint_proto::meta::Quantity;

    use super::*;

    #[test]
    fn limits_are_read_and_the_share_follows_the_request() {
        let mut container = Container::default();
        let limits = &mut container.resources.limits;
        limits.insert("cpu".into(), Quantity::new("1500m"));
        limits.insert("memory".into(), Quantity::new("64Mi"));
        let expected = Limits {
            millicpu_share: 1500,
            millicpu: 1500,
            memory: 64 << 20,
        };
        assert_eq!(super::limits(&container), expected);
        let requests = &mut container.resources.requests;
        requests.insert("cpu".into(), Quantity::new("100m"));
        assert_eq!(super::limits(&container).millicpu_share, 100);
    }

    #[test]
    fn nobody_gets_everything() {
        let capabilities = Capabilities {
            add: vec!["ALL".into(), "NET_ADMIN".into()],
            ..Capabilities::default()
        };
        let context = SecurityContext {
            privileged: Some(true),
            capabilities: Some(capabilities),
            run_as_user: Some(1000),
            run_as_group: Some(2000),
            ..SecurityContext::default()
        };
        let container = Container {
            security_context: Some(context),
            ..Container::default()
        };
        let security = security(&PodSpec::default(), &container);
        assert_eq!(
            (security.add, security.user),
            (vec!["NET_ADMIN".to_owned()], "1000:2000".to_owned())
        );
        assert_eq!(ignored(&container, true), ["securityContext.privileged"]);
    }
}
