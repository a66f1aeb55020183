//! Where spans go and how, as the standard `OTEL_*` variables say
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/>).

use std::str::FromStr;
use std::time::Duration;

use opentelemetry_sdk::trace::Sampler;
use percent_encoding::percent_decode_str;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::Endpoint;

use super::outbox::Pace;

/// How long the collector may take for one batch.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Spans leave soon, so that little is lost with a process that is killed.
const DELAY: Duration = Duration::from_millis(200);
/// A burst of them fits. Some 10 MiB of them.
const QUEUE: usize = 32_768;
const BATCH: usize = 512;

/// A variable has a value that it cannot have.
#[derive(Debug, thiserror::Error)]
#[error("{variable} is {value:?}, which is no {wanted}")]
pub struct Error {
    variable: &'static str,
    value: String,
    wanted: &'static str,
}

/// What the variables say.
#[derive(Debug)]
pub(super) struct Environment {
    pub endpoint: Endpoint,
    pub headers: MetadataMap,
    pub pace: Pace,
    pub sampler: Sampler,
}

impl Environment {
    /// `of` answers a variable's value. `None` where no collector is named, or none is wanted.
    pub fn read(of: impl Fn(&'static str) -> Option<String>) -> Result<Option<Self>, Error> {
        let set = |name| {
            of(name)
                .filter(|value| !value.is_empty())
                .map(|value| (name, value))
        };
        // What is said of traces goes before what is said of all signals.
        let either = |of_traces, of_all| set(of_traces).or_else(|| set(of_all));
        let endpoint = either(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        );
        let is =
            |name, value: &str| set(name).is_some_and(|(_, set)| set.eq_ignore_ascii_case(value));
        let unwanted = is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none");
        let Some(endpoint) = endpoint.filter(|_| !unwanted) else {
            return Ok(None);
        };
        let headers = either(
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
        );
        let limit = either(
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
        );
        let limit = limit.map(milliseconds).transpose()?.unwrap_or(TIMEOUT);
        let delay = set("OTEL_BSP_SCHEDULE_DELAY")
            .map(milliseconds)
            .transpose()?;
        let queue = set("OTEL_BSP_MAX_QUEUE_SIZE").map(count).transpose()?;
        let batch = set("OTEL_BSP_MAX_EXPORT_BATCH_SIZE")
            .map(count)
            .transpose()?;
        let queue = queue.unwrap_or(QUEUE);
        Ok(Some(Self {
            endpoint: address(endpoint)?.timeout(limit),
            headers: headers.map(metadata).transpose()?.unwrap_or_default(),
            pace: Pace {
                delay: delay.unwrap_or(DELAY),
                queue,
                // The specification has it no larger than the queue.
                batch: batch.unwrap_or(BATCH).min(queue),
            },
            sampler: match set("OTEL_TRACES_SAMPLER") {
                Some(named) => sampler(named, set("OTEL_TRACES_SAMPLER_ARG"))?,
                None => Sampler::ParentBased(Box::new(Sampler::AlwaysOn)),
            },
        }))
    }
}

type Set = (&'static str, String);

fn parsed<T: FromStr>((variable, value): Set, wanted: &'static str) -> Result<T, Error> {
    value.parse().map_err(|_| Error {
        variable,
        value,
        wanted,
    })
}

fn milliseconds(set: Set) -> Result<Duration, Error> {
    parsed(set, "number of milliseconds").map(Duration::from_millis)
}

fn count(set: Set) -> Result<usize, Error> {
    let count: std::num::NonZeroUsize = parsed(set, "number above 0")?;
    Ok(count.get())
}

/// By the specification's names; `share` is that of the traces that are drawn, for those that take one.
fn sampler(named: Set, share: Option<Set>) -> Result<Sampler, Error> {
    let base = named.1.strip_prefix("parentbased_");
    let sampler = match base.unwrap_or(&named.1) {
        "always_on" => Sampler::AlwaysOn,
        "always_off" => Sampler::AlwaysOff,
        "traceidratio" => Sampler::TraceIdRatioBased(share.map_or(Ok(1.0), ratio)?),
        _ => {
            return Err(Error {
                variable: named.0,
                value: named.1,
                wanted: "sampler such as parentbased_traceidratio",
            });
        }
    };
    Ok(match base {
        Some(_) => Sampler::ParentBased(Box::new(sampler)),
        None => sampler,
    })
}

fn ratio((variable, value): Set) -> Result<f64, Error> {
    let ratio = value.parse().ok();
    ratio
        .filter(|ratio| (0.0..=1.0).contains(ratio))
        .ok_or(Error {
            variable,
            value,
            wanted: "number from 0 to 1",
        })
}

/// Without TLS, like all connections of ours.
fn address((variable, value): Set) -> Result<Endpoint, Error> {
    let endpoint = Endpoint::from_shared(value.clone()).ok();
    let plain = |endpoint: &Endpoint| endpoint.uri().scheme_str() == Some("http");
    endpoint.filter(plain).ok_or(Error {
        variable,
        value,
        wanted: "address such as http://localhost:4317",
    })
}

/// `key=value,key=value`, with `%20` and the like in the values.
fn metadata((variable, value): Set) -> Result<MetadataMap, Error> {
    let members = value
        .split(',')
        .map(str::trim)
        .filter(|member| !member.is_empty());
    let headers: Option<Vec<_>> = members.map(header).collect();
    let headers = headers.ok_or_else(|| Error {
        variable,
        // It may well be a secret.
        value: "…".to_owned(),
        wanted: "list such as key=value,key=value",
    })?;
    let mut metadata = MetadataMap::new();
    for (key, value) in headers {
        metadata.append(key, value);
    }
    Ok(metadata)
}

fn header(member: &str) -> Option<(AsciiMetadataKey, AsciiMetadataValue)> {
    let (key, value) = member.split_once('=')?;
    let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
    Some((key.trim().to_lowercase().parse().ok()?, value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMED: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317");

    fn read(variables: &[(&str, &str)]) -> Result<Option<Environment>, Error> {
        Environment::read(|name| {
            let found = variables.iter().rfind(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn error(variable: &str, value: &str) -> String {
        read(&[NAMED, (variable, value)]).unwrap_err().to_string()
    }

    #[test]
    fn spans_are_exported_only_where_a_collector_is_named() {
        let wanted = |variables| read(variables).unwrap().is_some();
        assert!(!wanted(&[]));
        assert!(!wanted(&[(NAMED.0, "")]));
        assert!(wanted(&[NAMED]));
        assert!(wanted(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", NAMED.1)]));
    }

    #[test]
    fn the_standard_switches_turn_spans_off() {
        let wanted = |name, value| read(&[NAMED, (name, value)]).unwrap().is_some();
        assert!(!wanted("OTEL_SDK_DISABLED", "TRUE"));
        assert!(!wanted("OTEL_TRACES_EXPORTER", "none"));
        assert!(wanted("OTEL_SDK_DISABLED", "false"));
    }

    #[test]
    fn what_is_not_said_is_as_the_specification_has_it_but_sooner() {
        let environment = read(&[NAMED, ("OTEL_EXPORTER_OTLP_HEADERS", "")])
            .unwrap()
            .unwrap();
        assert!(environment.headers.is_empty());
        let pace = Pace {
            delay: DELAY,
            queue: QUEUE,
            batch: BATCH,
        };
        assert_eq!(environment.pace, pace);
    }

    #[test]
    fn what_is_said_of_traces_goes_before_what_is_said_of_all() {
        let environment = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:1"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:2"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Tenant=a%20b, token=c=d"),
            ("OTEL_BSP_SCHEDULE_DELAY", "7"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "9"),
        ]);
        let environment = environment.unwrap().unwrap();
        assert_eq!(environment.endpoint.uri(), "http://traces:2/");
        let header = |name| environment.headers.get(name).unwrap().to_str().unwrap();
        assert_eq!((header("tenant"), header("token")), ("a b", "c=d"));
        let pace = Pace {
            delay: Duration::from_millis(7),
            queue: 9,
            batch: 9,
        };
        assert_eq!(environment.pace, pace);
    }

    #[test]
    fn samplers_have_the_specifications_names() {
        let sampler = |name, share| {
            let variables = [
                NAMED,
                ("OTEL_TRACES_SAMPLER", name),
                ("OTEL_TRACES_SAMPLER_ARG", share),
            ];
            read(&variables).map(|read| format!("{:?}", read.unwrap().sampler))
        };
        let said = |name, share| sampler(name, share).unwrap();
        assert_eq!(said("", ""), "ParentBased(AlwaysOn)");
        assert_eq!(said("always_on", ""), "AlwaysOn");
        assert_eq!(said("parentbased_always_off", ""), "ParentBased(AlwaysOff)");
        assert_eq!(said("traceidratio", ""), "TraceIdRatioBased(1.0)");
        let quarter = "ParentBased(TraceIdRatioBased(0.25))";
        assert_eq!(said("parentbased_traceidratio", "0.25"), quarter);
        for share in ["much", "1.1"] {
            let error = sampler("traceidratio", share).unwrap_err().to_string();
            let expected =
                format!("OTEL_TRACES_SAMPLER_ARG is {share:?}, which is no number from 0 to 1");
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let wrong = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://localhost:4317"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0"),
            ("OTEL_TRACES_SAMPLER", "sometimes"),
        ];
        for (variable, value) in wrong {
            let error = error(variable, value);
            let said = format!("{variable} is {value:?}, which is no ");
            assert!(error.starts_with(&said), "{error}");
        }
        let error = error("OTEL_EXPORTER_OTLP_HEADERS", "secret");
        assert!(!error.contains("secret"), "{error}");
    }
}
