//! The parameters of a binding: objects of the kind that its policy names.

use serde_json::Value;
use setpoint_codec::Kind;
use setpoint_kinds::versions;
use setpoint_model::Key;
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::ApiError;
use setpoint_proto::admissionregistration::{ParamKind, ParamRef};
use setpoint_store::cache::{AtLeast, Filter};

use super::hook::Binding;
use crate::admission::Admission;
use crate::admission::Attributes;
use crate::admission::request::document;
use crate::errors;

/// Returns the kind of the parameters of a policy, if it names one.
///
/// # Errors
/// If it is not served.
pub(super) fn kind_of_params(
    admission: &Admission,
    named: Option<&ParamKind>,
) -> Result<Option<&'static Kind>, String> {
    let Some(ParamKind { api_version, kind }) = named else {
        return Ok(None);
    };
    let found = admission.cache().kinds().by_kind(api_version, kind);
    match found.filter(|kind| kind.is_served() && !kind.is_review && !kind.is_computed) {
        Some(found) => Ok(Some(found)),
        None => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            Err(format!(
                "failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'"
            ))
        }
    }
}

/// Returns the parameters for which a binding is evaluated, each once; null if it has none. A binding for which nothing
/// was found is not evaluated, unless it denies the request then.
///
/// # Errors
/// If they cannot be determined.
pub(super) async fn collect(
    admission: &Admission,
    kind: Option<&'static Kind>,
    binding: &Binding,
    request: &Attributes<'_>,
) -> Result<Vec<Value>, String> {
    let (Some(kind), Some(reference)) = (kind, &binding.param_ref) else {
        return Ok(vec![Value::Null]);
    };
    let namespace = namespace(kind, reference, request)?;
    let found = match (&reference.name, &reference.selector) {
        (name, None) if !name.is_empty() => {
            let key = Key::new(namespace, name);
            read(admission, &Filter::all(kind, namespace), Some(&key)).await
        }
        (name, Some(selector)) if name.is_empty() => {
            let selector = Selector::from_label_selector(selector);
            let selector = selector.map_err(|error| error.to_string())?;
            let filter = Filter::new(kind, namespace, selector, &Fields::default());
            match filter {
                Ok(filter) => read(admission, &filter, None).await,
                Err(error) => Err(error),
            }
        }
        (_, Some(_)) => {
            return Err("paramRef.name and paramRef.selector are mutually exclusive".into());
        }
        _ => return Err("one of name or selector must be provided".into()),
    };
    let found = found.map_err(|error| error.message)?;
    let action = reference.parameter_not_found_action.as_deref();
    if found.is_empty() && action == Some("Deny") {
        let text = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return Err(text.into());
    }
    Ok(found)
}

/// Returns the namespace of the parameters: the one that is named, or that of the request.
fn namespace<'r>(
    kind: &Kind,
    reference: &'r ParamRef,
    request: &'r Attributes<'_>,
) -> Result<&'r str, String> {
    match (kind.namespaced, reference.namespace.as_str()) {
        (true, "") if request.namespace().is_empty() => Err(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                .into(),
        ),
        (true, "") => Ok(request.namespace()),
        (false, "") => Ok(""),
        (true, named) => Ok(named),
        (false, _) => {
            Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".into())
        }
    }
}

/// Returns the objects that a filter selects, or the only one of a key, in the version of the filter.
async fn read(
    admission: &Admission,
    filter: &Filter,
    key: Option<&Key>,
) -> Result<Vec<Value>, ApiError> {
    let cache = admission.cache();
    let items = match key {
        Some(key) => {
            let found = cache.get(filter.kind(), key, AtLeast::Any).await?;
            found.into_iter().collect()
        }
        None => {
            let listed = cache.list(filter, AtLeast::Any).await?;
            listed.complete(filter.kind())?.items
        }
    };
    let items = admission.converter().list_in_version(filter, items).await?;
    let mut found = Vec::with_capacity(items.len());
    for item in items {
        let object = errors::readable(item.decode())?;
        found.push(document(&*versions::of_stored(object, filter.served())));
    }
    Ok(found)
}
