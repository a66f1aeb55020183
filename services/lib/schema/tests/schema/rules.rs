//! Rules of `x-kubernetes-validations`: tables of expressions, objects and results.

use serde_json::{Value, json};
use setpoint_schema::{Schema, validate_definition};

use crate::{compile, lines};

/// Returns a schema with one rule at its root.
fn with_rule(properties: &Value, rule: &Value) -> Value {
    json!({"type": "object", "properties": properties, "x-kubernetes-validations": [rule]})
}

fn check(properties: &Value, rule: &str) -> Vec<String> {
    definition(&with_rule(properties, &json!({"rule": rule})))
}

fn definition(schema: &Value) -> Vec<String> {
    let found = validate_definition(schema, "schema", false);
    found.iter().map(ToString::to_string).collect()
}

/// Returns the errors of an object, under one rule for it.
fn results(properties: &Value, rule: &str, object: &Value) -> Vec<String> {
    let problems = check(properties, rule);
    assert_eq!(problems, [""; 0], "{rule}");
    lines(&schema_of(properties, rule), object, None)
}

fn schema_of(properties: &Value, rule: &str) -> Schema {
    compile(&with_rule(properties, &json!({"rule": rule})))
}

/// Asserts that every rule holds for the object.
fn hold(properties: &Value, object: &Value, rules: &[&str]) {
    for rule in rules {
        assert_eq!(results(properties, rule, object), [""; 0], "{rule}");
    }
}

/// Asserts that the rules are refused for the object with these errors.
fn fail(properties: &Value, object: &Value, cases: &[(&str, &str)]) {
    for (rule, error) in cases {
        let found = results(properties, rule, object).join("\n");
        assert!(found.contains(error), "{rule}: {found}");
    }
}

fn values() -> (Value, Value) {
    let short = || json!({"type": "string", "maxLength": 40});
    let list = |items: Value| json!({"type": "array", "maxItems": 8, "items": items});
    let properties = json!({
        "int": {"type": "integer"},
        "double": {"type": "number"},
        "whole": {"type": "number"},
        "text": short(),
        "empty": short(),
        "flag": {"type": "boolean"},
        "absent": short(),
        "nothing": {"type": "string", "nullable": true, "maxLength": 10},
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "long": {"type": "string", "format": "duration"},
        "bytes": {"type": "string", "format": "byte", "maxLength": 40},
        "ios": {"x-kubernetes-int-or-string": true, "maxLength": 20},
        "ios2": {"x-kubernetes-int-or-string": true, "maxLength": 20},
        "list": list(json!({"type": "integer"})),
        "texts": list(short()),
        "map": {"type": "object", "maxProperties": 8, "additionalProperties": {"type": "integer"}},
        "object": {"type": "object", "properties": {"a": {"type": "integer"}, "b": short()}},
        "objects": list(json!({"type": "object", "properties": {"k": short(), "v": {"type": "integer"}}})),
        "namespace": short(),
        "a-b.c/d__e": short(),
        "set1": {"type": "array", "maxItems": 8, "x-kubernetes-list-type": "set", "items": short()},
        "set2": {"type": "array", "maxItems": 8, "x-kubernetes-list-type": "set", "items": short()},
        "keyed1": keyed(), "keyed2": keyed(),
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": {"type": "integer"}}},
    });
    let object = json!({
        "int": 3, "double": 1.5, "whole": 2, "text": "Hello", "empty": "", "flag": true, "nothing": null,
        "when": "2011-08-18T19:03:37.01Z", "day": "2021-05-06", "long": "1h10m", "bytes": "AQI=",
        "ios": 5, "ios2": "50%",
        "list": [1, 2, 3], "texts": ["b", "a", "b"], "map": {"x": 1, "y": 2},
        "object": {"a": 1}, "objects": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
        "namespace": "ns", "a-b.c/d__e": "odd",
        "set1": ["a", "b"], "set2": ["b", "a"],
        "keyed1": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "keyed2": [{"k": "b", "v": 2}, {"k": "a", "v": 1}],
        "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}},
        "free": {"known": 1, "unknown": {"deep": true}},
        "apiVersion": "g/v1", "kind": "Kind", "metadata": {"name": "obj", "generateName": "ob"},
    });
    (properties, object)
}

