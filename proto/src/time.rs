//! `Time`, with a precision of seconds, and `MicroTime`, with microseconds, for Leases and Events.

use std::fmt;

use jiff::Timestamp;
use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::meta::{MicroTime, Time};

macro_rules! time {
    ($time:ident, $format:literal, $precision:literal) => {
        impl $time {
            /// Returns the timestamp; `None` for the zero time.
            pub fn timestamp(&self) -> Option<Timestamp> {
                Timestamp::new(self.seconds?, self.nanos.unwrap_or_default()).ok()
            }
        }

        impl From<Timestamp> for $time {
            /// Truncates to the precision of the JSON form, so that an object does not change when it is sent.
            fn from(timestamp: Timestamp) -> Self {
                let nanos = timestamp.subsec_nanosecond();
                Self {
                    seconds: Some(timestamp.as_second()),
                    nanos: Some(nanos - nanos % $precision),
                }
            }
        }

        impl fmt::Display for $time {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.timestamp() {
                    Some(timestamp) => write!(f, $format, timestamp),
                    None => Ok(()),
                }
            }
        }

        impl Serialize for $time {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.timestamp() {
                    Some(_) => serializer.collect_str(self),
                    None => serializer.serialize_none(),
                }
            }
        }

        impl<'de> Deserialize<'de> for $time {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match Option::<String>::deserialize(deserializer)? {
                    None => Ok(Self::default()),
                    Some(text) => match text.parse::<Timestamp>() {
                        Ok(timestamp) => Ok(timestamp.into()),
                        Err(_) => Err(de::Error::custom(format_args!(
                            "parsing time {text:?}: not a time in RFC 3339 form"
                        ))),
                    },
                }
            }
        }
    };
}
time!(Time, "{:.0}", 1_000_000_000);
time!(MicroTime, "{:.6}", 1_000);
