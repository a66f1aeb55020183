//! What is logged, and how to change it while the process runs.

use tracing_subscriber::{EnvFilter, Registry, reload};

use super::Error;

/// The log filter of this process, for example `info` or `info,setpoint_machinery=debug`. Cheap to clone.
#[derive(Clone, Default)]
pub struct Log {
    handle: Option<reload::Handle<EnvFilter, Registry>>,
}

/// Parses a filter strictly: a typo is an error, not a log that stays silent.
pub fn parse(filter: &str) -> Result<EnvFilter, Error> {
    EnvFilter::builder()
        .parse(filter)
        .map_err(|source| Error::Filter {
            filter: filter.to_owned(),
            source,
        })
}

impl Log {
    pub fn of(handle: reload::Handle<EnvFilter, Registry>) -> Self {
        Self {
            handle: Some(handle),
        }
    }

    /// The filter in force.
    pub fn filter(&self) -> String {
        let filter = |handle: &reload::Handle<_, _>| handle.with_current(EnvFilter::to_string).ok();
        self.handle.as_ref().and_then(filter).unwrap_or_default()
    }

    /// Replaces the filter.
    pub fn set(&self, filter: &str) -> Result<(), Error> {
        let parsed = parse(filter)?;
        if let Some(handle) = &self.handle {
            // It fails only once the subscriber is gone, and then nobody is left to log.
            let _ = handle.reload(parsed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_with_a_typo_is_refused() {
        let error = Log::default().set("setpoint=loud").unwrap_err().to_string();
        assert!(
            error.starts_with("the log filter \"setpoint=loud\" is none"),
            "{error}"
        );
    }

    #[test]
    fn the_filter_in_force_is_the_last_one_set() {
        let (layer, handle) = reload::Layer::<EnvFilter, Registry>::new(parse("info").unwrap());
        let log = Log::of(handle);
        log.set("debug").unwrap();
        assert_eq!(log.filter(), "debug");
        drop(layer);
    }
}
