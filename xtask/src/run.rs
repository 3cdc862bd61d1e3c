//! Running other programs, with progress and timings a person can follow.
//!
//! INVARIANT: the first failure ends the run; nothing after it is started.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A sequence of named steps, each announced and timed.
#[derive(Default)]
pub struct Steps {
    done: Vec<(String, Duration)>,
}

impl Steps {
    /// Does one step, or says which one failed and after how long.
    pub fn step<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("==> {name}");
        let (outcome, took) = timed(work);
        match outcome {
            Ok(value) => {
                println!("    {name}: done in {}", seconds(took));
                self.done.push((name.to_owned(), took));
                Ok(value)
            }
            Err(error) => {
                println!("    {name}: FAILED after {}", seconds(took));
                Err(error.context(format!("stopped at `{name}`")))
            }
        }
    }

    /// Prints what each step took.
    pub fn summary(&self) {
        let total = self.done.iter().map(|(_, took)| *took).sum();
        println!("==> timings");
        for (name, took) in &self.done {
            println!("    {:>9}  {name}", seconds(*took));
        }
        println!("    {:>9}  in all", seconds(total));
    }
}

/// Runs `work` and measures it.
#[expect(clippy::disallowed_methods, reason = "chores report how long they took")]
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

/// A duration as people say it.
pub fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// `cargo` with these arguments, at the top of the repository.
pub fn cargo<S: AsRef<str>>(root: &Path, arguments: &[S]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(arguments.iter().map(AsRef::as_ref));
    command
}

/// `cargo` of the nightly toolchain, which only fuzzing needs.
pub fn nightly(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    // The pinned toolchain is inherited through this variable and would win over `+nightly` in nested calls.
    command.current_dir(root).env_remove("RUSTUP_TOOLCHAIN").arg("+nightly").args(arguments);
    command
}

/// Runs a command whose output goes straight to the terminal.
pub fn run(command: &mut Command) -> Result<()> {
    println!("    $ {}", spelled(command));
    let status = command.status().with_context(|| format!("cannot start `{}`", spelled(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", spelled(command));
    }
    Ok(())
}

/// Runs a command silently and returns what it wrote to standard output.
pub fn capture(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start `{}`", spelled(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}:\n{}", spelled(command), output.status, said.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` wrote no UTF-8", spelled(command)))
}

/// Whether a command starts and succeeds; its output is of no interest.
pub fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// What a command wrote while the terminal showed it, and whether it succeeded.
pub struct Echoed {
    /// Both streams; lines of one stream stay in order.
    pub output: String,
    /// Whether the exit status was zero.
    pub success: bool,
}

/// Runs a command, shows its output as it comes and keeps a copy.
pub fn echo(command: &mut Command) -> Result<Echoed> {
    println!("    $ {}", spelled(command));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", spelled(command)))?;
    let out = child.stdout.take().context("no standard output")?;
    let err = child.stderr.take().context("no standard error")?;
    let errors = thread::spawn(move || copy_lines(err, std::io::stderr()));
    let mut output = copy_lines(out, std::io::stdout())?;
    match errors.join() {
        Ok(lines) => output.push_str(&lines?),
        Err(_) => bail!("the reader of `{}` stopped", spelled(command)),
    }
    Ok(Echoed { output, success: child.wait()?.success() })
}

fn copy_lines(from: impl Read, mut to: impl Write) -> Result<String> {
    let mut from = BufReader::new(from);
    let mut kept = String::new();
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        to.flush()?;
        kept.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(kept)
}

/// A command as one would type it.
pub fn spelled(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_step_is_named_and_not_counted() {
        let mut steps = Steps::default();
        steps.step("first", || Ok(())).unwrap();
        let error = steps.step::<()>("second", || bail!("no")).unwrap_err();
        assert_eq!(format!("{error:#}"), "stopped at `second`: no");
        assert_eq!(steps.done.len(), 1);
    }

    #[test]
    fn both_streams_are_kept() {
        let echoed = echo(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"])).unwrap();
        assert!(echoed.output.contains("out\n") && echoed.output.contains("err\n"));
        assert!(!echoed.success);
    }

    #[test]
    fn a_failing_command_is_spelled_in_the_error() {
        let error = capture(Command::new("sh").args(["-c", "echo why >&2; exit 2"])).unwrap_err().to_string();
        assert!(error.contains("sh -c") && error.contains("why"), "{error}");
    }
}
