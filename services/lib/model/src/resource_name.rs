//! Names of resources: those of Kubernetes, and extended ones.

use crate::names;

/// The prefix of the names of huge pages.
pub const HUGE_PAGES: &str = "hugepages-";

/// The prefix of requests in quotas.
pub const REQUESTS: &str = "requests.";

/// Returns whether the resource is defined by Kubernetes.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns whether the resource is an extended one.
pub fn is_extended(name: &str) -> bool {
    let in_quotas = format!("{REQUESTS}{name}");
    !is_native(name)
        && !name.starts_with(REQUESTS)
        && names::validate_qualified_name(&in_quotas).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_resource_has_the_domain_of_another_project() {
        assert!(is_extended("example.com/gpu"));
        for name in [
            "cpu",
            "kubernetes.io/gpu",
            "requests.example.com/gpu",
            "example.com/a b",
        ] {
            assert!(!is_extended(name), "{name}");
        }
        assert!(is_native("memory") && !is_native("example.com/gpu"));
    }
}
