use std::collections::{BTreeMap, BTreeSet};

use super::*;

#[test]
fn every_signature_is_read() {
    for (signatures, _, _) in ENTRIES.into_iter().flatten() {
        for text in *signatures {
            assert!(signature::parse(text).is_some(), "{text}");
        }
    }
}

/// The functions of each cost: all overloads of a name, or those of a signature. From upstream's `checker/cost.go`,
/// `interpreter/runtimecost.go`, `ext/lists.go` and `ext/sets.go` of cel-go, and `pkg/cel/library/cost.go` of the API
/// server.
const TABLE: &[(Cost, &[&str])] = &[
    (
        Cost::Unit,
        &[
            // Arithmetic and logic of values without a length, and what has a fixed number of parts.
            "_+_(int, int) int",
            "_+_(uint, uint) uint",
            "_+_(double, double) double",
            "_+_(timestamp, duration) timestamp",
            "_+_(duration, timestamp) timestamp",
            "_+_(duration, duration) duration",
            "_+_(list(A), list(A)) list(A)",
            "_-_",
            "_*_",
            "_/_",
            "_%_",
            "-_",
            "!_",
            "_[_]",
            "_[?_]",
            "@in(A, map(A, B)) bool",
            // Conversions: only those between strings and bytes read them.
            "size",
            "type",
            "dyn",
            "bool",
            "int",
            "uint",
            "double",
            "duration",
            "timestamp",
            "bytes(bytes) bytes",
            "string(string) string",
            "string(bool) string",
            "string(int) string",
            "string(uint) string",
            "string(double) string",
            "string(timestamp) string",
            "string(duration) string",
            "string(ip) string",
            "string(cidr) string",
            "getFullYear",
            "getMonth",
            "getDate",
            "getDayOfMonth",
            "getDayOfWeek",
            "getDayOfYear",
            "getHours",
            "getMinutes",
            "getSeconds",
            "getMilliseconds",
            // Functions that neither table names.
            "charAt",
            "matches(string, string) bool",
            "isURL",
            "first",
            "last",
            "optional.none",
            "optional.of",
            "optional.ofNonZeroValue",
            "hasValue",
            "value",
            "or",
            "orValue",
            "getScheme",
            "getHost",
            "getHostname",
            "getPort",
            "getEscapedPath",
            "getQuery",
            "sign",
            "isInteger",
            "asInteger",
            "asApproximateFloat",
            "isGreaterThan",
            "isLessThan",
            "compareTo",
            "add",
            "sub",
            "major",
            "minor",
            "patch",
            "family",
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
            "cidr::ip() ip",
            "prefixLength",
            "masked",
            "format.named",
            "format.dns1123Label",
            "format.dns1123Subdomain",
            "format.dns1035Label",
            "format.qualifiedName",
            "format.dns1123LabelPrefix",
            "format.dns1123SubdomainPrefix",
            "format.dns1035LabelPrefix",
            "format.labelValue",
            "format.uri",
            "format.uuid",
            "format.byte",
            "format.date",
            "format.datetime",
            "path",
            "group",
            "serviceAccount",
            "resource",
            "subresource",
            "namespace",
            "name",
            "allowed",
            "reason",
            "error",
            "errored",
        ],
    ),
    (Cost::Decision, &["check"]),
    (Cost::Selector, &["fieldSelector", "labelSelector"]),
    (
        Cost::First,
        &[
            "bytes(string) bytes",
            "string(bytes) string",
            "lowerAscii",
            "upperAscii",
            "trim",
            "substring",
            "format",
            "strings.quote",
            "jsonpatch.escapeKey",
            "url",
            "quantity",
            "isQuantity",
            "semver",
            "isSemver",
            "ip(string) ip",
            "isIP",
            "cidr",
            "isCIDR",
        ],
    ),
    (Cost::Copy, &["replace", "split", "ip.isCanonical"]),
    (Cost::Affix, &["startsWith", "endsWith"]),
    (
        Cost::Sum,
        &["_+_(string, string) string", "_+_(bytes, bytes) bytes"],
    ),
    (Cost::Search, &["contains"]),
    (
        Cost::Find,
        &[
            "string::indexOf(string) int",
            "string::indexOf(string, int) int",
            "string::lastIndexOf(string) int",
            "string::lastIndexOf(string, int) int",
        ],
    ),
    (
        Cost::Match,
        &["string::matches(string) bool", "find", "findAll"],
    ),
    (Cost::Format, &["validate"]),
    (
        Cost::Compare,
        &["_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"],
    ),
    (Cost::Member, &["@in(A, list(A)) bool"]),
    (
        Cost::Items,
        &[
            "isSorted",
            "sum",
            "min",
            "max",
            "list(A)::indexOf(A) int",
            "list(A)::lastIndexOf(A) int",
            // Not upstream's.
            "includes",
        ],
    ),
    (Cost::Join, &["join"]),
    (Cost::Pairs(1), &["sets.contains", "sets.intersects"]),
    (Cost::Pairs(2), &["sets.equivalent"]),
    (Cost::Square, &["sort", "distinct"]),
    (Cost::Slice, &["slice"]),
    (Cost::Range, &["lists.range"]),
    (Cost::Reverse, &["reverse"]),
    (Cost::Flatten, &["flatten"]),
    (Cost::Address, &["containsIP"]),
    (Cost::Network, &["containsCIDR"]),
];

/// Checks RF1: the cost of every overload is upstream's.
#[test]
fn every_overload_has_the_cost_of_upstreams_table() {
    let rows = TABLE.iter().flat_map(|(cost, names)| {
        let row = |name: &&'static str| (*name, *cost);
        names.iter().map(row)
    });
    let rows: BTreeMap<&str, Cost> = rows.collect();
    let mut used = BTreeSet::new();
    for (signatures, cost, _) in ENTRIES.into_iter().flatten() {
        for text in *signatures {
            let name = signature::parse(text).map_or("", |signature| signature.name);
            let row = rows.get_key_value(text).or(rows.get_key_value(name));
            assert_eq!(row.map(|(_, cost)| cost), Some(cost), "{text}");
            used.extend(row.map(|(name, _)| *name));
        }
    }
    let unused: Vec<_> = rows.keys().filter(|name| !used.contains(*name)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}
