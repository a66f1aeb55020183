//! Tests of the controller against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SanType};
use setpoint_certificatesigningrequest_controller::{
    Action, Approval, Authority, Informers, NodeView, Request, RequestView, Requests, Signing,
    TokenView, World, plan,
};
use setpoint_controller::{Client, Receipt, Reconciler, Recorder, View, client};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::Key;
use setpoint_proto::certificates::{CertificateSigningRequest, CertificateSigningRequestCondition};
use setpoint_proto::core::{Namespace, Node, Secret};
use setpoint_proto::{ApiError, Reason};
use x509_parser::certificate::X509Certificate;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;

pub(super) const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub(super) const NODE_USAGES: &[&str] = &["digital signature", "client auth"];

/// A request of jane, who is in two groups.
const JANE: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIHwMIGXAgEAMDUxEzARBgNVBAoMCmRldmVsb3BlcnMxDzANBgNVBAoMBmFkbWlu
czENMAsGA1UEAwwEamFuZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPBiUnXk
iepmIH7Wk92FcpuLd2p16JB5weJOQvGti7f3DOtB793DvpbHYyAz3/wRkPQehN5u
wOgpUo1tbIztRWegADAKBggqhkjOPQQDAgNIADBFAiA4RqShHGx9GciBhqpwsEJX
RmiUhWH3iBUTxx1uq2vWHQIhAMD9gmNjNr1beFA5cVDpebeKcObLscWozVujWIUM
cApD
-----END CERTIFICATE REQUEST-----
";

pub(super) struct Fixture {
    pub(super) gateway: Client,
    requests: Requests,
    _gateway: InProcess,
}

impl Fixture {
    pub(super) async fn start(settings: Signing) -> Self {
        let server = in_process::start().await;
        let connection = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&connection, "certificatesigningrequest-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = "setpoint-system".into();
        gateway.create(&namespace).await.unwrap();
        let requests = Informers::of(&gateway).reconciler(settings, Recorder::silent());
        Self {
            gateway,
            requests,
            _gateway: server,
        }
    }

    pub(super) async fn create(
        &self,
        signer: &str,
        usages: &[&str],
        pem: &str,
        seconds: Option<i32>,
    ) {
        let mut request = CertificateSigningRequest::default();
        request.metadata.name = "one".into();
        request.spec.request = pem.to_owned().into_bytes().into();
        request.spec.signer_name = signer.into();
        request.spec.usages = usages.iter().map(|usage| (*usage).to_owned()).collect();
        request.spec.expiration_seconds = seconds;
        self.gateway.create(&request).await.unwrap();
    }

    pub(super) async fn get(&self) -> Result<CertificateSigningRequest, ApiError> {
        self.gateway.get(&Key::new("", "one")).await
    }

    pub(super) async fn decide(&self, decision: &str) {
        let mut request = self.get().await.unwrap();
        let conditions = &mut request.status.conditions;
        conditions.push(CertificateSigningRequestCondition {
            r#type: decision.into(),
            status: "True".into(),
            reason: "ByUser".into(),
            ..Default::default()
        });
        self.gateway
            .update_part(&request, "approval")
            .await
            .unwrap();
    }

    pub(super) async fn world(&self, after: Duration) -> World {
        let now = Timestamp::now().saturating_add(after).unwrap();
        let request = RequestView::of(self.get().await.unwrap());
        let token: Option<Secret> = self.gateway.get(&token()).await.ok();
        let node: Option<Node> = self.gateway.get(&Key::new("", "one")).await.ok();
        World {
            request: Arc::new(request),
            token: token.map(|token| Arc::new(TokenView::of(token))),
            node: node.map(|node| Arc::new(NodeView::of(node))),
            taken: BTreeSet::new(),
            now,
        }
    }

    /// Executes the plan for the request. Returns the actions.
    pub(super) async fn reconcile(&self) -> Vec<Action> {
        self.reconcile_after(Duration::ZERO).await
    }

    pub(super) async fn reconcile_after(&self, after: Duration) -> Vec<Action> {
        let world = self.world(after).await;
        let steps = plan(&world).steps;
        for step in &steps {
            let written = self.requests.act(&self.gateway, &world, &step.action).await;
            assert_ne!(written.unwrap(), Receipt::none());
        }
        steps.into_iter().map(|step| step.action).collect()
    }

