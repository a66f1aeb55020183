//! The operations of subresources that connect: `exec`, `attach`, `portforward` and `proxy`.

use serde_json::{Map, Value, json};
use setpoint_codec::Kind;
use setpoint_codec::rest::subresource_kind;
use setpoint_codec::rules;

use super::parameters::parameter;
use super::{comments, schema};

const UPGRADING: &[&str] = &["get", "post"];
const ALL: &[&str] = &["delete", "get", "head", "options", "patch", "post", "put"];

/// Returns the operations of a subresource. `id` makes the identifier of one from its method.
pub(super) fn operations(
    kind: &'static Kind,
    subresource: &str,
    tag: &str,
    id: impl Fn(&str) -> String,
) -> Map<String, Value> {
    let options = subresource_kind(kind, subresource);
    let methods = if subresource == "proxy" {
        ALL
    } else {
        UPGRADING
    };
    let operations = methods.iter().map(|method| {
        let verb = method.to_uppercase();
        let operation = json!({
            "description": format!("connect {verb} requests to {subresource} of {}", kind.kind),
            "operationId": id(method),
            "tags": [tag],
            "x-kubernetes-action": "connect",
            "x-kubernetes-group-version-kind": schema::group_version_kind(options, &options.kind),
            "parameters": parameters(options),
            "responses": {
                "200": { "description": "OK", "content": { "*/*": { "schema": { "type": "string" } } } },
            },
        });
        ((*method).to_owned(), operation)
    });
    operations.collect()
}

/// Returns the fields of the options as parameters of the query.
fn parameters(options: &Kind) -> Vec<Value> {
    let message = rules::message(options.message.full_name());
    let fields = message.into_iter().flat_map(rules::Message::fields);
    let parameters = fields.map(|field| {
        let name = field.descriptor.json_name();
        let of = match name {
            "stdin" | "stdout" | "stderr" | "tty" => "boolean",
            "ports" => "integer",
            _ => "string",
        };
        let text = comments::of_field(&field.descriptor).unwrap_or_default();
        parameter(&(name, of, text))
    });
    parameters.collect()
}
