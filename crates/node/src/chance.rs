//! Chance: the only place of the node where it enters.

use crate::refusal::Error;

/// Random bytes from the system.
#[expect(clippy::disallowed_methods, reason = "the node is where chance enters")]
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::fault(format!("the system gives no random bytes: {error}")))?;
    Ok(bytes)
}

/// A name nobody else has: 128 random bits, without a hyphen at its beginning, which a command line takes for an option.
pub(crate) fn name() -> Result<String, Error> {
    loop {
        let name = trust::encoding::encode(&bytes::<16>()?);
        if !name.starts_with('-') {
            return Ok(name);
        }
    }
}
