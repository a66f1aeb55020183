//! Encryption at rest: what etcd has, a change of keys with `setpoint encryption rewrite`, a lost key, and a provider
//! of keys that hangs.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::fs;
use std::path::PathBuf;

use etcd_client::GetOptions;
use setpoint_encryption::kms::testing::{Mode, TestKms};
use setpoint_tests::{Cluster, Kubectl, eventually};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::workloads::create;

const OLD: &str = "{name: old, secret: MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=}";
const NEW: &str = "{name: new, secret: QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY=}";
const SECRETS: &str = "/registry/secrets/default/";
const SIGNING: &str = "/setpoint/token-key";

/// A cluster of one gateway whose encryption configuration can be changed.
struct Scene {
    cluster: Cluster,
    kubectl: Kubectl,
    file: PathBuf,
    directory: TempDir,
    runtime: Runtime,
}

impl Scene {
    /// Starts with these providers of Secrets.
    fn start(providers: &str) -> Self {
        Self::start_with(|_| providers.to_owned())
    }

    fn start_with(providers: impl FnOnce(&Scene) -> String) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("encryption.yaml");
        let mut cluster = Cluster::without_etcd();
        let path = file.display().to_string();
        cluster.set_gateway_flags(&["--encryption-provider-config", &path]);
        let mut scene = Self {
            kubectl: cluster.kubectl(),
            cluster,
            file,
            directory,
            runtime: Runtime::new().unwrap(),
        };
        let providers = providers(&scene);
        scene.write(&providers);
        scene.cluster.start_etcd();
        scene.cluster.start_gateway();
        scene.cluster.wait_until_ready();
        scene
    }

    fn write(&self, providers: &str) {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
             - resources: [secrets]\n  providers: {providers}\n"
        );
        // As a tool for secrets would: never half a file.
        let next = self.directory.path().join("next");
        fs::write(&next, text).unwrap();
        fs::rename(next, &self.file).unwrap();
    }

    /// Changes the configuration, and waits until the gateway has read it.
    fn change(&self, providers: &str) {
        let before = self.reloads("success");
        self.write(providers);
        eventually("the configuration was read again", || {
            let now = self.reloads("success");
            (now > before).then_some(()).ok_or(now.to_string())
        });
    }

    /// Returns the number of changes of the file with an outcome.
    fn reloads(&self, status: &str) -> u64 {
        let name = "apiserver_encryption_config_controller_automatic_reloads_total";
        let metrics = self.kubectl.run("get --raw /metrics").stdout;
        let line = format!("{name}{{status=\"{status}\"}} ");
        let found = metrics.lines().find_map(|one| one.strip_prefix(&line));
        found.map_or(0, |number| number.trim().parse().unwrap())
    }

    /// Returns the values in etcd below a prefix.
    fn stored(&self, prefix: &str) -> Vec<(String, Vec<u8>)> {
        self.runtime.block_on(async {
            let mut etcd = self.cluster.etcd_url().etcd().await.unwrap();
            let options = GetOptions::new().with_prefix();
            let found = etcd.get(prefix, Some(options)).await.unwrap();
            let found = found.kvs().iter();
            found
                .map(|kv| (kv.key_str().unwrap().to_owned(), kv.value().to_vec()))
                .collect()
        })
    }

    fn secret(&self, name: &str) {
        let text = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{word: the password}}\n"
        );
        create(&self.kubectl, &text);
    }

    fn word(&self, name: &str) -> Result<String, String> {
        let read = format!("get secret {name} -o jsonpath={{.data.word}}");
        let read = self.kubectl.run(&read);
        match read.success {
            true => Ok(read.stdout),
            false => Err(read.stderr),
        }
    }

    /// Runs `setpoint encryption rewrite` for Secrets. Returns what it printed, or its errors.
    fn rewrite(&self) -> Result<String, String> {
        let output = self.cluster.setpoint_at(0, "encryption rewrite");
        match output.success {
            true => Ok(output.stdout),
            false => Err(output.stderr),
        }
    }

    /// Returns whether a token of a ServiceAccount is known.
    fn knows(&self, token: &str) -> bool {
        let review = format!(
            "apiVersion: authentication.k8s.io/v1\nkind: TokenReview\nspec: {{token: {}}}\n",
            token.trim()
        );
        let reviewed = self
            .kubectl
            .with("create -o jsonpath={.status.authenticated}", &review);
        reviewed.stdout == "true"
    }
}

fn contains(value: &[u8], text: &[u8]) -> bool {
    value.windows(text.len()).any(|part| part == text)
}

/// Keys change while the cluster runs: the new one is added and seals, all objects are written anew, and the old one is
/// removed.
#[test]
fn etcd_has_no_plain_text_and_after_a_change_of_keys_nothing_of_the_old_one() {
    let scene = Scene::start(&format!(
        "[{{aesgcm: {{keys: [{OLD}]}}}}, {{identity: {{}}}}]"
    ));
    (0..5).for_each(|n| scene.secret(&format!("s{n}")));
    scene.kubectl.ok("create serviceaccount robot");
    let token = scene.kubectl.ok("create token robot");
    for (key, value) in scene
        .stored(SECRETS)
        .into_iter()
        .chain(scene.stored(SIGNING))
    {
        assert!(value.starts_with(b"k8s:enc:aesgcm:v1:old:"), "{key}");
        assert!(!contains(&value, b"password"), "{key}");
    }
    assert_eq!(scene.stored(SECRETS).len(), 5);
    assert_eq!(scene.word("s0").unwrap(), "dGhlIHBhc3N3b3Jk");

    scene.change(&format!("[{{aesgcm: {{keys: [{NEW}, {OLD}]}}}}]"));
    let said = scene.rewrite().unwrap();
    assert!(
        said.ends_with(" written anew, 0 stored as they should be\n"),
        "{said}"
    );
    let said = scene.rewrite().unwrap();
    assert!(
        said.starts_with("secrets: done, 0 written anew, "),
        "{said}"
    );
    let is_new = |(_, value): &(String, Vec<u8>)| value.starts_with(b"k8s:enc:aesgcm:v1:new:");
    assert!(scene.stored("/registry/secrets/").iter().all(is_new));
    eventually("the keys of tokens are stored anew", || {
        let stored = scene.stored(SIGNING);
        stored
            .iter()
            .all(is_new)
            .then_some(())
            .ok_or_else(|| "not yet".to_owned())
    });

    scene.change(&format!("[{{aesgcm: {{keys: [{NEW}]}}}}]"));
    assert_eq!(scene.word("s4").unwrap(), "dGhlIHBhc3N3b3Jk");
    assert!(scene.knows(&token) && !scene.knows("e30.e30.e30"));
    let other = scene.kubectl.ok("create token robot");
    assert!(scene.knows(&other));
}

