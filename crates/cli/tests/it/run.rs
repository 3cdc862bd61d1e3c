//! Running `rialto` in a home of its own.

use json::{Document, Limits, Value};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory that belongs to one test.
pub(crate) struct Home(PathBuf);

/// What a run left behind.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    /// An empty directory; the name is the test's.
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(&[], "", arguments)
    }

    /// Runs in the root of the repository, where `examples/` is.
    pub(crate) fn run_with(&self, environment: &[(&str, &str)], input: &str, arguments: &[&str]) -> Ran {
        let mut child = self.command(environment, arguments).spawn().unwrap();
        // A command that does not read closes the pipe, which is its right.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Ran {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn command(&self, environment: &[(&str, &str)], arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
        command
            .args(arguments)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .env_clear()
            .env("RIALTO_HOME", &self.0)
            .env("COLUMNS", "100")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

impl Ran {
    /// The output, of a run that must end with `code`.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "\n{}{}", self.out, self.err);
        self
    }

    /// The output read as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        Document::parse(self.out.as_bytes(), &Limits::OURS).unwrap().root().to_value()
    }

    #[track_caller]
    pub(crate) fn says(&self, words: &str) -> &Self {
        assert!(self.out.contains(words), "`{words}` is not in\n{}", self.out);
        self
    }

    #[track_caller]
    pub(crate) fn complains(&self, words: &str) -> &Self {
        assert!(self.err.contains(words), "`{words}` is not in\n{}", self.err);
        self
    }
}

/// An intent of the examples.
pub(crate) fn intent(name: &str) -> String {
    format!("examples/intents/{name}.json")
}

/// A market of the examples.
pub(crate) fn market(name: &str) -> String {
    format!("examples/market/{name}.ndjson")
}
