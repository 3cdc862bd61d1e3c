//! The crate from outside: the corpus of `conformance/payment`, random histories, and documents that somebody changed.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod tampering;
