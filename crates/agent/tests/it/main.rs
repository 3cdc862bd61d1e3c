//! The crate from outside: the corpus, properties of random engagements, replays, the public corpus of CEL, and the orders of AgentDojo.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod dojo;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod replaying;
#[cfg(test)]
mod cel_spec;
