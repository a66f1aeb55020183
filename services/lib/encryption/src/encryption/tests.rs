use super::*;

const HEAD: &str =
    "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n";
const SECRETS: (&str, &str) = ("", "secrets");
const AT: &str = "/registry/secrets/default/web";

/// The value as other implementations have sealed it, with the key `oneone…` of 32 bytes.
const AESGCM: &str = "AAECAwQFBgcICQoLtB88r6sl9ND4+kT6oauDl9dnm6FP1gCDAJHLNo+7bGF3";
const AESCBC: &str = "AAECAwQFBgcICQoLDA0OD3XIaDe1+wvMvolUgunNDDHI9/vGQtfO7GJo252v5mI+";
const SECRETBOX: &str =
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX27jF9eW61WWlvN8gbHi1x27jr3meLRpxaAp7vPjSqOiR";

fn configuration(resources: &str) -> Configuration {
    Configuration::read(format!("{HEAD}{resources}").as_bytes()).unwrap()
}

/// Returns an entry for Secrets with these providers, such as `aesgcm:new,old identity`.
fn secrets(providers: &str) -> Configuration {
    let providers = providers.split(' ').map(|provider| {
        let Some((provider, names)) = provider.split_once(':') else {
            return format!("{{{provider}: {{}}}}");
        };
        let keys = names.split(',');
        let keys = keys.map(|name| format!("{{name: {name}, secret: {}}}", secret(name)));
        let keys: Vec<_> = keys.collect();
        format!("{{{provider}: {{keys: [{}]}}}}", keys.join(", "))
    });
    let providers: Vec<_> = providers.collect();
    configuration(&format!(
        "- resources: [secrets]\n  providers: [{}]\n",
        providers.join(", ")
    ))
}

/// Returns a key of 32 bytes that differs by name.
fn secret(name: &str) -> String {
    use base64::Engine as _;
    let key: Vec<u8> = name.bytes().cycle().take(32).collect();
    base64::prelude::BASE64_STANDARD.encode(key)
}

fn value() -> Bytes {
    Bytes::from_static(b"k8s\0 the password")
}

async fn open(encryption: &Encryption, stored: &Bytes) -> Result<Opened, Error> {
    encryption.open(SECRETS, AT, stored).await
}

fn opened(stale: bool) -> Result<Opened, Error> {
    let value = value();
    Ok(Opened { value, stale })
}

#[tokio::test]
async fn a_value_comes_back_and_names_in_the_store_what_has_sealed_it() {
    for (provider, prefix) in [
        ("aesgcm", "k8s:enc:aesgcm:v1:one:"),
        ("aescbc", "k8s:enc:aescbc:v1:one:"),
        ("secretbox", "k8s:enc:secretbox:v1:one:"),
    ] {
        let encryption = Encryption::new(&secrets(&format!("{provider}:one")));
        let stored = encryption.seal(SECRETS, AT, &value()).unwrap();
        assert!(stored.starts_with(prefix.as_bytes()), "{stored:?}");
        let is_part = stored.windows(8).any(|part| part == b"password");
        assert!(!is_part, "{stored:?}");
        assert_ne!(encryption.seal(SECRETS, AT, &value()).unwrap(), stored);
        assert_eq!(open(&encryption, &stored).await, opened(false));
    }
}

#[tokio::test]
async fn values_of_other_implementations_can_be_opened() {
    use base64::Engine as _;
    for (provider, sealed) in [
        ("secretbox", SECRETBOX),
        ("aesgcm", AESGCM),
        ("aescbc", AESCBC),
    ] {
        let encryption = Encryption::new(&secrets(&format!("{provider}:one")));
        let mut stored = format!("k8s:enc:{provider}:v1:one:").into_bytes();
        stored.extend(base64::prelude::BASE64_STANDARD.decode(sealed).unwrap());
        assert_eq!(
            open(&encryption, &stored.into()).await,
            opened(false),
            "{provider}"
        );
    }
}