fn keyed() -> Value {
    json!({"type": "array", "maxItems": 8, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string", "maxLength": 10}, "v": {"type": "integer"}}}})
}

#[test]
fn expressions_have_the_values_of_upstream() {
    let (properties, object) = values();
    hold(
        &properties,
        &object,
        &[
            "self.int == 3 && self.int + 1 == 4 && self.int * 2 - 1 == 5 && self.int / 2 == 1 && self.int % 2 == 1",
            "type(self.int) == int && type(self.double) == double && type(self.whole) == double && self.whole == 2.0",
            "self.int > self.double && self.int >= 3 && self.double < 2 && self.int < 3.5",
            "-self.int == -3 && !(self.int == 4)",
            "self.text == 'Hello' && self.text + '!' == 'Hello!' && size(self.text) == 5 && self.text.size() == 5",
            "self.text.startsWith('He') && self.text.endsWith('lo') && self.text.contains('ell') && self.text.matches('^H.*o$')",
            "self.flag && (self.flag ? true : false) && (false || self.flag)",
            "has(self.text) && !has(self.absent) && !has(self.nothing)",
            "(!has(self.absent) || self.absent == 'x')",
            "self.list.all(x, x > 0) && self.list.exists(x, x == 2) && self.list.exists_one(x, x == 2) && !self.list.exists(x, x > 5)",
            "self.list.map(x, x * 2) == [2, 4, 6] && self.list.filter(x, x > 1) == [2, 3] && self.list.map(x, x > 1, x * 2) == [4, 6]",
            "self.list[0] == 1 && 2 in self.list && !(5 in self.list) && self.list.size() == 3 && self.list + [4] == [1, 2, 3, 4]",
            "self.map['x'] == 1 && 'y' in self.map && self.map.all(k, self.map[k] > 0) && size(self.map) == 2 && self.map.x == 1",
            "has(self.map.x) && !has(self.map.z)",
            "self.map == {'x': 1, 'y': 2} && self.object.a == 1 && !has(self.object.b)",
            "self.objects.all(o, o.v == (o.k == 'a' ? 1 : 2)) && self.objects.exists(o, self.objects.exists(p, p.v > o.v))",
            "self.__namespace__ == 'ns' && self.a__dash__b__dot__c__slash__d__underscores__e == 'odd'",
            "self.ios == 5 && type(self.ios) == int && type(self.ios2) == string && self.ios2 == '50%' && self.ios2.endsWith('%')",
            "self.apiVersion == 'g/v1' && self.kind == 'Kind' && self.metadata.name == 'obj' && self.metadata.generateName == 'ob'",
            "self.embedded.metadata.name == 'p' && self.embedded.kind == 'Pod'",
            "self.free.known == 1 && self.free == self.free",
            "self.set1 == self.set2 && dyn(self.keyed1) == dyn(self.keyed2) && !(self.texts == ['b', 'b', 'a'])",
            "self.set1 + ['b', 'c'] == ['a', 'b', 'c'] && dyn(self.keyed1) + dyn(self.keyed2) == dyn(self.keyed1)",
            "b'\\x01\\x02' == self.bytes && size(self.bytes) == 2",
            "[1, 2] != [2, 1] && {'a': 1} != {'a': 2} && null == null",
            "int('7') == 7 && double('1.5') == 1.5 && string(7) == '7' && uint(7) == 7u && bool('true') && dyn(1) == 1",
            "self.int in [1, 2, 3] ? 'a' in {'a': 1} : false",
            "1 / 0 == 1 || true",
            "self.list.exists(x, 6 / (x - 1) == 6)",
            "r'\\d' == '\\\\d' && \"a\" == 'a' && '\\u00e9' == 'é'",
            "0x10 == 16 && 1e3 == 1000.0",
        ],
    );
}

#[test]
fn libraries_have_the_results_of_upstream() {
    let (properties, object) = values();
    hold(
        &properties,
        &object,
        &[
            "self.text.charAt(1) == 'e' && self.text.indexOf('l') == 2 && self.text.lastIndexOf('l') == 3 && self.text.indexOf('z') == -1",
            "self.text.indexOf('l', 3) == 3 && self.text.lastIndexOf('l', 2) == 2 && 'x'.charAt(1) == ''",
            "self.text.lowerAscii() == 'hello' && self.text.upperAscii() == 'HELLO' && ' a '.trim() == 'a'",
            "self.text.replace('l', 'L') == 'HeLLo' && self.text.replace('l', 'L', 1) == 'HeLlo' && 'ab'.replace('', '-') == '-a-b-'",
            "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'ab'.split('') == ['a', 'b']",
            "self.text.substring(1) == 'ello' && self.text.substring(1, 3) == 'el' && self.texts.join('-') == 'b-a-b' && ['a'].join() == 'a'",
            "'%s %d %.2f %x %b %o %e %s'.format(['a', 10, 1.5, 255, 5, 8, 1000.0, [1, 2]]) == 'a 10 1.50 ff 101 10 1.000000e+03 [1, 2]'",
            "self.list.isSorted() && self.list.sum() == 6 && self.list.min() == 1 && self.list.max() == 3 && !self.texts.isSorted()",
            "self.texts.indexOf('b') == 0 && self.texts.lastIndexOf('b') == 2 && self.texts.indexOf('z') == -1",
            "self.texts.distinct() == ['b', 'a'] && self.texts.sort() == ['a', 'b', 'b'] && self.list.reverse() == [3, 2, 1] && self.list.slice(0, 2) == [1, 2]",
            "[[1], [2]].flatten() == [1, 2] && lists.range(3) == [0, 1, 2] && self.list.first().value() == 1 && self.list.last() == optional.of(3)",
            "'abc 123'.find('[0-9]+') == '123' && '1 2 3'.findAll('[0-9]') == ['1', '2', '3'] && '1 2 3'.findAll('[0-9]', 1) == ['1']",
            "sets.contains([1, 2, 3], self.list) && sets.equivalent([3, 2, 1], self.list) && sets.intersects([3, 9], self.list)",
            "url('https://example.com:80/a?b=c&b=d').getHost() == 'example.com:80' && url('https://[::1]:80/').getHostname() == '::1'",
            "url('https://example.com:80/').getPort() == '80' && url('https://e.com/a b').getEscapedPath() == '/a%20b' && url('/p').getScheme() == ''",
            "url('https://e.com/?k=a&k=b').getQuery()['k'] == ['a', 'b'] && isURL('https://e.com') && !isURL('../a')",
            "isIP('127.0.0.1') && !isIP('1.2.3.256') && ip('::1').family() == 6 && ip('127.0.0.1').isLoopback() && ip.isCanonical('::1')",
            "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
            "string(ip('192.168.0.1')) == '192.168.0.1' && cidr('::1/128').prefixLength() == 128 && isCIDR('1.2.3.4/32') && !isCIDR('1.2.3.4/33')",
            "quantity('1Gi').isGreaterThan(quantity('1M')) && isQuantity('100m') && !isQuantity('x') && quantity('1500m').add(quantity('500m')).asInteger() == 2",
            "quantity('1k').compareTo(quantity('1000')) == 0 && quantity('-1').sign() == -1 && !quantity('1m').isInteger() && quantity('500m').asApproximateFloat() == 0.5",
            "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.0.0-rc.1') && !isSemver('v1.0') && semver('v1', true).minor() == 0",
            "self.when.getFullYear() == 2011 && self.when.getMonth() == 7 && self.when.getHours() == 19 && self.when.getHours('+02:00') == 21 && self.when.getMilliseconds() == 10",
            "self.when > timestamp('2010-01-01T00:00:00Z') && self.when - timestamp('2011-08-18T18:03:37.01Z') == duration('1h') && self.day.getDate() == 6",
            "self.long == duration('70m') && self.long.getMinutes() == 70 && self.long + duration('50m') == duration('2h') && string(self.long) == '4200s'",
            "self.?absent.orValue('x') == 'x' && self.?text.hasValue() && self.object.?b.hasValue() == false && self.map[?'z'].orValue(9) == 9",
            "optional.none().or(optional.of(1)).value() == 1 && self.?text.optMap(t, t + '!').value() == 'Hello!' && [?self.?absent, 'a'] == ['a']",
            "self.list.all(i, x, x == i + 1) && self.map.exists(k, v, k == 'x' && v == 1) && self.list.existsOne(i, x, i == 1)",
            "self.list.transformList(i, x, x * i) == [0, 2, 6] && self.map.transformMap(k, v, v > 1, v * 10) == {'y': 20} && self.map.transformMapEntry(k, v, {string(v): k}) == {'1': 'x', '2': 'y'}",
            "!format.dns1123Label().validate('my-label').hasValue() && format.dns1123Label().validate('My').hasValue() && format.named('uuid').hasValue()",
            "size('éé') == 2 && 'éé'.charAt(1) == 'é' && 'aéb'.indexOf('b') == 2",
        ],
    );
}

#[test]
fn evaluations_fail_in_the_words_of_upstream() {
    let (properties, object) = values();
    fail(
        &properties,
        &object,
        &[
            (
                "self.int == 4",
                "<nil>: Invalid value: failed rule: self.int == 4",
            ),
            (
                "1 / 0 == 1",
                "<nil>: Invalid value: \"object\": division by zero evaluating rule: 1 / 0 == 1",
            ),
            (
                "9223372036854775807 + self.int > 0",
                "integer overflow evaluating rule",
            ),
            (
                "self.absent == 'x'",
                "no such key: absent evaluating rule: self.absent == 'x'",
            ),
            ("self.list[7] == 1", "index out of bounds: 7"),
            ("self.map['z'] == 1", "no such key: z"),
            (
                "self.ios2 > 5",
                "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self.ios2 > 5",
            ),
            ("self.list.min() == 0", "failed rule"),
            ("[].min() == 0", "min called on empty list"),
            (
                "url('../a').getHost() == ''",
                "URL parse error during conversion from string",
            ),
            ("self.list.all(x, x / (x - 1) > 0)", "division by zero"),
            (
                "self.list.filter(x, 1 / (x - 1) > 0) == []",
                "division by zero",
            ),
        ],
    );
}

#[test]
fn rules_that_do_not_compile_are_refused_with_their_definition() {
    let (properties, _) = values();
    let cases = [
        ("self.unknown == 1", "undefined field 'unknown'"),
        ("self.object.c == 1", "undefined field 'c'"),
        ("has(self.unknown)", "undefined field 'unknown'"),
        ("self.objects.all(o, o.z == 1)", "undefined field 'z'"),
        (
            "self.metadata.labels.size() == 0",
            "undefined field 'labels'",
        ),
        ("self.free.unknown == 1", "undefined field 'unknown'"),
        ("self.embedded.spec.x == 1", "undefined field 'spec'"),
        ("self.a__b == 1", "undefined field 'a__b'"),
        (
            "other == 1",
            "undeclared reference to 'other' (in container '')",
        ),
        (
            "foo(self.int)",
            "undeclared reference to 'foo' (in container '')",
        ),
        (
            "self.text.foo()",
            "undeclared reference to 'foo' (in container '')",
        ),
        (
            "self.objects.sortBy(o, o.v) == []",
            "undeclared reference to 'sortBy'",
        ),
        (
            "authorizer.path('/x').check('get').allowed()",
            "undeclared reference to",
        ),
        (
            "self.int == 'a'",
            "found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            "self.int + 'a' == 1",
            "found no matching overload for '_+_' applied to '(int, string)'",
        ),
        (
            "self.int.startsWith('a')",
            "found no matching overload for 'startsWith' applied to 'int.(string)'",
        ),
        (
            "self.int && true",
            "found no matching overload for '_&&_' applied to '(int, bool)'",
        ),
        (
            "self.text.x == 1",
            "type 'string' does not support field selection",
        ),
        (
            "self.int.all(x, true)",
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        (
            "[1, 'a'].size() == 2",
            "expected type 'int' but found 'string'",
        ),
        ("self.int", "cel expression must evaluate to a bool"),
        ("self.text.matches('[')", "invalid matches argument"),
        (
            "duration('x') > duration('1s')",
            "invalid duration argument",
        ),
        ("self.int ==", "Syntax error"),
        ("self.int == 1 )", "Syntax error"),
        (
            "self.list.map(1, 2) == []",
            "argument must be a simple name",
        ),
        ("has(self)", "invalid argument to has() macro"),
    ];
    for (rule, error) in cases {
        let found = check(&properties, rule);
        let [line] = found.as_slice() else {
            panic!("{rule}: {found:?}");
        };
        assert!(
            line.starts_with("schema.x-kubernetes-validations[0].rule: Invalid value: {"),
            "{line}"
        );
        assert!(line.contains(error), "{rule}: {line}");
        let is_bool = error == "cel expression must evaluate to a bool";
        assert_eq!(
            line.contains("compilation failed: ERROR: <input>:"),
            !is_bool,
            "{line}"
        );
    }
}

#[test]
fn an_error_of_the_compiler_shows_its_place() {
    let found = check(
        &json!({"a": {"type": "integer"}}),
        "self.a == 1 &&\n  self.bb == 2",
    );
    let expected = "compilation failed: ERROR: <input>:2:7: undefined field 'bb'\n |   self.bb == 2\n | ......^";
    assert!(
        found
            .join("")
            .ends_with("message must be specified if rule contains line breaks"),
        "{found:?}"
    );
    let rule = json!({"rule": "self.a == 1 &&\n  self.bb == 2", "message": "m"});
    let found = definition(&with_rule(&json!({"a": {"type": "integer"}}), &rule));
    assert!(found.join("").ends_with(expected), "{found:?}");
}

#[test]
fn messages_reasons_and_paths_are_those_of_the_rule() {
    let properties = json!({"x": {"type": "integer"}, "m": {"type": "object", "properties": {"a b": {"type": "integer"}}}});
    let cases = [
        (
            json!({"rule": "self.x > 1"}),
            "<nil>: Invalid value: failed rule: self.x > 1",
        ),
        (
            json!({"rule": "self.x > 1", "message": " too small "}),
            "<nil>: Invalid value: too small",
        ),
        (
            json!({"rule": "self.x > 1", "messageExpression": "'is ' + string(self.x)"}),
            "<nil>: Invalid value: is 1",
        ),
        (
            json!({"rule": "self.x > 1", "message": "m", "messageExpression": "string(1 / 0)"}),
            "<nil>: Invalid value: m",
        ),
        (
            json!({"rule": "self.x > 1", "message": "m", "messageExpression": "' '"}),
            "<nil>: Invalid value: m",
        ),
        (
            json!({"rule": "self.x > 1", "message": "m", "fieldPath": ".x"}),
            "x: Invalid value: m",
        ),
        (
            json!({"rule": "self.x > 1", "message": "m", "fieldPath": ".m['a b']"}),
            "m.a b: Invalid value: m",
        ),
        (
            json!({"rule": "self.x > 1", "message": "m", "reason": "FieldValueForbidden"}),
            "<nil>: Forbidden: m",
        ),
        (
            json!({"rule": "self.x > 1", "message": "m", "reason": "FieldValueRequired", "fieldPath": ".x"}),
            "x: Required value: m",
        ),
        (
            json!({"rule": "self.x > 1", "message": "m", "reason": "FieldValueDuplicate"}),
            "<nil>: Duplicate value",
        ),
        (
            json!({"rule": "self.x > 1", "message": "m", "reason": "FieldValueInvalid"}),
            "<nil>: Invalid value: m",
        ),
        (
            json!({"rule": "self.x / 0 > 1", "message": "m"}),
            "<nil>: Invalid value: \"object\": division by zero evaluating rule: m",
        ),
    ];
    for (rule, expected) in cases {
        let schema = with_rule(&properties, &rule);
        assert_eq!(definition(&schema), [""; 0], "{rule}");
        assert_eq!(
            lines(&compile(&schema), &json!({"x": 1}), None),
            [expected],
            "{rule}"
        );
    }
    let scalar = json!({"type": "object", "properties": {"x": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}}});
    assert_eq!(
        lines(&compile(&scalar), &json!({"x": 1}), None),
        ["x: Invalid value: 1: failed rule: self > 1"]
    );
}

#[test]
fn message_expressions_are_checked_with_their_definition() {
    let properties = json!({"x": {"type": "integer"}});
    for (expression, error) in [
        ("self.x", "messageExpression must evaluate to a string"),
        (
            "self.y",
            "messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'y'",
        ),
    ] {
        let rule = json!({"rule": "self.x > 1", "messageExpression": expression});
        let found = definition(&with_rule(&properties, &rule)).join("\n");
        assert!(
            found.starts_with(
                "schema.x-kubernetes-validations[0].messageExpression: Invalid value: {"
            ),
            "{found}"
        );
        assert!(found.contains(error), "{found}");
    }
}

fn nested() -> Schema {
    let rule = |rule: &str| json!([{"rule": rule}]);
    compile(&json!({"type": "object", "properties": {
        "once": {"type": "string", "maxLength": 9, "x-kubernetes-validations": rule("self == oldSelf")},
        "grows": {"type": "integer", "x-kubernetes-validations":
            [{"rule": "!oldSelf.hasValue() ? self == 0 : self >= oldSelf.value()", "optionalOldSelf": true}]},
        "small": {"type": "integer", "x-kubernetes-validations": rule("self < 10")},
        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items":
            {"type": "object", "required": ["k"], "x-kubernetes-validations": rule("self.v >= oldSelf.v"),
             "properties": {"k": {"type": "string"}, "v": {"type": "integer", "x-kubernetes-validations": rule("self < 10")}}}},
        "map": {"type": "object", "additionalProperties": {"type": "integer", "x-kubernetes-validations": rule("self >= oldSelf")}},
        "atomic": {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": rule("self < 10")}},
        "other": {"type": "string"},
    }}))
}

#[test]
fn transition_rules_compare_values_that_correlate() {
    let item = |key: &str, value: i64| json!({"k": key, "v": value});
    let cases: Vec<(Option<Value>, Value, Vec<&str>)> = vec![
        (None, json!({"once": "a"}), vec![]),
        (Some(json!({"once": "a"})), json!({"once": "a"}), vec![]),
        (
            Some(json!({"once": "a"})),
            json!({"once": "b"}),
            vec!["once: Invalid value: \"b\": failed rule: self == oldSelf"],
        ),
        (Some(json!({})), json!({"once": "b"}), vec![]),
        (Some(json!({"once": "a"})), json!({}), vec![]),
        (None, json!({"grows": 0}), vec![]),
        (
            None,
            json!({"grows": 1}),
            vec![
                "grows: Invalid value: 1: failed rule: !oldSelf.hasValue() ? self == 0 : self >= oldSelf.value()",
            ],
        ),
        (Some(json!({"grows": 1})), json!({"grows": 2}), vec![]),
        (
            Some(json!({"grows": 2})),
            json!({"grows": 1}),
            vec![
                "grows: Invalid value: 1: failed rule: !oldSelf.hasValue() ? self == 0 : self >= oldSelf.value()",
            ],
        ),
        (
            Some(json!({"items": [item("a", 1), item("b", 5)]})),
            json!({"items": [item("b", 4), item("a", 2), item("c", 0)]}),
            vec!["items[0]: Invalid value: failed rule: self.v >= oldSelf.v"],
        ),
        (
            Some(json!({"map": {"a": 2}})),
            json!({"map": {"a": 1, "b": 0}}),
            vec!["map[a]: Invalid value: 1: failed rule: self >= oldSelf"],
        ),
    ];
    for (old, new, expected) in cases {
        assert_eq!(
            lines(&nested(), &new, old.as_ref()),
            expected,
            "{old:?} {new}"
        );
    }
}

#[test]
fn errors_of_rules_are_suppressed_for_values_that_did_not_change() {
    let item = |key: &str, value: i64| json!({"k": key, "v": value});
    let cases: Vec<(Value, Value, usize)> = vec![
        (json!({"small": 20}), json!({"small": 20, "other": "x"}), 0),
        (json!({"small": 20}), json!({"small": 21}), 1),
        (json!({}), json!({"small": 20}), 1),
        (
            json!({"items": [item("a", 20)]}),
            json!({"items": [item("b", 1), item("a", 20)]}),
            0,
        ),
        (
            json!({"items": [item("a", 20)]}),
            json!({"items": [item("b", 20)]}),
            1,
        ),
        (
            json!({"atomic": [20]}),
            json!({"atomic": [20], "other": "x"}),
            0,
        ),
        (json!({"atomic": [20]}), json!({"atomic": [20, 1]}), 1),
    ];
    for (old, new, count) in cases {
        assert_eq!(
            lines(&nested(), &new, Some(&old)).len(),
            count,
            "{old} {new}"
        );
    }
}

#[test]
fn rules_are_not_evaluated_for_values_that_their_schema_does_not_allow() {
    let schema = json!({"type": "object", "required": ["y"], "x-kubernetes-validations": [{"rule": "self.x > 1"}],
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "minimum": 3}}});
    let schema = compile(&schema);
    let unchecked = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    let missing = lines(&schema, &json!({"x": 1}), None);
    assert_eq!(missing, ["y: Required value", unchecked]);
    let mistyped = lines(&schema, &json!({"x": "a", "y": 3}), None);
    assert_eq!(mistyped[1..], [unchecked]);
    // A number out of bounds is of the right type.
    let small = lines(&schema, &json!({"x": 1, "y": 2}), None);
    assert_eq!(small.len(), 2);
    assert_eq!(small[1], "<nil>: Invalid value: failed rule: self.x > 1");
}

