//! The crate from outside: other people's test suites, our own vectors, and properties of every document.

#[cfg(test)]
mod building;
#[cfg(test)]
mod jcs;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod model;
#[cfg(test)]
mod names;
#[cfg(test)]
mod numbers;
#[cfg(test)]
mod packing;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod spelling;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod yaml;
#[cfg(test)]
mod yaml_suite;

/// A folder of other people's test data, which lies beside the project, if at all.
#[cfg(test)]
fn beside(folder: &str) -> Option<std::path::PathBuf> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora").join(folder);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: {folder} is not beside the project");
    None
}
