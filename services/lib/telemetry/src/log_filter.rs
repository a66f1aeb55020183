//! The log filter, which can be changed at run time.

use tracing_subscriber::{EnvFilter, Registry, reload};

use super::Error;

/// The log filter of this process, for example `info` or `info,setpoint_controller=debug`. Cheap to clone.
#[derive(Clone, Default)]
pub struct LogFilter {
    handle: Option<reload::Handle<EnvFilter, Registry>>,
}

/// Parses a filter. Invalid directives are errors; `EnvFilter::new` would ignore them.
pub(super) fn parse(filter: &str) -> Result<EnvFilter, Error> {
    EnvFilter::builder()
        .parse(filter)
        .map_err(|source| Error::Filter {
            filter: filter.to_owned(),
            source,
        })
}

impl LogFilter {
    pub(super) fn new(handle: reload::Handle<EnvFilter, Registry>) -> Self {
        Self {
            handle: Some(handle),
        }
    }

    /// Returns the filter.
    pub fn filter(&self) -> String {
        let filter = |handle: &reload::Handle<_, _>| handle.with_current(EnvFilter::to_string).ok();
        self.handle.as_ref().and_then(filter).unwrap_or_default()
    }

    /// Replaces the filter.
    pub fn set(&self, filter: &str) -> Result<(), Error> {
        let parsed = parse(filter)?;
        if let Some(handle) = &self.handle {
            // Fails only if the subscriber has been dropped, and then nothing is logged.
            let _ = handle.reload(parsed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_filter_is_rejected() {
        let error = LogFilter::default()
            .set("setpoint=loud")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("invalid log filter \"setpoint=loud\""),
            "{error}"
        );
    }

    #[test]
    fn filter_returns_the_last_filter_that_was_set() {
        let (layer, handle) = reload::Layer::<EnvFilter, Registry>::new(parse("info").unwrap());
        let log = LogFilter::new(handle);
        log.set("debug").unwrap();
        assert_eq!(log.filter(), "debug");
        drop(layer);
    }
}
