//! Where a message comes from, for the bounds that hang on it.
//!
//! The server knows the address at the other end of a connection; what is done for a message does not carry it along
//! but is done `within` it. Nothing of it reaches an answer.
//!
//! INVARIANT: a source bounds how many names come from it and how many engagements are guessed there, and decides nothing
//! else.

use std::future::Future;
use std::net::IpAddr;

tokio::task_local! {
    static SOURCE: IpAddr;
}

/// Does something for a message that came from an address.
pub async fn within<T>(source: IpAddr, deed: impl Future<Output = T>) -> T {
    SOURCE.scope(source, deed).await
}

/// Where the message at hand came from, when that is known.
pub(crate) fn current() -> Option<IpAddr> {
    SOURCE.try_with(|source| *source).ok()
}

/// Takes the source along to another thread.
pub fn carried<T>(job: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let source = current();
    move || match source {
        Some(source) => SOURCE.sync_scope(source, job),
        None => job(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_source_is_known_within_and_goes_along_to_other_threads() {
        assert_eq!(current(), None);
        let here: IpAddr = [192, 0, 2, 1].into();
        within(here, async {
            assert_eq!(current(), Some(here));
            let job = carried(current);
            assert_eq!(std::thread::spawn(job).join().unwrap(), Some(here));
        })
        .await;
        assert_eq!(std::thread::spawn(carried(current)).join().unwrap(), None);
    }
}
