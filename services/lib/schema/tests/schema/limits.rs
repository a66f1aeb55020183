//! Rules and objects that are made to be expensive.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Value, json};
use setpoint_schema::{Schema, validate_definition};

use crate::{compile, lines};

fn schema(rule: &str) -> Value {
    json!({"type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "m"}], "properties": {
        "n": {"type": "integer"},
        "t": {"type": "string"},
        "l": {"type": "array", "items": {"type": "integer"}},
        "s": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "d": {"x-kubernetes-int-or-string": true},
        "w": {"type": "string", "format": "date-time"}}})
}

fn large() -> Value {
    let numbers: Vec<i64> = (0..3_000).collect();
    let texts: Vec<String> = (0..3_000).map(|index| format!("text {index}")).collect();
    let map: serde_json::Map<_, _> = (0..3_000)
        .map(|index| (format!("k{index}"), json!("v")))
        .collect();
    json!({"n": 1, "t": "ab01".repeat(250_000), "l": numbers, "s": texts, "m": map, "d": 1, "w": "2020-01-01T00:00:00Z"})
}

fn repeated(part: &str, count: usize, end: &str) -> String {
    let mut out = String::new();
    for _ in 0..count {
        let _ = write!(out, "{part}");
    }
    out + end
}

#[test]
fn expressions_that_are_nested_too_deeply_are_refused() {
    let nested = |open: &str, count: usize, middle: &str, close: &str| {
        repeated(open, count, middle) + &close.repeat(count)
    };
    for count in [40, 300, 1_900, 100_000] {
        let rules = [
            nested("(", count, "true", ")"),
            nested("[", count, "1", "]") + " == []",
            nested("{1: ", count, "1", "}") + " == {}",
            nested("size([", count, "1", "])") + " == 1",
            nested("!(", count, "true", ")"),
            nested("self.l.all(x, ", count, "true", ")"),
            repeated("!", count, "true"),
            repeated("-", count, "1 == 1"),
            repeated("1 + ", count, "1 == 1"),
            repeated("true ? true : ", count, "true"),
            repeated("true && ", count, "true"),
            repeated("1 in ", count, "[1]"),
            repeated("'a' < ", count, "'a'"),
            repeated("self.", count, "n == 1"),
            repeated("'a'.trim()", count, " == 'a'"),
            format!("'a'{} == 'a'", ".trim()".repeat(count)),
            format!("dyn(self){}", "[0]".repeat(count)),
            repeated("(", count, ""),
            repeated("[", count, ""),
            repeated("'", count, ""),
            repeated("`", count, ""),
            repeated("a?.b", count, ""),
        ];
        for rule in rules {
            let found = validate_definition(&schema(&rule), "schema", false);
            // Signs cancel each other out, and conjunctions are balanced.
            let is_flat = rule.starts_with(['!', '-', '\'']) || rule.contains("true && ");
            let is_refused = found
                .iter()
                .any(|problem| problem.detail.starts_with("compilation failed: "));
            assert!(
                is_refused || count < 300 || is_flat,
                "{count} {}",
                rule.split_at(10).0
            );
            // What is refused with the definition must do no harm either.
            let _ = compile(&schema(&rule)).validate(&json!({"n": 1, "l": [1], "t": "a"}), None);
        }
    }
}

#[test]
fn the_deepest_expressions_are_evaluated_on_a_usual_stack() {
    let rules = [
        repeated("1 + ", 190, "1 == 191"),
        repeated("self.l.all(x, ", 40, "x == 1") + &")".repeat(40),
        repeated("!(", 40, "true") + &")".repeat(40),
        format!("self.t{} == 'a'", ".trim()".repeat(190)),
        repeated("[", 40, "1") + &"]".repeat(40) + " != []",
        repeated("self.n == 1 ? (", 38, "true") + &") : false".repeat(38),
        repeated("size([", 20, "1") + &"])".repeat(20) + " == 1",
    ];
    let object = json!({"n": 1, "l": [1], "t": "a"});
    for rule in rules {
        assert_eq!(
            lines(&compile(&schema(&rule)), &object, None),
            [""; 0],
            "{rule}"
        );
    }
}

