//! The policies of the kubelet's `imagePullCredentialsVerificationPolicy`. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::image_name;

/// The images of which Pods must show credentials, with the names of the kubelet's setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verification {
    /// None: every Pod may use every image that is present.
    NeverVerify,
    /// Those that this agent has pulled.
    #[default]
    NeverVerifyPreloadedImages,
    /// All but those of the allowlist.
    NeverVerifyAllowlistedImages,
    /// All.
    AlwaysVerify,
}

/// A policy with its allowlist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    verification: Verification,
    /// Names of images without tags, or with `/*` at their end.
    allowlist: Vec<String>,
}

impl Policy {
    /// Returns a policy.
    ///
    /// # Errors
    /// If a pattern is none, or the policy has no allowlist.
    pub fn new(verification: Verification, allowlist: Vec<String>) -> Result<Self, &'static str> {
        let has_list = verification == Verification::NeverVerifyAllowlistedImages;
        if !has_list && !allowlist.is_empty() {
            return Err("can only be set with the policy NeverVerifyAllowlistedImages");
        }
        allowlist.iter().try_for_each(|pattern| check(pattern))?;
        Ok(Self {
            verification,
            allowlist,
        })
    }

    /// Returns whether a Pod must show credentials for an image that is present. `is_ours` if this agent has pulled it,
    /// or may have.
    pub fn verifies(&self, image: &str, is_ours: bool) -> bool {
        match self.verification {
            Verification::NeverVerify => false,
            Verification::NeverVerifyPreloadedImages => is_ours,
            Verification::NeverVerifyAllowlistedImages => !self.allows(image_name(image)),
            Verification::AlwaysVerify => true,
        }
    }

    fn allows(&self, name: &str) -> bool {
        let mut patterns = self.allowlist.iter();
        patterns.any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        })
    }
}

fn check(pattern: &str) -> Result<(), &'static str> {
    if pattern != pattern.trim() {
        return Err("leading or trailing spaces are not allowed");
    }
    match pattern.strip_suffix("/*") {
        Some("") => Err("at least a registry is required before /*"),
        Some(prefix) if prefix.contains('*') => Err("only patterns ending with /* are allowed"),
        Some(_) => Ok(()),
        None if pattern.contains('*') => Err("only patterns ending with /* are allowed"),
        None if !crate::image_reference::is_valid(pattern) => Err("not the name of an image"),
        None if image_name(pattern) != pattern => Err("neither a tag nor a digest is accepted"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of upstream's KEP-2535: whether an image that was preloaded, and one that was pulled, are verified.
    #[test]
    fn each_policy_verifies_what_its_name_says() {
        let list = || vec!["here.test/base".to_owned(), "here.test/open/*".to_owned()];
        for (verification, list, image, expected) in [
            (Verification::NeverVerify, vec![], "a", (false, false)),
            (
                Verification::NeverVerifyPreloadedImages,
                vec![],
                "a",
                (false, true),
            ),
            (Verification::AlwaysVerify, vec![], "a", (true, true)),
            (
                Verification::NeverVerifyAllowlistedImages,
                list(),
                "here.test/base:1",
                (false, false),
            ),
            (
                Verification::NeverVerifyAllowlistedImages,
                list(),
                "here.test/open/a@sha256:00",
                (false, false),
            ),
            (
                Verification::NeverVerifyAllowlistedImages,
                list(),
                "here.test/base/a",
                (true, true),
            ),
        ] {
            let policy = Policy::new(verification, list).unwrap();
            let found = (policy.verifies(image, false), policy.verifies(image, true));
            assert_eq!(found, expected, "{verification:?} {image}");
        }
    }

    #[test]
    fn a_pattern_is_a_name_without_a_tag_or_a_prefix_of_whole_parts() {
        let checked = |pattern: &str| {
            let list = vec![pattern.to_owned()];
            Policy::new(Verification::NeverVerifyAllowlistedImages, list).is_ok()
        };
        for pattern in [
            "busybox",
            "here.test:5000/a/b",
            "here.test/*",
            "here.test/a/*",
        ] {
            assert!(checked(pattern), "{pattern}");
        }
        for pattern in [
            "",
            " a",
            "/*",
            "*",
            "a*",
            "a/*/b",
            "a/*/*",
            "a:1",
            "a@sha256:00",
            "A b",
        ] {
            assert!(!checked(pattern), "{pattern}");
        }
        let list = vec!["busybox".to_owned()];
        assert!(Policy::new(Verification::NeverVerifyPreloadedImages, list).is_err());
    }
}
