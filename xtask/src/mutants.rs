//! Whether the tests of a crate notice what `cargo mutants` would change in it, without building it for each change.
//!
//! The list of mutants is that of `cargo mutants`. A copy of the tree is made under `target/mutants` in which all mutants
//! of the crate stand side by side (`switch`), what does not compile is taken out again, and the tests are built once.
//! Each test is run alone and says which mutants it reaches; then each mutant is on for the tests that reach it
//! (`trial`). The results are kept, so that a run that was ended goes on: delete the folder to begin anew.

mod switch;
mod trial;

use crate::run;
use anyhow::{Context, Result, bail, ensure};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use switch::{Mutant, Switcher};
use syn::visit_mut::VisitMut;

/// Where a mutated crate looks which of its mutants is on, and where it tells which it came by.
const SWITCHBOARD: &str = r#"
#[doc(hidden)]
pub mod __m {
    use std::io::Write;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    const TOLD: usize = usize::MAX - 1;
    const UNKNOWN: usize = usize::MAX;
    static ON: AtomicUsize = AtomicUsize::new(UNKNOWN);
    static REACHED: LazyLock<String> = LazyLock::new(|| std::env::var("MUTANT_REACHED").unwrap());
    static SEEN: [AtomicBool; 8192] = [const { AtomicBool::new(false) }; 8192];
    #[inline(always)]
    pub fn m(mutant: usize) -> bool {
        let on = ON.load(Ordering::Relaxed);
        on == mutant || (on >= TOLD && look(mutant))
    }
    #[cold]
    #[inline(never)]
    fn look(mutant: usize) -> bool {
        if ON.load(Ordering::Relaxed) == UNKNOWN {
            let told = std::env::var("MUTANT_REACHED").map_or(0, |_| TOLD);
            ON.store(std::env::var("MUTANT").map_or(told, |on| on.parse().unwrap()), Ordering::Relaxed);
            return m(mutant);
        }
        if !SEEN[mutant % 8192].swap(true, Ordering::Relaxed) {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(&*REACHED);
            file.unwrap().write_all(format!("{mutant}\n").as_bytes()).unwrap();
        }
        false
    }
}
"#;

/// A copy of the tree in which a crate is mutated, and what is known of its mutants.
struct Copy {
    crate_name: String,
    tree: PathBuf,
    state: PathBuf,
}

/// Which mutants are tried, and how many at a time.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Which part of them, from nought on: those whose number leaves this rest.
    pub part: usize,
    /// Of how many parts.
    pub of: usize,
    /// How many at a time.
    pub jobs: usize,
    /// Whether those that lived are tried once more.
    pub again: bool,
}

/// Tries the mutants of a crate, or of some of its files, and prints what became of them.
pub fn command(root: &Path, crate_name: &str, files: &[String], share: Share) -> Result<()> {
    ensure!(root.join("crates").join(crate_name).is_dir(), "there is no crate `{crate_name}`");
    ensure!(share.part < share.of, "of {} parts there is none with the number {}", share.of, share.part);
    let home = root.join("target/mutants").join(crate_name);
    let copy = Copy { crate_name: crate_name.to_owned(), tree: home.join("tree"), state: home.join("state") };
    fs::create_dir_all(&copy.state)?;
    let package = format!("rialto-{crate_name}");
    let mut list = run::cargo(root, &["mutants", "--list", "--json", "--package", &package]);
    list.args(files.iter().flat_map(|file| ["--file", file]));
    let listed = run::capture(&mut list).context("the list comes from cargo-mutants: `cargo install cargo-mutants`")?;
    let mutants: Vec<Mutant> = serde_json::from_str(&listed)?;
    ensure!(!mutants.is_empty(), "there is nothing to change there");
    copy.refresh(root, &mutants)?;
    let (placed, unviable) = copy.mutate(root, &mutants)?;
    let left_out = mutants.len() - placed.len() - unviable;
    println!("{} mutants: {} switched, {unviable} not viable, {left_out} left out", mutants.len(), placed.len());
    let tests = trial::record(&copy.build()?, &copy.folder(), &copy.state)?;
    let chosen = placed.into_iter().filter(|id| scattered(*id) % share.of == share.part);
    let trial = trial::Trial { mutants: &mutants, tests: &tests, folder: &copy.folder(), state: &copy.state };
    let tally = trial.judge_all(chosen.collect(), share.jobs, share.again)?;
    println!("{tally}");
    Ok(())
}

