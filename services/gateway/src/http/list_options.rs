//! The query parameters of reads: Kubernetes' `GetOptions` and `ListOptions`.

use setpoint_model::Revision;
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::{ApiError, Reason};

use super::query::Query;
use super::route::Route;
use super::write_options::{forbidden, unsupported};
use crate::registry::{AtLeast, Filter, ListParams, RevisionMatch, Start, WatchSpec};

/// The kind of the options in error messages.
const OPTIONS: &str = "ListOptions";
const MATCH: &str = "resourceVersionMatch";

/// The meaning of `resourceVersion` in a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    Unset,
    NotOlderThan,
    Exact,
}

/// Returns the minimum revision of a read of an object.
pub(super) fn at_least(query: &Query) -> Result<AtLeast, ApiError> {
    Ok(match revision(query)? {
        None => AtLeast::Newest,
        Some(revision) => not_older_than(revision),
    })
}

/// Returns the parameters of a list.
pub(super) fn list(route: &Route, query: &Query) -> Result<ListParams, ApiError> {
    let limit = query.number("limit")?.unwrap_or_default();
    Ok(ListParams {
        filter: filter(route, query)?,
        limit: usize::try_from(limit).unwrap_or_default(),
        continue_token: query.get("continue").unwrap_or_default().to_owned(),
        at: at(query)?,
    })
}

/// Returns the parameters of a watch.
pub(super) fn watch(route: &Route, query: &Query) -> Result<WatchSpec, ApiError> {
    Ok(WatchSpec {
        filter: filter(route, query)?,
        start: start(query)?,
        bookmarks: query.flag("allowWatchBookmarks"),
    })
}

fn filter(route: &Route, query: &Query) -> Result<Filter, ApiError> {
    let bad = |error: setpoint_model::selector::Error| {
        ApiError::new(Reason::BadRequest, error.to_string())
    };
    let labels = Selector::parse(query.get("labelSelector").unwrap_or_default()).map_err(bad)?;
    let fields = query.get("fieldSelector").unwrap_or_default();
    let fields = match (route.name.as_str(), fields) {
        ("", fields) => Fields::parse(fields),
        (name, "") => Fields::parse(&format!("metadata.name={name}")),
        (name, fields) => Fields::parse(&format!("metadata.name={name},{fields}")),
    };
    let fields = fields.map_err(bad)?;
    Filter::new(route.kind, route.namespace.as_str(), labels, &fields)
}

fn at(query: &Query) -> Result<RevisionMatch, ApiError> {
    let (revision, how) = (revision(query)?, how(query)?);
    if query.get("continue").is_some() {
        return match (revision, how) {
            (Some(revision), _) if revision != Revision::default() => Err(ApiError::new(
                Reason::BadRequest,
                "specifying resource version is not allowed when using continue",
            )),
            (_, Match::Unset) => Ok(RevisionMatch::NotOlderThan(AtLeast::Newest)),
            _ => Err(forbidden(
                OPTIONS,
                MATCH,
                "resourceVersionMatch is forbidden when continue is provided",
            )),
        };
    }
    match (revision, how) {
        (None, Match::Unset) => Ok(RevisionMatch::NotOlderThan(AtLeast::Newest)),
        (None, _) => {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            Err(forbidden(OPTIONS, MATCH, detail))
        }
        (Some(revision), Match::Exact) if revision == Revision::default() => {
            let detail = r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#;
            Err(forbidden(OPTIONS, MATCH, detail))
        }
        (Some(revision), Match::Exact) => Ok(RevisionMatch::Exact(revision)),
        (Some(revision), _) => Ok(RevisionMatch::NotOlderThan(not_older_than(revision))),
    }
}

/// Returns the start of a watch. By default, a watch without a revision or from `0` begins with the existing objects, and one
/// from another revision with the changes after it.
fn start(query: &Query) -> Result<Start, ApiError> {
    let (revision, how) = (revision(query)?, how(query)?);
    let fresh = revision.map_or(AtLeast::Newest, not_older_than);
    match (
        sets_send_initial_events(query),
        query.flag("sendInitialEvents"),
        how,
    ) {
        (true, true, Match::NotOlderThan) => Ok(Start::Initial(fresh)),
        (true, false, Match::NotOlderThan) => Ok(revision
            .filter(|revision| *revision != Revision::default())
            .map_or(Start::Now, Start::After)),
        (true, ..) => {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            Err(forbidden(OPTIONS, MATCH, detail))
        }
        (false, _, Match::Unset) => Ok(match revision {
            Some(revision) if revision != Revision::default() => Start::After(revision),
            _ => Start::Initial(fresh),
        }),
        (false, ..) => {
            let detail =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            Err(forbidden(OPTIONS, MATCH, detail))
        }
    }
}

/// Returns whether `sendInitialEvents` is set. Only clients that set it understand the bookmark at the end of the initial
/// events.
pub(super) fn sets_send_initial_events(query: &Query) -> bool {
    query.get("sendInitialEvents").is_some()
}

fn not_older_than(revision: Revision) -> AtLeast {
    match revision == Revision::default() {
        true => AtLeast::Any,
        false => AtLeast::Revision(revision),
    }
}

fn revision(query: &Query) -> Result<Option<Revision>, ApiError> {
    let Some(text) = query.get("resourceVersion") else {
        return Ok(None);
    };
    let revision = text.parse().map_err(|_| {
        let message = format!("resourceVersion: Invalid value: {text:?}: invalid resource version");
        ApiError::new(Reason::BadRequest, message)
    })?;
    Ok(Some(revision))
}

fn how(query: &Query) -> Result<Match, ApiError> {
    match query.get(MATCH) {
        None => Ok(Match::Unset),
        Some("NotOlderThan") => Ok(Match::NotOlderThan),
        Some("Exact") => Ok(Match::Exact),
        Some(other) => Err(unsupported(
            OPTIONS,
            MATCH,
            other,
            &["Exact", "NotOlderThan", ""],
        )),
    }
}
