//! The reading and validation of a configuration, in upstream's words (`apis/apiserver/validation`).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use setpoint_document::{Error, Field, FieldErrors};

use crate::Configuration;
use crate::configuration::{Key, KmsProvider, Provider, Resources};
use crate::resources::GroupResource;

const API_VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "EncryptionConfiguration";
const PROVIDERS: [&str; 5] = ["aesgcm", "aescbc", "secretbox", "identity", "kms"];
const AES_KEYS: &[usize] = &[16, 24, 32];
const SECRETBOX_KEYS: &[usize] = &[32];
/// The time limit of a call of KMS, if none is given.
const KMS_TIMEOUT: Duration = Duration::from_secs(3);
/// Resources that are stored, but have no API.
const WITHOUT_API: [&str; 3] = [
    "apiserveripinfo",
    "serviceipallocations",
    "servicenodeportallocations",
];

/// Reads and validates a configuration.
pub(crate) fn configuration(document: &Value) -> Result<Configuration, String> {
    let field = Field::root("encryption configuration", document).confidential();
    let mut errors = FieldErrors::default();
    let configuration = read(&field, &mut errors).map_err(|error| error.to_string())?;
    errors.finish()?;
    check_masked(&configuration)?;
    Ok(configuration)
}

fn read(field: &Field<'_>, errors: &mut FieldErrors) -> Result<Configuration, Error> {
    field.fields(&["apiVersion", "kind", "metadata", "resources"])?;
    for (name, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        match text(field, name)?.as_str() {
            "" => errors.required(name, ""),
            given if given != wanted => errors.not_supported(name, given, &[wanted]),
            _ => {}
        }
    }
    let entries = items(field, "resources")?;
    if entries.is_empty() {
        errors.required("resources", "at least one resources is required");
    }
    let resources = entries.iter().map(|entry| resources(entry, errors));
    let resources = resources.collect::<Result<Vec<_>, _>>()?;
    check_unique(&resources, errors);
    Ok(Configuration { resources })
}

fn resources(field: &Field<'_>, errors: &mut FieldErrors) -> Result<Resources, Error> {
    field.fields(&["providers", "resources"])?;
    let path = field.name_of("resources");
    let names = field
        .get("resources")
        .map(|list| list.texts())
        .transpose()?;
    let names = names.unwrap_or_default();
    if names.is_empty() {
        errors.required(&path, &format!("at least one {path} is required"));
    }
    let parsed: Vec<_> = names
        .iter()
        .map(|name| GroupResource::parse(name))
        .collect();
    check_overlap(&path, &names, &parsed, errors);
    for (place, (name, parsed)) in names.iter().zip(&parsed).enumerate() {
        if let Some(problem) = problem_of(name, parsed) {
            errors.invalid(&format!("{path}[{place}]"), &json!(name), problem);
        }
    }
    let path = field.name_of("providers");
    let list = items(field, "providers")?;
    if list.is_empty() {
        errors.required(&path, &format!("at least one {path} is required"));
    }
    let mut providers = Vec::new();
    for item in &list {
        providers.extend(provider(item, errors)?);
    }
    Ok(Resources {
        resources: parsed,
        providers,
    })
}

/// Refuses resources of one list that are the same, or include each other.
fn check_overlap(path: &str, names: &[String], parsed: &[GroupResource], errors: &mut FieldErrors) {
    let pairs = || {
        let each = parsed.iter().enumerate();
        each.flat_map(|(place, one)| parsed[place + 1..].iter().map(move |other| (one, other)))
    };
    let includes = |one: &GroupResource, other: &GroupResource| {
        let is_group = one.is_whole_group() && one.group == other.group;
        one != other && (one.is_everything() || is_group)
    };
    if pairs().any(|(one, other)| one == other) {
        let detail = "the same resource cannot be specified multiple times";
        errors.invalid(path, &json!(names), detail);
    }
    if pairs().any(|(one, other)| includes(one, other) || includes(other, one)) {
        let detail = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked";
        errors.invalid(path, &json!(names), detail);
    }
}

