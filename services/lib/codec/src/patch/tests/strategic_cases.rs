//! Tables of strategic merge patches over fields of each merge strategy, with the cases that upstream tests.
//!
//! | strategy | fields |
//! |---|---|
//! | merged by key | `containers`, `env`, `volumes`, `imagePullSecrets` by name, `ports` by containerPort, `hostAliases` by ip |
//! | merged as a set | `finalizers` |
//! | replaced | `tolerations`, `command`, `args` |
//! | `retainKeys` | `strategy` of Deployments, `volumes` |

mod directives;
mod lists;
mod objects;

use serde_json::{Value, json};

use super::kind;
use crate::patch::{Error, strategic};

/// A description, the document, the patch, and the result.
type Case = (&'static str, Value, Value, Value);
/// A description, the document, the patch, and a part of the error.
type Refused = (&'static str, Value, Value, &'static str);

/// Applies each patch to the field `field` of an object, and compares the result.
fn check(resource: &str, field: &str, cases: &[Case]) {
    for (what, document, patch, expected) in cases {
        let patched = strategic(
            kind(resource),
            json!({ field: document }),
            json!({ field: patch }),
        );
        let expected = json!({ field: expected });
        assert_eq!(patched.unwrap(), expected, "{what}");
    }
}

fn check_refused(resource: &str, field: &str, cases: &[Refused]) {
    for (what, document, patch, expected) in cases {
        let refused = strategic(
            kind(resource),
            json!({ field: document }),
            json!({ field: patch }),
        );
        let message = match refused.unwrap_err() {
            Error::Unfit(message) | Error::Malformed(message) => message,
            other => panic!("{what}: {other}"),
        };
        assert!(message.contains(expected), "{what}: {message}");
    }
}
