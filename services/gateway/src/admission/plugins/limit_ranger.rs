//! Enforcement of the limit ranges of a namespace (upstream: the admission plugin LimitRanger).

use setpoint_codec::Object;
use setpoint_kinds::StoredKind as _;
use setpoint_kinds::limitrange::constraint::{self, Usage};
use setpoint_kinds::limitrange::{CLAIM, CONTAINER, POD, fill};
use setpoint_kinds::{Subresource, Target};
use setpoint_model::amounts::{self, Amounts, Quantities};
use setpoint_model::quantity::Amount;
use setpoint_proto::ApiError;
use setpoint_proto::core::{
    Container, LimitRange, LimitRangeItem, PersistentVolumeClaim, Pod, PodSpec,
    ResourceRequirements,
};
use setpoint_store::cache::AtLeast;

use super::{Plugin, Step};
use crate::admission::reader::decode;
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;

/// The annotation of a Pod with the defaults that were set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The plugin.
pub(super) struct LimitRanger;

impl Plugin for LimitRanger {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        if request.operation != Operation::Create {
            return None;
        }
        let pod = object.downcast_mut::<Pod>()?;
        Some(Box::pin(fill_pod(pod, &request.target.namespace, reader)))
    }

    /// Checks a new object, or one that is resized, against the limit ranges of its namespace.
    fn check<'a>(&'a self, request: Attributes<'a>, reader: &'a dyn Reader) -> Option<Step<'a>> {
        let subject = subject_of(&request)?;
        Some(Box::pin(check_subject(subject, request.target, reader)))
    }
}

/// Sets the default requests and limits of the containers of a new Pod. Does nothing in a namespace without limit
/// ranges.
async fn fill_pod(pod: &mut Pod, namespace: &str, reader: &dyn Reader) -> Result<(), ApiError> {
    let ranges = ranges(namespace, reader).await?;
    if ranges.is_empty() {
        return Ok(());
    }
    // Requests default to limits first, and to the namespace's defaults only without those.
    pod.fill_defaults();
    for range in &ranges {
        fill_pod_from(pod, range);
    }
    Ok(())
}

/// An object that limit ranges bound.
enum Subject<'a> {
    Pod(&'a Pod),
    Claim(&'a PersistentVolumeClaim),
}

/// Returns the object of a request if limit ranges bound it: a Pod that is created or resized, a claim whose resources
/// change.
fn subject_of<'a>(request: &Attributes<'a>) -> Option<Subject<'a>> {
    let (new, old) = (request.object?, request.old);
    if let Some(pod) = new.downcast_ref::<Pod>() {
        let is_bounded = old.is_none() || request.target.subresource == Subresource::Resize;
        return is_bounded.then_some(Subject::Pod(pod));
    }
    let claim = new.downcast_ref::<PersistentVolumeClaim>()?;
    let old = old.and_then(|old| old.downcast_ref::<PersistentVolumeClaim>());
    let is_unchanged = old.is_some_and(|old| old.spec.resources == claim.spec.resources);
    (!is_unchanged).then_some(Subject::Claim(claim))
}

/// Checks an object against the limit ranges of its namespace.
///
/// # Errors
/// `Forbidden` if it is outside of the bounds.
async fn check_subject(
    subject: Subject<'_>,
    target: &Target,
    reader: &dyn Reader,
) -> Result<(), ApiError> {
    for range in ranges(&target.namespace, reader).await? {
        let problems = match subject {
            Subject::Pod(pod) => problems_of_pod(pod, &range),
            Subject::Claim(claim) => problems_of_claim(claim, &range),
        };
        if let Some(why) = aggregate(problems) {
            return Err(errors::forbidden(target, &why, None));
        }
    }
    Ok(())
}

/// Returns the limit ranges of a namespace. One that cannot be read is not ignored.
async fn ranges(namespace: &str, reader: &dyn Reader) -> Result<Vec<LimitRange>, ApiError> {
    let ranges = reader.all::<LimitRange>(namespace, AtLeast::Any).await?;
    ranges.iter().map(|range| decode(range)).collect()
}

