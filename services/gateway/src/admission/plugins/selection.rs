//! The plugins that a setting turns on and off, by upstream's names.

/// The plugins that can be turned on and off, in their order (upstream: `AllOrderedPlugins`, as far as they are here).
pub(super) const NAMES: [&str; 19] = [
    "NamespaceLifecycle",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "PodSecurity",
    "Priority",
    "DefaultTolerationSeconds",
    "DefaultStorageClass",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "PodResizeValidator",
    "ResourceQuota",
];

/// The plugins that are on or off although they are not by default.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    enabled: Vec<String>,
    disabled: Vec<String>,
}

impl Selection {
    /// Returns a selection, from the values of `enable_admission_plugins` and `disable_admission_plugins`.
    ///
    /// # Errors
    /// If a name is unknown, or in both lists.
    pub fn new(enabled: &[String], disabled: &[String]) -> Result<Self, String> {
        check("enable-admission-plugins", enabled)?;
        check("disable-admission-plugins", disabled)?;
        let both: Vec<_> = enabled
            .iter()
            .filter(|name| disabled.contains(name))
            .collect();
        match both.as_slice() {
            [] => Ok(Self {
                enabled: enabled.to_vec(),
                disabled: disabled.to_vec(),
            }),
            both => Err(format!(
                "{both:?} in enable-admission-plugins and disable-admission-plugins overlapped"
            )),
        }
    }

    /// Returns whether a plugin is on, given whether it is by default.
    pub(super) fn includes(&self, name: &str, default: bool) -> bool {
        let has = |list: &[String]| list.iter().any(|one| one == name);
        (default || has(&self.enabled)) && !has(&self.disabled)
    }
}

fn check(flag: &str, names: &[String]) -> Result<(), String> {
    let unknown = names.iter().find(|name| !NAMES.contains(&name.as_str()));
    match unknown {
        None => Ok(()),
        Some(name) => Err(format!("{flag} plugin {name:?} is unknown")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_plugin_is_on_by_default_or_by_the_setting_unless_it_is_turned_off() {
        let (on, off) = (names(&["NodeRestriction"]), names(&["Priority"]));
        let selection = Selection::new(&on, &off).unwrap();
        assert!(selection.includes("NodeRestriction", false));
        assert!(!selection.includes("Priority", true));
        assert!(selection.includes("LimitRanger", true));
        assert!(!selection.includes("OwnerReferencesPermissionEnforcement", false));
    }

    #[test]
    fn a_list_that_means_nothing_is_refused() {
        let unknown = Selection::new(&names(&["AlwaysPullImages"]), &[]).unwrap_err();
        assert_eq!(
            unknown,
            "enable-admission-plugins plugin \"AlwaysPullImages\" is unknown"
        );
        let both = names(&["Priority"]);
        let both = Selection::new(&both, &both).unwrap_err();
        assert!(both.ends_with("overlapped"), "{both}");
    }
}
