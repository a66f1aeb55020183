//! The ConfigMap `kube-public/cluster-info`, which machines read before they join.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use serde_json::{Value, json};
use setpoint_tls::authority::{Authority, Leaf, Usage, write_certificates};
use setpoint_tls::{Credentials, Files};

use super::api::{Api, Reply};
use super::authentication::nobody;

const MAPS: &str = "/api/v1/namespaces/kube-public/configmaps";
const PATH: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
const ROLE: &str =
    "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/roles/system:setpoint:cluster-info";
const SERVER: &str = "https://192.0.2.1:6443";

/// Returns credentials whose files are in this folder, by this CA.
fn credentials(authority: &Authority, folder: &Path) -> Credentials {
    let leaf = Leaf {
        name: "system:setpoint:gateway".into(),
        groups: Vec::new(),
        hosts: vec!["gateway".into()],
        usage: Usage::ServerAndClient,
        lifetime: Duration::from_secs(3600),
    };
    let files = Files::in_directory(folder);
    let issued = authority.issue(&leaf).unwrap();
    // Only certificates of the file are for everybody.
    let ca = format!("{}{}", authority.certificate(), issued.key);
    write_certificates(&files.ca_file, &[&ca]).unwrap();
    issued.write(&files).unwrap();
    Credentials::load(&files).unwrap()
}

async fn anonymous(api: &Api, request: http::request::Builder) -> Reply {
    let request = request.header("content-type", "application/json");
    api.send_over_tls(&nobody(), request, "{}").await
}

fn kubeconfig(map: &Value) -> &str {
    map["data"]["kubeconfig"].as_str().unwrap_or_default()
}

/// Checks V20: where it is published, clients without credentials read this one object more, and write nothing.
#[tokio::test]
async fn everybody_reads_the_address_and_the_ca_and_nothing_else() {
    let api = Api::with_rbac().await;
    let _background = api.run_background();
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::create("setpoint-ca").unwrap();
    let _publishing = api.publish(credentials(&authority, folder.path()), SERVER);
    api.eventually(ROLE, |reply| reply.code == 200).await;
    let mut published = anonymous(&api, Request::get(PATH)).await;
    while published.code == 403 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        published = anonymous(&api, Request::get(PATH)).await;
    }
    let published = published.ok();
    let ca = STANDARD.encode(authority.certificate());
    let expected = format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {ca}\n    server: {SERVER}\n  name: \"\"\n\
         contexts: null\ncurrent-context: \"\"\nkind: Config\nusers: null\n"
    );
    assert_eq!(kubeconfig(&published), expected);

    let other = json!({ "metadata": { "name": "other" } });
    api.post(MAPS, other).await.ok();
    for request in [
        Request::get(MAPS),
        Request::get(format!(
            "{PATH}?watch=true&fieldSelector=metadata.name%3Dcluster-info"
        )),
        Request::get(format!("{MAPS}/other")),
        Request::get("/api/v1/namespaces/default/configmaps/cluster-info"),
        Request::get("/api/v1/namespaces/kube-system/secrets"),
        Request::put(PATH),
        Request::patch(PATH),
        Request::delete(PATH),
        Request::post(MAPS),
    ] {
        let method = request.method_ref().cloned().unwrap();
        let path = request.uri_ref().cloned().unwrap();
        let reply = anonymous(&api, request).await;
        if path.query().is_some() && reply.code == 200 {
            continue; // A get of one object ignores the option.
        }
        let message = reply.refused(403, "Forbidden");
        assert!(
            message.contains("User \"system:anonymous\" cannot "),
            "{method} {path}: {message}"
        );
    }
}

#[tokio::test]
async fn it_follows_the_ca_until_an_administrator_takes_it_over() {
    let api = Api::with_rbac().await;
    let _background = api.run_background();
    let folder = tempfile::tempdir().unwrap();
    let [first, second, third] =
        ["first", "second", "third"].map(|name| Authority::create(name).unwrap());
    let own = credentials(&first, folder.path());
    let _publishing = api.publish(own.clone(), SERVER);
    let has = |authority: &Authority| {
        let ca = STANDARD.encode(authority.certificate());
        move |reply: &Reply| reply.code == 200 && kubeconfig(&reply.json()).contains(&ca)
    };
    api.eventually(PATH, has(&first)).await;
    credentials(&second, folder.path());
    own.reload().unwrap();
    let mut map = api.eventually(PATH, has(&second)).await.json();
    // One that was deleted is made again.
    api.delete(PATH).await.ok();
    let again = api.eventually(PATH, has(&second)).await.json();
    assert_ne!(map["metadata"]["uid"], again["metadata"]["uid"]);

    map = json!({ "metadata": { "name": "cluster-info" }, "data": { "kubeconfig": "mine" } });
    api.put(PATH, map).await.ok();
    credentials(&third, folder.path());
    own.reload().unwrap();
    // Longer than a change takes.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(kubeconfig(&api.get(PATH).await.ok()), "mine");
}

#[tokio::test]
async fn one_of_an_administrator_stays_and_is_not_made_readable() {
    let api = Api::with_rbac().await;
    let _background = api.run_background();
    let namespace = "/api/v1/namespaces/kube-public";
    api.eventually(namespace, |reply| reply.code == 200).await;
    let own = json!({ "metadata": { "name": "cluster-info" }, "data": { "kubeconfig": "mine" } });
    api.post(MAPS, own).await.ok();
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::create("setpoint-ca").unwrap();
    let _publishing = api.publish(credentials(&authority, folder.path()), SERVER);
    // Longer than the creation takes.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(kubeconfig(&api.get(PATH).await.ok()), "mine");
    api.get(ROLE).await.refused(404, "NotFound");
    anonymous(&api, Request::get(PATH))
        .await
        .refused(403, "Forbidden");
}
