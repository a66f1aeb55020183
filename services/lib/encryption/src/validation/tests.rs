use super::*;

/// Returns the error of a configuration with these entries, in YAML.
fn refused(resources: &str) -> String {
    let text = format!("apiVersion: {API_VERSION}\nkind: {KIND}\nresources: {resources}");
    Configuration::read(text.as_bytes()).unwrap_err()
}

fn of_providers(providers: &str) -> String {
    refused(&format!(
        "[{{resources: [secrets], providers: {providers}}}]"
    ))
}

fn of_resources(resources: &str) -> String {
    refused(&format!(
        "[{{resources: {resources}, providers: [{{identity: {{}}}}]}}]"
    ))
}

#[test]
fn a_wrong_provider_is_refused_with_the_path_of_its_field() {
    const KEYS: &str = "resources[0].providers[0].aesgcm.keys";
    for (providers, error) in [
        ("[]", "resources[0].providers: Required value: at least one resources[0].providers is required".to_owned()),
        ("[{}]", "resources[0].providers[0]: Invalid value: \"REDACTED\": provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity".to_owned()),
        ("[{identity: {}, aesgcm: {keys: []}}]", "resources[0].providers[0]: Invalid value: \"REDACTED\": more than one provider specified in a single element, should split into different list elements".to_owned()),
        ("[{aesgcm: {keys: []}}]", format!("{KEYS}: Required value: at least one keys is required")),
        ("[{aesgcm: {keys: [{secret: MTIzNDU2Nzg5MDEyMzQ1Ng==}]}}]", format!("{KEYS}[0].name: Required value: name is a mandatory field for a key")),
        ("[{aesgcm: {keys: [{name: a}]}}]", format!("{KEYS}[0].secret: Required value: secret is a mandatory field for a key")),
        ("[{aesgcm: {keys: [{name: a, secret: '!'}]}}]", format!("{KEYS}[0].secret: Invalid value: \"REDACTED\": secrets must be base64 encoded")),
        ("[{aesgcm: {keys: [{name: a, secret: c2hvcnQ=}]}}]", format!("{KEYS}[0].secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 5, expected one of [16 24 32]")),
        ("[{secretbox: {keys: [{name: a, secret: MTIzNDU2Nzg5MDEyMzQ1Ng==}]}}]", "resources[0].providers[0].secretbox.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 16, expected one of [32]".to_owned()),
        ("[{aesgcm: {keys: [{name: a, secret: 12345}]}}]", format!("failed decoding: {KEYS}[0].secret: Invalid value: REDACTED: must be a string")),
        ("[{identity: {keys: []}}]", "strict decoding error: unknown field \"resources[0].providers[0].identity.keys\"".to_owned()),
        ("[{aes: {}}]", "strict decoding error: unknown field \"resources[0].providers[0].aes\"".to_owned()),
    ] {
        assert_eq!(of_providers(providers), error, "{providers}");
    }
}

#[test]
fn wrong_resources_are_refused_with_their_paths() {
    for (resources, start) in [
        ("[]", "resources[0].resources: Required value: at least one"),
        (
            "[Secrets]",
            "resources[0].resources[0]: Invalid value: \"Secrets\": resource name should not contain capital letters",
        ),
        (
            "['*']",
            "resources[0].resources[0]: Invalid value: \"*\": use '*.' to encrypt",
        ),
        (
            "[apiserveripinfo]",
            "resources[0].resources[0]: Invalid value: \"apiserveripinfo\": resources which do not have REST",
        ),
        (
            "[events.events.k8s.io]",
            "resources[0].resources[0]: Invalid value: \"events.events.k8s.io\": '*.events.k8s.io' objects",
        ),
        (
            "['*.extensions']",
            "resources[0].resources[0]: Invalid value: \"*.extensions\": 'extensions' group has been removed",
        ),
        (
            "['pods.*']",
            "resources[0].resources[0]: Invalid value: \"pods.*\": encrypting the same resource across groups",
        ),
        (
            "[secrets, secrets]",
            "resources[0].resources: Invalid value: [\"secrets\",\"secrets\"]: the same resource",
        ),
        (
            "[secrets, '*.']",
            "resources[0].resources: Invalid value: [\"secrets\",\"*.\"]: using overlapping resources",
        ),
        (
            "['*.*', deployments.apps]",
            "resources[0].resources: Invalid value: [\"*.*\",\"deployments.apps\"]: using overlapping",
        ),
    ] {
        let error = of_resources(resources);
        assert!(error.starts_with(start), "{resources}: {error}");
    }
}

#[test]
fn a_rule_behind_one_that_includes_it_is_refused() {
    let entry = |name: &str| format!("{{resources: ['{name}'], providers: [{{identity: {{}}}}]}}");
    for (first, second, error) in [
        (
            "*.apps",
            "deployments.apps",
            r#"resources[1].resources[0]: resource "deployments.apps" is masked by earlier rule "*.apps""#,
        ),
        (
            "*.*",
            "secrets",
            r#"resources[1].resources[0]: resource "secrets" is masked by earlier rule "*.*""#,
        ),
        (
            "*.",
            "secrets",
            r#"resources[1].resources[0]: resource "secrets" is masked by earlier rule "*.""#,
        ),
    ] {
        assert_eq!(
            refused(&format!("[{}, {}]", entry(first), entry(second))),
            error
        );
    }
}

#[test]
fn a_document_of_another_kind_is_refused() {
    let read = |text: &str| Configuration::read(text.as_bytes()).unwrap_err();
    let error = read("apiVersion: v1\nkind: Secret\nresources: []");
    assert!(
        error.starts_with(r#"[apiVersion: Unsupported value: "v1": supported values: "apiserver.config.k8s.io/v1", kind: "#),
        "{error}"
    );
    assert!(read("[]").contains("must be an object"), "{}", read("[]"));
    let twice = read("kind: a\nkind: b");
    assert!(twice.contains("duplicate"), "{twice}");
}
