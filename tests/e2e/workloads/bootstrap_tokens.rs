//! Bootstrap tokens.

use jiff::{SignedDuration, Timestamp};

use super::{cluster, create, until, until_some};

/// The time for which the token is valid: long enough to be seen, on a busy machine, too.
const LIFE: SignedDuration = SignedDuration::from_secs(15);
const INFO: &str = "-n kube-public cm/cluster-info";
const SIGNATURE: &str = ".data.jws-kubeconfig-abcdef";

#[test]
fn a_token_signs_the_address_of_the_cluster_until_it_expires() {
    let cluster = cluster(0);
    let kubectl = cluster.kubectl();
    // The gateway publishes the address, until an administrator takes the ConfigMap over.
    until_some(&kubectl, INFO, ".data.kubeconfig");
    let own = "apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-info, namespace: kube-public}
data: {kubeconfig: 'apiVersion: v1'}
";
    let replaced = kubectl.with("replace", own);
    assert!(replaced.success, "{}", replaced.stderr);
    let expiry = Timestamp::now() + LIFE;
    create(
        &kubectl,
        &format!(
            "apiVersion: v1
kind: Secret
type: bootstrap.kubernetes.io/token
metadata: {{name: bootstrap-token-abcdef, namespace: kube-system}}
stringData:
  token-id: abcdef
  token-secret: 0123456789abcdef
  usage-bootstrap-signing: 'true'
  expiration: '{expiry}'
"
        ),
    );
    // By Python's hmac, of the header {"alg":"HS256","kid":"abcdef"} and the text.
    let signature =
        "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9.._JqomVYZNRdBX9ISkn1b-g4fbXMmdIzRDvSNbs-ccDE";
    until(&kubectl, INFO, SIGNATURE, signature);
    until(&kubectl, INFO, SIGNATURE, "");
    let secret = "-n kube-system secret/bootstrap-token-abcdef --ignore-not-found";
    until(&kubectl, secret, ".metadata.name", "");
}
