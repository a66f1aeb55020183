//! The parameters of operations.

use serde_json::{Value, json};

/// The name, type and description of a parameter of the query.
pub(super) type Parameter = (&'static str, &'static str, &'static str);

const BOOKMARKS: Parameter = (
    "allowWatchBookmarks",
    "boolean",
    "Whether a watch gets events of the type BOOKMARK, which only tell the resourceVersion that it has reached.",
);
const CONTINUE: Parameter = (
    "continue",
    "string",
    "The token with which the server ended the previous page of a list. The other parameters must be those of that request.",
);
const FIELDS: Parameter = (
    "fieldSelector",
    "string",
    "A selector of fields, to restrict the list of returned objects.",
);
const LABELS: Parameter = (
    "labelSelector",
    "string",
    "A selector of labels, to restrict the list of returned objects.",
);
const LIMIT: Parameter = (
    "limit",
    "integer",
    "The largest number of objects of a page. If there are more, the metadata of the list have a token for the next page.",
);
const VERSION: Parameter = (
    "resourceVersion",
    "string",
    "The version of the state that is asked for: the newest if it is unset, any if it is 0.",
);
const MATCH: Parameter = (
    "resourceVersionMatch",
    "string",
    "How a list depends on resourceVersion: Exact, or NotOlderThan.",
);
const INITIAL: Parameter = (
    "sendInitialEvents",
    "boolean",
    "Whether a watch begins with events of the objects that exist, and a bookmark after them.",
);
const TIMEOUT: Parameter = (
    "timeoutSeconds",
    "integer",
    "The time after which the server ends a list or a watch.",
);
const WATCH_CHANGES: Parameter = (
    "watch",
    "boolean",
    "Watch for changes to the described resources instead of a list: a stream of events with their objects.",
);
const DRY_RUN: Parameter = (
    "dryRun",
    "string",
    "All: every check is made, and nothing is stored.",
);
const MANAGER: Parameter = (
    "fieldManager",
    "string",
    "The name under which the changed fields are managed: at most 128 printable characters. Patches of the type apply need it.",
);
const VALIDATION: Parameter = (
    "fieldValidation",
    "string",
    "What unknown and duplicate fields of a body cause: Strict (an error), Warn (a warning, the default) or Ignore.",
);
const FORCE: Parameter = (
    "force",
    "boolean",
    "Whether a patch of the type apply takes over fields that others manage.",
);
const GRACE: Parameter = (
    "gracePeriodSeconds",
    "integer",
    "The seconds that the object has to end; zero to delete it at once.",
);
const ORPHAN: Parameter = (
    "orphanDependents",
    "boolean",
    "Deprecated: whether the dependents of the object stay. Use propagationPolicy.",
);
const PROPAGATION: Parameter = (
    "propagationPolicy",
    "string",
    "What becomes of the dependents of the object: Orphan, Background or Foreground.",
);
pub(super) const PRETTY: Parameter = (
    "pretty",
    "string",
    "Whether the answer is printed with line breaks and indentation.",
);

pub(super) const LIST: &[Parameter] = &[
    BOOKMARKS,
    CONTINUE,
    FIELDS,
    LABELS,
    LIMIT,
    VERSION,
    MATCH,
    INITIAL,
    TIMEOUT,
    WATCH_CHANGES,
];
pub(super) const WRITE: &[Parameter] = &[DRY_RUN, MANAGER, VALIDATION];
pub(super) const PATCH: &[Parameter] = &[DRY_RUN, MANAGER, VALIDATION, FORCE];
pub(super) const DELETE: &[Parameter] = &[DRY_RUN, GRACE, ORPHAN, PROPAGATION];
pub(super) const DELETE_COLLECTION: &[Parameter] = &[
    CONTINUE,
    DRY_RUN,
    FIELDS,
    GRACE,
    LABELS,
    LIMIT,
    ORPHAN,
    PROPAGATION,
    VERSION,
    MATCH,
];

/// Returns a parameter of the query.
pub(super) fn parameter((name, of, description): &(&str, &str, &str)) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": { "type": of } })
}

/// Returns a variable of a path of a kind.
pub(super) fn variable(name: &str, kind: &str) -> Value {
    let description = match name {
        "namespace" => "The namespace of the object.".to_owned(),
        "name" => format!("The name of the {kind}."),
        _ => "The path of the request at its target.".to_owned(),
    };
    let schema = json!({ "type": "string" });
    json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
}