/// Spreads neighbours over the parts, so that each part is a sample of the whole.
fn scattered(id: usize) -> usize {
    (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(20) as usize
}

/// Mutants by their names, which hold good when the list has changed.
fn by_name(mutants: &[Mutant]) -> HashMap<String, usize> {
    (1..).zip(mutants).map(|(id, mutant)| (mutant.line(), id)).collect()
}

/// Branches of a mutated file: where each stands, and which mutants it is made of.
type Branches = Vec<(Range<usize>, Vec<usize>)>;

impl Copy {
    fn folder(&self) -> PathBuf {
        self.tree.join("crates").join(&self.crate_name)
    }

    /// Takes over what has changed in the tree, but for the files that are mutated.
    fn refresh(&self, root: &Path, mutants: &[Mutant]) -> Result<()> {
        let top = self.top();
        let mutated: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).chain([top.as_str()]).collect();
        let listed =
            run::capture(Command::new("git").current_dir(root).args(["ls-files", "-co", "--exclude-standard"]))?;
        for file in listed.lines().filter(|file| !mutated.contains(file)) {
            let from = root.join(file);
            if from.is_file() {
                write_changed(&self.tree.join(file), &fs::read(from)?)?;
            }
        }
        Ok(())
    }

    /// Writes the mutated files, without those mutants that do not compile; which there are, and how many do not.
    fn mutate(&self, root: &Path, mutants: &[Mutant]) -> Result<(BTreeSet<usize>, usize)> {
        let list = self.state.join("unviable");
        let names = by_name(mutants);
        let known = fs::read_to_string(&list).unwrap_or_default();
        let mut unviable: BTreeSet<usize> = known.lines().filter_map(|line| names.get(line).copied()).collect();
        loop {
            let placed = self.write(root, mutants, &unviable)?;
            let found = self.failing()?;
            if found.is_empty() {
                return Ok((placed, unviable.len()));
            }
            unviable.extend(found);
            let lines = unviable.iter().filter_map(|id| Some(format!("{}\n", mutants.get(id - 1)?.line())));
            fs::write(&list, lines.collect::<String>())?;
        }
    }

    /// The file in which the switches of a crate are.
    fn top(&self) -> String {
        format!("crates/{}/src/lib.rs", self.crate_name)
    }

    fn write(&self, root: &Path, mutants: &[Mutant], without: &BTreeSet<usize>) -> Result<BTreeSet<usize>> {
        let top = self.top();
        let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::from([(top.as_str(), Vec::new())]);
        for (id, mutant) in (1..).zip(mutants).filter(|(id, _)| !without.contains(id)) {
            files.entry(&mutant.file).or_default().push((id, mutant));
        }
        let mut placed = BTreeSet::new();
        for (file, mutants) in files {
            let mut tree = syn::parse_file(&fs::read_to_string(root.join(file))?)?;
            let mut switcher = Switcher::new(mutants.into_iter());
            switcher.visit_file_mut(&mut tree);
            placed.extend(switcher.placed);
            let mut text = tree.to_token_stream().to_string();
            if file == top {
                text = format!("#![allow(warnings, arithmetic_overflow, unconditional_panic)] {text}{SWITCHBOARD}");
                // The copy of another crate may have built this one since, under the same name and without mutants: what
                // is written anew is built anew.
                let _ = fs::remove_file(self.tree.join(file));
            }
            write_changed(&self.tree.join(file), text.as_bytes())?;
        }
        Ok(placed)
    }

    fn cargo(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let package = format!("rialto-{}", self.crate_name);
        let mut command = run::cargo(&self.tree, arguments);
        // What others have built is of use here, too.
        if std::env::var_os("CARGO_TARGET_DIR").is_none() {
            command.env("CARGO_TARGET_DIR", self.tree.join("../../target"));
        }
        let output = command
            .args(["--package", &package, "--quiet", "--message-format=json"])
            // The tests are run many times, and built once.
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .stderr(Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// The mutants in which the compiler finds something wrong.
    fn failing(&self) -> Result<BTreeSet<usize>> {
        let mut known: HashMap<PathBuf, Branches> = HashMap::new();
        let mut failing = BTreeSet::new();
        for error in self.cargo(&["build", "--lib"])?.iter().filter_map(error_of) {
            let spans = error.get("spans").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            if spans.is_empty() {
                continue;
            }
            let mut narrowest: Option<&(Range<usize>, Vec<usize>)> = None;
            for (file, _) in spans.iter().filter_map(|span| span_of(&self.tree, span)) {
                if !known.contains_key(&file) {
                    known.insert(file.clone(), branches_of(&fs::read_to_string(&file)?)?);
                }
            }
            // What the compiler points at first counts; what it mentions beside it, where that is in no branch.
            for primary in [true, false] {
                let named = spans.iter().filter(|span| span.get("is_primary") == Some(&Value::Bool(primary)));
                let around = named.filter_map(|span| span_of(&self.tree, span)).flat_map(|(file, place)| {
                    let branches = known.get(&file).map(Vec::as_slice).unwrap_or_default();
                    branches.iter().filter(move |(range, _)| range.start <= place.start && place.end <= range.end)
                });
                narrowest = narrowest.or(around.min_by_key(|(range, _)| range.len()));
            }
            let Some((_, ids)) = narrowest else { bail!("no mutant is near this: {}", rendered(error)) };
            failing.extend(ids);
        }
        Ok(failing)
    }

    /// Builds the tests; their programs.
    fn build(&self) -> Result<Vec<PathBuf>> {
        let messages = self.cargo(&["test", "--no-run", "--lib", "--tests"])?;
        if let Some(error) = messages.iter().find_map(error_of) {
            bail!("{}", rendered(error));
        }
        let is_test = |message: &&Value| message.pointer("/profile/test") == Some(&Value::Bool(true));
        let program = |message: &Value| Some(PathBuf::from(message.get("executable")?.as_str()?));
        Ok(messages.iter().filter(is_test).filter_map(program).collect())
    }
}

/// Cargo builds anew what was written anew; so nothing is without need.
fn write_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|known| known == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, bytes)?)
}

