//! `setpoint encryption`: stores objects anew, after the keys that encrypt them have changed.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use futures::stream::{self, StreamExt as _};
use prost::Message as _;
use setpoint_proto::meta::PartialObjectMetadata;
use setpoint_proto::setpoint::metadata_client::MetadataClient;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{ListRequest, ListResponse, Object, RemoveMetadataRequest};
use setpoint_proto::{ApiError, Reason};
use tokio::time::sleep;
use tonic::transport::Channel;

use crate::connection::{Connection, WRITER};

/// The number of objects in a page.
const PAGE: i64 = 200;
/// The number of objects that are written at a time.
const CONCURRENT: usize = 8;
/// The number of times that an object is tried, while the gateway does not answer or is overloaded.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// The options of `setpoint encryption`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Write each object of resources unchanged, if it is stored in another way than the gateways' encryption
    /// configuration says; those that are not are left alone, so that it can be run again after it was interrupted
    Rewrite(RewriteOptions),
}

#[derive(Args, Clone, Debug)]
struct RewriteOptions {
    /// The resources, such as secrets or deployments.apps
    #[arg(default_values_t = ["secrets".to_owned()])]
    resources: Vec<String>,
}

/// The numbers of objects so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    written: usize,
    current: usize,
    /// Deleted meanwhile.
    gone: usize,
    failed: usize,
}

/// The outcome of the write of an object.
enum Outcome {
    Written,
    Current,
    Gone,
    Failed,
}

impl Counts {
    fn count(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Written => &mut self.written,
            Outcome::Current => &mut self.current,
            Outcome::Gone => &mut self.gone,
            Outcome::Failed => &mut self.failed,
        } += 1;
    }

    fn total(self) -> usize {
        self.written + self.current + self.gone + self.failed
    }

    fn text(self) -> String {
        let Self {
            written,
            current,
            gone,
            failed,
        } = self;
        let mut text = format!("{written} written anew, {current} stored as they should be");
        for (number, what) in [(gone, "deleted meanwhile"), (failed, "failed")] {
            if number > 0 {
                text.push_str(&format!(", {number} {what}"));
            }
        }
        text
    }
}

/// Runs the command. The exit code is a failure if an object could not be written or a resource not be read.
///
/// # Errors
/// No gateway is reachable.
pub async fn encryption(connection: &Connection, options: &Options) -> anyhow::Result<ExitCode> {
    let Command::Rewrite(options) = &options.command;
    let rewrite = Rewrite {
        channel: connection.gateway()?.channel(),
    };
    let mut succeeded = true;
    for resource in &options.resources {
        match rewrite.resource(resource).await {
            Ok(counts) => {
                println!("{resource}: done, {}", counts.text());
                succeeded &= counts.failed == 0;
            }
            Err(error) => {
                eprintln!("{resource}: {error:#}");
                succeeded = false;
            }
        }
    }
    match succeeded {
        true => Ok(ExitCode::SUCCESS),
        false => {
            eprintln!(
                "Some objects were not written anew: keep the former keys, and run this again"
            );
            Ok(ExitCode::FAILURE)
        }
    }
}

struct Rewrite {
    channel: Channel,
}

impl Rewrite {
    /// Writes the objects of a resource anew, page by page.
    async fn resource(&self, resource: &str) -> anyhow::Result<Counts> {
        let (mut counts, mut next) = (Counts::default(), String::new());
        loop {
            let page = self.page(resource, &next).await;
            let page = match page {
                // It took longer than the history is kept. What was written is not written again.
                Err(error) if error.reason == Reason::Expired && !next.is_empty() => {
                    println!("{resource}: reading it again from its beginning");
                    (counts, next) = (Counts::default(), String::new());
                    continue;
                }
                page => page.context("it cannot be read")?,
            };
            let outcomes = stream::iter(page.items)
                .map(|object| self.object(resource, object))
                .buffer_unordered(CONCURRENT);
            let outcomes: Vec<_> = outcomes.collect().await;
            outcomes.iter().for_each(|outcome| counts.count(outcome));
            if page.r#continue.is_empty() {
                return Ok(counts);
            }
            next = page.r#continue;
            let left = page.remaining.unwrap_or_default();
            println!("{resource}: {} done, {left} left", counts.total());
        }
    }

    async fn page(&self, resource: &str, next: &str) -> Result<ListResponse, ApiError> {
        let mut tries = 1;
        loop {
            let request = ListRequest {
                resource: resource.to_owned(),
                limit: PAGE,
                r#continue: next.to_owned(),
                ..ListRequest::default()
            };
            let answer = ObjectsClient::new(self.channel.clone()).list(request).await;
            match answer.map_err(ApiError::from) {
                Ok(page) => return Ok(page.into_inner()),
                Err(error) if is_temporary(&error) && tries < TRIES => {
                    sleep(PAUSE * tries).await;
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes an object unchanged: removes nothing of its metadata.
    async fn object(&self, resource: &str, object: Object) -> Outcome {
        let value = object.object.unwrap_or_default().value;
        let Ok(partial) = PartialObjectMetadata::decode(value) else {
            eprintln!("{resource}: an object has no metadata");
            return Outcome::Failed;
        };
        let metadata = partial.metadata;
        let request = RemoveMetadataRequest {
            resource: resource.to_owned(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid,
            field_manager: WRITER.to_owned(),
            ..RemoveMetadataRequest::default()
        };
        match self.write(request).await {
            Ok(revision) if revision == object.revision => Outcome::Current,
            Ok(_) => Outcome::Written,
            Err(error) if error.reason == Reason::NotFound => Outcome::Gone,
            Err(error) => {
                let (namespace, name) = (metadata.namespace, metadata.name);
                eprintln!("{resource} {namespace}/{name}: {}", error.message);
                Outcome::Failed
            }
        }
    }

    /// Returns the revision of the object then.
    async fn write(&self, request: RemoveMetadataRequest) -> Result<String, ApiError> {
        let mut tries = 1;
        loop {
            let mut client = MetadataClient::new(self.channel.clone());
            match client.remove(request.clone()).await.map_err(ApiError::from) {
                Ok(answer) => return Ok(answer.into_inner().revision),
                Err(error) if is_temporary(&error) && tries < TRIES => {
                    sleep(PAUSE * tries).await;
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns whether a request may succeed when it is sent again. The gateway retries conflicts itself.
fn is_temporary(error: &ApiError) -> bool {
    matches!(
        error.reason,
        Reason::Conflict | Reason::ServiceUnavailable | Reason::Timeout | Reason::TooManyRequests
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_name_what_went_wrong_only_if_something_did() {
        let mut counts = Counts::default();
        counts.count(&Outcome::Written);
        counts.count(&Outcome::Current);
        assert_eq!(counts.text(), "1 written anew, 1 stored as they should be");
        counts.count(&Outcome::Gone);
        counts.count(&Outcome::Failed);
        let text = "1 written anew, 1 stored as they should be, 1 deleted meanwhile, 1 failed";
        assert_eq!((counts.text().as_str(), counts.total()), (text, 4));
    }
}
