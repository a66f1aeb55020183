//! Asking Jaeger's query API.

use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;
use setpoint_host::probe::fetch;
use tokio::net::lookup_host;
use tokio::time::timeout;

/// A cascade over thousands of Pods is some tens of megabytes.
const LONGEST: u64 = 256 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// What Jaeger at `url` answers for this path.
///
/// # Errors
/// When it cannot be reached, or answers something else than JSON.
pub async fn ask(url: &str, path: &str) -> anyhow::Result<Value> {
    let Some(rest) = url.strip_prefix("http://") else {
        bail!("{url} does not begin with http://");
    };
    let (host, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let address = match host.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => host.to_owned(),
        _ => format!("{host}:80"),
    };
    let mut found = lookup_host(&address).await.context("its host is unknown")?;
    let address = found.next().context("its host has no address")?;
    let answer = timeout(
        PATIENCE,
        fetch(address, &format!("{prefix}{path}"), LONGEST),
    )
    .await;
    let answer = answer.context("it does not answer")??;
    match answer.body.trim() {
        body if answer.is_ok() => serde_json::from_str(body).context("its answer is no JSON"),
        "" => bail!("{}", answer.status),
        body => bail!("{body}"),
    }
}
