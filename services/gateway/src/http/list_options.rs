//! The query parameters of reads: Kubernetes' `GetOptions` and `ListOptions`.

use setpoint_model::Revision;
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::{ApiError, Reason};

use super::write_options::{forbidden, unsupported};
use crate::registry::{AtLeast, Filter, Start, WatchSpec};
use crate::request::{Query, Route};
use crate::verbs::read::{ListParams, RevisionMatch};

/// The kind of the options in error messages.
const OPTIONS: &str = "ListOptions";
const MATCH: &str = "resourceVersionMatch";
/// The supported values of `resourceVersionMatch`.
const LIST: &[&str] = &["Exact", "NotOlderThan", ""];
const WATCH: &[&str] = &["NotOlderThan"];
const WITH_CONTINUE: &str = "resourceVersionMatch is forbidden when continue is provided";

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
    let limit = usize::try_from(limit).unwrap_or_default();
    Ok(ListParams {
        limit,
        at: at(query, limit > 0)?,
        filter: filter(route, query)?,
        continue_token: query.get("continue").unwrap_or_default().to_owned(),
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
    let mut fields = Fields::parse(fields).map_err(bad)?;
    let name = route.name.as_str();
    if !name.is_empty() && !fields.requirements().is_empty() {
        if fields.exact("metadata.name") != Some(name) {
            let message = "fieldSelector metadata.name doesn't match requested name";
            return Err(ApiError::new(Reason::BadRequest, message));
        }
    } else if !name.is_empty() {
        fields = Fields::parse(&format!("metadata.name={name}")).map_err(bad)?;
    }
    Filter::new(route.kind, route.namespace.as_str(), labels, &fields)
}

/// Returns the revision of a list. The first page of a list with a limit is read at exactly the given one, unless the
/// client says otherwise.
fn at(query: &Query, limited: bool) -> Result<RevisionMatch, ApiError> {
    let (revision, how) = (revision(query)?, how(query, LIST)?);
    if sets_send_initial_events(query) {
        let detail = "sendInitialEvents is forbidden for list";
        return Err(forbidden(OPTIONS, "sendInitialEvents", detail));
    }
    if query.get("continue").is_some() {
        return match (revision, how) {
            (Some(revision), _) if revision != Revision::default() => Err(ApiError::new(
                Reason::BadRequest,
                "specifying resource version is not allowed when using continue",
            )),
            (_, Match::Unset) => Ok(RevisionMatch::NotOlderThan(AtLeast::Newest)),
            _ => Err(forbidden(OPTIONS, MATCH, WITH_CONTINUE)),
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
        (Some(revision), Match::Unset) if limited && revision != Revision::default() => {
            Ok(RevisionMatch::Exact(revision))
        }
        (Some(revision), _) => Ok(RevisionMatch::NotOlderThan(not_older_than(revision))),
    }
}

/// Returns the start of a watch. By default, a watch without a revision or from `0` begins with the existing objects,
/// and one from another revision with the changes after it.
fn start(query: &Query) -> Result<Start, ApiError> {
    let (revision, how) = (revision(query)?, how(query, WATCH)?);
    if how != Match::Unset && query.get("continue").is_some() {
        return Err(forbidden(OPTIONS, MATCH, WITH_CONTINUE));
    }
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

/// Returns whether `sendInitialEvents` is set. Only clients that set it understand the bookmark at the end of the
/// initial events.
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

fn how(query: &Query, supported: &[&str]) -> Result<Match, ApiError> {
    match query.get(MATCH) {
        None => Ok(Match::Unset),
        Some("NotOlderThan") => Ok(Match::NotOlderThan),
        Some("Exact") if supported.contains(&"Exact") => Ok(Match::Exact),
        Some(other) => Err(unsupported(OPTIONS, MATCH, other, supported)),
    }
}