#[tokio::test]
async fn the_first_key_seals_and_what_another_has_sealed_is_stale() {
    let old = Encryption::new(&secrets("aesgcm:old"));
    let stored = old.seal(SECRETS, AT, &value()).unwrap();
    for (providers, stale) in [
        ("aesgcm:old,new", false),
        ("aesgcm:new,old", true),
        ("secretbox:new aesgcm:old", true),
        // The provider with the same prefix that is asked first has another key.
        ("aesgcm:new aesgcm:old", true),
        ("identity aesgcm:old", true),
    ] {
        let encryption = Encryption::new(&secrets(providers));
        assert_eq!(
            open(&encryption, &stored).await,
            opened(stale),
            "{providers}"
        );
    }
    let both = Encryption::new(&secrets("aesgcm:old identity"));
    assert_eq!(open(&both, &value()).await, opened(true), "in plain text");
}

#[tokio::test]
async fn a_value_without_its_key_is_an_error_in_upstreams_words() {
    let old = Encryption::new(&secrets("aesgcm:old"));
    let stored = old.seal(SECRETS, AT, &value()).unwrap();
    let no_key = "no matching key was found for the provided AES transformer";
    for (providers, why) in [
        ("aesgcm:new", no_key),
        ("secretbox:old", "no matching prefix found"),
        ("identity", "no matching prefix found"),
        ("", "no matching prefix found"),
    ] {
        let encryption = match providers {
            "" => Encryption::default(),
            some => Encryption::new(&secrets(some)),
        };
        let error = open(&encryption, &stored).await.unwrap_err();
        assert_eq!(error.to_string(), why, "{providers}");
    }
    let plain = open(&old, &value()).await.unwrap_err();
    assert_eq!(plain.to_string(), "no matching prefix found");
}

#[tokio::test]
async fn a_value_that_was_changed_or_copied_to_another_key_is_refused() {
    let encryption = Encryption::new(&secrets("aesgcm:one"));
    let stored = encryption.seal(SECRETS, AT, &value()).unwrap();
    let copied = encryption.open(SECRETS, "/registry/secrets/default/other", &stored);
    assert_eq!(copied.await, Err(Error::Authentication));
    for provider in ["aesgcm", "secretbox"] {
        let encryption = Encryption::new(&secrets(&format!("{provider}:one")));
        let mut changed = encryption.seal(SECRETS, AT, &value()).unwrap().to_vec();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(
            open(&encryption, &changed.into()).await,
            Err(Error::Authentication)
        );
        let short = format!("k8s:enc:{provider}:v1:one:short");
        assert_eq!(open(&encryption, &short.into()).await, Err(Error::TooShort));
    }
}

#[tokio::test]
async fn the_rule_of_a_resource_comes_before_its_groups_and_that_of_everything() {
    let key = |name: &str| {
        format!(
            "{{aesgcm: {{keys: [{{name: {name}, secret: {}}}]}}}}",
            secret(name)
        )
    };
    let encryption = Encryption::new(&configuration(&format!(
        "- resources: [events]\n  providers: [{{identity: {{}}}}]\n\
         - resources: [deployments.apps, pandas.bears.example]\n  providers: [{}]\n\
         - resources: ['*.apps', '*.']\n  providers: [{}]\n\
         - resources: ['*.*']\n  providers: [{}]\n",
        key("own"),
        key("group"),
        key("all")
    )));
    for (resource, prefix) in [
        (("", "events"), "k8s\0"),
        (("apps", "deployments"), "k8s:enc:aesgcm:v1:own:"),
        (("bears.example", "pandas"), "k8s:enc:aesgcm:v1:own:"),
        (("apps", "replicasets"), "k8s:enc:aesgcm:v1:group:"),
        (("", "secrets"), "k8s:enc:aesgcm:v1:group:"),
        (("batch", "jobs"), "k8s:enc:aesgcm:v1:all:"),
    ] {
        let stored = encryption.seal(resource, AT, &value()).unwrap();
        assert!(
            stored.starts_with(prefix.as_bytes()),
            "{resource:?}: {stored:?}"
        );
    }
}

#[tokio::test]
async fn a_configuration_is_replaced_while_it_is_used() {
    let encryption = Encryption::new(&secrets("aesgcm:old"));
    let stored = encryption.seal(SECRETS, AT, &value()).unwrap();
    let mut changes = encryption.changes();
    encryption.replace(&secrets("secretbox:new")).await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.borrow_and_update();
    assert!(open(&encryption, &stored).await.is_err());
    let both = secrets("secretbox:new aesgcm:old");
    encryption.replace(&both).await.unwrap();
    assert_eq!(open(&encryption, &stored).await, opened(true));
}
