//! The paths of JSON patches.

use super::super::meter::Failure;
use super::super::values::Val;
use super::{Cost, Entry};

pub(super) const ENTRIES: &[Entry] = &[(
    &["jsonpatch.escapeKey(string) string"],
    Cost::First,
    |args, _| match args {
        [Val::String(key)] => Ok(Val::from(key.replace('~', "~0").replace('/', "~1"))),
        _ => Err(Failure::NoOverload),
    },
)];
