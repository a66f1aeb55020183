//! Handlers that send HTTP requests.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, LOCATION, USER_AGENT};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use setpoint_host::unverified_tls;
use setpoint_proto::core::HttpGetAction;
use setpoint_runtime::{Connection, Runtime};
use tokio::time::timeout;

use super::{MAX_OUTPUT, Outcome, Target, VERSION, timed_out};

/// Maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 10;

/// An answer whose body was read, up to a limit.
struct Answer {
    status: StatusCode,
    location: Option<String>,
    body: String,
}

impl<R: Runtime> Target<R> {
    /// Sends the request of a probe. An answer below 400 is a success.
    pub(super) async fn probe_http(
        &self,
        action: &HttpGetAction,
        limit: Duration,
    ) -> Result<Outcome, String> {
        let (uri, headers) = self.request(action, "probe")?;
        let answer = timeout(limit, self.follow(uri.clone(), &headers)).await;
        let failed = |why: &str| Outcome::Failure(format!("Get \"{uri}\": {why}"));
        Ok(match answer {
            Err(_) => failed(&format!(
                "context deadline exceeded (Client.Timeout exceeded while awaiting headers) {}",
                timed_out(limit)
            )),
            Ok(Err(error)) => failed(&error),
            Ok(Ok(answer)) => judge(&answer),
        })
    }

    /// Sends the request of a hook. Any answer is a success.
    pub(super) async fn request_hook(&self, action: &HttpGetAction) -> Result<(), String> {
        let (uri, headers) = self.request(action, "lifecycle")?;
        match self.get(&uri, &headers).await {
            Ok(_) => Ok(()),
            Err(error) if uri.scheme() == Some(&Scheme::HTTPS) => {
                // A server that speaks HTTP answers the handshake with something else than TLS.
                let plain = with_scheme(&uri, Scheme::HTTP)?;
                self.get(&plain, &headers)
                    .await
                    .map(|_| ())
                    .map_err(|_| error)
            }
            Err(error) => Err(format!("Get \"{uri}\": {error}")),
        }
    }