    pub(super) async fn act(&self, world: &World, action: &Action) -> Result<Receipt, ApiError> {
        self.requests.act(&self.gateway, world, action).await
    }

    /// Approves and signs the request. Returns the certificate in DER.
    pub(super) async fn signed(&self) -> Vec<u8> {
        self.decide("Approved").await;
        self.reconcile().await;
        assert!(self.reconcile().await.is_empty(), "it is done");
        der(&self.get().await.unwrap().status.certificate)
    }

    async fn ca(&self) -> Vec<u8> {
        let key = Key::new("setpoint-system", "cluster-signer");
        let secret: Secret = self.gateway.get(&key).await.unwrap();
        der(&secret.data["tls.crt"])
    }
}

/// The Secret of the token `abcdef`.
pub(super) fn token() -> Key {
    Key::new("kube-system", "bootstrap-token-abcdef")
}

pub(super) fn der(pem: &[u8]) -> Vec<u8> {
    let mut blocks = Pem::iter_from_buffer(pem);
    blocks.next().unwrap().unwrap().contents
}

pub(super) fn request_by(
    key: &KeyPair,
    name: &str,
    organization: &str,
    san: Option<SanType>,
) -> String {
    let mut params = CertificateParams::default();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::CommonName, name);
    subject.push(DnType::OrganizationName, organization);
    params.subject_alt_names.extend(san);
    params.serialize_request(key).unwrap().pem().unwrap()
}

pub(super) fn request(name: &str, organization: &str) -> String {
    request_by(&KeyPair::generate().unwrap(), name, organization, None)
}

#[tokio::test]
async fn an_approved_request_gets_a_certificate_that_the_ca_has_signed() {
    let fixture = Fixture::start(Signing::default()).await;
    let jane = request("jane", "developers");
    fixture
        .create(
            API_CLIENT,
            &["client auth", "digital signature"],
            &jane,
            Some(3600),
        )
        .await;
    assert!(
        fixture.reconcile().await.is_empty(),
        "nobody has approved it"
    );
    let certificate = fixture.signed().await;
    let (_, parsed) = X509Certificate::from_der(&certificate).unwrap();
    let ca = fixture.ca().await;
    let (_, ca) = X509Certificate::from_der(&ca).unwrap();
    parsed.verify_signature(Some(ca.public_key())).unwrap();
    assert_eq!(parsed.issuer(), ca.subject());
    let names: Vec<_> = parsed
        .subject()
        .iter_common_name()
        .chain(parsed.subject().iter_organization())
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(names, ["jane", "developers"]);
    let lasts = parsed.validity().not_after.timestamp() - Timestamp::now().as_second();
    assert!((3590..=3600).contains(&lasts), "{lasts}");
    let usage = parsed.key_usage().unwrap().unwrap().value;
    assert!(usage.digital_signature() && !usage.key_cert_sign());
    let purposes = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(purposes.client_auth && !purposes.server_auth);
    assert!(!parsed.is_ca());
}

/// Each organization is a group of the user.
#[tokio::test]
async fn a_certificate_has_all_organizations_of_the_request() {
    let fixture = Fixture::start(Signing::default()).await;
    fixture
        .create(API_CLIENT, &["client auth"], JANE, None)
        .await;
    let certificate = fixture.signed().await;
    let (_, parsed) = X509Certificate::from_der(&certificate).unwrap();
    let groups = parsed.subject().iter_organization();
    let groups: Vec<_> = groups.map(|group| group.as_str().unwrap()).collect();
    assert_eq!(groups, ["developers", "admins"]);
}

/// A second replica signs with the CA that the first one has made.
#[tokio::test]
async fn the_ca_is_made_once() {
    let fixture = Fixture::start(Signing::default()).await;
    let settings = Signing::default();
    let both = tokio::join!(
        Authority::load(&fixture.gateway, &settings),
        Authority::load(&fixture.gateway, &settings)
    );
    assert!(both.0.is_ok() && both.1.is_ok());
    let before = fixture.ca().await;
    Authority::load(&fixture.gateway, &settings).await.unwrap();
    assert_eq!(fixture.ca().await, before);
}

