//! The conversion between versions.

use setpoint_proto::apiextensions::{
    CustomResourceConversion, CustomResourceDefinitionSpec, WebhookClientConfig,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;

use crate::admission::webhook;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const NONE: &str = "None";
const WEBHOOK: &str = "Webhook";
const DEFAULT_PORT: i32 = 443;

/// Sets the strategy `None` and the port of a Service.
pub(super) fn fill_defaults(conversion: &mut Option<CustomResourceConversion>) {
    let conversion = conversion.get_or_insert_with(|| CustomResourceConversion {
        strategy: NONE.into(),
        webhook: None,
    });
    let client = conversion.webhook.as_mut();
    let client = client.and_then(|webhook| webhook.client_config.as_mut());
    if let Some(service) = client.and_then(|client| client.service.as_mut()) {
        service.port.get_or_insert(DEFAULT_PORT);
    }
}

/// Validates the strategy and the webhook. The paths are upstream's, which are not those of the fields.
pub(super) fn validate(
    conversion: &CustomResourceConversion,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    match conversion.strategy.as_str() {
        "" => errors.required(&path.field("strategy"), ""),
        strategy => errors.one_of(&path.field("strategy"), strategy, &[NONE, WEBHOOK]),
    }
    let webhook = conversion.webhook.as_ref();
    let client = webhook.and_then(|webhook| webhook.client_config.as_ref());
    let versions = webhook.map_or(&[][..], |webhook| &webhook.conversion_review_versions);
    let (at, versions_at) = (
        path.field("webhookClientConfig"),
        path.field("conversionReviewVersions"),
    );
    if conversion.strategy == WEBHOOK {
        match client {
            None => errors.required(&at, "required when strategy is set to Webhook"),
            Some(client) => validate_client(client, &at, errors),
        }
        webhook::validate_versions(versions, "", &versions_at, errors);
        return;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if client.is_some() {
        errors.forbidden(&at, detail);
    }
    if !versions.is_empty() {
        errors.forbidden(&versions_at, detail);
    }
}

fn validate_client(client: &WebhookClientConfig, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match (&client.url, &client.service) {
        (Some(url), None) => webhook::validate_url(url, &path.field("url"), errors),
        (None, Some(service)) => {
            let service = webhook::Service {
                namespace: &service.namespace,
                name: &service.name,
                path: service.path.as_deref(),
                port: service.port,
            };
            webhook::validate_service(&service, &path.field("service"), errors);
        }
        _ => errors.required(path, "exactly one of url or service is required"),
    }
}

/// Requires valid certificates.
pub(super) fn validate_ca_bundle(spec: &CustomResourceDefinitionSpec, errors: &mut FieldErrors) {
    let bundle = ca_bundle(spec);
    if let Some(problem) = ca_bundle_problem(bundle) {
        let path = FieldPath::root("spec");
        let path = path.field("conversion");
        let path = path.field("webhookClientConfig");
        errors.invalid(&path.field("caBundle"), bundle, problem);
    }
}

/// Returns whether the webhook has certificates that are not valid. Empty ones are.
pub(super) fn has_invalid_ca_bundle(spec: &CustomResourceDefinitionSpec) -> bool {
    ca_bundle_problem(ca_bundle(spec)).is_some()
}

fn ca_bundle(spec: &CustomResourceDefinitionSpec) -> &[u8] {
    let webhook = spec
        .conversion
        .as_ref()
        .and_then(|one| one.webhook.as_ref());
    let client = webhook.and_then(|webhook| webhook.client_config.as_ref());
    client.map_or(&[], |client| &client.ca_bundle)
}

/// Returns why none of the blocks is a certificate; `None` if one is, or there is nothing.
fn ca_bundle_problem(pem: &[u8]) -> Option<String> {
    if pem.is_empty() {
        return None;
    }
    let mut problem = "unable to load root certificates: unable to parse bytes as PEM block".into();
    for block in Pem::iter_from_buffer(pem).map_while(Result::ok) {
        match X509Certificate::from_der(&block.contents) {
            _ if block.label != "CERTIFICATE" => {
                problem =
                    "unable to load root certificates: no valid certificate authority data seen"
                        .into();
            }
            Ok(_) => return None,
            Err(error) => {
                problem = format!(
                    "unable to load root certificates: failed to parse certificate: x509: {error}"
                );
            }
        }
    }
    Some(problem)
}