fn fill_pod_from(pod: &mut Pod, range: &LimitRange) {
    let mut defaults = ResourceRequirements::default();
    for item in items(range, CONTAINER) {
        defaults.requests.extend(item.default_request.clone());
        defaults.limits.extend(item.default.clone());
    }
    let spec = &mut pod.spec;
    let mut set = Vec::new();
    for (containers, what) in [
        (&mut spec.containers, "container"),
        (&mut spec.init_containers, "init container"),
    ] {
        for container in containers {
            set.extend(fill_container(container, &defaults, what));
        }
    }
    if !set.is_empty() {
        let text = format!("LimitRanger plugin set: {}", set.join("; "));
        let annotations = &mut pod.metadata.annotations;
        annotations.insert(ANNOTATION.into(), text);
    }
}

fn items<'a>(range: &'a LimitRange, of: &'a str) -> impl Iterator<Item = &'a LimitRangeItem> {
    range
        .spec
        .limits
        .iter()
        .filter(move |item| item.r#type == of)
}

/// Sets the defaults of a container; returns their description.
fn fill_container(
    container: &mut Container,
    defaults: &ResourceRequirements,
    what: &str,
) -> Vec<String> {
    let resources = &mut container.resources;
    let mut set = Vec::new();
    for (list, defaults, field) in [
        (&mut resources.requests, &defaults.requests, "request"),
        (&mut resources.limits, &defaults.limits, "limit"),
    ] {
        let missing = defaults.keys().filter(|name| !list.contains_key(*name));
        let missing: Vec<_> = missing.map(String::as_str).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            set.push(format!("{missing} {field} for {what} {}", container.name));
            fill(list, defaults);
        }
    }
    set
}

fn problems_of_pod(pod: &Pod, range: &LimitRange) -> Vec<String> {
    let spec = &pod.spec;
    let mut problems = Vec::new();
    for item in items(range, CONTAINER) {
        for container in spec.containers.iter().chain(&spec.init_containers) {
            let usage = Usage {
                requests: amounts::of_list(&container.resources.requests),
                limits: amounts::of_list(&container.resources.limits),
            };
            problems.extend(problems_of(item, &usage));
        }
    }
    for item in items(range, POD) {
        let usage = Usage {
            requests: of_pod(spec, |resources| &resources.requests),
            limits: of_pod(spec, |resources| &resources.limits),
        };
        problems.extend(problems_of(item, &usage));
    }
    problems
}

/// Returns the sum over the containers, with the amounts of CPU and memory of the Pod as a whole in their place.
fn of_pod(spec: &PodSpec, list: impl Fn(&ResourceRequirements) -> &Quantities) -> Amounts {
    let mut sum = amounts::of_containers(spec, &list);
    let own = spec.resources.as_ref();
    let own = own
        .map(|own| amounts::of_list(list(own)))
        .unwrap_or_default();
    let own = own.into_iter();
    sum.extend(own.filter(|(name, _)| ["cpu", "memory"].contains(&name.as_str())));
    sum
}

fn problems_of_claim(claim: &PersistentVolumeClaim, range: &LimitRange) -> Vec<String> {
    let usage = Usage {
        requests: amounts::of_list(&claim.spec.resources.requests),
        limits: Amounts::new(),
    };
    let mut problems = Vec::new();
    for item in items(range, CLAIM) {
        problems.extend(each(&item.min, CLAIM, &usage, constraint::below_min));
        problems.extend(each(
            &item.max,
            CLAIM,
            &usage,
            constraint::request_above_max,
        ));
    }
    problems
}

fn problems_of(item: &LimitRangeItem, usage: &Usage) -> Vec<String> {
    let of = item.r#type.as_str();
    let mut problems = each(&item.min, of, usage, constraint::below_min);
    problems.extend(each(&item.max, of, usage, constraint::above_max));
    let ratios = &item.max_limit_request_ratio;
    problems.extend(each(ratios, of, usage, constraint::above_ratio));
    problems
}

fn each(
    bounds: &Quantities,
    of: &str,
    usage: &Usage,
    problem: fn(&str, &str, Amount, &Usage) -> Option<String>,
) -> Vec<String> {
    let bounds = amounts::of_list(bounds).into_iter();
    let problems = bounds.filter_map(|(name, bound)| problem(of, &name, bound, usage));
    problems.collect()
}

/// Returns the texts of several errors as upstream's aggregate: one as it is, several in brackets, each once.
fn aggregate(errors: Vec<String>) -> Option<String> {
    let mut unique = Vec::<String>::new();
    for error in errors {
        if !unique.contains(&error) {
            unique.push(error);
        }
    }
    match unique.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}
