//! The crate from outside: the corpus, mappings there and back, and what strangers try.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod checking;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod families;
#[cfg(test)]
mod mappings;
#[cfg(test)]
mod random;
