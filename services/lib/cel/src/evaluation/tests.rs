//! What expressions of policies evaluate to.

use serde_json::json;

use super::*;
use crate::{Environment, Global, Output, on_compiler_stack};

/// Evaluates an expression with variables over an object.
fn eval(variables: &[(&str, &str)], source: &str, object: &Json) -> Result<Value, String> {
    let (expression, variables) = on_compiler_stack(|| {
        let mut environment = Environment::new(&[("object", Global::Any)]);
        let mut compiled = Variables::default();
        for (name, source) in variables {
            let _ = environment.declare(name, source, &mut compiled);
        }
        let expression = environment.compile(source, Output::Any);
        expression.map(|expression| (expression, compiled))
    })??;
    let mut evaluation = Evaluation::new(&variables, &[Input::Json(object)], 10_000_000);
    evaluation.eval(&expression).map_err(|error| match error {
        Error::Failed(text) => text,
        Error::OutOfBudget => "out of budget".into(),
    })
}

#[test]
fn objects_without_a_schema_are_read_by_their_own_names() {
    let object = json!({
        "metadata": { "namespace": "shop", "labels": { "a-b": "x" } },
        "spec": { "replicas": 3, "ratio": 0.5, "ports": [80, 443], "none": null },
    });
    for (source, expected) in [
        ("object.spec.replicas > 1", "true"),
        ("object.spec.ratio == 0.5", "true"),
        ("object.metadata.namespace == 'shop'", "true"),
        ("object.metadata.labels['a-b'] == 'x'", "true"),
        ("has(object.spec.none) && object.spec.none == null", "true"),
        ("has(object.spec.other)", "false"),
        ("object.spec.ports.all(port, port > 100)", "false"),
        ("object.spec.ports.map(port, port + 1) == [81, 444]", "true"),
        (
            "object.spec == object.spec && size(object.spec) == 4",
            "true",
        ),
        ("object.?spec.?other.orValue(7) == 7", "true"),
        ("object.spec[?'ports'][0].orValue(7) == 80", "true"),
        ("object.spec[?'other'][0].orValue(7) == 7", "true"),
    ] {
        let value = eval(&[], source, &object).map(|value| format!("{value:?}"));
        assert_eq!(
            value.as_deref(),
            Ok(&*format!("Bool({expected})")),
            "{source}"
        );
    }
}

#[test]
fn errors_are_those_of_upstream() {
    let object = json!({ "spec": { "replicas": 3 } });
    for (source, expected) in [
        (
            "object.spec.other > 1",
            "expression 'object.spec.other > 1' resulted in error: no such key: other",
        ),
        (
            "object.spec.replicas + 'a'",
            "expression 'object.spec.replicas + 'a'' resulted in error: no such overload",
        ),
        (
            "variables.odd",
            "compilation failed: ERROR: <input>:1:10: undefined field 'odd'\n | variables.odd\n | .........^",
        ),
    ] {
        let error = eval(&[], source, &object).unwrap_err();
        assert_eq!(error, expected, "{source}");
    }
}

#[test]
fn variables_are_computed_when_they_are_read_from_those_before_them() {
    let object = json!({ "spec": { "replicas": 3 } });
    let variables = [
        ("replicas", "object.spec.replicas"),
        ("odd", "variables.replicas % 2 == 1"),
        ("broken", "object.spec.none"),
        ("malformed", "object."),
    ];
    let read = |source| eval(&variables, source, &object);
    assert_eq!(read("variables.odd"), Ok(Value::Bool(true)));
    assert_eq!(
        read("variables.odd || variables.broken"),
        Ok(Value::Bool(true))
    );
    assert_eq!(read("has(variables.odd)"), Ok(Value::Bool(true)));
    assert_eq!(
        read("variables.broken").unwrap_err(),
        "expression 'variables.broken' resulted in error: composited variable \"broken\" fails to evaluate: no such key: none"
    );
    let error = read("variables.malformed").unwrap_err();
    assert!(
        error.contains(
            "composited variable \"malformed\" fails to compile: compilation failed: ERROR"
        ),
        "{error}"
    );
    let later = eval(&[("a", "variables.b"), ("b", "1")], "variables.a", &object);
    assert!(later.unwrap_err().contains("undefined field 'b'"));
    let hidden = "[{'odd': 1}].all(variables, variables.odd == 1)";
    assert_eq!(read(hidden), Ok(Value::Bool(true)));
}

