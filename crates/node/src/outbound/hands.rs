//! How tools and models of hosted agents reach out: to addresses that the operator named in the node's configuration.
//!
//! The operator chose whom we ask, so no address is judged; what comes back is bounded while it arrives, and nobody is
//! sent on.

use super::{DoorError, FetchError, diagnose, identity, roots, tls};
use host::{Body, Http, HttpError, HttpRequest, HttpResponse, Pending};
use reqwest::header::{CONTENT_ENCODING, HeaderValue};
use reqwest::{Method, Response};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long a connection may take to stand.
const CONNECT: Duration = Duration::from_secs(5);

/// Sends the requests of tools and models.
#[derive(Clone, Debug)]
pub struct Hands {
    http: reqwest::Client,
}

impl Hands {
    /// Hands that trust what this machine trusts.
    pub fn new() -> Result<Self, DoorError> {
        // The name of this machine means this machine, whatever a resolver says.
        let here = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(roots())?)
            .resolve_to_addrs("localhost", &here)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT)
            .user_agent(concat!("rialto/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| DoorError::Setup(error.into()))?;
        Ok(Self { http })
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let until = Instant::now() + request.time;
        let refused = |_| HttpError::Refused("the address or the method is none");
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|_| refused(()))?;
        let url = reqwest::Url::parse(&request.url).map_err(|_| refused(()))?;
        let mut asked = self.http.request(method, url).header("accept-encoding", HeaderValue::from_static("identity"));
        for (name, value) in &request.headers {
            asked = asked.header(name.as_str(), value.as_str());
        }
        if let Some(body) = request.body {
            asked = asked.body(body);
        }
        let response = match timeout_at(until, asked.send()).await {
            Err(_) => return Err(HttpError::Timeout),
            Ok(Err(error)) => return Err(told(&error)),
            Ok(Ok(response)) => response,
        };
        if !response.headers().get_all(CONTENT_ENCODING).iter().all(identity) {
            return Err(HttpError::Unusable("the answer is compressed"));
        }
        if response.status().is_redirection() {
            return Err(HttpError::Unusable("the answer sends us elsewhere"));
        }
        let fields = response.headers().iter();
        let headers = fields.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        Ok(HttpResponse {
            status: response.status().as_u16(),
            headers: headers.collect(),
            body: Box::new(Arriving { response, left: request.bytes_max, until }),
        })
    }
}

impl Http for Hands {
    fn send(&self, request: HttpRequest) -> Pending<'_, Result<HttpResponse, HttpError>> {
        Box::pin(self.exchange(request))
    }
}

/// A body while it arrives.
struct Arriving {
    response: Response,
    left: usize,
    until: Instant,
}

impl Body for Arriving {
    fn next(&mut self) -> Pending<'_, Result<Option<Vec<u8>>, HttpError>> {
        Box::pin(async {
            let chunk = match timeout_at(self.until, self.response.chunk()).await {
                Err(_) => return Err(HttpError::Timeout),
                Ok(Err(_)) => return Err(HttpError::Lost),
                Ok(Ok(chunk)) => chunk,
            };
            let Some(chunk) = chunk else { return Ok(None) };
            self.left = self.left.checked_sub(chunk.len()).ok_or(HttpError::TooLarge)?;
            Ok(Some(chunk.to_vec()))
        })
    }
}

/// What happened, told apart by whether anything was sent.
fn told(error: &reqwest::Error) -> HttpError {
    match diagnose(error) {
        FetchError::Timeout => HttpError::Timeout,
        FetchError::Certificate | FetchError::NotTls => HttpError::Refused("the certificate proves nothing"),
        _ if error.is_connect() => HttpError::Unreachable,
        _ if error.is_builder() => HttpError::Refused("the request cannot be written"),
        _ => HttpError::Lost,
    }
}
