use super::*;

fn users(keyring: &Keyring, image: &str) -> Vec<String> {
    let found = keyring.lookup(image).into_iter();
    found.map(|credential| credential.username).collect()
}

fn keyring(registries: &[(&str, &str)]) -> Keyring {
    let auths: serde_json::Map<_, _> = registries
        .iter()
        .map(|(registry, user)| {
            let entry = serde_json::json!({ "username": user, "password": "hush" });
            ((*registry).to_owned(), entry)
        })
        .collect();
    let mut keyring = Keyring::default();
    let config = serde_json::json!({ "auths": auths }).to_string();
    let secret = SecretRef::default();
    keyring.add_config(config.as_bytes(), &secret).unwrap();
    keyring
}

/// The cases are those of upstream's documentation of config.json.
#[test]
fn the_credentials_of_an_image_are_those_of_its_host_and_path() {
    for (registry, image, found) in [
        ("my-registry.io/images", "my-registry.io/images", true),
        (
            "my-registry.io/images",
            "my-registry.io/images/my-image:1",
            true,
        ),
        ("my-registry.io/images", "my-registry.io/other", false),
        (
            "*.my-registry.io/images",
            "sub.my-registry.io/images/a",
            true,
        ),
        (
            "*.my-registry.io/images",
            "a.sub.my-registry.io/images/a",
            false,
        ),
        ("*.my-registry.io/images", "my-registry.io/images/a", false),
        ("prefix.*.io", "prefix.kubernetes.io/a", true),
        ("*-good.kubernetes.io", "prefix-good.kubernetes.io/a", true),
        ("k8s.?o", "k8s.io/a", true),
        ("a*b*c.io", "aXbYbZc.io/a", true),
        ("a*b*c.io", "aXbYbZ.io/a", false),
        ("https://my-registry.io/v2/", "my-registry.io/a", true),
        ("http://my-registry.io/v1/a", "my-registry.io/a", true),
        ("127.0.0.1:5000", "127.0.0.1:5000/team/app:1", true),
        ("127.0.0.1:5001", "127.0.0.1:5000/team/app:1", false),
        ("127.0.0.1", "127.0.0.1:5000/team/app:1", false),
        ("https://index.docker.io/v1/", "nginx", true),
        (
            "https://index.docker.io/v1/",
            "docker.io/team/app@sha256:ab",
            true,
        ),
        ("https://index.docker.io/v1/", "quay.io/team/app", false),
        ("docker.io", "team/app", true),
    ] {
        let keyring = keyring(&[(registry, "me")]);
        let expected = if found { vec!["me"] } else { Vec::new() };
        assert_eq!(users(&keyring, image), expected, "{registry} {image}");
    }
}

#[test]
fn all_credentials_of_an_image_are_returned_the_most_specific_first() {
    let mut keyring = keyring(&[("quay.io", "all"), ("quay.io/coreos", "some")]);
    let older = r#"{"quay.io": {"auth": "b2xkOmh1c2g="}}"#;
    let secret = SecretRef::default();
    keyring.add_registries(older.as_bytes(), &secret).unwrap();
    assert_eq!(
        users(&keyring, "quay.io/coreos/etcd"),
        ["some", "all", "old"]
    );
    assert_eq!(users(&keyring, "quay.io/a"), ["all", "old"]);
}

#[test]
fn a_malformed_configuration_is_refused_without_showing_it() {
    for (content, message) in [
        (
            r#"{"auths":{"a":{"password":7}}}"#,
            "malformed JSON at line 1",
        ),
        (
            r#"{"auths":{"a":{"auth":"hush"}}}"#,
            "unable to parse auth field",
        ),
        (
            r#"{"auths":{"a":{"auth":"%"}}}"#,
            "unable to parse auth field",
        ),
    ] {
        let refused = Keyring::default().add_config(content.as_bytes(), &SecretRef::default());
        assert!(refused.unwrap_err().starts_with(message), "{content}");
    }
    assert_eq!(
        Keyring::default().add_config(b"{}", &SecretRef::default()),
        Ok(())
    );
    let credential = &keyring(&[("a.b", "me")]).lookup("a.b/c")[0];
    assert!(!format!("{credential:?}").contains("hush"));
}
