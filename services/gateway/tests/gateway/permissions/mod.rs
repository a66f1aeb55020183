//! The permissions of users on a running gateway: every verb on every resource, by each service and controller, a node,
//! agents and users, over TLS with a certificate of each, compared with the table `permissions.txt`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod identities;
mod over_grpc;
mod over_http;
mod questions;
mod table;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use setpoint_gateway::AuthorizationMode as Mode;
use tokio_util::sync::DropGuard;
use tonic::transport::Channel;

use crate::tls::{Gateway, channel};
use identities::{ANONYMOUS, BOUND, Identity, MASTERS, NAMESPACE};
use questions::{Resources, add_listed, add_served};
use table::{Question, Table};

/// The number of requests at a time.
const CONCURRENT: usize = 32;
/// Permissions of aggregated roles.
const LAST: [(&str, &str, &str); 4] = [
    ("view", "list", "pods"),
    ("edit", "list", "secrets"),
    ("admin", "list", "pods"),
    ("admin", "list", "roles.rbac.authorization.k8s.io"),
];
/// The number of times that these are asked for at most, and the pause between them.
const ATTEMPTS: usize = 1000;
const PAUSE: Duration = Duration::from_millis(20);
/// Of so many questions with the answer no, a test asks one: all take minutes in a debug build.
const SHARE: usize = 10;

/// A gateway, those who ask with their connections, and what they ask.
struct Matrix {
    _gateway: Gateway,
    _background: DropGuard,
    table: Table,
    resources: Resources,
    everybody: Vec<(Identity, Channel)>,
}

impl Matrix {
    async fn start() -> Self {
        let gateway = Gateway::with_modes(&[Mode::Node, Mode::Rbac]).await;
        let background = gateway.run_background();
        let mut everybody = Vec::new();
        for one in identities::all() {
            let groups: Vec<_> = one.groups.iter().map(String::as_str).collect();
            let client = match one.short.as_str() {
                ANONYMOUS => gateway.anonymous(),
                _ => gateway.client(&one.user, &groups).client(),
            };
            everybody.push((one, channel(gateway.address, client).await));
        }
        let all: Vec<_> = everybody.iter().map(|(one, _)| one.clone()).collect();
        let table = Table::read(&all);
        let masters = everybody.iter().find(|(one, _)| one.short == MASTERS);
        let masters = masters.unwrap().1.clone();
        create_objects(&masters).await;
        let mut resources = served(&masters).await;
        add_listed(&mut resources, &table);
        Self {
            _gateway: gateway,
            _background: background,
            table,
            resources,
            everybody,
        }
    }

