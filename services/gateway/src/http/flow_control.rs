//! Takes the seats of requests, and serves the debug pages about them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use setpoint_kinds::Identity;

use super::not_found;
use super::response::{ErrorFormat, ErrorResponse};
use crate::registry::Registry;
use crate::request::flow_control::{Admission, Page, Reading};
use crate::request::{Query, RequestInfo};

/// Takes a seat before anything is decided about a request, and holds it until its response. A watch takes it over,
/// until its initial state is sent. Logs and connections have none.
pub(super) async fn admit<F: Future<Output = Response>>(
    registry: &Registry,
    info: &RequestInfo,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let asked = &info.attributes;
    if asked.is_long_running() && asked.verb != "watch" {
        return next(request).await;
    }
    let kind = info.route.as_ref().map(|route| route.kind);
    let reading = Reading::of_query(kind, &asked.verb, &info.query);
    // A malformed timeout is an error of a later step.
    let timeout = info.timeout().ok().flatten();
    let nobody = Identity::default();
    let user = request.extensions().get().unwrap_or(&nobody);
    let control = registry.flow_control();
    let entered = control.enter(registry.cache(), user, asked, reading, timeout);
    let (admission, entered) = entered.await;
    let mut response = match entered {
        Ok(()) => {
            request
                .extensions_mut()
                .insert::<Admission>(admission.clone());
            next(request).await
        }
        Err(error) => {
            let format = ErrorFormat::of(&info.query, request.headers());
            ErrorResponse(error).in_format(format)
        }
    };
    admission.set_headers(response.headers_mut());
    admission.rest();
    response
}

/// Returns the routes of the debug pages.
pub(super) fn router() -> Router<Arc<Registry>> {
    const PAGES: &str = "/debug/api_priority_and_fairness";
    Router::new()
        .route(
            &format!("{PAGES}/dump_priority_levels"),
            get(async |state| page(&state, Page::PriorityLevels)),
        )
        .route(
            &format!("{PAGES}/dump_queues"),
            get(async |state| page(&state, Page::Queues)),
        )
        .route(&format!("{PAGES}/dump_requests"), get(requests))
}

async fn requests(state: State<Arc<Registry>>, query: Query) -> Response {
    let with_details = query.get("includeRequestDetails").is_some();
    page(&state, Page::Requests { with_details })
}

fn page(State(registry): &State<Arc<Registry>>, page: Page) -> Response {
    let control = registry.flow_control();
    match control.is_fair() {
        true => control.page(page).into_response(),
        false => ErrorResponse(not_found()).into_response(),
    }
}
