//! The crate from outside: the corpus, descriptions of our own, and rubbish.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod writing;
#[cfg(test)]
mod rubbish;
