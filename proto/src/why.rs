//! The texts of the enums of `why.proto`, as `setpoint why` and `setpoint history` print them.

use std::fmt::{self, Display, Formatter};

use serde::Serializer;

use crate::setpoint::{HistoryEnd, ReconcileOutcome, WriteType};

macro_rules! texts {
    ($($of:ident $prefix:literal)*) => {$(
        impl Display for $of {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                let name = self.as_str_name().trim_start_matches($prefix);
                f.pad(&name.to_lowercase().replace('_', " "))
            }
        }
    )*};
}
texts! { HistoryEnd "HISTORY_END_" ReconcileOutcome "RECONCILE_OUTCOME_" WriteType "WRITE_TYPE_" }

/// Serializes the number of an enum value as the text of the value.
pub(crate) fn text<E, S>(number: &i32, serializer: S) -> Result<S::Ok, S::Error>
where
    E: TryFrom<i32> + Default + Display,
    S: Serializer,
{
    serializer.collect_str(&E::try_from(*number).unwrap_or_default())
}