fn error_of(message: &Value) -> Option<&Value> {
    message.get("message").filter(|message| message.get("level").and_then(Value::as_str) == Some("error"))
}

fn rendered(error: &Value) -> String {
    error.get("rendered").and_then(Value::as_str).unwrap_or_default().chars().take(2_000).collect()
}

/// The file and the bytes that a message is about.
fn span_of(tree: &Path, span: &Value) -> Option<(PathBuf, Range<usize>)> {
    let number = |name: &str| span.get(name)?.as_u64().map(|number| number as usize);
    Some((tree.join(span.get("file_name")?.as_str()?), number("byte_start")?..number("byte_end")?))
}

fn branches_of(text: &str) -> Result<Branches> {
    let tokens = text.parse::<TokenStream>().map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut branches = Branches::new();
    collect(tokens, &mut branches);
    Ok(branches)
}

/// Every branch behind a switch, and every expression made of such branches, with the mutants in it.
fn collect(tokens: TokenStream, branches: &mut Branches) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (id, branch) in switches(&trees) {
        if let Some(branch) = branch {
            branches.push((branch, vec![id]));
        }
    }
    for tree in trees {
        let TokenTree::Group(group) = tree else { continue };
        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
        if group.delimiter() == Delimiter::Parenthesis
            && matches!(inner.first(), Some(TokenTree::Ident(word)) if word == "if")
        {
            let ids: Vec<usize> = switches(&inner).map(|(id, _)| id).collect();
            if !ids.is_empty() {
                branches.push((group.span().byte_range(), ids));
            }
        }
        collect(group.stream(), branches);
    }
}

/// The switches in a row of tokens, each with the place of the branch behind it.
fn switches(trees: &[TokenTree]) -> impl Iterator<Item = (usize, Option<Range<usize>>)> {
    trees.windows(5).enumerate().filter_map(|(at, window)| {
        let [TokenTree::Ident(board), _, _, TokenTree::Ident(_), TokenTree::Group(number)] = window else {
            return None;
        };
        let id = number.stream().to_string().parse().ok().filter(|_| board == "__m")?;
        let branch = match trees.get(at + 5) {
            Some(TokenTree::Group(branch)) if branch.delimiter() == Delimiter::Brace => {
                Some(branch.span().byte_range())
            }
            _ => None,
        };
        Some((id, branch))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_mutated_file_leads_to_its_mutant() {
        let text =
            "fn f() { let x = (if crate::__m::m(7) { a - b } else if crate::__m::m(8) { a * b } else { a + b }); }";
        let branches = branches_of(text).unwrap();
        let around = |part: &str| {
            let at = text.find(part).unwrap();
            let inside = branches.iter().filter(|(range, _)| range.contains(&at));
            inside.min_by_key(|(range, _)| range.len()).map(|(_, ids)| ids.clone())
        };
        assert_eq!(around("a - b"), Some(vec![7]));
        assert_eq!(around("a * b"), Some(vec![8]));
        assert_eq!(around("a + b"), Some(vec![7, 8]));
        assert_eq!(around("fn f"), None);
    }

    #[test]
    fn parts_are_spread_and_make_the_whole() {
        let counts = (0..8).map(|part| (1..=1_600).filter(|id| scattered(*id) % 8 == part).count());
        let counts: Vec<usize> = counts.collect();
        assert_eq!(counts.iter().sum::<usize>(), 1_600);
        assert!(counts.iter().all(|count| (100..300).contains(count)), "{counts:?}");
    }
}
