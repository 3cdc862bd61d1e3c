//! The public Python library `anp`, unmodified, in a process of its own.
//!
//! It is installed by name into a virtual environment beside the other files of the build, once for each version; so the
//! first run needs `python3` and its package index.

use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The library in a process of its own.
pub(crate) struct Library {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Where it hosts documents, on localhost.
    pub(crate) port: u16,
    /// The certificate authority of that host.
    pub(crate) authority: PathBuf,
}

impl Library {
    /// Starts a version of it for a test, whose name keeps its files apart from those of others.
    pub(crate) fn start(version: &str, test: &str) -> Self {
        let build = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let python = install(&build.join(format!("anp-{version}")), version);
        let folder = build.join(format!("anp-{version}-{test}"));
        fs::create_dir_all(&folder).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trust/tests/it/interop.py");
        let mut child =
            Command::new(python).arg(script).arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut library = Self { child, input, output, port: 0, authority: folder.join("authority.pem") };
        library.port = u16::try_from(library.answer()["port"].as_u64().unwrap()).unwrap();
        assert!(library.authority.exists(), "its host has a certificate");
        library
    }

    /// Lets it do something and gives what comes of it.
    pub(crate) fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.input, "{question}").unwrap();
        self.answer()
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("the library broke: {error}: {line}"))
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The interpreter of an environment that has the library; what is there from an earlier run is used again.
fn install(folder: &Path, version: &str) -> PathBuf {
    let (python, ready) = (folder.join("bin/python"), folder.join("ready-to-serve"));
    // Tests run side by side, and one of them installs.
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !ready.exists() {
        let _ = fs::remove_dir_all(folder);
        run(Command::new("python3").args(["-m", "venv"]).arg(folder));
        // Its own server needs the other two, and not all that its extra brings.
        let packages = [&format!("anp=={version}"), "fastapi<1", "uvicorn<1"];
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(packages));
        fs::write(ready, "").unwrap();
    }
    python
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
