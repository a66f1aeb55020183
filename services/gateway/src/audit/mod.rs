//! The start of audit: the policy and the back ends that the settings name. Requests are recorded in
//! [`crate::request::audit`].

mod settings;
mod webhook;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use setpoint_audit::{Auditor, Log, Policy, Sink, Webhook};

use crate::kubeconfig::Server;
pub(crate) use settings::Settings;

/// An auditor, and the file of its policy.
pub(crate) struct Audit {
    pub(crate) auditor: Arc<Auditor>,
    pub(crate) policy_file: PathBuf,
}

/// Reads the policy, and starts the back ends; `None` if requests are not recorded.
///
/// # Errors
/// If a file cannot be read or written, or is not valid.
pub(crate) fn start(settings: &Settings) -> anyhow::Result<Option<Audit>> {
    let Some(policy_file) = settings.policy_file() else {
        return Ok(None);
    };
    let policy = Policy::read_file(&policy_file).context("audit.policy_file")?;
    let mut sink = Sink::default();
    if let Some(log) = settings.log() {
        let path = log.path.display().to_string();
        sink = Log::start(log, settings.buffer(), sink)
            .with_context(|| format!("audit.log_path: opening {path}"))?;
    }
    if let Some(file) = settings.webhook_config_file() {
        let server = Server::read(&file).map_err(anyhow::Error::msg);
        let server = server.context("audit.webhook_config_file")?;
        sink = Webhook::start(
            webhook::Server(server),
            settings.batches(),
            settings.buffer(),
            sink,
        );
    }
    Ok(Some(Audit {
        auditor: Arc::new(Auditor::new(policy, sink)),
        policy_file,
    }))
}