#[derive(Debug)]
struct OnlyPods;

impl Authorizer for OnlyPods {
    fn decide(&self, question: &Question) -> Decision {
        Decision {
            allowed: question.resource == "pods" && question.verb == "create",
            reason: format!("{question:?}"),
        }
    }
}

#[test]
fn an_authorizer_answers_questions() {
    let globals = [
        ("authorizer", Global::Authorizer),
        ("authorizer.requestResource", Global::ResourceCheck),
    ];
    let question = Question {
        resource: "pods".into(),
        ..Question::default()
    };
    for (source, expected) in [
        (
            "authorizer.group('').resource('pods').check('create').allowed()",
            Ok(true),
        ),
        (
            "authorizer.group('apps').resource('deployments').check('create').allowed()",
            Ok(false),
        ),
        (
            "authorizer.requestResource.check('create').allowed()",
            Ok(true),
        ),
        (
            "authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c=d').check('x').reason() \
            .contains('field_selector: \"a=b\", label_selector: \"c=d\"')",
            Ok(true),
        ),
        (
            "authorizer.requestResource.namespace('a').name('b').check('get').allowed()",
            Ok(false),
        ),
        (
            "authorizer.serviceAccount('ns', 'sa').path('/x').check('get').reason().contains('sa')",
            Ok(true),
        ),
        (
            "authorizer.requestResource.check('create').errored()",
            Ok(false),
        ),
        (
            "authorizer.group('').resource(' ').check('get').allowed()",
            Err("resource must not be empty"),
        ),
        // Each decision costs a third of what one expression may.
        (
            "[1, 2, 3].all(i, authorizer.requestResource.check('create').allowed())",
            Err("operation cancelled: actual cost limit exceeded"),
        ),
    ] {
        let expression =
            on_compiler_stack(|| Environment::new(&globals).compile(source, Output::Bool));
        let (expression, variables) = (expression.unwrap().unwrap(), Variables::default());
        let inputs = [
            Input::Authorizer(&OnlyPods),
            Input::ResourceCheck(&OnlyPods, &question),
        ];
        let value = Evaluation::new(&variables, &inputs, 10_000_000).eval(&expression);
        match (value, expected) {
            (Ok(Value::Bool(found)), Ok(expected)) => assert_eq!(found, expected, "{source}"),
            (Err(Error::Failed(error)), Err(part)) => assert!(error.ends_with(part), "{error}"),
            (found, expected) => panic!("{source}: {found:?} instead of {expected:?}"),
        }
    }
}

/// Checks F1.
#[test]
fn chains_of_variables_are_bounded() {
    let chain: Vec<_> = (1..1_000)
        .map(|index| (format!("v{index}"), format!("variables.v{} + 1", index - 1)))
        .collect();
    let first = [("v0", "1")].into_iter();
    let chain = first.chain(chain.iter().map(|(name, source)| (&**name, &**source)));
    let chain: Vec<_> = chain.collect();
    assert_eq!(
        eval(&chain[..40], "variables.v39 == 40", &Json::Null),
        Ok(Value::Bool(true))
    );
    let error = eval(&chain, "variables.v999", &Json::Null).unwrap_err();
    assert!(
        error.contains("expression recursion limit exceeded"),
        "{error}"
    );
}

/// Checks F1.
#[test]
fn the_work_is_bounded() {
    let object = json!({ "list": (0..2_000).collect::<Vec<_>>() });
    let all = "object.list.all(a, object.list.all(b, a + b >= 0))";
    let error = eval(&[], all, &object).unwrap_err();
    assert!(
        error.ends_with("operation cancelled: actual cost limit exceeded"),
        "{error}"
    );
    let expression = on_compiler_stack(|| {
        Environment::new(&[("object", Global::Any)]).compile(all, Output::Bool)
    });
    let (expression, variables) = (expression.unwrap().unwrap(), Variables::default());
    let mut evaluation = Evaluation::new(&variables, &[Input::Json(&object)], 10_000);
    assert_eq!(evaluation.eval(&expression), Err(Error::OutOfBudget));
}
