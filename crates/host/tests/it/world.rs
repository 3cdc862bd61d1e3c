//! What tests hand in: an environment, a folder, and a client that reaches nobody.

use host::{
    Configuration, ConfigurationError, Http, HttpError, HttpRequest, HttpResponse, Means, Pending, Pins, Toolbox,
};
use std::path::Path;
use std::sync::Arc;

/// A client that reaches nobody.
pub(crate) struct Nobody;

impl Http for Nobody {
    fn send(&self, _: HttpRequest) -> Pending<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async { Err(HttpError::Unreachable) })
    }
}

/// Reads a configuration in an environment with one marker in it.
pub(crate) fn read(text: &str, folder: &Path) -> Result<Configuration, ConfigurationError> {
    Configuration::read(text.as_bytes(), folder, &|name| (name == "MARKER").then(|| "marker-5f2d".to_owned()))
}

/// Opens the tools of a configuration.
pub(crate) async fn open(text: &str, folder: &Path) -> Toolbox {
    open_with(text, folder, Arc::new(Nobody), Pins::new()).await
}

/// The same with a client and what was approved before.
pub(crate) async fn open_with(text: &str, folder: &Path, http: Arc<dyn Http>, pins: Pins) -> Toolbox {
    let configuration = read(text, folder).unwrap_or_else(|error| panic!("{error}"));
    Toolbox::open(&configuration, Means { http, pins, visits: None }).await.unwrap()
}