    /// Waits until what is granted last is allowed: the rules of roles that are aggregated from others, which a gateway
    /// does once all roles of every cluster are there.
    async fn until_roles_are_read(
        &self,
        refusal: &impl AsyncFn(Channel, &Question) -> Option<String>,
    ) {
        for (short, verb, resource) in LAST {
            let asked = Question {
                verb: verb.to_owned(),
                resource: resource.to_owned(),
                namespace: NAMESPACE.to_owned(),
                name: String::new(),
            };
            let holder = self.everybody.iter().find(|(one, _)| one.short == short);
            let channel = &holder.unwrap().1;
            for _ in 0..ATTEMPTS {
                if refusal(channel.clone(), &asked).await.is_none() {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Asks, and compares the answers with the table: all that is allowed, and one of so many questions of which the
    /// answer is no. Returns the number of questions.
    async fn check(
        &self,
        one_of: usize,
        can_ask: impl Fn(&Question) -> bool,
        refusal: impl AsyncFn(Channel, &Question) -> Option<String>,
    ) -> usize {
        let common = questions::of_everybody(&self.resources, &self.table);
        let mut asked = Vec::new();
        for (who, channel) in &self.everybody {
            let own = questions::of_elections(who, &self.resources);
            let all: BTreeSet<_> = common.iter().cloned().chain(own).collect();
            for (at, one) in all.into_iter().filter(|one| can_ask(one)).enumerate() {
                let allowed = self.table.allows(who, &one);
                if allowed || (at + turn(who)).is_multiple_of(one_of) {
                    asked.push((who, channel, allowed, one));
                }
            }
        }
        self.until_roles_are_read(&refusal).await;
        let answers = stream::iter(&asked).map(async |(who, channel, allowed, one)| {
            let answer = refusal((*channel).clone(), one).await;
            let differs = answer.is_none() != *allowed;
            differs.then(|| format!("{}: {one:?}: {answer:?}", who.short))
        });
        let wrong = answers.buffer_unordered(CONCURRENT);
        let wrong: Vec<_> = wrong.filter_map(async |wrong| wrong).collect().await;
        let shown: Vec<_> = wrong.iter().take(40).collect();
        assert!(
            wrong.is_empty(),
            "{} answers differ from the table: {shown:#?}",
            wrong.len()
        );
        asked.len()
    }
}

/// Returns the first question that somebody asks of those of which not all are asked: another one for each.
fn turn(who: &Identity) -> usize {
    let bytes = who.short.bytes();
    bytes.map(usize::from).sum()
}

/// Returns the text of upstream that begins with what is forbidden.
fn text_of(asked: &Question) -> String {
    if asked.resource.starts_with('/') {
        return format!("cannot {} path {:?}", asked.verb, asked.resource);
    }
    let (whole, part) = match asked.resource.split_once('/') {
        Some((whole, part)) => (whole, format!("/{part}")),
        None => (asked.resource.as_str(), String::new()),
    };
    let (plural, group) = whole.split_once('.').unwrap_or((whole, ""));
    format!(
        "cannot {} resource \"{plural}{part}\" in API group {group:?}",
        asked.verb
    )
}

/// Creates the namespace and the bindings of users.
async fn create_objects(masters: &Channel) {
    let namespace = json!({ "metadata": { "name": NAMESPACE } });
    create(masters, "/api/v1/namespaces", namespace).await;
    let bindings =
        format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings");
    for name in BOUND {
        let role =
            json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name });
        let subjects =
            json!([{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name }]);
        let binding =
            json!({ "metadata": { "name": name }, "roleRef": role, "subjects": subjects });
        create(masters, &bindings, binding).await;
    }
}

async fn create(masters: &Channel, path: &str, object: Value) {
    let body = tonic::body::Body::new(http_body_util::Full::from(object.to_string()));
    let request = http::Request::post(path).header("content-type", "application/json");
    let (status, message) = over_http::answer(masters.clone(), request.body(body).unwrap()).await;
    assert!(status.is_success(), "{path}: {status}: {message}");
}

/// Returns what discovery lists.
async fn served(masters: &Channel) -> Resources {
    let mut resources = Resources::new();
    let core = over_http::document(masters.clone(), "/api/v1").await;
    add_served(&mut resources, "/api/v1", "", &core);
    let groups = over_http::document(masters.clone(), "/apis").await;
    for group in groups["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let base = format!("/apis/{}", version["groupVersion"].as_str().unwrap());
            let document = over_http::document(masters.clone(), &base).await;
            add_served(
                &mut resources,
                &base,
                group["name"].as_str().unwrap(),
                &document,
            );
        }
    }
    resources
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_over_http_are_those_of_the_table() {
    over_http(SHARE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it takes a minute or two"]
async fn every_answer_over_http_is_that_of_the_table() {
    over_http(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_over_grpc_are_those_of_the_table() {
    over_grpc(SHARE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it takes a minute or two"]
async fn every_answer_over_grpc_is_that_of_the_table() {
    over_grpc(1).await;
}

async fn over_http(one_of: usize) {
    let matrix = Matrix::start().await;
    let refusal = async |channel, asked: &Question| {
        over_http::refusal(channel, &matrix.resources, asked).await
    };
    let number = matrix.check(one_of, |_| true, refusal).await;
    println!("{number} questions");
    assert!(number > 30_000 / one_of, "{number}");
}

async fn over_grpc(one_of: usize) {
    let matrix = Matrix::start().await;
    let can_ask = |asked: &Question| over_grpc::can_ask(&matrix.resources, asked);
    let refusal = async |channel, asked: &Question| over_grpc::refusal(channel, asked).await;
    let number = matrix.check(one_of, can_ask, refusal).await;
    println!("{number} questions");
    assert!(number > 20_000 / one_of, "{number}");
}