#[test]
fn transition_rules_are_refused_where_items_do_not_correlate() {
    let rules = json!([{"rule": "self == oldSelf"}]);
    for (list_type, refused) in [(None, true), (Some("set"), true), (Some("atomic"), true)] {
        let mut list = json!({"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 3, "x-kubernetes-validations": rules}});
        if let Some(list_type) = list_type {
            list["x-kubernetes-list-type"] = list_type.into();
        }
        let found = definition(&json!({"type": "object", "properties": {"l": list}}));
        let expected = "schema.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within schema.properties[l]";
        assert_eq!(found == [expected], refused, "{found:?}");
    }
    let unused = with_rule(
        &json!({}),
        &json!({"rule": "true", "optionalOldSelf": true}),
    );
    let expected = "schema.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule";
    assert_eq!(definition(&unused), [expected]);
}

#[test]
fn defaults_must_satisfy_the_rules() {
    let schema = |default: i64| {
        json!({"type": "object", "properties": {"spec": {"type": "object", "default": {"x": default},
            "x-kubernetes-validations": [{"rule": "self.x > 1"}], "properties": {"x": {"type": "integer"}}}}})
    };
    assert_eq!(definition(&schema(2)), [""; 0]);
    let expected = "schema.properties[spec].default: Invalid value: failed rule: self.x > 1";
    assert_eq!(definition(&schema(1)), [expected]);
}

#[test]
fn rules_that_may_cost_too_much_are_refused_with_their_definition() {
    let list = |max: Option<i64>| {
        let mut list = json!({"type": "array", "items": {"type": "string", "maxLength": 10}});
        if let Some(max) = max {
            list["maxItems"] = max.into();
        }
        json!({"l": list})
    };
    let cubic = "self.l.all(x, self.l.all(y, self.l.all(z, x == y || z == x)))";
    let square = "self.l.all(x, self.l.all(y, x == y))";
    let more = "schema.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";
    assert_eq!(check(&list(None), square)[0], more);
    assert_eq!(check(&list(Some(1000)), square), [""; 0]);
    assert_eq!(check(&list(Some(10)), cubic), [""; 0]);
    let found = check(&list(Some(150)), cubic);
    assert!(
        found[0].contains("estimated rule cost exceeds budget by factor of "),
        "{found:?}"
    );
    assert!(!found[0].contains("more than"), "{found:?}");
    // One pass over a list is always possible, and comparisons of strings without limits are.
    assert_eq!(check(&list(None), "self.l.all(x, x.size() < 5)"), [""; 0]);
    assert_eq!(
        check(
            &json!({"a": {"type": "string"}}),
            "self.a != 'x' && self.a.matches('^a+$') && !self.a.contains('y')"
        ),
        [""; 0]
    );
}

#[test]
fn the_costs_of_all_rules_of_a_schema_are_limited_together() {
    let rules: Vec<_> = (0..30)
        .map(|index| json!({"rule": format!("self.l.all(x, self.l.all(y, x + y > {index}))")}))
        .collect();
    let schema = json!({"type": "object", "x-kubernetes-validations": rules,
        "properties": {"l": {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}}});
    let found = definition(&schema);
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found[0].ends_with(".rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"), "{found:?}");
    assert!(found[4].starts_with("schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of "), "{found:?}");
}