/// Returns why a name cannot be that of resources.
fn problem_of(name: &str, parsed: &GroupResource) -> Option<&'static str> {
    let group = parsed.group.as_str();
    Some(match name {
        _ if name.to_lowercase() != name => "resource name should not contain capital letters",
        "*" => {
            "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
        }
        _ if WITHOUT_API.contains(&name) => {
            "resources which do not have REST API/s cannot be encrypted"
        }
        _ if group == "events.k8s.io" => {
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
        }
        _ if group == "extensions" => {
            "'extensions' group has been removed and cannot be used for encryption"
        }
        _ if group == "*" && !parsed.is_everything() => {
            "encrypting the same resource across groups is not supported"
        }
        _ => return None,
    })
}

/// Reads a provider; `None` after an error.
fn provider(field: &Field<'_>, errors: &mut FieldErrors) -> Result<Option<Provider>, Error> {
    field.fields(&PROVIDERS)?;
    // Those without a value are not given; `identity: {}` has one.
    let given: Vec<_> = PROVIDERS
        .iter()
        .filter_map(|name| field.get(name))
        .collect();
    let [one] = given.as_slice() else {
        let detail = match given.is_empty() {
            true => {
                "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
            }
            false => {
                "more than one provider specified in a single element, should split into different list elements"
            }
        };
        // Without the value, which may have keys.
        errors.invalid(&field.path, &json!("REDACTED"), detail);
        return Ok(None);
    };
    let name = PROVIDERS.iter().find(|name| field.get(name).is_some());
    Ok(match name.copied().unwrap_or_default() {
        "aesgcm" => Some(Provider::AesGcm(keys(one, AES_KEYS, errors)?)),
        "aescbc" => Some(Provider::AesCbc(keys(one, AES_KEYS, errors)?)),
        "secretbox" => Some(Provider::Secretbox(keys(one, SECRETBOX_KEYS, errors)?)),
        "identity" => {
            one.fields(&[])?;
            Some(Provider::Identity)
        }
        _ => Some(Provider::Kms(kms(one, errors)?)),
    })
}

fn kms(field: &Field<'_>, errors: &mut FieldErrors) -> Result<KmsProvider, Error> {
    field.fields(&["apiVersion", "cachesize", "endpoint", "name", "timeout"])?;
    let name = text(field, "name")?;
    if name.is_empty() {
        let detail = "name is a mandatory field for a provider";
        errors.required(&field.name_of("name"), detail);
    }
    if name.contains(':') {
        let detail = format!("invalid KMS provider name {name}, must not contain ':'");
        errors.invalid(&field.name_of("name"), &json!(name), &detail);
    }
    let timeout = timeout(field, errors)?;
    let socket = socket(field, errors)?;
    let version = text(field, "apiVersion")?;
    if let Some(size) = field.get("cachesize").filter(|_| version == "v2") {
        let detail = "cachesize is not supported in v2";
        errors.invalid(&size.path, size.value(), detail);
    }
    // Without a version, it is that of v1, as upstream.
    if version != "v2" {
        let detail = match version.as_str() {
            "" | "v1" => "KMSv1 is deprecated and not supported. Use KMSv2 instead.",
            _ => "unsupported apiVersion for KMS provider, only v2 is supported",
        };
        errors.invalid(&field.name_of("apiVersion"), &json!(version), detail);
    }
    Ok(KmsProvider {
        name,
        socket,
        timeout,
    })
}

fn timeout(field: &Field<'_>, errors: &mut FieldErrors) -> Result<Duration, Error> {
    let Some(given) = field.get("timeout") else {
        return Ok(KMS_TIMEOUT);
    };
    let text = given.text()?;
    let parsed = text.parse::<setpoint_proto::meta::Duration>();
    let length = parsed.map(|parsed| parsed.length()).unwrap_or_default();
    if length.is_zero() {
        let detail = "timeout should be a positive value";
        errors.invalid(&given.path, &json!(text), detail);
    }
    Ok(length)
}

