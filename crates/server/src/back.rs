//! The back room: whoever was mostly refused is heard by one thread that stands back for all others (decisions/0257).
//!
//! A refusal costs as much as an answer: bytes are read, a signature is checked and another made. Done on the threads
//! that answer everybody, it takes their time even when it is done one by one. So connections of such sources are served
//! by a runtime of their own at the lowest priority; what they need written is done by the others' threads, since
//! somebody may wait for it.
//!
//! INVARIANT: what is said in the back room is what would be said in front.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The back room, until this is dropped.
#[derive(Debug)]
pub(crate) struct Back {
    door: Door,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The way into the back room.
#[derive(Clone, Debug)]
pub(crate) struct Door(Handle);

impl Back {
    pub(crate) fn open() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (door, (stop, stopped)) = (Door(runtime.handle().clone()), oneshot::channel::<()>());
        let thread = std::thread::Builder::new().name("back".into()).spawn(move || {
            node::stand_back();
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        Ok(Self { door, stop: Some(stop), thread: Some(thread) })
    }

    pub(crate) fn door(&self) -> Door {
        self.door.clone()
    }
}

impl Door {
    /// Serves a connection in the back room.
    pub(crate) fn take<F: Future<Output = ()> + Send + 'static>(
        &self,
        stream: TcpStream,
        serve: impl FnOnce(TcpStream) -> F + Send + 'static,
    ) {
        // A socket belongs to the runtime that waits for it.
        let Ok(stream) = stream.into_std() else { return };
        self.0.spawn(async move {
            if let Ok(stream) = TcpStream::from_std(stream) {
                serve(stream).await;
            }
        });
    }
}

impl Drop for Back {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
