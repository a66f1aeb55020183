//! CertificateSigningRequests.

use std::fs;
use std::process::Command;

use setpoint_tests::{Kubectl, eventually};

use super::{cluster, create, until, value};

/// A request of jane, in the groups developers and admins.
const JANE: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlId01JR1hBZ0VBTURVeEV6QVJCZ05WQkFvTUNtUmxkbVZzYjNCbGNuTXhEekFOQmdOVkJBb01CbUZrYldsdQpjekVOTUFzR0ExVUVBd3dFYW1GdVpUQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQUJQQmlVblhrCmllcG1JSDdXazkyRmNwdUxkMnAxNkpCNXdlSk9Rdkd0aTdmM0RPdEI3OTNEdnBiSFl5QXozL3dSa1BRZWhONXUKd09ncFVvMXRiSXp0UldlZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpQTRScVNoSEd4OUdjaUJocXB3c0VKWApSbWlVaFdIM2lCVVR4eDF1cTJ2V0hRSWhBTUQ5Z21Oak5yMWJlRkE1Y1ZEcGViZUtjT2JMc2NXb3pWdWpXSVVNCmNBcEQKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";
/// A request of the node node-7.
const NODE: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIdk1JR1dBZ0VBTURReEZUQVRCZ05WQkFvTURITjVjM1JsYlRwdWIyUmxjekViTUJrR0ExVUVBd3dTYzNsegpkR1Z0T201dlpHVTZibTlrWlMwM01Ga3dFd1lIS29aSXpqMENBUVlJS29aSXpqMERBUWNEUWdBRThHSlNkZVNKCjZtWWdmdGFUM1lWeW00dDNhblhva0huQjRrNUM4YTJMdC9jTTYwSHYzY08rbHNkaklEUGYvQkdROUI2RTNtN0EKNkNsU2pXMXNqTzFGWjZBQU1Bb0dDQ3FHU000OUJBTUNBMGdBTUVVQ0lRQ0p5WjJ5UUgraGdxZUdmUE56d1hxTwpRcjU1YWN2QUs4WTNuVW5LeVowVE5nSWdlallDNHYzNkIrQXdmR3hScjU1M1NFNHNTdHc1cUF5Nk1ib1BvakFjCnI4VT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

fn request(kubectl: &Kubectl, name: &str, content: &str, signer: &str) {
    create(
        kubectl,
        &format!(
            "apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {{name: {name}}}
spec:
  request: {content}
  signerName: kubernetes.io/{signer}
  expirationSeconds: 3600
  usages: [digital signature, client auth]
"
        ),
    );
}

/// Waits until the column with the condition has this value.
fn until_condition(kubectl: &Kubectl, name: &str, condition: &str) {
    eventually(&format!("{name} is {condition}"), || {
        let row = kubectl.run(&format!("get csr {name} --no-headers")).stdout;
        let found = row.split_whitespace().next_back() == Some(condition);
        found.then_some(()).ok_or(row)
    });
}

#[test]
fn certificates_are_approved_denied_and_signed() {
    let cluster = cluster(1);
    let kubectl = cluster.kubectl();
    request(&kubectl, "jane", JANE, "kube-apiserver-client");
    request(&kubectl, "denied", JANE, "kube-apiserver-client");
    request(&kubectl, "wrong", JANE, "kube-apiserver-client-kubelet");
    request(&kubectl, "node", NODE, "kube-apiserver-client-kubelet");
    until_condition(&kubectl, "node", "Approved,Issued");
    until_condition(&kubectl, "jane", "Pending");
    kubectl.ok("certificate approve jane wrong");
    kubectl.ok("certificate deny denied");
    until_condition(&kubectl, "jane", "Approved,Issued");
    until_condition(&kubectl, "wrong", "Approved,Failed");
    until_condition(&kubectl, "denied", "Denied");
    let certificate = value(&kubectl, "csr/jane", ".status.certificate");
    // The base64 form of a PEM block.
    assert!(
        certificate.starts_with("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"),
        "{certificate}"
    );
    until(
        &kubectl,
        "csr/wrong",
        ".status.conditions[?(@.type=='Failed')].message",
        "subject organization is not system:nodes",
    );
    until(&kubectl, "csr/denied", ".status.certificate", "");
}

/// Decodes a text in base64 by the program of that name.
fn decoded(text: &str, directory: &std::path::Path) -> Vec<u8> {
    let file = directory.join("encoded");
    fs::write(&file, text).expect("it is writable");
    let output = Command::new("base64").arg("-d").arg(file).output();
    output.expect("base64 is installed").stdout
}

/// As users do it: a key, a request, its approval, and a kubeconfig with the certificate.
#[test]
fn a_certificate_that_was_approved_is_a_credential() {
    let cluster = cluster(1);
    let (kubectl, directory) = (cluster.kubectl(), cluster.directory());
    let [key, asked, signed] =
        ["jane.key", "jane.csr", "jane.crt"].map(|file| directory.join(file));
    let mut openssl = Command::new("openssl");
    let openssl = openssl
        .args([
            "req",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ])
        .args(["-nodes", "-subj", "/O=developers/CN=jane", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&asked);
    let made = openssl.output().expect("openssl is installed");
    assert!(made.status.success(), "{made:?}");
    let encoded = Command::new("base64")
        .args(["-w", "0"])
        .arg(&asked)
        .output();
    let content = String::from_utf8(encoded.expect("base64 is installed").stdout);
    let content = content.expect("it is text");
    request(&kubectl, "jane", &content, "kube-apiserver-client");
    kubectl.ok("certificate approve jane");
    until_condition(&kubectl, "jane", "Approved,Issued");
    let certificate = value(&kubectl, "csr/jane", ".status.certificate");
    fs::write(&signed, decoded(&certificate, directory)).expect("it is writable");
    kubectl.ok(&format!(
        "config set-credentials jane --embed-certs --client-certificate {} --client-key {}",
        signed.display(),
        key.display()
    ));
    let who = eventually("jane is known", || {
        let output = kubectl.run("--user jane auth whoami -o json");
        output.success.then_some(output.stdout).ok_or(output.stderr)
    });
    for part in [
        "\"username\": \"jane\"",
        "\"developers\"",
        "system:authenticated",
    ] {
        assert!(who.contains(part), "{who}");
    }
    let refused = kubectl.fails("--user jane get nodes");
    assert!(refused.contains("Forbidden"), "{refused}");
}
