//! Instants and durations.

use jiff::Zoned;
use jiff::tz::TimeZone;

use super::super::meter::Failure;
use super::super::time;
use super::super::values::Val;
use super::convert::count;
use super::{Cost, Entry};

macro_rules! part {
    ($name:literal, $read:expr) => {
        (
            &[
                concat!("timestamp::", $name, "() int"),
                concat!("timestamp::", $name, "(string) int"),
            ],
            Cost::Unit,
            |args, _| {
                let read: fn(&Zoned) -> i64 = $read;
                zoned(args).map(|at| Val::Int(read(&at)))
            },
        )
    };
}

macro_rules! whole {
    ($name:literal, $nanos:expr) => {
        (
            &[concat!("duration::", $name, "() int")],
            Cost::Unit,
            |args, _| match args {
                [Val::Duration(nanos)] => Ok(Val::Int(nanos / $nanos)),
                _ => Err(Failure::NoOverload),
            },
        )
    };
}

pub(super) const ENTRIES: &[Entry] = &[
    (
        &[
            "timestamp(string) timestamp",
            "timestamp(timestamp) timestamp",
            "timestamp(int) timestamp",
        ],
        Cost::Unit,
        |args, meter| {
            let found = match args {
                [Val::Timestamp(at)] => Some(*at),
                [Val::String(text)] => {
                    count(text, meter)?;
                    time::timestamp(text)
                }
                [Val::Int(seconds)] => jiff::Timestamp::from_second(*seconds)
                    .ok()
                    .and_then(time::in_range),
                _ => return Err(Failure::NoOverload),
            };
            let malformed = || {
                Failure::error("type conversion error from 'string' to 'google.protobuf.Timestamp'")
            };
            found.map(Val::Timestamp).ok_or_else(malformed)
        },
    ),
    (
        &["duration(string) duration", "duration(duration) duration"],
        Cost::Unit,
        |args, meter| {
            let found = match args {
                [Val::Duration(nanos)] => Some(*nanos),
                [Val::String(text)] => {
                    count(text, meter)?;
                    time::go_duration(text)
                }
                _ => return Err(Failure::NoOverload),
            };
            let malformed = || {
                Failure::error("type conversion error from 'string' to 'google.protobuf.Duration'")
            };
            found.map(Val::Duration).ok_or_else(malformed)
        },
    ),
    part!("getFullYear", |at| at.year().into()),
    part!("getMonth", |at| i64::from(at.month()) - 1),
    part!("getDate", |at| at.day().into()),
    part!("getDayOfMonth", |at| i64::from(at.day()) - 1),
    part!("getDayOfWeek", |at| at
        .weekday()
        .to_sunday_zero_offset()
        .into()),
    part!("getDayOfYear", |at| i64::from(at.day_of_year()) - 1),
    part!("getHours", |at| at.hour().into()),
    part!("getMinutes", |at| at.minute().into()),
    part!("getSeconds", |at| at.second().into()),
    part!("getMilliseconds", |at| at.millisecond().into()),
    whole!("getHours", 3_600_000_000_000),
    whole!("getMinutes", 60_000_000_000),
    whole!("getSeconds", 1_000_000_000),
    (
        &["duration::getMilliseconds() int"],
        Cost::Unit,
        |args, _| match args {
            [Val::Duration(nanos)] => Ok(Val::Int(nanos / 1_000_000)),
            _ => Err(Failure::NoOverload),
        },
    ),
];

fn zoned(args: &[Val<'_>]) -> Result<Zoned, Failure> {
    let (at, zone) = match args {
        [Val::Timestamp(at)] => (at, TimeZone::UTC),
        [Val::Timestamp(at), Val::String(name)] => {
            let unknown = || Failure::Error(format!("unknown time zone {}", &**name));
            (at, time::zone(name).ok_or_else(unknown)?)
        }
        _ => return Err(Failure::NoOverload),
    };
    Ok(at.to_zoned(zone))
}
