//! A span for each request, and, where an operator has a collector, the way of the spans there (OTLP over HTTP).
//!
//! Spans are of level debug: where nobody listens, asking whether somebody does is all they cost.

use axum::http::{HeaderMap, Method};
use tracing::{Span, debug_span};

/// The method of a request as it is logged and traced: of one that nobody knows nothing is told, it may be anything.
pub(crate) fn known(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}

/// The span of a request, inside the trace that the caller named in `traceparent`.
pub(crate) fn request_span(headers: &HeaderMap, method: &str, route: &str, id: &str) -> Span {
    let span = debug_span!(
        "request",
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        http.request.method = method,
        http.route = route,
        http.response.status_code = tracing::field::Empty,
        oap.request_id = id,
    );
    #[cfg(feature = "otel")]
    if !span.is_disabled() {
        export::adopt(&span, headers);
    }
    #[cfg(not(feature = "otel"))]
    let _ = headers;
    span
}

#[cfg(feature = "otel")]
pub use export::{Exporter, ExporterError};

#[cfg(feature = "otel")]
mod export {
    use axum::http::HeaderMap;
    use node::{Line, Message};
    use opentelemetry::propagation::TextMapPropagator;
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError, Request, Response};
    use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use std::pin::Pin;
    use std::time::Duration;
    use tokio::runtime::Runtime;
    use tracing::{Level, Span, Subscriber};
    use tracing_opentelemetry::OpenTelemetrySpanExt;
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::registry::LookupSpan;

    /// How long a collector may take.
    const COLLECTOR_TIME: Duration = Duration::from_secs(5);
    /// Bytes that a collector may answer.
    const REPLY_BYTES_MAX: usize = 64 * 1024;

    /// Why spans cannot be sent.
    #[derive(Debug, thiserror::Error)]
    #[error("spans cannot be sent to a collector: {0}")]
    pub struct ExporterError(String);

    /// Sends spans to a collector; what is left is sent by [`Exporter::close`].
    #[derive(Debug)]
    pub struct Exporter(SdkTracerProvider);

    impl Exporter {
        /// Prepares for the collector at `endpoint`, such as `http://127.0.0.1:4318`.
        pub fn new(endpoint: &str) -> Result<Self, ExporterError> {
            let exporter = SpanExporter::builder()
                .with_http()
                .with_http_client(Courier::new()?)
                .with_protocol(Protocol::HttpBinary)
                .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
                .with_timeout(COLLECTOR_TIME)
                .build()
                .map_err(failed)?;
            let resource = Resource::builder().with_service_name("rialto").build();
            Ok(Self(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build()))
        }

        /// The layer that hears the spans of our crates, whatever the log shows.
        pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
            let ours = Targets::new().with_target("server", Level::DEBUG).with_target("node", Level::DEBUG);
            tracing_opentelemetry::layer().with_tracer(self.0.tracer("rialto")).with_filter(ours)
        }

        /// Sends what is left and ends.
        pub fn close(self) {
            if let Err(error) = self.0.shutdown() {
                tracing::warn!(%error, "the last spans did not reach the collector");
            }
        }
    }

    /// Puts a span under the one that the caller told us of.
    pub(super) fn adopt(span: &Span, headers: &HeaderMap) {
        let parent = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        // It fails only where no layer of ours listens, and then there is nothing to adopt.
        let _ = span.set_parent(parent);
    }

    fn failed(error: impl ToString) -> ExporterError {
        ExporterError(error.to_string())
    }

    /// Carries batches to the collector. The operator names it, so it is asked on a line of its own and not through the
    /// door that strangers' addresses go through; and batches come from a thread without a runtime, so it has its own.
    #[derive(Debug)]
    struct Courier {
        line: Line,
        runtime: Runtime,
    }

    impl Courier {
        fn new() -> Result<Self, ExporterError> {
            let line = Line::new(COLLECTOR_TIME, REPLY_BYTES_MAX).map_err(failed)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
            Ok(Self { line, runtime })
        }
    }

    impl HttpClient for Courier {
        // Written out as the trait's macro would.
        fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Pin<Box<dyn Future<Output = Sent> + Send + 'b>>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(std::future::ready(self.carry(request)))
        }
    }

    type Sent = Result<Response<Bytes>, HttpError>;

    impl Courier {
        fn carry(&self, request: Request<Bytes>) -> Sent {
            let (parts, body) = request.into_parts();
            let url = parts.uri.to_string();
            let headers = parts.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
            let headers: Vec<(&str, &str)> = headers.collect();
            let message = Message { method: parts.method.as_str(), url: &url, headers: &headers, body: Some(&body) };
            let reply = self.runtime.block_on(self.line.exchange(&message))?;
            Ok(Response::builder().status(reply.status).body(reply.body.into())?)
        }
    }
}
