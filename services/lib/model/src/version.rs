//! The version of Kubernetes whose API the gateway serves, and whose kubelet node agents follow.

/// The minor version.
pub const MINOR: &str = "36";
/// The major and the minor version.
pub const KUBERNETES: &str = "1.36";
/// The beginning of the build metadata, before the version of Setpoint.
const MARK: &str = "+setpoint-";

/// Returns the version of a component, as `gitVersion` and `kubeletVersion` have it. Clients compare the numbers with
/// their own, so the version of Setpoint is build metadata.
pub fn git_version(own: &str) -> String {
    format!("v{KUBERNETES}.0{MARK}{own}")
}

/// Returns whether a version is that of a component of Setpoint.
pub fn is_own(version: &str) -> bool {
    version.contains(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minor_version_is_that_of_the_release() {
        assert_eq!(KUBERNETES.split_once('.'), Some(("1", MINOR)));
    }

    #[test]
    fn a_component_is_known_by_its_version() {
        assert!(is_own(&git_version("0.1.0")));
        assert!(!is_own("v1.36.0") && !is_own(""));
    }
}
