//! What tools and models of hosted agents are reached through.
//!
//! Whom they ask stands in the operator's file. An address that is written there as a number, or as the name of this
//! machine, is taken as it is written; a name is resolved and its addresses are judged by the door, because whoever owns
//! the name says where it leads (decisions/0220). Nobody is sent on.

use super::{CONTENT_ENCODING, Door, DoorError, FetchError, Line, diagnose, identity};
use host::{Body, Http, HttpError, HttpRequest, HttpResponse, Pending};
use reqwest::{Method, Response};
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

/// How long an exchange may take at most; each request says how long it may take itself.
const TOTAL_MAX: Duration = Duration::from_secs(3_600);

/// The way out for hosted agents.
#[derive(Debug)]
pub struct Hosted {
    door: Arc<Door>,
    line: Line,
}

impl Hosted {
    /// A way out by this door, and by a line for addresses that are written as numbers.
    pub fn new(door: Arc<Door>) -> Result<Self, DoorError> {
        Ok(Self { door, line: Line::new(TOTAL_MAX, 0)? })
    }

    /// The client for an address.
    fn client(&self, address: &str) -> Result<(&reqwest::Client, Url), HttpError> {
        let url = Url::parse(address).map_err(|_| HttpError::Refused("this is no address"))?;
        match url.host() {
            Some(Host::Ipv4(_) | Host::Ipv6(_)) => Ok((self.line.client(), url)),
            Some(Host::Domain("localhost")) => Ok((self.line.client(), url)),
            _ if self.door.rootless => Err(refused(FetchError::NoRoots)),
            _ => match self.door.policy.admit(address, self.door.reach) {
                Ok(destination) => Ok((&self.door.client, destination.url().clone())),
                Err(error) => Err(refused(error)),
            },
        }
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (client, url) = self.client(&request.url)?;
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|_| HttpError::Refused("no such method"))?;
        let fields = request.headers.iter();
        let asking =
            fields.fold(client.request(method, url), |asking, (name, value)| asking.header(name.as_str(), value));
        let asking = match request.body {
            Some(body) => asking.body(body),
            None => asking,
        };
        let response = asking.timeout(request.time).send().await.map_err(|error| unanswered(&error))?;
        if !response.headers().get_all(CONTENT_ENCODING).iter().all(identity) {
            return Err(HttpError::Unusable("a compressed answer came"));
        }
        let headers = response.headers().iter();
        let headers = headers.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        let (status, headers) = (response.status().as_u16(), headers.collect());
        let body = Box::new(Arriving { response, left: request.bytes_max });
        Ok(HttpResponse { status, headers, body })
    }
}

impl Http for Hosted {
    fn send(&self, request: HttpRequest) -> Pending<'_, Result<HttpResponse, HttpError>> {
        Box::pin(self.exchange(request))
    }
}

/// A body while it arrives.
struct Arriving {
    response: Response,
    left: usize,
}

impl Body for Arriving {
    fn next(&mut self) -> Pending<'_, Result<Option<Vec<u8>>, HttpError>> {
        Box::pin(async {
            let lost = |error: reqwest::Error| if error.is_timeout() { HttpError::Timeout } else { HttpError::Lost };
            let Some(bytes) = self.response.chunk().await.map_err(lost)? else { return Ok(None) };
            self.left = self.left.checked_sub(bytes.len()).ok_or(HttpError::TooLarge)?;
            Ok(Some(bytes.to_vec()))
        })
    }
}

/// Why there is no answer, told apart by whether anything was sent.
fn unanswered(error: &reqwest::Error) -> HttpError {
    match diagnose(error) {
        found @ (FetchError::HostForbidden | FetchError::Certificate | FetchError::NotTls) => refused(found),
        _ if error.is_builder() => HttpError::Refused("the request cannot be written"),
        _ if error.is_connect() => HttpError::Unreachable,
        FetchError::Timeout => HttpError::Timeout,
        _ => HttpError::Lost,
    }
}

fn refused(error: FetchError) -> HttpError {
    HttpError::Refused(match error {
        FetchError::Url => "this is no https address without user information",
        FetchError::HostForbidden => "the address leads outside the public internet",
        FetchError::PortForbidden => "the address names a port that is not asked",
        FetchError::NoRoots => "there are no CA certificates to trust",
        FetchError::Certificate => "a certificate that proves nothing was shown",
        FetchError::NotTls => "nobody speaks TLS",
        FetchError::RateLimited
        | FetchError::Unreachable
        | FetchError::Timeout
        | FetchError::Redirect
        | FetchError::ContentEncoding
        | FetchError::TooLarge
        | FetchError::Gone
        | FetchError::Status => "the address cannot be asked",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbound::DoorPolicy;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    fn hosted() -> Hosted {
        Hosted::new(Arc::new(Door::new(DoorPolicy::default()).unwrap())).unwrap()
    }

    fn request(url: &str, bytes_max: usize) -> HttpRequest {
        HttpRequest {
            method: "PUT".to_owned(),
            url: url.to_owned(),
            headers: vec![("x-marker".to_owned(), "yes".to_owned())],
            body: Some(b"hello".to_vec()),
            time: Duration::from_secs(30),
            bytes_max,
        }
    }

    /// Answers every connection with these bytes, then ends it; gives back its address.
    async fn answering(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut heard = Vec::new();
                while !heard.ends_with(b"hello") {
                    if stream.read_buf(&mut heard).await.unwrap() == 0 {
                        break;
                    }
                }
                assert!(String::from_utf8_lossy(&heard).contains("x-marker: yes"));
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        format!("http://{address}/a")
    }

    #[tokio::test]
    async fn an_answer_arrives_in_pieces_and_within_its_bound() {
        let url =
            answering("HTTP/1.1 302 Found\r\nlocation: /b\r\nX-Kind: Seen\r\ncontent-length: 4\r\n\r\nabcd").await;
        let answer = hosted().send(request(&url, 4)).await.unwrap();
        assert_eq!((answer.status, answer.header("x-kind")), (302, Some("Seen")), "nobody is sent on");
        assert_eq!(answer.whole().await.unwrap(), b"abcd");
        let long = hosted().send(request(&url, 3)).await.unwrap();
        assert_eq!(long.whole().await, Err(HttpError::TooLarge));
        let cut = answering("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabcd").await;
        assert_eq!(hosted().send(request(&cut, 99)).await.unwrap().whole().await, Err(HttpError::Lost));
        let silent = answering("").await;
        assert_eq!(hosted().send(request(&silent, 99)).await.unwrap_err(), HttpError::Lost);
        let packed = answering("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n").await;
        assert!(matches!(hosted().send(request(&packed, 99)).await, Err(HttpError::Unusable(_))));
    }

    #[tokio::test]
    async fn what_was_not_sent_is_told_from_what_was() {
        assert_eq!(hosted().send(request("http://127.0.0.1:1/", 9)).await.unwrap_err(), HttpError::Unreachable);
        for url in
            ["http://tools.example/", "https://u:p@tools.example/", "https://internal/", "ftp://127.0.0.1/x", "x"]
        {
            let error = hosted().send(request(url, 9)).await.unwrap_err();
            assert!(matches!(error, HttpError::Refused(_)), "{url}: {error:?}");
        }
    }
}
