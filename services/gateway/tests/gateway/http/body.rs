//! Decoding of request bodies, and the errors of malformed ones.

use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::json;
use setpoint_codec::{envelope, kinds};

use crate::http::api::{Api, CONFIGMAPS, DEPLOYMENTS, PROTOBUF, configmap, deployment};

#[tokio::test]
async fn a_body_without_a_content_type_is_json() {
    let api = Api::start().await;
    let reply = api
        .send(Request::post(CONFIGMAPS), configmap("a").to_string())
        .await;
    assert_eq!(reply.code, 201);
    assert_eq!(reply.ok()["kind"], "ConfigMap");
}

#[tokio::test]
async fn protobuf_is_decoded_and_encoded() {
    let api = Api::start().await;
    let kind = kinds().by_resource("configmaps").unwrap();
    let object = kind
        .from_json(configmap("a").to_string().as_bytes())
        .unwrap();
    let body = envelope::write("v1", "ConfigMap", &object.encode(), None);
    let request = Request::post(CONFIGMAPS).header(CONTENT_TYPE, PROTOBUF);
    assert_eq!(api.send(request, body).await.code, 201);
    let accept = "application/vnd.kubernetes.protobuf,application/json";
    let reply = api.get_as(&format!("{CONFIGMAPS}/a"), accept).await;
    assert_eq!(reply.headers["content-type"], PROTOBUF);
    let envelope = envelope::read(&reply.body).unwrap();
    assert_eq!(
        (envelope.api_version.as_str(), envelope.kind.as_str()),
        ("v1", "ConfigMap")
    );
    let object = kind.decode(&envelope.raw).unwrap();
    assert_eq!(object.meta().name, "a");
    assert!(!object.meta().resource_version.is_empty());
}

#[tokio::test]
async fn delete_options_are_decoded_from_protobuf() {
    let api = Api::start().await;
    api.configmap("a").await;
    let options = kinds().by_kind("v1", "DeleteOptions").unwrap();
    let options = options
        .from_json(br#"{"preconditions":{"uid":"another"}}"#)
        .unwrap();
    let body = envelope::write("policy/v1", "DeleteOptions", &options.encode(), None);
    let request = Request::delete(format!("{CONFIGMAPS}/a")).header(CONTENT_TYPE, PROTOBUF);
    api.send(request, body).await.refused(409, "Conflict");
}

#[tokio::test]
async fn other_content_types_are_not_supported() {
    let api = Api::start().await;
    let request =
        Request::post(CONFIGMAPS).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    let message = api
        .send(request, "a=b")
        .await
        .refused(415, "UnsupportedMediaType");
    assert!(message.starts_with("the body of the request was in an unknown format"));
    let accept = "application/cbor";
    let message = api
        .get_as(CONFIGMAPS, accept)
        .await
        .refused(406, "NotAcceptable");
    assert!(message.starts_with("only the following media types are accepted"));
}

#[tokio::test]
async fn a_large_body_is_refused_before_it_is_read_whole() {
    let api = Api::start().await;
    let body = vec![b' '; (3 << 20) + 1];
    let reply = api.send(Request::post(CONFIGMAPS), body).await;
    let message = reply.refused(413, "RequestEntityTooLarge");
    assert_eq!(message, "Request entity too large: limit is 3145728");
}

#[tokio::test]
async fn the_error_of_malformed_json_quotes_it() {
    let api = Api::start().await;
    let reply = api.send(Request::post(DEPLOYMENTS), r#"{"kind":"#).await;
    assert_eq!(
        reply.refused(400, "BadRequest"),
        "the object provided is unrecognized (must be of type Deployment): couldn't get version/kind; json parse error: unexpected end of JSON input (7b226b696e64223a)"
    );
}

#[tokio::test]
async fn the_error_of_a_wrongly_typed_value_names_its_field() {
    let api = Api::start().await;
    let mut body = deployment("web");
    body["spec"]["replicas"] = json!("three");
    let message = api.post(DEPLOYMENTS, body).await.refused(400, "BadRequest");
    assert_eq!(
        message,
        r#"Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"#
    );
}

#[tokio::test]
async fn an_object_of_another_kind_is_refused() {
    let api = Api::start().await;
    let mut body = deployment("web");
    body["apiVersion"] = json!("apps/v1beta1");
    let message = api.post(DEPLOYMENTS, body).await.refused(400, "BadRequest");
    assert_eq!(
        message,
        "the API version in the data (apps/v1beta1) does not match the expected API version (apps/v1)"
    );
    let body = json!({ "apiVersion": "v1", "kind": "Pod" });
    let message = api.post(DEPLOYMENTS, body).await.refused(400, "BadRequest");
    assert!(
        message.starts_with(r#"Pod in version "v1" cannot be handled as a Deployment"#),
        "{message}"
    );
}

#[tokio::test]
async fn unknown_fields_are_refused_warned_about_or_ignored_as_requested() {
    let api = Api::start().await;
    let with_typo = |name: &str| {
        let mut body = deployment(name);
        body["spec"]["replicaz"] = json!(3);
        body
    };
    let strict = format!("{DEPLOYMENTS}?fieldValidation=Strict");
    let message = api
        .post(&strict, with_typo("a"))
        .await
        .refused(400, "BadRequest");
    assert_eq!(
        message,
        r#"Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.replicaz""#
    );
    let reply = api.post(DEPLOYMENTS, with_typo("b")).await;
    assert_eq!(reply.code, 201);
    assert_eq!(
        reply.headers["warning"],
        r#"299 - "unknown field \"spec.replicaz\"""#
    );
    let ignore = format!("{DEPLOYMENTS}?fieldValidation=Ignore");
    let reply = api.post(&ignore, with_typo("c")).await;
    assert_eq!(reply.code, 201);
    assert!(!reply.headers.contains_key("warning"));
    let unknown = format!("{DEPLOYMENTS}?fieldValidation=Maybe");
    api.post(&unknown, deployment("d"))
        .await
        .refused(422, "Invalid");
}

/// Checks F4: pages of any site may send such a request without a preflight.
#[tokio::test]
async fn a_browser_must_set_the_content_type() {
    let api = Api::start().await;
    for (name, value) in [
        ("user-agent", "Mozilla/5.0 (X11)"),
        ("sec-fetch-site", "none"),
    ] {
        let request = Request::post(CONFIGMAPS).header(name, value);
        let reply = api.send(request, configmap("a").to_string()).await;
        reply.refused(415, "UnsupportedMediaType");
    }
}

/// Checks K21.
#[tokio::test]
async fn yaml_is_decoded_and_encoded() {
    let api = Api::start().await;
    let yaml = "metadata:\n  name: a\ndata:\n  on: 'yes'\n";
    let request = Request::post(CONFIGMAPS).header(CONTENT_TYPE, "application/yaml");
    assert_eq!(api.send(request, yaml).await.ok()["data"]["on"], "yes");
    for path in [CONFIGMAPS.to_owned(), format!("{CONFIGMAPS}/a")] {
        let reply = api.get_as(&path, "application/yaml").await;
        assert_eq!(reply.headers["content-type"], "application/yaml");
        let text = String::from_utf8(reply.body.to_vec()).unwrap();
        assert!(
            text.contains("kind: ConfigMap") && text.contains("name: a\n"),
            "{text}"
        );
    }
    let watch = format!("{CONFIGMAPS}?watch=true");
    let refused = api.get_as(&watch, "application/yaml").await;
    assert_eq!(refused.code, 406);
    assert!(
        refused
            .body
            .windows(13)
            .any(|text| text == b"NotAcceptable")
    );
}