#[test]
fn evaluations_that_cost_too_much_are_stopped() {
    let object = large();
    let rules = [
        "self.l.all(x, self.l.all(y, self.l.all(z, x + y + z >= 0)))",
        "self.l.map(x, self.l.map(y, self.l.map(z, z))).size() > 0",
        "self.l.map(x, self.l).map(x, x.map(y, y + 1)).size() > 0",
        "self.s.map(x, self.s.join(',')).join(',').size() > 0",
        "self.l.map(x, self.t + self.t).size() > 0",
        "self.l.map(x, self.t.replace('', self.t)).size() > 0",
        "self.t.replace('', self.t).size() > 0",
        "self.t.split('').map(x, self.t.split('')).size() > 0",
        "self.l.all(x, self.t.contains(self.t.substring(1)))",
        "self.l.all(x, !self.t.matches('([ab01]*1[ab01]{100})x'))",
        "self.l.all(x, !self.t.matches('a{2' + string(x % 10) + '}{5}c'))",
        "self.l.all(x, self.t.find('(ab|cd)*') != 'z')",
        "self.l.all(x, sets.contains(self.l, self.l))",
        "self.l.all(x, self.l.distinct().size() > 0)",
        "self.l.all(x, self.s.sort().size() > 0)",
        "self.l.all(x, '%s'.format([self.s]).size() > 0)",
        "self.l.all(x, self.m.transformMap(k, v, self.t).size() > 0)",
        "self.l.all(x, self.m == self.m)",
        "self.l.all(x, self.l == self.l)",
        "self.l.all(x, dyn(self) == dyn(self))",
        "self.l.all(x, lists.range(100000).size() > 0)",
        "self.l.all(x, [[self.l]].flatten(5).size() > 0)",
        "self.l.all(x, self.t.size() > 0)",
        "self.l.all(x, self.t.indexOf('zz') < 0)",
        "self.l.all(x, self.t.upperAscii().size() > 0)",
        "self.l.all(x, self.l.all(y, !(!(!(!(!(!(!(!(true && true || false)))))))) || true))",
        "self.l.map(x, [[[[x]]]]).map(y, self.l.map(x, y)).size() > 0",
    ];
    let expected = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: m";
    let mut others = Vec::new();
    for rule in rules {
        let found = lines(&compile(&schema(rule)), &object, None);
        if !matches!(found.as_slice(), [line] if line.contains(expected)) {
            others.push((rule, found));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn the_rules_of_one_object_have_a_budget_together() {
    let rule =
        json!({"rule": "self.l.all(x, x >= 0) && self.l.all(x, self.s[x] != 'a')", "message": "m"});
    let mut schema = schema("true");
    schema["x-kubernetes-validations"] = vec![rule; 500].into();
    let found = lines(&compile(&schema), &large(), None);
    let expected = "<nil>: Invalid value: \"object\": validation failed due to running out of cost budget, no further validation rules will be run";
    assert_eq!(found, [expected]);
}

#[test]
fn the_rules_of_one_schema_are_limited_in_number() {
    let mut schema = schema("true");
    schema["x-kubernetes-validations"] = vec![json!({"rule": "self.n == 1"}); 5_000].into();
    let found = validate_definition(&schema, "schema", false);
    assert!(
        found[0].to_string().contains("must not have more than"),
        "{found:?}"
    );
    assert!(Schema::compile(&schema).is_err());
}

/// Parts of expressions, which are put together at random.
const PARTS: [&str; 72] = [
    "self",
    "oldSelf",
    ".n",
    ".t",
    ".l",
    ".s",
    ".m",
    ".d",
    ".w",
    ".x",
    "?.t",
    "[0]",
    "[?0]",
    "['k']",
    "1",
    "-1",
    "2u",
    "1.5",
    "1e400",
    "9223372036854775807",
    "-9223372036854775808",
    "'a'",
    "b'\\x00'",
    "r'['",
    "'''x'''",
    "\"\\u00e9\"",
    "null",
    "true",
    "false",
    "[]",
    "[1, 2]",
    "{}",
    "{'a': 1}",
    "{1: 2, 1: 3}",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " == ",
    " != ",
    " < ",
    " >= ",
    " in ",
    " && ",
    " || ",
    " ? ",
    " : ",
    "!",
    "(",
    ")",
    ".all(x, ",
    ".map(x, x",
    ".exists(i, x, ",
    ".size()",
    ".substring(-1, 3)",
    ".format([1, 'a', self])",
    ".charAt(9999)",
    "timestamp('2020-01-01T00:00:00Z')",
    "duration('1h')",
    ".getFullYear('x')",
    "quantity('1E')",
    "ip('::1')",
    "url('/a')",
    "semver('1.2.3')",
    ".orValue(1)",
    "optional.none()",
    "type(1)",
    "dyn(",
    "\\",
    "`",
    "\u{1F600}",
];

fn soup() -> impl Strategy<Value = String> {
    let part = (0..PARTS.len()).prop_map(|index| PARTS[index]);
    prop::collection::vec(part, 1..25).prop_map(|parts| parts.concat())
}

fn object() -> impl Strategy<Value = Value> {
    let text = "[a-z0-9é]{0,8}";
    (
        any::<i64>(),
        text,
        prop::collection::vec(any::<i64>(), 0..5),
        prop::collection::vec(text, 0..5),
        any::<bool>(),
    )
        .prop_map(|(n, t, l, s, has)| {
            let mut object =
                json!({"n": n, "t": t, "l": l, "s": s, "m": {"k": "v", "": "w"}, "d": n});
            if has {
                object["w"] = "9999-12-31T23:59:59.999Z".into();
                object["d"] = "50%".into();
            }
            object
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_rule_and_object_do_harm(rule in soup(), new in object(), old in object()) {
        let json = schema(&rule);
        let refused = validate_definition(&json, "schema", false);
        let found = compile(&json).validate(&new, Some(&old));
        // A rule that does not compile is an error of every object.
        let over_budget = refused.iter().all(|problem| problem.detail.contains("budget"));
        prop_assert!(refused.is_empty() || !found.is_empty() || over_budget, "{refused:?}");
    }

    #[test]
    fn no_text_does_harm_as_a_rule(rule in "\\PC{0,40}") {
        let _ = validate_definition(&schema(&rule), "schema", false);
    }

    #[test]
    fn expressions_with_known_results_have_them(
        a in -1000_i64..1000,
        b in 1_i64..1000,
        list in prop::collection::vec(-50_i64..50, 0..8),
    ) {
        let sum: i64 = list.iter().sum();
        let rule = format!(
            "self.n + {b} == {} && self.n / {b} == {} && self.n % {b} == {} && self.l.map(x, x).sum() == {sum} && self.l.exists(x, x > 0) == {}",
            a + b, a / b, a % b, list.iter().any(|item| *item > 0),
        );
        let schema = compile(&schema(&rule));
        prop_assert_eq!(lines(&schema, &json!({"n": a, "l": list}), None), [""; 0]);
    }
}

/// Checks RF1: conversions of strings without a limit are affordable in a list, as upstream has it; what reads the
/// whole string is not.
#[test]
fn conversions_of_strings_without_a_limit_are_affordable() {
    let refused = |rule: &str| {
        let wait =
            json!({"type": "string", "x-kubernetes-validations": [{"rule": rule, "message": "m"}]});
        let item = json!({"type": "object", "properties": {"wait": wait}});
        let steps = json!({"type": "array", "items": item});
        let spec = json!({"type": "object", "properties": {"steps": steps}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let found = validate_definition(&schema, "schema", false);
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for rule in [
        "duration(self) >= duration('2ms')",
        "duration(self).getSeconds() > 1",
        "timestamp(self) > timestamp('2020-01-01T00:00:00Z')",
        "int(self) > 1",
        "double(self) > 1.5",
        "self.charAt(0) == 'a'",
        "isURL(self)",
    ] {
        assert_eq!(refused(rule), [""; 0], "{rule}");
    }
    for rule in [
        "quantity(self).isInteger()",
        "self.matches('^[a-z]+$')",
        "bytes(self).size() > 1",
    ] {
        let found = refused(rule);
        assert!(
            matches!(found.as_slice(), [line, ..] if line.contains("exceeds budget")),
            "{rule}: {found:?}"
        );
    }
}
