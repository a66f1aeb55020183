//! Questions as calls over gRPC, which change nothing, like those over HTTP.

use setpoint_codec::kinds;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::setpoint::{
    CreateRequest, DeleteRequest, GetRequest, ListRequest, PatchRequest, UpdateRequest,
    WatchRequest,
};
use setpoint_proto::{Any, ApiError, Reason};
use tonic::transport::Channel;

use super::questions::{ABSENT, Resources};
use super::table::Question;

/// The subresources that are messages; the others are streams.
const PARTS: [&str; 8] = [
    "approval",
    "binding",
    "ephemeralcontainers",
    "eviction",
    "finalize",
    "scale",
    "status",
    "token",
];

/// Returns whether a method can ask for this.
pub fn can_ask(resources: &Resources, asked: &Question) -> bool {
    let (whole, part) = parts(&asked.resource);
    let Some(served) = resources.get(&asked.resource) else {
        return false;
    };
    let is_served = served.verbs.contains(&asked.verb);
    let kind = kinds().by_resource(whole);
    let has_method = asked.verb != "deletecollection" && (part.is_empty() || PARTS.contains(&part));
    let has_method = has_method && (part.is_empty() || asked.verb != "delete");
    is_served && has_method && kind.is_some_and(|kind| !kind.is_computed)
}

fn parts(resource: &str) -> (&str, &str) {
    resource.split_once('/').unwrap_or((resource, ""))
}

/// Returns the message if the gateway forbids what is asked for.
pub async fn refusal(channel: Channel, asked: &Question) -> Option<String> {
    let error = call(ObjectsClient::new(channel), asked).await.err()?;
    let is_refused = error.reason == Reason::Forbidden;
    (is_refused && error.message.contains(&super::text_of(asked))).then_some(error.message)
}

async fn call(mut client: ObjectsClient<Channel>, asked: &Question) -> Result<(), ApiError> {
    let (resource, subresource) = parts(&asked.resource);
    let type_url = kinds().by_resource(resource).unwrap().type_url.clone();
    let object = Some(Any {
        type_url,
        ..Any::default()
    });
    let (resource, subresource) = (resource.to_owned(), subresource.to_owned());
    let (namespace, name) = (asked.namespace.clone(), asked.name.clone());
    let namespace = match resource.as_str() {
        "namespaces" => String::new(),
        _ => namespace,
    };
    let field_selector = match name.as_str() {
        "" | ABSENT => String::new(),
        name => format!("metadata.name={name}"),
    };
    let label_selector = "no=object".to_owned();
    macro_rules! call {
        ($method:ident, $type:ident { $($field:ident $(: $value:expr)?),+ }) => {
            client
                .$method($type { $($field $(: $value)?,)+ ..$type::default() })
                .await
                .map(|_| ())
        };
    }
    let outcome = match asked.verb.as_str() {
        "get" => call!(
            get,
            GetRequest {
                resource,
                subresource,
                namespace,
                name
            }
        ),
        "list" => call!(
            list,
            ListRequest {
                resource,
                namespace,
                label_selector,
                field_selector
            }
        ),
        "watch" => call!(
            watch,
            WatchRequest {
                resource,
                namespace,
                label_selector,
                field_selector
            }
        ),
        "create" => call!(
            create,
            CreateRequest {
                resource,
                subresource,
                namespace,
                name,
                object
            }
        ),
        "update" => call!(
            update,
            UpdateRequest {
                resource,
                subresource,
                namespace,
                name,
                object
            }
        ),
        "patch" => call!(
            patch,
            PatchRequest {
                resource,
                subresource,
                namespace,
                name,
                patch: b"{}".as_slice().into(),
                r#type: Type::Merge.into()
            }
        ),
        "delete" => call!(
            delete,
            DeleteRequest {
                resource,
                namespace,
                name
            }
        ),
        verb => panic!("there is no method for {verb}"),
    };
    outcome.map_err(ApiError::from)
}
