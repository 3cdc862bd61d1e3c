//! Servers that others wrote, unmodified, installed by name beside the other files of the build, once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of `mcp-server-time` that is known to work.
pub(crate) const TIME: &str = "2026.10.19";

/// The program of a Python package in an environment of its own.
pub(crate) fn python(package: &str, version: &str) -> PathBuf {
    install(&format!("python-{package}-{version}"), |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(folder.join("bin/python")).args(pip).arg(format!("{package}=={version}")));
    })
    .join("bin")
    .join(package)
}

/// The script of an npm package of the protocol's own servers.
pub(crate) fn node(package: &str, version: &str) -> PathBuf {
    let scope = "@modelcontextprotocol";
    install(&format!("node-{package}-{version}"), |folder| {
        fs::create_dir_all(folder).unwrap();
        let npm = ["install", "--silent", "--no-audit", "--no-fund", "--prefix"];
        run(Command::new("npm").args(npm).arg(folder).arg(format!("{scope}/{package}@{version}")));
    })
    .join("node_modules")
    .join(scope)
    .join(package)
    .join("dist/index.js")
}

/// A folder that was filled; what is there from an earlier run is used again.
fn install(name: &str, fill: impl FnOnce(&Path)) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let ready = folder.join("ready");
    // Tests run side by side, and one of them installs.
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !ready.exists() {
        let _ = fs::remove_dir_all(&folder);
        fill(&folder);
        fs::write(ready, "").unwrap();
    }
    folder
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
