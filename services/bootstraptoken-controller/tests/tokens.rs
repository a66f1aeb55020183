//! Bootstrap tokens over a gateway in the same process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use setpoint_bootstraptoken_controller::signer::{Action, Data};
use setpoint_bootstraptoken_controller::{cleaner, signature, signer, tokens};
use setpoint_controller::{Client, Controller, View as _, Whole, client};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::Key;
use setpoint_model::bootstrap_token::{EXPIRATION, ID, SECRET, SIGNING, TYPE, secret_name};
use setpoint_proto::Reason;
use setpoint_proto::core::{ConfigMap, Namespace, Secret};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

const TOKEN_SECRET: &str = "0123456789abcdef";
const TEXT: &str = "apiVersion: v1\n";

fn token(id: &str, more: &[(&str, &str)]) -> Secret {
    let mut token = Secret {
        r#type: TYPE.into(),
        ..Secret::default()
    };
    token.metadata.namespace = "kube-system".into();
    token.metadata.name = secret_name(id);
    let data = [(ID, id), (SECRET, TOKEN_SECRET), (SIGNING, "true")];
    for (key, value) in data.iter().chain(more) {
        let value = value.as_bytes().to_vec().into();
        token.data.insert((*key).to_owned(), value);
    }
    token
}

fn cluster_info(data: &[(&str, &str)]) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.namespace = "kube-public".into();
    map.metadata.name = "cluster-info".into();
    let data = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    map.data = data.collect();
    map
}

fn now() -> Timestamp {
    "2026-11-28T12:00:00Z".parse().unwrap()
}

fn planned(map: ConfigMap, tokens: &[Secret]) -> Vec<Action> {
    let tokens = tokens
        .iter()
        .cloned()
        .map(|token| Arc::new(Whole::of(token)));
    let world = signer::World {
        map: Arc::new(Whole::of(map)),
        tokens: tokens.collect(),
        now: now(),
    };
    signer::plan(&world)
        .steps
        .into_iter()
        .map(|step| step.action)
        .collect()
}

/// The expected value is by Python's `hmac` and `base64`.
#[test]
fn a_signature_is_a_jws_without_its_payload() {
    let expected =
        "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..K1chermAQEq0rdqy-ehj0VDfmA_ytv8Wzh9g26FldrE";
    assert_eq!(signature(TEXT, "abcdef", TOKEN_SECRET.as_bytes()), expected);
}

#[test]
fn the_text_is_signed_by_each_token_that_may_and_no_signature_is_left_over() {
    let map = cluster_info(&[
        ("kubeconfig", TEXT),
        ("jws-kubeconfig-gone00", "old"),
        ("other", "kept"),
    ]);
    let signing = token("abcdef", &[(EXPIRATION, "2026-11-28T12:00:01Z")]);
    let mut renamed = token("renam0", &[]);
    renamed.metadata.name = secret_name("renam1");
    let others = [
        token("expird", &[(EXPIRATION, "2026-11-28T12:00:00Z")]),
        token("silent", &[(SIGNING, "false")]),
        token("nokey0", &[(SECRET, "")]),
        renamed,
    ];
    let all = [&[signing.clone()][..], &others].concat();
    let signed = signature(TEXT, "abcdef", TOKEN_SECRET.as_bytes());
    let wanted = cluster_info(&[
        ("kubeconfig", TEXT),
        ("jws-kubeconfig-abcdef", &signed),
        ("other", "kept"),
    ]);
    assert_eq!(
        planned(map, &all),
        [Action::Replace(Data(wanted.data.clone()))]
    );
    assert_eq!(planned(wanted.clone(), &all), []);
    let without = cluster_info(&[("jws-kubeconfig-abcdef", &signed)]);
    assert_eq!(
        planned(without, &all),
        [Action::Replace(Default::default())]
    );
}

#[test]
fn a_token_is_removed_once_it_has_expired() {
    for (expiry, removed, again) in [
        ("", false, None),
        ("2026-11-28T12:00:10Z", false, Some(Duration::from_secs(10))),
        ("2026-11-28T12:00:00Z", true, None),
        ("soon", true, None),
    ] {
        let token = Arc::new(Whole::of(token("abcdef", &[(EXPIRATION, expiry)])));
        let plan = cleaner::plan(&cleaner::World { token, now: now() });
        assert_eq!((!plan.is_empty(), plan.again), (removed, again), "{expiry}");
    }
}

async fn start() -> (InProcess, Client, DropGuard) {
    let gateway = in_process::start().await;
    let settings = client::Settings {
        address: gateway.url.clone(),
        ..Default::default()
    };
    let client = Client::connect(&settings, "token-cleaner-controller").unwrap();
    for name in ["kube-public", "kube-system"] {
        let mut namespace = Namespace::default();
        namespace.metadata.name = name.into();
        client.create(&namespace).await.unwrap();
    }
    let stop = CancellationToken::new();
    let secrets = client.informer().only(tokens());
    let cleaner = cleaner::Cleaner(secrets.reader());
    let cleaner = Controller::new("token-cleaner-controller", cleaner, client.clone());
    let cleaner = cleaner.unelected().for_(secrets);
    tokio::spawn(cleaner.run("token-cleaner-0", stop.clone()));
    let (maps, secrets) = (
        client.informer().only(signer::selection()),
        client.informer(),
    );
    let new = |it| Controller::new("bootstrap-signer-controller", it, client.clone()).unelected();
    let signer = signer::controller(maps, secrets.only(tokens()), new);
    tokio::spawn(signer.run("bootstrap-signer-0", stop.clone()));
    (gateway, client, stop.drop_guard())
}

#[tokio::test]
async fn a_token_signs_until_it_expires_and_is_gone_then() {
    let (_gateway, client, _stop) = start().await;
    client
        .create(&cluster_info(&[("kubeconfig", TEXT)]))
        .await
        .unwrap();
    let expiry = Timestamp::now() + SignedDuration::from_secs(3);
    let short = token("abcdef", &[(EXPIRATION, &expiry.to_string())]);
    client.create(&short).await.unwrap();
    client.create(&token("lastin", &[])).await.unwrap();
    let info = Key::new("kube-public", "cluster-info");
    let signed = async |keys: &[&str]| {
        let until = async {
            loop {
                let map: ConfigMap = client.get(&info).await.unwrap();
                if map.data.keys().eq(keys.iter().copied()) {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(60), until).await.unwrap();
    };
    signed(&[
        "jws-kubeconfig-abcdef",
        "jws-kubeconfig-lastin",
        "kubeconfig",
    ])
    .await;
    signed(&["jws-kubeconfig-lastin", "kubeconfig"]).await;
    let gone = async {
        while client
            .get::<Secret>(&Key::of(&short.metadata))
            .await
            .is_ok()
        {
            sleep(Duration::from_millis(20)).await;
        }
        client
            .get::<Secret>(&Key::of(&short.metadata))
            .await
            .unwrap_err()
            .reason
    };
    let gone = timeout(Duration::from_secs(60), gone).await;
    assert_eq!(gone.unwrap(), Reason::NotFound);
}
