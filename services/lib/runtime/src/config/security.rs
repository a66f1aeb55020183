//! The security settings of containers.

use serde::{Deserialize, Serialize};

/// A seccomp or AppArmor profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Profile {
    /// That of containers that name none.
    #[default]
    Unset,
    /// The runtime's default, which must be enforced.
    RuntimeDefault,
    /// None.
    Unconfined,
    /// A profile of the machine: a file, or a name that the kernel knows.
    Localhost(String),
}

/// Security settings of a container that differ from the runtime's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Security {
    /// User; `None` for the image's.
    pub run_as_user: Option<i64>,
    /// Group; `None` for the image's.
    pub run_as_group: Option<i64>,
    /// Refuse to start as root.
    pub run_as_non_root: bool,
    /// Give it the rights of the machine's root. Of runtimes of the CRI only.
    pub privileged: bool,
    /// Supplemental groups.
    pub supplemental_groups: Vec<i64>,
    /// Mount the root file system read-only.
    pub read_only: bool,
    /// Set `no_new_privs`.
    pub no_new_privileges: bool,
    /// Give it no groups of the image's file /etc/group.
    pub strict_groups: bool,
    /// The seccomp profile.
    pub seccomp_profile: Profile,
    /// The AppArmor profile.
    pub app_armor_profile: Profile,
    /// Capabilities to add.
    pub add: Vec<String>,
    /// Capabilities to drop.
    pub drop: Vec<String>,
}

impl Security {
    /// Checks `runAsNonRoot`. `default_user` is the user of the image or the runtime: a number or a name, optionally
    /// with a group; empty for root. `pod` is the Pod's label in messages, see [`pod_label`](crate::pod_label).
    ///
    /// # Errors
    /// The kubelet's message, if the container would run as root or its user cannot be verified.
    pub fn verify_non_root(
        &self,
        default_user: &str,
        pod: &str,
        container: &str,
    ) -> Result<(), String> {
        let place = format!("(pod: {pod:?}, container: {container})");
        let default_user = default_user.split(':').next().unwrap_or_default();
        let numeric = match default_user {
            "" => Ok(0),
            user => user.parse::<i64>(),
        };
        match (self.run_as_non_root, self.run_as_user, numeric) {
            (true, Some(0), _) => Err(format!(
                "container's runAsUser breaks non-root policy {place}"
            )),
            (true, None, Ok(0)) => Err(format!(
                "container has runAsNonRoot and image will run as root {place}"
            )),
            (true, None, Err(_)) => Err(format!(
                "container has runAsNonRoot and image has non-numeric user ({default_user}), cannot verify user is non-root {place}"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F7.
    #[test]
    fn a_container_that_must_not_be_root_is_refused_in_the_kubelets_words() {
        let verdict = |run_as_user, image| {
            let security = Security {
                run_as_user,
                run_as_non_root: true,
                ..Security::default()
            };
            let verdict = security.verify_non_root(image, "web_shop(5be0)", "main");
            verdict.err().unwrap_or_default()
        };
        let place = "(pod: \"web_shop(5be0)\", container: main)";
        let breaks = format!("container's runAsUser breaks non-root policy {place}");
        assert_eq!(verdict(Some(0), "1000"), breaks);
        let root = format!("container has runAsNonRoot and image will run as root {place}");
        assert_eq!(
            [verdict(None, ""), verdict(None, "0:5")],
            [root.clone(), root]
        );
        let named = format!(
            "container has runAsNonRoot and image has non-numeric user (nginx), cannot verify user is non-root {place}"
        );
        assert_eq!(verdict(None, "nginx:nginx"), named);
        assert_eq!(
            [verdict(Some(7), "root"), verdict(None, "1000:0")],
            ["", ""]
        );
    }
}
