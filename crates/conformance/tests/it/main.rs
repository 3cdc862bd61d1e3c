//! The corpus and its runner from outside: green as it stands, red when something is wrong, and true to the schemas.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod engines;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod verdicts;

/// A place in the repository.
#[cfg(test)]
fn repository(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The corpus as it is checked in.
#[cfg(test)]
fn the_corpus() -> conformance::Corpus {
    conformance::Corpus::read(&repository("conformance/aql")).unwrap()
}
