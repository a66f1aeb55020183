//! Refuses containers that ask for what this runtime, or this machine, cannot do. They would be less confined than
//! their specs require, or lack something.

use std::fs;

use setpoint_model::Key;

use super::client::{Features, Service};
use super::stop::signal;
use crate::{ContainerConfig, Error, Mount, Profile, RecursiveReadOnly, SandboxConfig, pod_label};

/// Whether the kernel enforces AppArmor.
const APP_ARMOR: &str = "/sys/module/apparmor/parameters/enabled";

/// The first versions of runtimes that mount images.
const IMAGE_VOLUMES: [(&str, (u32, u32)); 2] = [("containerd", (2, 1)), ("cri-o", (1, 31))];

/// Checks that a runtime can do what a container asks for.
///
/// # Errors
/// With the kubelet's message about the first thing that it cannot do, where there is one.
pub fn check(
    service: &Service,
    sandbox: &SandboxConfig,
    config: &ContainerConfig,
) -> Result<(), Error> {
    let security = &config.security;
    let features = &service.features;
    if security.strict_groups && features.supplemental_groups_policy != Some(true) {
        return refused("SupplementalGroupsPolicy=Strict is not supported in this node");
    }
    if let Some(name) = enforced(&security.app_armor_profile)
        && !has_app_armor()
    {
        return refused(format!(
            "cannot enforce the profile {name}: AppArmor is not enabled on the host"
        ));
    }
    if !config.stop_signal.is_empty() && signal(&config.stop_signal).is_none() {
        let name = &config.stop_signal;
        return refused(format!(
            "the stop signal {name} is not supported on this node"
        ));
    }
    let recurses = features.recurses(&sandbox.runtime_handler);
    let mut mounts = config.mounts.iter();
    mounts.try_for_each(|mount| check_mount(service, recurses, mount))
}

fn check_mount(service: &Service, recurses: bool, mount: &Mount) -> Result<(), Error> {
    let volume = &mount.volume;
    if mount.recursive_read_only == RecursiveReadOnly::Enabled && !recurses {
        return refused(format!(
            "volume {volume:?} requested recursive read-only mode, but it is not supported by the runtime"
        ));
    }
    let (name, version) = (&service.name, &service.version);
    if mount.image.is_some() && !mounts_images(name, version) {
        return refused(format!(
            "volume {volume:?}: {name} {version} does not support image volumes"
        ));
    }
    if mount.image.is_some() && !mount.sub_path.is_empty() {
        return refused(format!(
            "volume {volume:?}: a subPath of an image volume is not supported on this node"
        ));
    }
    Ok(())
}

fn refused<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Config(message.into()))
}

impl Features {
    /// Returns whether a handler mounts read-only with all that is mounted below.
    pub fn recurses(&self, handler: &str) -> bool {
        let mut handlers = self.handlers.iter();
        let found = handlers.find(|known| known.name == handler);
        found.is_some_and(|handler| handler.recursive_read_only_mounts)
    }
}

