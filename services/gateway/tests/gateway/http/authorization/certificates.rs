//! Approval and signing of certificates need the verbs of their signers.

use base64::Engine as _;
use serde_json::{Value, json};

use super::super::api::{Api, Reply};
use super::{User, rule};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const GROUP: &str = "certificates.k8s.io";

/// Returns a request for the certificate of a user with a group.
fn request(name: &str, signer: &str, group: &str) -> Value {
    let mut params = rcgen::CertificateParams::default();
    let subject = &mut params.distinguished_name;
    subject.push(rcgen::DnType::CommonName, "system:node:a");
    subject.push(rcgen::DnType::OrganizationName, group);
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({ "metadata": { "name": name }, "spec": {
        "request": base64::engine::general_purpose::STANDARD.encode(pem),
        "signerName": signer,
        "usages": ["client auth", "digital signature"],
    } })
}

async fn approve(user: &User<'_>, name: &str) -> Reply {
    let condition = json!({ "type": "Approved", "status": "True", "reason": "Tested" });
    let patch = json!({ "status": { "conditions": [condition] } });
    let path = format!("{REQUESTS}/{name}/approval");
    user.send("PATCH", &path, "application/merge-patch+json", patch)
        .await
}

async fn fail(user: &User<'_>, name: &str) -> Reply {
    let condition = json!({ "type": "Failed", "status": "True", "reason": "Tested" });
    let patch = json!({ "status": { "conditions": [condition] } });
    let path = format!("{REQUESTS}/{name}/status");
    user.send("PATCH", &path, "application/merge-patch+json", patch)
        .await
}

#[tokio::test]
async fn a_signer_is_approved_for_and_signed_for_by_those_who_have_its_verbs() {
    let api = Api::with_rbac().await;
    for (name, signer) in [
        ("own", "acme.com/web"),
        ("second", "acme.com/web"),
        ("other", "example.com/web"),
    ] {
        api.post(REQUESTS, request(name, signer, "acme")).await.ok();
    }
    let parts = "certificatesigningrequests/approval certificatesigningrequests/status";
    let writes = rule("update patch", GROUP, parts);
    let pods = rule("get", "core", "pods");
    let mut of_domain = rule("approve sign", GROUP, "signers");
    of_domain["resourceNames"] = json!(["acme.com/*"]);
    api.grant("jane", json!([writes, of_domain, pods])).await;
    let mut of_signer = rule("approve", GROUP, "signers");
    of_signer["resourceNames"] = json!(["example.com/web"]);
    api.grant("joe", json!([writes, of_signer, pods])).await;
    let (jane, joe) = (api.user("jane"), api.user("joe"));
    let refused = approve(&jane, "other").await.refused(403, "Forbidden");
    assert_eq!(
        refused,
        "certificatesigningrequests.certificates.k8s.io \"other\" is forbidden: user not permitted to approve requests \
        with signerName \"example.com/web\""
    );
    let refused = fail(&joe, "other").await.refused(403, "Forbidden");
    assert!(
        refused
            .ends_with("user not permitted to sign requests with signerName \"example.com/web\""),
        "{refused}"
    );
    approve(&joe, "other").await.ok();
    approve(&jane, "own").await.ok();
    fail(&jane, "second").await.ok();
}

#[tokio::test]
async fn nobody_asks_for_a_certificate_of_the_group_that_may_do_anything() {
    let api = Api::start().await;
    let client = "kubernetes.io/kube-apiserver-client";
    let refused = api
        .post(REQUESTS, request("a", client, "system:masters"))
        .await;
    assert_eq!(
        refused.refused(403, "Forbidden"),
        "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: use of kubernetes.io/kube-apiserver-client \
        signer with system:masters group is not allowed"
    );
    api.post(REQUESTS, request("b", client, "acme")).await.ok();
    api.post(REQUESTS, request("c", "acme.com/web", "system:masters"))
        .await
        .ok();
}

#[tokio::test]
async fn a_node_asks_for_certificates_of_itself() {
    let api = Api::with_nodes().await;
    let signer = "kubernetes.io/kube-apiserver-client-kubelet";
    let own = request("a", signer, "system:nodes");
    api.node_a().post(REQUESTS, own.clone()).await.ok();
    let refused = api.node_b().post(REQUESTS, own).await;
    assert_eq!(
        refused.refused(403, "Forbidden"),
        "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: can only create a node CSR with \
        CN=system:node:b"
    );
}
