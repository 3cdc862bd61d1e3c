//! Chance: the only place of the command line where it enters.

use crate::failure::Failure;
use zeroize::Zeroizing;

/// A seed for a new key.
pub(crate) fn seed() -> Result<Zeroizing<[u8; 32]>, Failure> {
    let mut seed = Zeroizing::new([0; 32]);
    fill(seed.as_mut())?;
    Ok(seed)
}

/// A random UUID (RFC 9562, version 4).
pub(crate) fn uuid() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    let bits = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let mut text = format!("{bits:032x}");
    for position in [20, 16, 12, 8] {
        text.insert(position, '-');
    }
    Ok(text)
}

#[expect(clippy::disallowed_methods, reason = "the command line is where chance enters")]
fn fill(bytes: &mut [u8]) -> Result<(), Failure> {
    getrandom::fill(bytes).map_err(|error| Failure::files(format!("the system gives no random bytes: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        let (one, other) = (uuid().unwrap(), uuid().unwrap());
        assert_ne!(one, other);
        let parts: Vec<&str> = one.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "{one}");
    }
}
