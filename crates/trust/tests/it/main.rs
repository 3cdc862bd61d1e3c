//! The crate from outside: published vectors, hostile signatures, tampered documents.

#[cfg(test)]
mod cctv;
#[cfg(test)]
mod interop;
#[cfg(test)]
mod library;
#[cfg(test)]
mod tampering;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod wba;
#[cfg(test)]
mod wycheproof;
