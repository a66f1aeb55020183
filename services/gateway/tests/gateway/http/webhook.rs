//! A conversion webhook.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::https::Server;

/// What the webhook answers to a review.
pub enum Answer {
    /// The objects as [`convert`] converts them.
    Converted,
    /// That, with the response changed.
    Changed(fn(&mut Value)),
    /// An HTTP status and a body.
    Status(u16, &'static str),
    /// A body of this many bytes.
    Large(usize),
    /// Nothing, ever.
    Nothing,
}

/// A webhook. It stops when dropped.
pub struct Webhook {
    /// The port of the listener.
    pub port: u16,
    /// The CA certificate in PEM, in base64.
    pub ca_bundle: String,
    state: Arc<State>,
    server: Server,
}

struct State {
    answer: Mutex<Answer>,
    calls: AtomicUsize,
    objects: AtomicUsize,
}

impl Webhook {
    /// Starts a webhook.
    pub async fn start() -> Self {
        let state = Arc::new(State {
            answer: Mutex::new(Answer::Converted),
            calls: AtomicUsize::new(0),
            objects: AtomicUsize::new(0),
        });
        let server = Server::start(router(state.clone())).await;
        Self {
            port: server.port,
            ca_bundle: server.ca_bundle.clone(),
            state,
            server,
        }
    }

    /// Sets the answer to all further reviews.
    pub fn answer(&self, answer: Answer) {
        *self.state.answer.lock() = answer;
    }

    /// Returns the numbers of reviews and of objects in them since the last call.
    pub fn counts(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        (take(&self.state.calls), take(&self.state.objects))
    }

    /// Returns the client config with its URL.
    pub fn by_url(&self) -> Value {
        self.server.by_url("convert")
    }
}

fn router(state: Arc<State>) -> Router {
    Router::new().route(
        "/convert",
        post(move |body: Bytes| {
            let state = state.clone();
            async move { respond(&state, &body).await }
        }),
    )
}

async fn respond(state: &State, body: &[u8]) -> Response {
    let review: Value = serde_json::from_slice(body).unwrap();
    let objects = review["request"]["objects"].as_array().unwrap();
    state.calls.fetch_add(1, Ordering::SeqCst);
    state.objects.fetch_add(objects.len(), Ordering::SeqCst);
    let change = match &*state.answer.lock() {
        Answer::Converted => |_: &mut Value| {},
        Answer::Changed(change) => *change,
        Answer::Status(code, body) => {
            let code = StatusCode::from_u16(*code).unwrap();
            return (code, *body).into_response();
        }
        Answer::Large(bytes) => return Body::from(vec![b' '; *bytes]).into_response(),
        Answer::Nothing => |_: &mut Value| {},
    };
    if matches!(&*state.answer.lock(), Answer::Nothing) {
        return std::future::pending().await;
    }
    let mut answer = converted(&review);
    change(&mut answer);
    answer.to_string().into_response()
}

/// Returns the answer to a review.
fn converted(review: &Value) -> Value {
    let to = review["request"]["desiredAPIVersion"].as_str().unwrap();
    let objects = review["request"]["objects"].as_array().unwrap();
    let converted: Vec<_> = objects.iter().map(|object| convert(object, to)).collect();
    json!({
        "apiVersion": review["apiVersion"],
        "kind": "ConversionReview",
        "response": {
            "uid": review["request"]["uid"],
            "convertedObjects": converted,
            "result": { "status": "Success" },
        },
    })
}

/// Converts `hostPort: "a:1"` to `host: "a"` and `port: "1"`, or back.
fn convert(object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    assert_ne!(object["apiVersion"], to, "it needs no conversion");
    object["apiVersion"] = to.into();
    let fields = object.as_object_mut().unwrap();
    if to.ends_with("/v1") {
        let part = |value: Option<Value>| value.unwrap().as_str().unwrap().to_owned();
        let (host, port) = (part(fields.remove("host")), part(fields.remove("port")));
        fields.insert("hostPort".into(), format!("{host}:{port}").into());
    } else if let Some(both) = fields.remove("hostPort") {
        let (host, port) = both.as_str().unwrap().split_once(':').unwrap();
        fields.insert("host".into(), host.into());
        fields.insert("port".into(), port.into());
    }
    object
}
