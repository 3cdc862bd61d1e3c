//! A node that serves beside whatever else this process does.

use crate::failure::Failure;
use node::{Engagements, Hosting, Node, Wallet};
use payment::wallet::Holdings;
use server::{Bounds, Listening, Tls};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What a node does.
pub(crate) enum Role {
    /// It answers intents.
    Resolver,
    /// It answers intents, and hosts agents.
    Hosting(Box<Hosting>),
    /// It pays, for development and tests, from this data folder.
    Wallet(PathBuf, Holdings),
}

impl Role {
    /// Its routes; `url` is where it listens, which is its address for others where it has no public one.
    async fn router(
        self,
        node: &Arc<Node>,
        public_url: Option<&str>,
        url: &str,
        tls: bool,
    ) -> Result<(server::Router, Option<Arc<Engagements>>), Failure> {
        match self {
            Self::Resolver => Ok((server::router(Arc::clone(node), public_url, tls), None)),
            Self::Hosting(hosting) => {
                let engagements = Engagements::open(Arc::clone(node), *hosting).await;
                let engagements =
                    engagements.map_err(|error| Failure::files(format!("no agents are hosted: {error}")))?;
                let resumed = engagements.resume().map_err(|error| Failure::files(error.to_string()))?;
                if resumed > 0 {
                    tracing::info!(resumed, "engagements go on that were interrupted");
                }
                match node.record_agents(public_url.unwrap_or(url).trim_end_matches('/')) {
                    Ok(agents) => tracing::info!(agents, "hosted agents can be asked for"),
                    Err(error) => tracing::warn!(%error, "hosted agents have no records and cannot be asked for"),
                }
                let router = server::hosting(Arc::clone(node), Arc::clone(&engagements), public_url, tls);
                Ok((router, Some(engagements)))
            }
            Self::Wallet(data, holdings) => {
                let wallet = Wallet::open(Arc::clone(node), &data, holdings);
                let wallet = wallet.map_err(|error| Failure::files(format!("the wallet cannot start: {error}")))?;
                Ok((server::wallet(Arc::clone(node), Arc::new(wallet), public_url, tls), None))
            }
        }
    }
}

/// A node that answers over HTTP.
pub(crate) struct Serving {
    runtime: Runtime,
    node: Arc<Node>,
    url: String,
    listener: JoinHandle<()>,
    engagements: Option<Arc<Engagements>>,
    /// Where it says how it is, if it has a place of its own for that.
    health_url: Option<String>,
    /// Whoever waits for it ends when it is gone.
    stop: Option<oneshot::Sender<()>>,
}

impl Serving {
    /// Starts to serve; Ctrl-C and the system's wish to end are heard from here on.
    pub(crate) fn start(
        node: Node,
        listen: SocketAddr,
        public_url: Option<&str>,
        tls: Option<Tls>,
    ) -> Result<Self, Failure> {
        Self::start_with(node, Role::Resolver, listen, None, public_url, tls, |bounds| bounds)
    }

    /// The same in a role, with the usual bounds changed, and with a listener of its own for `/health`.
    pub(crate) fn start_with(
        node: Node,
        role: Role,
        listen: SocketAddr,
        health: Option<SocketAddr>,
        public_url: Option<&str>,
        tls: Option<Tls>,
        bound: impl FnOnce(Bounds) -> Bounds,
    ) -> Result<Self, Failure> {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let threads = node::threads(processors);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_stack_size(agent::ROOMY_STACK_BYTES)
            .on_thread_start(agent::has_room)
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Failure::files(format!("no threads to serve with: {error}")))?;
        let node = Arc::new(node);
        let (stop, stopped) = oneshot::channel();
        let listening = runtime.block_on(Listening::on(listen, tls)).map_err(|error| cannot_serve(&error))?;
        let bounds = bound(listening.bounds());
        let connections = bounds.connections.min(descriptors().1);
        let listening = listening.with_bounds(Bounds { connections, ..bounds });
        let health_url = match health {
            Some(address) => Some(runtime.block_on(serve_health(Arc::clone(&node), address))?),
            None => None,
        };
        let url = listening.url();
        let (router, engagements) = runtime.block_on(role.router(&node, public_url, &url, listening.is_tls()))?;
        let signal = runtime.block_on(async { stop_signal() })?;
        let listener = runtime.spawn(server::serve(listening, Arc::clone(&node), router, async move {
            tokio::select! {
                () = signal => {}
                _ = stopped => {}
            }
        }));
        Ok(Self { runtime, node, url, listener, engagements, health_url, stop: Some(stop) })
    }

    /// Where it says how it is, when that is a place of its own.
    pub(crate) fn health_url(&self) -> Option<&str> {
        self.health_url.as_deref()
    }

    /// Where it can be asked.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Who answers.
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Serves until somebody presses Ctrl-C or the system asks the process to end.
    pub(crate) fn until_told(self) -> Result<(), Failure> {
        let Self { runtime, node, listener, engagements, stop, .. } = self;
        let ended = runtime.block_on(listener);
        if let Some(engagements) = engagements {
            runtime.block_on(engagements.rest(node::FAREWELL));
        }
        drop((stop, runtime));
        ended.map_err(|error| Failure::files(format!("the node stopped serving: {error}")))?;
        match Arc::into_inner(node) {
            Some(node) => node.close().map_err(|error| Failure::files(error.to_string())),
            // A request that was cut off still holds it; the log has everything, the next start reads it.
            None => Ok(()),
        }
    }

    /// Ends now.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.stop.take();
        self.until_told()
    }
}

/// Connections to the listener for `/health`: a few watchers, and nobody else.
const HEALTH_CONNECTIONS_MAX: usize = 16;

/// Says how the node is at an address of its own, so that it is told just when there is no place left anywhere else.
async fn serve_health(node: Arc<Node>, address: SocketAddr) -> Result<String, Failure> {
    let listening = Listening::on(address, None).await.map_err(|error| cannot_serve(&error))?;
    let bounds = Bounds { connections: HEALTH_CONNECTIONS_MAX, ..listening.bounds() };
    let listening = listening.with_bounds(bounds);
    let url = listening.url();
    // It ends with the threads that serve it.
    let router = server::vital(Arc::clone(&node));
    tokio::spawn(server::serve(listening, node, router, std::future::pending()));
    Ok(url)
}

/// Descriptors that are kept back for files, for what is fetched, for whoever asks how the node is, and for those who
/// are turned away, for as long as it takes to tell them.
const DESCRIPTORS_KEPT: u64 = 768;

/// How many descriptors there are once the system gives all that it would, and for how many connections.
fn descriptors() -> (u64, usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let kept = DESCRIPTORS_KEPT.min(most / 4 * 3);
    (most, usize::try_from(most - kept).unwrap_or(usize::MAX).max(1))
}

/// Whether there are descriptors for more connections than usual, where somebody asks for them.
pub(crate) fn check_descriptors(connections: usize) -> Result<(), Failure> {
    let (most, fitting) = descriptors();
    // Of the usual ones as many are given as there are descriptors for.
    if connections <= fitting.max(node::EDGE.connections) {
        return Ok(());
    }
    let message = format!(
        "--connections {connections} is too many: this process may open {most} files, which is room for {fitting} \
         connections"
    );
    Err(Failure::usage(message)
        .help("raise the hard limit of open files (`ulimit -Hn`, `LimitNOFILE=`), or ask for fewer"))
}

/// Ends when the process is asked to end.
fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|error| Failure::files(format!("no signals can be heard: {error}")));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Why nobody can be served.
pub(crate) fn cannot_serve(error: &server::ServeError) -> Failure {
    Failure::files(error.to_string())
}
