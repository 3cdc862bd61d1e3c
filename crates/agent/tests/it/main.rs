//! The crate from outside: the corpus, properties of random engagements, replays, and the public corpus of CEL.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod replaying;
#[cfg(test)]
mod cel_spec;
