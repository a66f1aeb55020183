//! Validating webhooks: all that match a request are called at the same time.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use setpoint_proto::ApiError;

use super::Configuration;
use super::annotations;
use super::call::call;
use super::matching::matched;
use crate::admission::Admission;
use crate::admission::Attributes;
use crate::admission::request::Versions;
use crate::admission::request_data::RequestData;

/// The number of webhooks that are called for one request at the same time.
const CONCURRENT: usize = 16;

/// Calls validating webhooks about a request that is about to be committed. Adds their warnings to those of the
/// request.
///
/// # Errors
/// The denial of the first webhook, in their order, that denies it.
pub(in crate::admission) async fn validate(
    admission: &Admission,
    request: &Attributes<'_>,
    data: &RequestData,
    configurations: &[Arc<Configuration>],
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let (mut versions, mut calls) = (Versions::default(), Vec::new());
    let webhooks = configurations.iter().flat_map(|one| &one.webhooks);
    for (index, webhook) in webhooks.enumerate() {
        let matched = matched(admission, webhook, request, data, &mut versions);
        let Some(values) = matched.await? else {
            continue;
        };
        calls.push(async move {
            let mut warnings = Vec::new();
            let dry_run = request.context.dry_run;
            let called = call(admission, webhook, &values, dry_run, false, &mut warnings).await;
            let error = called.err();
            let failed = error.is_some();
            let error =
                error.and_then(|error| error.into_error(&webhook.name, webhook.ignores_failures));
            if failed && error.is_none() {
                annotations::ignored_validating(webhook, index);
            }
            (warnings, error)
        });
    }
    let outcomes: Vec<_> = stream::iter(calls).buffered(CONCURRENT).collect().await;
    let mut denial = None;
    for (told, error) in outcomes {
        warnings.extend(told);
        denial = denial.or(error);
    }
    denial.map_or(Ok(()), Err)
}
