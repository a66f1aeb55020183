//! Tests of the labels of namespaces.

use std::collections::BTreeMap;

use setpoint_pod_security::{Configuration, Level, LevelVersion, Mode, Policy, Version};

fn labels(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    let label = |(key, value): &(&str, &str)| {
        (
            format!("pod-security.kubernetes.io/{key}"),
            (*value).to_owned(),
        )
    };
    labels.iter().map(label).collect()
}

fn policy(given: &[(&str, &str)]) -> Policy {
    let (policy, invalid) = Policy::of_labels(&labels(given), Policy::PRIVILEGED);
    assert_eq!(invalid, []);
    policy
}

fn texts(policy: &Policy) -> [String; 3] {
    Mode::ALL.map(|mode| policy.of(mode).to_string())
}

#[test]
fn labels_override_the_defaults() {
    let defaults = Policy {
        audit: LevelVersion {
            level: Level::Restricted,
            version: Version::Minor(20),
        },
        ..Configuration::default().defaults
    };
    let given = labels(&[
        ("enforce", "baseline"),
        ("audit", "baseline"),
        ("warn-version", "v1.5"),
    ]);
    let (policy, _) = Policy::of_labels(&given, defaults);
    assert_eq!(
        texts(&policy),
        ["baseline:latest", "baseline:v1.20", "baseline:v1.5"]
    );
    let (unlabelled, _) = Policy::of_labels(&BTreeMap::new(), defaults);
    assert_eq!(unlabelled, defaults);
}

#[test]
fn users_are_warned_of_what_is_enforced_unless_a_label_says_otherwise() {
    let enforced = policy(&[("enforce", "restricted"), ("enforce-version", "v1.22")]);
    assert_eq!(
        texts(&enforced),
        ["restricted:v1.22", "privileged:latest", "restricted:v1.22"]
    );
    let unwarned = policy(&[("enforce", "restricted"), ("warn", "privileged")]);
    assert_eq!(texts(&unwarned)[2], "privileged:latest");
    let stricter = policy(&[("enforce", "baseline"), ("warn", "restricted")]);
    assert_eq!(texts(&stricter)[2], "restricted:latest");
}

#[test]
fn an_invalid_label_enforces_the_strictest_level() {
    let given = labels(&[
        ("enforce", "strict"),
        ("enforce-version", "1.22"),
        ("audit", ""),
        ("warn", "Baseline"),
        ("warn-version", "v1.022"),
    ]);
    let (policy, invalid) = Policy::of_labels(&given, Policy::PRIVILEGED);
    assert_eq!(
        texts(&policy),
        [
            "restricted:latest",
            "privileged:latest",
            "privileged:latest"
        ]
    );
    let invalid: Vec<_> = invalid
        .iter()
        .map(|one| (one.value.as_str(), one.requirement))
        .collect();
    let (level, version) = (
        "must be one of privileged, baseline, restricted",
        "must be \"latest\" or \"v1.x\"",
    );
    let expected = [
        ("strict", level),
        ("1.22", version),
        ("", level),
        ("Baseline", level),
        ("v1.022", version),
    ];
    assert_eq!(invalid, expected);
}

#[test]
fn versions_are_those_of_kubernetes() {
    for valid in ["latest", "v1.0", "v1.9", "v1.36", "v1.9223372036854775807"] {
        assert_eq!(Version::parse(valid).unwrap().to_string(), valid);
    }
    let invalid = [
        "",
        "v1",
        "v1.",
        "v2.0",
        "1.1",
        "v1.01",
        "v1.-1",
        "v1.+1",
        "v1.9223372036854775808",
        "v1.1 ",
    ];
    for text in invalid {
        assert!(Version::parse(text).is_err(), "{text:?}");
    }
    assert!(Version::Minor(9) < Version::Minor(10) && Version::Minor(i64::MAX) < Version::Latest);
}

#[test]
fn privileged_is_the_same_in_all_versions() {
    let of = |level, minor| LevelVersion {
        level,
        version: Version::Minor(minor),
    };
    assert!(of(Level::Privileged, 1).is_equivalent(LevelVersion::PRIVILEGED));
    assert!(!of(Level::Baseline, 1).is_equivalent(of(Level::Baseline, 2)));
    assert!(policy(&[("warn-version", "v1.3")]).is_privileged());
    assert!(policy(&[("warn-version", "v1.3")]).is_equivalent(&Policy::PRIVILEGED));
    assert!(!policy(&[("audit", "baseline")]).is_equivalent(&Policy::PRIVILEGED));
}
