//! Moments: in seconds for nearly everything, in microseconds for Leases and Events.

use std::fmt;

use jiff::Timestamp;
use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::meta::{MicroTime, Time};

macro_rules! time {
    ($time:ident, $format:literal, $precision:literal) => {
        impl $time {
            /// The moment, or `None` for the zero time.
            pub fn timestamp(&self) -> Option<Timestamp> {
                Timestamp::new(self.seconds?, self.nanos.unwrap_or_default()).ok()
            }
        }

        impl From<Timestamp> for $time {
            /// Cut to what JSON can say: an object must not change by being sent.
            fn from(moment: Timestamp) -> Self {
                let nanos = moment.subsec_nanosecond();
                Self {
                    seconds: Some(moment.as_second()),
                    nanos: Some(nanos - nanos % $precision),
                }
            }
        }

        impl fmt::Display for $time {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.timestamp() {
                    Some(moment) => write!(f, $format, moment),
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
                        Ok(moment) => Ok(moment.into()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_the_same_after_the_way_through_json() {
        let moment: Timestamp = "2026-01-02T03:04:05.123456789Z".parse().unwrap();
        let whole: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(
            MicroTime::from(whole).to_string(),
            "2026-01-02T03:04:05.000000Z"
        );
        let (time, micro) = (Time::from(moment), MicroTime::from(moment));
        assert_eq!(
            serde_json::to_string(&time).unwrap(),
            r#""2026-01-02T03:04:05Z""#
        );
        assert_eq!(
            serde_json::to_string(&micro).unwrap(),
            r#""2026-01-02T03:04:05.123456Z""#
        );
        assert_eq!(
            serde_json::from_str::<Time>(r#""2026-01-02T03:04:05Z""#).unwrap(),
            time
        );
        assert_eq!(
            serde_json::from_str::<MicroTime>(&format!("\"{micro}\"")).unwrap(),
            micro
        );
    }
}