/// Checks that a runtime can give a Pod a user namespace of its own.
///
/// # Errors
/// With the kubelet's message, if it cannot.
pub fn check_users(features: &Features, handler: &str) -> Result<(), Error> {
    let mut handlers = features.handlers.iter();
    let found = handlers.find(|known| known.name == handler);
    match (found.is_some_and(|found| found.user_namespaces), handler) {
        (true, _) => Ok(()),
        (false, "") => {
            refused("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
        }
        (false, handler) => refused(format!(
            "can't set `spec.hostUsers: false`, RuntimeClass handler {handler:?} does not support user namespaces"
        )),
    }
}

/// Returns the name of an AppArmor profile that must be enforced.
fn enforced(profile: &Profile) -> Option<&str> {
    match profile {
        Profile::Unset | Profile::Unconfined => None,
        Profile::RuntimeDefault => Some("RuntimeDefault"),
        Profile::Localhost(name) => Some(name),
    }
}

fn has_app_armor() -> bool {
    fs::read_to_string(APP_ARMOR).is_ok_and(|enabled| enabled.starts_with('Y'))
}

/// Returns whether a runtime mounts images, which it does not report.
fn mounts_images(name: &str, version: &str) -> bool {
    // Others may know the field, too, and refuse what they do not.
    is_since(&IMAGE_VOLUMES, name, version).unwrap_or(true)
}

/// Returns whether a runtime has at least the version that it has among `firsts`; `None` if it is not among them. A
/// version that is no number is below all.
pub fn is_since(firsts: &[(&str, (u32, u32))], name: &str, version: &str) -> Option<bool> {
    let mut known = firsts.iter();
    let (_, first) = known.find(|(known, _)| *known == name)?;
    let mut parts = version.split('.').map(|part| part.parse().ok());
    let version = parts.next().flatten().zip(parts.next().flatten());
    Some(version.is_some_and(|version| version >= *first))
}

/// Refuses a container that would run as root and must not. Returns the user of its image if it must be named, since
/// the CRI has no group without a user.
///
/// # Errors
/// With the kubelet's message.
pub fn verified_user(
    config: &ContainerConfig,
    pod: &Key,
    image: &k8s_cri::v1::Image,
) -> Result<Option<i64>, Error> {
    let (security, id) = (&config.security, &config.id);
    let number = image.uid.map(|uid| uid.value);
    let user = number.map_or_else(|| image.username.clone(), |uid| uid.to_string());
    let label = pod_label(pod, &id.uid);
    let verified = security.verify_non_root(&user, &label, &id.name);
    verified.map_err(Error::Config)?;
    match (security.run_as_user, security.run_as_group, user.as_str()) {
        (None, Some(_), "") => Ok(Some(0)),
        (None, Some(_), _) => number.map(Some).ok_or_else(|| {
            let place = format!("(pod: {label:?}, container: {})", id.name);
            Error::Config(format!(
                "container has runAsGroup without runAsUser and image has non-numeric user ({user}) {place}"
            ))
        }),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cri::client::Handler;

    #[test]
    fn a_runtime_mounts_images_from_the_version_on_that_can() {
        for (name, version, expected) in [
            ("containerd", "1.6.20~ds1", false),
            ("containerd", "2.0.5", false),
            ("containerd", "2.1.0-beta.0", true),
            ("containerd", "10.0.0", true),
            ("cri-o", "1.30.9", false),
            ("cri-o", "1.31.0", true),
            ("containerd", "unknown", false),
            ("other", "0.1", true),
        ] {
            assert_eq!(mounts_images(name, version), expected, "{name} {version}");
        }
    }

    #[test]
    fn a_handler_that_is_not_reported_does_not_recurse() {
        let features = Features {
            handlers: vec![Handler {
                name: "kata".into(),
                recursive_read_only_mounts: true,
                user_namespaces: false,
            }],
            ..Features::default()
        };
        assert!(features.recurses("kata") && !features.recurses(""));
    }

    #[test]
    fn users_of_a_pods_own_are_refused_in_the_kubelets_words_by_a_handler_without_them() {
        let handler = |name: &str, user_namespaces| Handler {
            name: name.into(),
            recursive_read_only_mounts: false,
            user_namespaces,
        };
        let features = Features {
            handlers: vec![handler("", true), handler("kata", false)],
            ..Features::default()
        };
        let verdict = |features, handler| {
            let verdict = check_users(features, handler);
            verdict.map_or_else(|error| error.to_string(), |()| String::new())
        };
        assert_eq!(verdict(&features, ""), "");
        let of_handler = "can't set `spec.hostUsers: false`, RuntimeClass handler \"kata\" does not support user namespaces";
        assert_eq!(verdict(&features, "kata"), of_handler);
        // Of containerd before 2.0.
        let of_runtime =
            "can't set `spec.hostUsers: false`, runtime does not support user namespaces";
        assert_eq!(verdict(&Features::default(), ""), of_runtime);
    }
}