#[tokio::test]
async fn a_kubelets_client_certificate_is_approved_and_others_wait() {
    let fixture = Fixture::start(Signing::default()).await;
    let node = request("system:node:one", "system:nodes");
    fixture
        .create(KUBELET_CLIENT, NODE_USAGES, &node, None)
        .await;
    let actions = fixture.reconcile().await;
    assert_eq!(actions, [Action::Approve(Approval::NodeClient)]);
    let [approved] = &fixture.get().await.unwrap().status.conditions[..] else {
        panic!("one condition");
    };
    assert_eq!(
        (&*approved.r#type, &*approved.reason),
        ("Approved", "AutoApproved")
    );
    let created = Action::CreateNode("one".to_owned());
    assert_eq!(fixture.reconcile().await, [created]);
    fixture.reconcile().await;
    assert!(!fixture.get().await.unwrap().status.certificate.is_empty());

    for (signer, usages) in [
        (
            "kubernetes.io/kubelet-serving",
            &["digital signature", "server auth"],
        ),
        ("example.com/signer", &["digital signature", "client auth"]),
    ] {
        let fixture = Fixture::start(Signing::default()).await;
        let san = Some(SanType::IpAddress([10, 0, 0, 1].into()));
        let key = KeyPair::generate().unwrap();
        let node = request_by(&key, "system:node:one", "system:nodes", san);
        fixture.create(signer, usages, &node, None).await;
        assert!(fixture.reconcile().await.is_empty(), "{signer}");
    }
}

#[tokio::test]
async fn a_serving_certificate_has_the_names_of_the_request_and_any_kind_of_key() {
    for algorithm in [&PKCS_ED25519, &PKCS_ECDSA_P384_SHA384] {
        let fixture = Fixture::start(Signing::default()).await;
        let key = KeyPair::generate_for(algorithm).unwrap();
        let san = Some(SanType::IpAddress([10, 0, 0, 1].into()));
        let node = request_by(&key, "system:node:one", "system:nodes", san);
        let usages = ["digital signature", "server auth"];
        fixture
            .create("kubernetes.io/kubelet-serving", &usages, &node, None)
            .await;
        let certificate = fixture.signed().await;
        let (_, parsed) = X509Certificate::from_der(&certificate).unwrap();
        let names = parsed.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names.len(), 1);
        assert_eq!(
            parsed.public_key().subject_public_key.data.as_ref(),
            key.public_key_raw()
        );
    }
}