    fn request(&self, action: &HttpGetAction, purpose: &str) -> Result<(Uri, HeaderMap), String> {
        let host = match action.host.as_str() {
            "" => self.ip.to_string(),
            host if host.contains(':') => format!("[{host}]"),
            host => host.to_owned(),
        };
        let scheme = action.scheme.to_ascii_lowercase();
        let scheme = if scheme == "https" {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        };
        let path = match action.path.as_str() {
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        let uri = Uri::builder()
            .scheme(scheme)
            .authority(format!("{host}:{}", self.port(&action.port)?))
            .path_and_query(path)
            .build();
        let uri = uri.map_err(|error| error.to_string())?;
        Ok((uri, headers(action, purpose)?))
    }

    /// Sends a request and follows redirects to the same host.
    async fn follow(&self, mut uri: Uri, headers: &HeaderMap) -> Result<Answer, String> {
        for _ in 0..MAX_REDIRECTS {
            let answer = self.get(&uri, headers).await?;
            let target = answer
                .location
                .as_deref()
                .filter(|_| answer.status.is_redirection());
            match target.and_then(|target| resolve(&uri, target)) {
                Some(next) if next.host() == uri.host() => uri = next,
                _ => return Ok(answer),
            }
        }
        Err("stopped after 10 redirects".to_owned())
    }

    async fn get(&self, uri: &Uri, headers: &HeaderMap) -> Result<Answer, String> {
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let connection = self.connect(host, port).await;
        let mut connection = connection.map_err(|error| error.to_string())?;
        if secure {
            connection = Box::pin(unverified_tls::connect(host, connection).await?);
        }
        exchange(connection, uri, headers)
            .await
            .map_err(|error| error.to_string())
    }
}

/// Sends one request over a connection.
async fn exchange(
    connection: Connection,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Answer, hyper::Error> {
    let io = TokioIo::new(connection);
    let (mut sender, driver) = hyper::client::conn::http1::handshake(io).await?;
    let mut request = Request::new(Empty::<Bytes>::new());
    let path = uri.path_and_query().cloned();
    *request.uri_mut() = path.unwrap_or(PathAndQuery::from_static("/")).into();
    request.headers_mut().clone_from(headers);
    if !headers.contains_key(HOST)
        && let Some(Ok(host)) = uri
            .authority()
            .map(|host| HeaderValue::from_str(host.as_str()))
    {
        request.headers_mut().insert(HOST, host);
    }
    let mut answer = pin!(async { read(sender.send_request(request).await?).await });
    // The connection is driven here: a task of its own for each request would cost more than the request.
    tokio::select! {
        answer = &mut answer => return answer,
        // Its errors are those of the request.
        _ = driver => {}
    }
    answer.await
}

async fn read(response: Response<Incoming>) -> Result<Answer, hyper::Error> {
    let status = response.status();
    let location = response.headers().get(LOCATION);
    let location = location.and_then(|location| location.to_str().ok().map(ToOwned::to_owned));
    let mut body = Vec::new();
    let mut incoming = response.into_body();
    while let Some(frame) = incoming.frame().await {
        if let Some(data) = frame?.data_ref() {
            let room = MAX_OUTPUT.saturating_sub(body.len()).min(data.len());
            body.extend_from_slice(&data[..room]);
        }
        if body.len() >= MAX_OUTPUT {
            break;
        }
    }
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Answer {
        status,
        location,
        body,
    })
}

fn judge(answer: &Answer) -> Outcome {
    match answer.status.as_u16() {
        200..=299 => Outcome::Success,
        300..=399 => Outcome::Warning(format!(
            "Probe terminated redirects, Response body: {}",
            answer.body
        )),
        status => Outcome::Failure(format!("HTTP probe failed with statuscode: {status}")),
    }
}

fn headers(action: &HttpGetAction, purpose: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for header in &action.http_headers {
        let name = HeaderName::try_from(&header.name).map_err(|error| error.to_string())?;
        let value = HeaderValue::try_from(&header.value).map_err(|error| error.to_string())?;
        headers.append(name, value);
    }
    if !headers.contains_key(USER_AGENT)
        && let Ok(agent) = HeaderValue::try_from(format!("kube-{purpose}/{VERSION}"))
    {
        headers.insert(USER_AGENT, agent);
    }
    match headers.get(ACCEPT) {
        None => drop(headers.insert(ACCEPT, HeaderValue::from_static("*/*"))),
        Some(empty) if empty.is_empty() => drop(headers.remove(ACCEPT)),
        Some(_) => {}
    }
    Ok(headers)
}

fn with_scheme(uri: &Uri, scheme: Scheme) -> Result<Uri, String> {
    let mut parts = uri.clone().into_parts();
    parts.scheme = Some(scheme);
    Uri::from_parts(parts).map_err(|error| error.to_string())
}

/// Returns the URI of a `Location` header, which may be relative to that of the request.
fn resolve(from: &Uri, location: &str) -> Option<Uri> {
    let target: Uri = location.parse().ok()?;
    if target.scheme().is_some() {
        return Some(target);
    }
    let path = match location {
        absolute if absolute.starts_with("//") => {
            let authority: Authority = target.authority()?.clone();
            let mut parts = target.clone().into_parts();
            (parts.scheme, parts.authority) = (from.scheme().cloned(), Some(authority));
            return Uri::from_parts(parts).ok();
        }
        absolute if absolute.starts_with('/') => absolute.to_owned(),
        relative => {
            let (folder, _) = from.path().rsplit_once('/')?;
            format!("{folder}/{relative}")
        }
    };
    let mut parts = from.clone().into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks N7.
    #[test]
    fn a_redirect_is_resolved_against_its_request() {
        let from: Uri = "http://10.0.0.1:80/a/b?c".parse().unwrap();
        let resolved = |location| resolve(&from, location).unwrap().to_string();
        assert_eq!(resolved("/x"), "http://10.0.0.1:80/x");
        assert_eq!(resolved("x"), "http://10.0.0.1:80/a/x");
        assert_eq!(resolved("https://10.0.0.1/x"), "https://10.0.0.1/x");
    }

    /// Checks N7.
    #[test]
    fn a_probe_passes_below_400_and_warns_of_redirects() {
        let judged = |status: u16| {
            judge(&Answer {
                status: StatusCode::from_u16(status).unwrap(),
                location: None,
                body: String::new(),
            })
        };
        assert_eq!(judged(200), Outcome::Success);
        assert!(matches!(judged(302), Outcome::Warning(_)));
        let failed = "HTTP probe failed with statuscode: 500".to_owned();
        assert_eq!(judged(500), Outcome::Failure(failed));
    }

    /// Checks N7.
    #[test]
    fn a_probe_names_itself_unless_its_headers_do() {
        let header = |name: &str, value: &str| setpoint_proto::core::HttpHeader {
            name: name.into(),
            value: value.into(),
        };
        let mut action = HttpGetAction::default();
        let plain = headers(&action, "probe").unwrap();
        assert_eq!(
            (&plain[USER_AGENT], &plain[ACCEPT]),
            (&"kube-probe/1.36".parse().unwrap(), &"*/*".parse().unwrap())
        );
        action.http_headers = vec![header("User-Agent", "me"), header("Accept", "")];
        let own = headers(&action, "probe").unwrap();
        assert!(own[USER_AGENT] == "me" && !own.contains_key(ACCEPT));
        action.http_headers = vec![header("bad name", "")];
        assert!(headers(&action, "probe").is_err());
    }
}
