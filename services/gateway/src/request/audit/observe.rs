//! Audits a request over its whole time, and gives it an id.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use setpoint_audit::{Auditor, Record};
use setpoint_proto::ApiError;
use tonic::{Code, Status};

use super::current::{current, fail, scope};
use super::source::{AUDIT_ID, Source, audit_id};

/// Handles a request over HTTP. Every response has the header `Audit-Id`; the request has it for servers that it is
/// passed on to.
pub(crate) async fn observe<F: Future<Output = Response> + Send>(
    auditor: Option<&Arc<Auditor>>,
    request: Request,
    next: impl FnOnce(Request) -> F + Send,
) -> Response {
    run(auditor, request, next, |response| {
        response.status().as_u16()
    })
    .await
}

/// Handles a call of gRPC, as [`observe`] does. Its error is in the head of the response, if it has one.
pub(crate) async fn observe_call<F: Future<Output = Response> + Send>(
    auditor: Option<&Arc<Auditor>>,
    request: Request,
    next: impl FnOnce(Request) -> F + Send,
) -> Response {
    run(auditor, request, next, code_of_call).await
}

async fn run<F: Future<Output = Response> + Send>(
    auditor: Option<&Arc<Auditor>>,
    mut request: Request,
    next: impl FnOnce(Request) -> F + Send,
    code: fn(&Response) -> u16,
) -> Response {
    let id = audit_id(request.headers());
    // Overwrites one that was not accepted.
    request.headers_mut().insert(AUDIT_ID, id.clone());
    let mut response = match auditor {
        None => next(request).await,
        Some(auditor) => {
            let (parts, body) = request.into_parts();
            let source = Source::of(&parts, &id);
            let next = next(Request::from_parts(parts, body));
            scope(auditor, source, async { end(next.await, code) }).await
        }
    };
    response.headers_mut().entry(AUDIT_ID).or_insert(id);
    response
}

/// Records the head of the response; of one that is a stream, the end, too.
fn end(response: Response, code: fn(&Response) -> u16) -> Response {
    let Some(record) = current() else {
        return response;
    };
    record.respond(code(&response));
    match response.body().size_hint().exact() {
        Some(_) => response,
        None => response.map(|body| until_end(body, record)),
    }
}

/// Keeps the record until the body has ended or was dropped, as that of a client that leaves.
fn until_end(body: Body, record: Arc<Record>) -> Body {
    Body::new(body.map_frame(move |frame| {
        let _held = &record;
        frame
    }))
}

fn code_of_call(response: &Response) -> u16 {
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() != Code::Ok => {
            let error = ApiError::from(status);
            fail(&error);
            error.code()
        }
        _ => 200,
    }
}
