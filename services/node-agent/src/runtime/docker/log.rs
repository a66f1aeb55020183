//! What a container wrote, as the engine kept it.

use bollard::query_parameters::LogsOptionsBuilder;
use futures::{StreamExt as _, TryStreamExt as _};

use super::engine::Engine;
use super::refused;
use crate::runtime::log::{Log, LogOptions};

/// Reads it from the engine; both of its outputs, in the order in which they were written.
pub fn read(engine: &Engine, handle: String, options: &LogOptions) -> Log {
    let tail = options
        .tail
        .map_or("all".to_owned(), |lines| lines.to_string());
    let since = options.since.unwrap_or_default().clamp(0, i32::MAX.into());
    let wanted = LogsOptionsBuilder::default()
        .stdout(true)
        .stderr(true)
        .follow(options.follow)
        .timestamps(options.timestamps)
        .tail(&tail)
        .since(i32::try_from(since).unwrap_or_default())
        .build();
    let pieces = engine.client.logs(&handle, Some(wanted));
    let pieces = pieces.map_ok(bollard::container::LogOutput::into_bytes);
    let failed = move |error| refused(format!("read the log of container {handle}"), error);
    pieces.map_err(failed).boxed()
}
