//! Conversions, types and sizes.

use super::super::meter::{Failure, Meter};
use super::super::time;
use super::super::values::{Text, Val};
use super::{Cost, Entry};

pub(super) const ENTRIES: &[Entry] = &[
    (
        &[
            "size(string) int",
            "size(bytes) int",
            "size(list(A)) int",
            "size(map(A, B)) int",
            "string::size() int",
            "bytes::size() int",
            "list(A)::size() int",
            "map(A, B)::size() int",
        ],
        Cost::Unit,
        size,
    ),
    (&["type(A) type"], Cost::Unit, |args, _| match args {
        [value] => Ok(Val::Type(value.type_name())),
        _ => Err(Failure::NoOverload),
    }),
    (&["dyn(A) dyn"], Cost::Unit, |args, _| match args {
        [value] => Ok(value.clone()),
        _ => Err(Failure::NoOverload),
    }),
    (
        &["bool(bool) bool", "bool(string) bool"],
        Cost::Unit,
        |args, _| match args {
            [Val::Bool(flag)] => Ok(Val::Bool(*flag)),
            [Val::String(text)] => match &**text {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
                "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
                _ => Err(impossible("string", "bool")),
            },
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &[
            "int(int) int",
            "int(uint) int",
            "int(double) int",
            "int(string) int",
            "int(timestamp) int",
            "int(duration) int",
        ],
        Cost::Unit,
        int,
    ),
    (
        &[
            "uint(uint) uint",
            "uint(int) uint",
            "uint(double) uint",
            "uint(string) uint",
        ],
        Cost::Unit,
        uint,
    ),
    (
        &[
            "double(double) double",
            "double(int) double",
            "double(uint) double",
            "double(string) double",
        ],
        Cost::Unit,
        double,
    ),
    (
        &[
            "string(string) string",
            "string(bool) string",
            "string(int) string",
            "string(uint) string",
            "string(double) string",
            "string(timestamp) string",
            "string(duration) string",
            "string(ip) string",
            "string(cidr) string",
        ],
        Cost::Unit,
        string,
    ),
    (&["string(bytes) string"], Cost::First, string),
    (&["bytes(bytes) bytes"], Cost::Unit, bytes),
    (&["bytes(string) bytes"], Cost::First, bytes),
];

fn impossible(from: &str, to: &str) -> Failure {
    Failure::Error(format!("type conversion error from '{from}' to '{to}'"))
}

/// Pays for the characters of a long string in a function that costs one unit: upstream's unit has no bound.
pub(super) fn count(text: &str, meter: &mut Meter) -> Result<(), Failure> {
    meter.spend(text.len() as u64 / 100)
}

fn size<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    let size = match args {
        [Val::String(text)] => {
            count(text, meter)?;
            text.chars().count()
        }
        [Val::Bytes(bytes)] => bytes.len(),
        [Val::List(list)] => list.len(),
        [Val::Map(map)] => map.len(),
        _ => return Err(Failure::NoOverload),
    };
    Ok(Val::Int(size as i64))
}

fn int<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    let found = match args {
        [Val::Int(int)] => Some(*int),
        [Val::Uint(int)] => i64::try_from(*int).ok(),
        [Val::Double(double)] => {
            let fits =
                *double > -9_223_372_036_854_775_808.0 && *double < 9_223_372_036_854_775_808.0;
            fits.then_some(*double as i64)
        }
        [Val::String(text)] => {
            count(text, meter)?;
            return text
                .parse()
                .map(Val::Int)
                .map_err(|_| impossible("string", "int"));
        }
        [Val::Timestamp(at)] => Some(at.as_second()),
        [Val::Duration(nanos)] => Some(*nanos),
        _ => return Err(Failure::NoOverload),
    };
    found.map(Val::Int).ok_or_else(super::operators::overflow)
}

fn uint<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    let found = match args {
        [Val::Uint(int)] => Some(*int),
        [Val::Int(int)] => u64::try_from(*int).ok(),
        [Val::Double(double)] => {
            let fits = *double > -1.0 && *double < 18_446_744_073_709_551_616.0;
            fits.then_some(*double as u64)
        }
        [Val::String(text)] => {
            count(text, meter)?;
            return text
                .parse()
                .map(Val::Uint)
                .map_err(|_| impossible("string", "uint"));
        }
        _ => return Err(Failure::NoOverload),
    };
    let overflow = || Failure::error("unsigned integer overflow");
    found.map(Val::Uint).ok_or_else(overflow)
}

fn double<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Double(double)] => Ok(Val::Double(*double)),
        [Val::Int(int)] => Ok(Val::Double(*int as f64)),
        [Val::Uint(int)] => Ok(Val::Double(*int as f64)),
        [Val::String(text)] => {
            count(text, meter)?;
            text.parse()
                .map(Val::Double)
                .map_err(|_| impossible("string", "double"))
        }
        _ => Err(Failure::NoOverload),
    }
}

fn bytes<'a>(args: &[Val<'a>], _: &mut Meter) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Bytes(bytes)] => Ok(Val::Bytes(bytes.clone())),
        [Val::String(text)] => Ok(Val::Bytes(text.as_bytes().into())),
        _ => Err(Failure::NoOverload),
    }
}

fn string<'a>(args: &[Val<'a>], _: &mut Meter) -> Result<Val<'a>, Failure> {
    let text = match args {
        [same @ Val::String(_)] => return Ok(same.clone()),
        [Val::Bytes(bytes)] => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                return Err(Failure::error(
                    "invalid UTF-8 in bytes, cannot convert to string",
                ));
            }
        },
        [value] => scalar(value).ok_or(Failure::NoOverload)?,
        _ => return Err(Failure::NoOverload),
    };
    Ok(Val::from(text))
}

/// Returns a value without parts as a string.
pub(super) fn scalar(value: &Val<'_>) -> Option<String> {
    Some(match value {
        Val::Bool(flag) => flag.to_string(),
        Val::Int(int) => int.to_string(),
        Val::Uint(int) => int.to_string(),
        Val::Double(double) => crate::go::float(*double),
        Val::Timestamp(at) => at.to_string(),
        Val::Duration(nanos) => time::seconds(*nanos),
        Val::Ip(address) => address.to_string(),
        Val::Cidr(network) => format!("{}/{}", network.address, network.prefix),
        Val::Type(name) => (*name).to_owned(),
        Val::Null => "null".to_owned(),
        _ => return None,
    })
}

/// Returns a value as errors show it.
pub(super) fn shown(value: &Val<'_>) -> String {
    match value {
        Val::String(Text::Borrowed(text)) => (*text).to_owned(),
        Val::String(Text::Shared(text)) => text.to_string(),
        other => scalar(other).unwrap_or_else(|| other.type_name().to_owned()),
    }
}
