//! The crate from outside: an operator's file in, calls made and models asked.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod identities;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod models;
#[cfg(test)]
mod packages;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod wire;
#[cfg(test)]
mod world;
