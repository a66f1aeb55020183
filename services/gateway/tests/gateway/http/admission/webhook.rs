//! A server of admission webhooks, one at each path.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::LOCATION;
use http::{StatusCode, Uri};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::http::https::Server;

/// The answer of a webhook to a review.
#[derive(Clone, Copy)]
pub enum Answer {
    Allow,
    /// The request is denied with this status.
    Deny(fn() -> Value),
    /// The fields of the response to a request, besides its uid and that it is allowed.
    Fields(fn(&Value) -> Value),
    /// The JSON patch for a request.
    Patch(fn(&Value) -> Value),
    /// The whole review that answers one.
    Review(fn(&Value) -> Value),
    /// An HTTP status and a body.
    Status(u16, &'static str),
    /// A redirect to another path.
    Moved(u16, &'static str),
    /// Nothing, ever.
    Nothing,
}

/// A call of a webhook.
#[derive(Clone, Debug)]
pub struct Call {
    pub path: String,
    pub query: String,
    pub review: Value,
}

/// The server. It stops when dropped.
pub struct Webhook {
    server: Server,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    answers: Mutex<HashMap<String, Answer>>,
    calls: Mutex<Vec<Call>>,
}

impl Webhook {
    pub async fn start() -> Self {
        let state = Arc::new(State::default());
        let shared = state.clone();
        let respond = move |Path(path): Path<String>, url: Uri, body: Bytes| {
            let state = shared.clone();
            async move {
                let query = url.query().unwrap_or_default().to_owned();
                let review = serde_json::from_slice(&body).unwrap();
                respond(
                    &state,
                    Call {
                        path,
                        query,
                        review,
                    },
                )
                .await
            }
        };
        let router = Router::new().route("/{path}", post(respond));
        Self {
            server: Server::start(router).await,
            state,
        }
    }

    /// Sets the answer to all further reviews at a path.
    pub fn answer(&self, path: &str, answer: Answer) {
        self.state.answers.lock().insert(path.to_owned(), answer);
    }

    /// Returns the client config with the URL of a path.
    pub fn by_url(&self, path: &str) -> Value {
        self.server.by_url(path)
    }

    /// Returns the calls since the last time.
    pub fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.state.calls.lock())
    }

    /// Returns the paths of the calls since the last time.
    pub fn paths(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.path).collect()
    }

    /// Returns the only request since the last time.
    #[track_caller]
    pub fn request(&self) -> Value {
        let mut calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls.remove(0).review["request"].take()
    }
}

async fn respond(state: &State, call: Call) -> Response {
    state.calls.lock().push(call.clone());
    let answer = state.answers.lock()[&call.path];
    let request = &call.review["request"];
    let fields = match answer {
        Answer::Allow => json!({}),
        Answer::Deny(status) => json!({ "allowed": false, "status": status() }),
        Answer::Fields(fields) => fields(request),
        Answer::Patch(patch) => json!({
            "patchType": "JSONPatch",
            "patch": BASE64_STANDARD.encode(patch(request).to_string()),
        }),
        Answer::Review(review) => return review(&call.review).to_string().into_response(),
        Answer::Status(code, body) => {
            let code = StatusCode::from_u16(code).unwrap();
            return (code, body).into_response();
        }
        Answer::Moved(code, to) => {
            let code = StatusCode::from_u16(code).unwrap();
            return (code, [(LOCATION, to)]).into_response();
        }
        Answer::Nothing => return std::future::pending().await,
    };
    let response = json!({ "uid": request["uid"], "allowed": true });
    let review = json!({
        "apiVersion": call.review["apiVersion"],
        "kind": "AdmissionReview",
        "response": super::merged(response, fields),
    });
    review.to_string().into_response()
}
