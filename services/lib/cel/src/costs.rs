//! Tests of what expressions cost, estimated and at run time.

use serde_json::json;

use super::evaluate::Frame;
use super::meter::Meter;
use super::values::Val;
use super::{parse, program};
use crate::{AdditionalProperties, Node};

fn object(properties: impl IntoIterator<Item = (&'static str, Node)>) -> Node {
    let properties = properties.into_iter();
    Node {
        properties: properties
            .map(|(name, node)| (name.to_owned(), node))
            .collect(),
        ..node("object")
    }
}

fn node(schema_type: &str) -> Node {
    let schema_type = schema_type.to_owned();
    Node {
        schema_type,
        ..Node::default()
    }
}

fn text(max: Option<i64>, format: &str) -> Node {
    let mut text = node("string");
    text.format = format.to_owned();
    text.bounds.max_length = max;
    text
}

fn list(items: Node) -> Node {
    let mut list = node("array");
    list.bounds.max_items = Some(10);
    list.items = Some(Box::new(items));
    list
}

fn map(values: Node) -> Node {
    let mut map = node("object");
    map.bounds.max_properties = Some(10);
    map.additional_properties = Some(AdditionalProperties::Schema(Box::new(values)));
    map
}

fn schema() -> Node {
    // A character has up to four bytes: `t` has the size 100, `p` and the items of `s` and `k` have 20.
    object([
        ("n", node("integer")),
        ("b", node("boolean")),
        ("t", text(Some(25), "")),
        ("p", text(Some(5), "")),
        ("y", text(Some(40), "byte")),
        ("w", text(None, "date-time")),
        ("u", text(None, "duration")),
        ("o", object([("a", text(Some(5), ""))])),
        ("l", list(node("integer"))),
        ("s", list(text(Some(5), ""))),
        ("k", map(text(Some(5), ""))),
    ])
}

/// Returns the estimated and the actual cost of an expression about an object whose field `t` has this value.
fn costs(t: &str, source: &str) -> (u64, u64) {
    let schema = schema();
    let compile = || program::program(source, &schema, false, false).map(|(program, _)| program);
    let program = parse::with_stack(compile).and_then(|program| program);
    let program = program.unwrap_or_else(|error| panic!("{source}: {error}"));
    let object = json!({
        "n": 2, "b": true, "t": t, "p": "12345", "y": "AQI=", "w": "2020-01-01T00:00:00Z", "u": "1h", "o": {"a": "b"},
        "l": [1, 2, 3], "s": ["b", "a", "b"], "k": {"x": "1"},
    });
    let mut slots = vec![Ok(Val::Null); program.slots];
    slots[0] = Val::read(&object, &schema, false);
    let mut meter = Meter::default();
    let mut frame = Frame {
        slots,
        meter: &mut meter,
        computed: None,
    };
    let value = frame.eval(&program.expr);
    value.unwrap_or_else(|failure| panic!("{source}: {failure}"));
    (program.cost, meter.spent())
}

fn assert_costs(cases: &[(&str, &str, u64, u64)]) {
    let found = cases.iter().map(|(t, source, ..)| {
        let (estimated, actual) = costs(t, source);
        format!("{source}: {estimated}, {actual}")
    });
    let expected = cases
        .iter()
        .map(|(_, source, estimated, actual)| format!("{source}: {estimated}, {actual}"));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// Checks RF1: a conversion of a string costs one unit, whatever its length is. Reading `self.t` costs two.
#[test]
fn conversions_cost_one_unit() {
    let when = "2020-01-01T00:00:00Z";
    assert_costs(&[
        ("1h", "duration(self.t)", 3, 3),
        (when, "timestamp(self.t)", 3, 3),
        (when, "timestamp(self.t).getFullYear()", 4, 4),
        ("1h", "duration(self.t).getSeconds()", 4, 4),
        ("123456789012", "int(self.t)", 3, 3),
        ("123456789012", "uint(self.t)", 3, 3),
        ("123456789012", "double(self.t)", 3, 3),
        ("true", "bool(self.t)", 3, 3),
        ("123456789012", "string(self.t)", 3, 3),
        ("", "string(self.n)", 3, 3),
        ("", "string(self.w)", 3, 3),
        ("", "size(self.t)", 3, 3),
        ("", "type(self.t)", 3, 3),
        ("", "dyn(self.t)", 3, 3),
        // Those between strings and bytes read them.
        ("123456789012", "bytes(self.t)", 12, 4),
        ("", "string(self.y)", 6, 3),
    ]);
}

/// Checks RF1 for the functions of strings.
#[test]
fn functions_of_strings_cost_what_upstreams_do() {
    let digits = "123456789012";
    assert_costs(&[
        (digits, "self.t.startsWith(self.p)", 6, 6),
        (digits, "self.t.endsWith(self.p)", 6, 6),
        (digits, "self.t.contains(self.p)", 24, 6),
        (digits, "self.t.indexOf(self.p)", 14, 5),
        (digits, "self.t.lastIndexOf(self.p)", 14, 5),
        (digits, "self.t.charAt(1)", 3, 3),
        (digits, "self.t.lowerAscii()", 12, 4),
        (digits, "self.t.upperAscii()", 12, 4),
        (digits, "self.t.trim()", 12, 4),
        (digits, "self.t.substring(1)", 12, 4),
        (digits, "self.t.replace('1', '2')", 22, 5),
        (digits, "self.t.split(',')", 22, 5),
        (digits, "strings.quote(self.t)", 12, 4),
        (digits, "self.t + self.p", 16, 6),
        (digits, "self.t.matches('^[0-9]+$')", 24, 6),
        (digits, "self.t.find('[a-z]')", 24, 6),
        (digits, "self.t.findAll('[a-z]')", 24, 6),
        ("", "self.s.join(',')", 23, 3),
        ("/abc", "url(self.t)", 12, 3),
        ("/abc", "isURL(self.t)", 3, 3),
        ("1Gi", "quantity(self.t)", 12, 3),
        ("1Gi", "isQuantity(self.t)", 12, 3),
        ("1Gi", "quantity(self.t).isInteger()", 13, 4),
        ("1.2.3", "semver(self.t)", 12, 3),
        ("1.2.3", "isSemver(self.t)", 12, 3),
        ("10.0.0.1", "ip(self.t)", 12, 3),
        ("10.0.0.1", "isIP(self.t)", 12, 3),
        ("10.0.0.1", "ip.isCanonical(self.t)", 22, 4),
        ("10.0.0.1", "cidr('10.0.0.0/8').containsIP(self.t)", 17, 5),
        ("", "cidr('10.0.0.0/8').containsIP(ip('10.0.0.1'))", 6, 3),
        ("10.0.0.0/8", "cidr(self.t)", 12, 3),
        ("10.0.0.0/8", "isCIDR(self.t)", 12, 3),
        ("10.0.0.0/8", "cidr(self.t).ip()", 13, 4),
        (
            "10.1.0.0/16",
            "cidr('10.0.0.0/8').containsCIDR(self.t)",
            20,
            8,
        ),
        (
            "",
            "cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))",
            10,
            6,
        ),
        ("abc", "format.dns1123Label().validate(self.t)", 323, 11),
        ("abc", "format.named('uuid')", 1, 1),
    ]);
}

/// Checks RF1 for operators.
#[test]
fn operators_cost_what_upstreams_do() {
    let digits = "123456789012";
    assert_costs(&[
        (digits, "self.t == self.p", 6, 5),
        (digits, "self.t < self.p", 6, 5),
        // Values without a length are taken for nothing by the estimate of an equality.
        ("", "self.n == 3", 2, 3),
        ("", "self.n < 3", 3, 3),
        ("", "self.n + 1", 3, 3),
        ("", "-self.n", 3, 3),
        ("", "self.u == self.u", 8, 5),
        ("", "self.u <= self.u", 5, 5),
        ("", "!self.b", 3, 3),
        ("", "self.b && self.b", 4, 4),
        ("", "self.b ? self.t : self.p", 4, 4),
        ("", "has(self.t)", 1, 1),
        ("", "self.l[0]", 3, 3),
        ("", "self.k['x']", 3, 3),
        ("", "'x' in self.k", 3, 3),
        ("", "3 in self.l", 12, 5),
        ("", "'a' in self.s", 12, 4),
        ("", "[1, 2]", 10, 10),
        ("", "{'a': 1}", 30, 30),
    ]);
}

/// Checks RF1 for functions of lists. At run time a call costs no more than its estimate, unless items of inner lists
/// are copied.
#[test]
fn functions_of_lists_cost_what_upstreams_do() {
    assert_costs(&[
        ("", "self.l.sum()", 12, 4),
        ("", "self.l.min()", 12, 4),
        ("", "self.s.min()", 32, 4),
        ("", "self.l.isSorted()", 12, 4),
        ("", "self.s.isSorted()", 32, 3),
        ("", "self.l.indexOf(3)", 12, 5),
        ("", "self.s.lastIndexOf('b')", 32, 5),
        ("", "self.l.reverse()", 23, 16),
        ("", "self.l.slice(0, 2)", 15, 15),
        ("", "self.l.slice(self.n, self.n)", 27, 17),
        ("", "lists.range(5)", 16, 16),
        ("", "[[1]].flatten()", 32, 33),
        ("", "self.l.distinct()", 213, 16),
        ("", "self.l.sort()", 213, 21),
        ("", "self.s.sort()", 223, 21),
        ("", "sets.contains(self.l, self.l)", 105, 11),
        ("", "sets.intersects(self.l, self.l)", 105, 6),
        ("", "sets.equivalent(self.l, self.l)", 205, 17),
    ]);
}

/// Checks RF1 for the shapes that a list may have: a loop costs its passes, and knows the sizes of the items.
#[test]
fn lists_of_every_shape_have_the_sizes_of_upstream() {
    assert_costs(&[
        ("", "self.l.all(x, x > 0)", 53, 18),
        ("", "['a', 'bb'].all(x, x.contains('a'))", 21, 21),
        (
            "",
            "(self.s + self.s).all(x, x.contains('a') || true)",
            86,
            42,
        ),
        ("", "self.k.all(key, key.contains('x'))", 43, 9),
    ]);
    let estimated = |source: &str| costs("a", source).0;
    assert_eq!(estimated("self.l + self.l"), 5);
    assert_eq!(estimated("self.l.map(x, x)"), 143);
    assert_eq!(estimated("self.l.filter(x, x > 0).all(y, y > 0)"), 214);
    assert_eq!(
        estimated("self.s.map(x, x + 'a').all(y, y.contains(y))"),
        314
    );
    // The strings of a list that a function made have the size of the root, which is an object here.
    assert_eq!(estimated("self.t.split(',').all(x, x.contains('a'))"), 423);
    assert_eq!(
        estimated("self.t.split(',', 2).all(x, x.contains('a'))"),
        31
    );
    assert_eq!(estimated("self.s.reverse().all(x, x.contains('a'))"), 64);
    assert_eq!(estimated("lists.range(5).all(x, x > 0)"), 42);
}
