//! The client of the Prometheus server. Every query is bounded: in time, in the size of its result, and in their
//! number.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use setpoint_proto::{ApiError, Reason};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::debug;

use super::values::Sample;
use crate::outbound::{self, NamedClient, Trust, named_client};

/// The number of queries in flight. Others wait, within their time.
const IN_FLIGHT: usize = 16;
/// The maximum size of a result in bytes: some ten thousand series.
const RESULT_MAX: usize = 16 << 20;
/// The maximum length in bytes of an error of the server in a message.
const QUOTED_MAX: usize = 512;
const FORM: &str = "application/x-www-form-urlencoded";

/// A Prometheus server.
pub(super) struct Prometheus {
    url: String,
    limit: Duration,
    http: NamedClient,
    queries: Semaphore,
}

impl fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prometheus")
            .field("url", &self.url)
            .finish()
    }
}

impl Prometheus {
    /// Returns the server at a URL, which must answer within `limit`.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub(super) fn new(url: String, limit: Duration) -> Result<Self, String> {
        let tls = outbound::tls(Trust::Bundle(&[]), None)?;
        Ok(Self {
            url: format!("{url}/api/v1/query"),
            limit,
            http: named_client(tls),
            queries: Semaphore::new(IN_FLIGHT),
        })
    }

    /// Evaluates a query now.
    ///
    /// # Errors
    /// `InternalError` if there is no result within the limit.
    pub(super) async fn query(&self, query: String) -> Result<Vec<Sample>, ApiError> {
        let result = match timeout(self.limit, self.call(&query)).await {
            Ok(result) => result,
            Err(_) => Err(format!("no answer of Prometheus within {:?}", self.limit)),
        };
        result.map_err(|why| {
            debug!(query, why, "a query of metrics failed");
            let message = format!("Internal error occurred: unable to fetch metrics: {why}");
            ApiError::new(Reason::InternalError, message)
        })
    }

    async fn call(&self, query: &str) -> Result<Vec<Sample>, String> {
        let permit = self.queries.acquire().await;
        let _permit = permit.map_err(|error| error.to_string())?;
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("query", query)
            .append_pair("timeout", &format!("{}ms", self.limit.as_millis()))
            .finish();
        // In the body, since the names of many objects exceed the length of a URL.
        let request = Request::post(&self.url)
            .header(CONTENT_TYPE, FORM)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "setpoint-gateway")
            .body(Full::new(form.into()))
            .map_err(|error| error.to_string())?;
        let response = self.http.request(request).await;
        let (head, body) = response
            .map_err(|error| outbound::cause(&error))?
            .into_parts();
        let body = Limited::new(body, RESULT_MAX).collect().await;
        let body = body.map_err(|error| match error.is::<LengthLimitError>() {
            true => format!("the result of Prometheus is larger than {RESULT_MAX} bytes"),
            false => outbound::cause(&*error),
        })?;
        samples(head.status, &body.to_bytes())
    }
}

/// An answer of the API of Prometheus.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    data: Option<Data>,
    #[serde(default)]
    error: String,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data {
    Vector(Vec<Series>),
    Matrix(IgnoredAny),
    Scalar(IgnoredAny),
    String(IgnoredAny),
}

#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    /// The time in seconds, and the value as text.
    #[serde(default)]
    value: Option<(f64, String)>,
}

/// Reads an answer.
fn samples(status: StatusCode, body: &[u8]) -> Result<Vec<Sample>, String> {
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|error| format!("Prometheus answered {status} with what is no result: {error}"))?;
    match answer.data {
        Some(Data::Vector(series)) if status.is_success() => {
            series.into_iter().map(Series::sample).collect()
        }
        Some(_) if status.is_success() => {
            Err("the query does not return an instant vector".to_owned())
        }
        _ => {
            let error: String = answer.error.chars().take(QUOTED_MAX).collect();
            Err(format!("Prometheus answered {status}: {error}"))
        }
    }
}

impl Series {
    fn sample(self) -> Result<Sample, String> {
        let (seconds, text) = self
            .value
            .ok_or("a series of the result has a histogram, and no value")?;
        let value = text.parse();
        let value = value.map_err(|_| format!("the value {text:?} of a series is no number"))?;
        let at = Timestamp::from_millisecond((seconds * 1000.0) as i64);
        Ok(Sample {
            labels: self.metric,
            at: at.map_err(|error| error.to_string())?,
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Result<Vec<Sample>, String> {
        samples(StatusCode::from_u16(status).unwrap(), body.as_bytes())
    }

    #[test]
    fn a_vector_has_the_value_of_each_series() {
        let read = read(
            200,
            r#"{"status":"success","data":{"resultType":"vector","result":[
                {"metric":{"pod":"a"},"value":[1.5,"0.25"]},{"metric":{},"value":[2,"+Inf"]}]}}"#,
        );
        let read = read.unwrap();
        assert_eq!(read[0].labels["pod"], "a");
        assert_eq!((read[0].at.as_millisecond(), read[0].value), (1500, 0.25));
        assert_eq!(read[1].value, f64::INFINITY);
    }

    #[test]
    fn anything_else_is_an_error_with_its_reason() {
        for (status, body, why) in [
            (
                400,
                r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#,
                "Prometheus answered 400 Bad Request: parse error",
            ),
            (
                200,
                r#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}"#,
                "the query does not return an instant vector",
            ),
            (
                200,
                r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}}"#,
                r#"the value "x" of a series is no number"#,
            ),
            (
                200,
                r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{}]}]}}"#,
                "a series of the result has a histogram, and no value",
            ),
            (
                502,
                "<html>",
                "Prometheus answered 502 Bad Gateway with what is no result: ",
            ),
        ] {
            let error = read(status, body).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