fn socket(field: &Field<'_>, errors: &mut FieldErrors) -> Result<PathBuf, Error> {
    let (endpoint, path) = (text(field, "endpoint")?, field.name_of("endpoint"));
    let (scheme, rest) = endpoint.split_once(':').unwrap_or(("", &endpoint));
    let socket = rest.strip_prefix("//").unwrap_or(rest);
    let problem = match scheme {
        _ if endpoint.is_empty() => "endpoint is a mandatory field for a kms".to_owned(),
        "unix" if socket.starts_with("/@") => "sockets without a file are not supported".to_owned(),
        "unix" if socket.starts_with('/') => return Ok(socket.into()),
        "unix" => "invalid endpoint for kms provider, error: it has no absolute path".to_owned(),
        _ => format!("unsupported scheme {scheme:?} for KMS provider, only unix is supported"),
    };
    errors.invalid(&path, &json!(endpoint), &problem);
    Ok(PathBuf::new())
}

/// Refuses providers of KMS with the same name: the name is all that a value says about its provider.
fn check_unique(entries: &[Resources], errors: &mut FieldErrors) {
    let mut names = BTreeSet::new();
    for (entry, resources) in entries.iter().enumerate() {
        for (place, provider) in resources.providers.iter().enumerate() {
            if let Provider::Kms(KmsProvider { name, .. }) = provider
                && !names.insert(name)
            {
                let path = format!("resources[{entry}].providers[{place}].kms.name");
                let detail = format!("duplicate KMS provider name {name}, names must be unique");
                errors.invalid(&path, &json!(name), &detail);
            }
        }
    }
}

fn keys(field: &Field<'_>, lengths: &[usize], errors: &mut FieldErrors) -> Result<Vec<Key>, Error> {
    field.fields(&["keys"])?;
    let list = items(field, "keys")?;
    if list.is_empty() {
        errors.required(&field.name_of("keys"), "at least one keys is required");
    }
    list.iter().map(|item| key(item, lengths, errors)).collect()
}

fn key(field: &Field<'_>, lengths: &[usize], errors: &mut FieldErrors) -> Result<Key, Error> {
    field.fields(&["name", "secret"])?;
    let (name, secret) = (text(field, "name")?, text(field, "secret")?);
    if name.is_empty() {
        errors.required(
            &field.name_of("name"),
            "name is a mandatory field for a key",
        );
    }
    let path = field.name_of("secret");
    let decoded = BASE64_STANDARD.decode(&secret);
    match &decoded {
        _ if secret.is_empty() => {
            errors.required(&path, "secret is a mandatory field for a key");
        }
        Err(_) => errors.invalid(&path, &json!("REDACTED"), "secrets must be base64 encoded"),
        Ok(key) if !lengths.contains(&key.len()) => {
            let allowed: Vec<_> = lengths.iter().map(usize::to_string).collect();
            let detail = format!(
                "secret is not of the expected length, got {}, expected one of [{}]",
                key.len(),
                allowed.join(" ")
            );
            errors.invalid(&path, &json!("REDACTED"), &detail);
        }
        Ok(_) => {}
    }
    Ok(Key {
        name,
        secret: decoded.unwrap_or_default(),
    })
}

/// Refuses resources that an earlier entry includes: their own providers would have no effect.
fn check_masked(configuration: &Configuration) -> Result<(), String> {
    let mut earlier: Vec<&GroupResource> = Vec::new();
    for (place, entry) in configuration.resources.iter().enumerate() {
        for (at, resource) in entry.resources.iter().enumerate() {
            let masks = [resource.whole_group(), GroupResource::everything()];
            if let Some(mask) = masks.iter().find(|mask| earlier.contains(mask)) {
                return Err(format!(
                    "resources[{place}].resources[{at}]: resource \"{resource}\" is masked by earlier rule \"{mask}\""
                ));
            }
            earlier.push(resource);
        }
    }
    Ok(())
}

fn text(field: &Field<'_>, name: &str) -> Result<String, Error> {
    let text = field.get(name).map(|field| field.text()).transpose()?;
    Ok(text.unwrap_or_default())
}

fn items<'a>(field: &Field<'a>, name: &str) -> Result<Vec<Field<'a>>, Error> {
    match field.get(name) {
        Some(list) => Ok(list.items()?.collect()),
        None => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests;