#[tokio::test]
async fn what_a_signer_does_not_allow_fails_with_its_reason() {
    let fixture = Fixture::start(Signing::default()).await;
    let admin = request("admin", "administrators");
    fixture
        .create(KUBELET_CLIENT, NODE_USAGES, &admin, None)
        .await;
    assert!(fixture.reconcile().await.is_empty(), "it is not approved");
    fixture.decide("Approved").await;
    fixture.reconcile().await;
    let status = fixture.get().await.unwrap().status;
    let failed = &status.conditions[1];
    assert_eq!(
        (&*failed.r#type, &*failed.reason, &*failed.message),
        (
            "Failed",
            "SignerValidationFailure",
            "subject organization is not system:nodes"
        )
    );
    assert!(status.certificate.is_empty());
    assert!(fixture.reconcile().await.is_empty(), "it stays failed");
}

#[tokio::test]
async fn requests_are_removed_an_hour_after_a_decision_and_a_day_without_one() {
    const HOUR: Duration = Duration::from_secs(3600);
    for (decision, kept) in [
        (None, HOUR * 24),
        (Some("Denied"), HOUR),
        (Some("Approved"), HOUR),
    ] {
        let fixture = Fixture::start(Signing::default()).await;
        let jane = request("jane", "developers");
        fixture
            .create(API_CLIENT, &["client auth"], &jane, None)
            .await;
        if let Some(decision) = decision {
            fixture.decide(decision).await;
            fixture.reconcile().await;
        }
        let early = kept.saturating_sub(Duration::from_secs(60));
        assert!(
            fixture.reconcile_after(early).await.is_empty(),
            "{decision:?}"
        );
        let world = fixture.world(early).await;
        assert!(
            plan(&world)
                .again
                .is_some_and(|again| again <= Duration::from_secs(60))
        );
        assert_eq!(fixture.reconcile_after(kept + HOUR).await, [Action::Delete]);
        assert_eq!(fixture.get().await.unwrap_err().reason, Reason::NotFound);
    }
}

#[tokio::test]
async fn a_certificate_lasts_as_long_as_the_settings_and_the_ca_allow() {
    let settings = Signing {
        duration: Duration::from_secs(24 * 3600),
        ..Signing::default()
    };
    let fixture = Fixture::start(settings).await;
    let jane = request("jane", "developers");
    fixture
        .create(API_CLIENT, &["client auth"], &jane, Some(i32::MAX))
        .await;
    let certificate = fixture.signed().await;
    let (_, parsed) = X509Certificate::from_der(&certificate).unwrap();
    let lasts = parsed.validity().not_after.timestamp() - Timestamp::now().as_second();
    assert!(lasts <= 24 * 3600, "{lasts}");

    let now = Timestamp::now();
    let (ca, key) = Authority::generate(now).unwrap();
    let authority = Authority::parse(ca.as_bytes(), key.as_bytes()).unwrap();
    let asked = Request::parse(jane.as_bytes()).unwrap();
    let century = Duration::from_secs(100 * 365 * 24 * 3600);
    let signed = authority.sign(&asked, &[], century, now).unwrap();
    let (signed, ca) = (der(signed.as_bytes()), der(ca.as_bytes()));
    let (_, signed) = X509Certificate::from_der(&signed).unwrap();
    let (_, ca) = X509Certificate::from_der(&ca).unwrap();
    assert_eq!(signed.validity().not_after, ca.validity().not_after);
    let later = now
        .checked_add(SignedDuration::from_hours(24 * 365 * 11))
        .unwrap();
    let expired = authority.sign(&asked, &[], century, later);
    assert_eq!(
        expired.err().as_deref(),
        Some("refusing to sign a certificate that expired in the past")
    );
}

#[tokio::test]
async fn a_ca_of_files_is_used_instead_of_one_that_is_made() {
    let (ca, key) = Authority::generate(Timestamp::now()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = Signing {
        ca_certificate: folder.path().join("ca.crt"),
        ca_key: folder.path().join("ca.key"),
        ..Signing::default()
    };
    let fixture = Fixture::start(settings.clone()).await;
    let missing = Authority::load(&fixture.gateway, &settings).await;
    let problem = missing.err().unwrap().message;
    assert!(problem.starts_with("reading "), "{problem}");
    std::fs::write(&settings.ca_certificate, &ca).unwrap();
    std::fs::write(&settings.ca_key, &key).unwrap();
    fixture
        .create(API_CLIENT, &["client auth"], JANE, None)
        .await;
    let certificate = fixture.signed().await;
    let (_, parsed) = X509Certificate::from_der(&certificate).unwrap();
    let ca = der(ca.as_bytes());
    let (_, ca) = X509Certificate::from_der(&ca).unwrap();
    parsed.verify_signature(Some(ca.public_key())).unwrap();
}

#[test]
fn a_ca_of_files_must_be_one_and_have_its_key() {
    let (ca, key) = Authority::generate(Timestamp::now()).unwrap();
    let (other, _) = Authority::generate(Timestamp::now()).unwrap();
    let problem = |ca: &str, key: &str| {
        let parsed = Authority::parse(ca.as_bytes(), key.as_bytes());
        parsed.err().map(|error| error.to_string())
    };
    assert_eq!(problem(&ca, &key), None);
    assert_eq!(
        problem(&other, &key).as_deref(),
        Some(
            "the key of the CA does not have the key of the certificate in the certificate of the CA"
        )
    );
    let none = problem("", &key).unwrap_or_default();
    assert!(
        none.starts_with("the certificate of the CA cannot be used: "),
        "{none}"
    );
    let pair = KeyPair::generate().unwrap();
    let leaf = CertificateParams::default().self_signed(&pair).unwrap();
    assert_eq!(
        problem(&leaf.pem(), &pair.serialize_pem()).as_deref(),
        Some("the certificate of the CA cannot be used: its certificate is not one of a CA")
    );
}
