//! The paths of JSON patches.

use super::super::meter::Failure;
use super::super::values::Val;
use super::{Cost, Entry, text};

pub(super) const ENTRIES: &[Entry] = &[(
    &["jsonpatch.escapeKey(string) string"],
    Cost::First,
    |args, meter| match args {
        [Val::String(key)] => {
            let key = &**key;
            text(key.len(), meter, || {
                key.replace('~', "~0").replace('/', "~1")
            })
        }
        _ => Err(Failure::NoOverload),
    },
)];