#[test]
fn without_its_key_an_object_is_an_error_and_with_it_readable_again() {
    let scene = Scene::start(&format!("[{{secretbox: {{keys: [{OLD}]}}}}]"));
    scene.secret("web");
    let before = scene.stored(SECRETS);
    scene.change(&format!("[{{secretbox: {{keys: [{NEW}]}}}}]"));
    let error = eventually("the key is missing", || {
        scene
            .word("web")
            .err()
            .ok_or_else(|| "it is readable".to_owned())
    });
    assert!(
        error.contains("data from the storage is not transformable"),
        "{error}"
    );
    let refused = scene.rewrite().unwrap_err();
    assert!(
        refused.contains("failed to read one or more secrets from the storage"),
        "{refused}"
    );
    let deleted = scene.kubectl.run("delete secret web");
    assert!(
        !deleted.success && deleted.stderr.contains("not transformable"),
        "{}",
        deleted.stderr
    );
    assert_eq!(scene.stored(SECRETS), before);

    scene.change(&format!("[{{secretbox: {{keys: [{NEW}, {OLD}]}}}}]"));
    let word = eventually("the key is back", || scene.word("web"));
    assert_eq!(word, "dGhlIHBhc3N3b3Jk");
}

#[test]
fn a_configuration_that_is_not_valid_leaves_the_one_before_in_force_and_stops_a_start() {
    let mut scene = Scene::start(&format!("[{{aescbc: {{keys: [{OLD}]}}}}]"));
    scene.write("[{aescbc: {keys: [{name: a, secret: c2hvcnQ=}]}}]");
    let why = "resources[0].providers[0].aescbc.keys[0].secret: Invalid value: \"REDACTED\": \
               secret is not of the expected length, got 5, expected one of [16 24 32]";
    eventually("an Event tells", || {
        let reason = "--field-selector=reason=EncryptionConfigurationInvalid";
        let events = scene.kubectl.run(&format!(
            "get events {reason} -o jsonpath={{.items[*].message}}"
        ));
        events
            .stdout
            .contains(why)
            .then_some(())
            .ok_or(events.stdout)
    });
    assert_eq!(scene.reloads("failure"), 1);
    scene.secret("web");
    let stored = scene.stored(SECRETS).remove(0).1;
    assert!(stored.starts_with(b"k8s:enc:aescbc:v1:old:"));

    let gateway = scene.cluster.process("gateway-0");
    gateway.stop();
    gateway.restart();
    eventually("it has ended", || {
        (!gateway.is_running())
            .then_some(())
            .ok_or_else(|| "it runs".to_owned())
    });
    let log = scene.cluster.log("gateway-0");
    assert!(
        log.contains(&format!("encryption_provider_config: {why}")),
        "{log}"
    );
}

/// A provider of keys that hangs fails what needs it. Other requests, and what is known, are not delayed.
#[test]
fn a_provider_of_keys_that_hangs_concerns_only_what_needs_it() {
    let mut kms = None;
    let scene = Scene::start_with(|scene| {
        let socket = scene.directory.path().join("kms");
        let _runtime = scene.runtime.enter();
        kms = Some(TestKms::start(&socket));
        let socket = socket.display();
        format!(
            "[{{kms: {{apiVersion: v2, name: vault, endpoint: 'unix://{socket}', timeout: 1s}}}}]"
        )
    });
    let kms = kms.unwrap();
    scene.secret("web");
    let (_, stored) = scene.stored(SECRETS).remove(0);
    assert!(stored.starts_with(b"k8s:enc:kms:v2:vault:") && !contains(&stored, b"password"));
    let ready = scene.kubectl.ok("get --raw /readyz?verbose");
    assert!(ready.contains("[+]kms-providers ok"), "{ready}");

    kms.set_mode(Mode::Hangs);
    create(
        &scene.kubectl,
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n",
    );
    assert_eq!(scene.word("web").unwrap(), "dGhlIHBhc3N3b3Jk");
    // The seed is good for three minutes.
    scene.secret("more");
    // A new process has no seed.
    let mut scene = scene;
    scene.cluster.process("gateway-0").stop();
    scene.cluster.start_gateway();
    eventually("it serves what is not encrypted", || {
        let read = scene.kubectl.run("get configmap other");
        read.success.then_some(()).ok_or(read.stderr)
    });
    let error = scene.word("web").unwrap_err();
    assert!(
        error.contains("failed to decrypt DEK, error: it did not answer within 1s"),
        "{error}"
    );
    scene.kubectl.fails("get --raw /readyz");
    kms.set_mode(Mode::Works);
    let word = eventually("the provider answers again", || scene.word("web"));
    assert_eq!(word, "dGhlIHBhc3N3b3Jk");
}
