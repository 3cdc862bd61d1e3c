//! OAS Agent: assertions and selections in CEL. The only file that knows the engine.
//!
//! An expression is bounded when it is read (bytes, nodes, depth, loops in loops) and when it is evaluated (steps of loops,
//! weighed by how much each can touch; patterns; the size of what comes out). Both happen on a thread with a large stack,
//! because the engine recurses: on the one that asks where it has said so ([`has_room`]), or else on a new one. An expression that errs, runs out or gives anything but `true` fails
//! (decisions/0215).
//!
//! INVARIANT: an expression sees the object it is given and nothing else, no clock either; and whatever it is, it ends.

mod lint;
mod value;

use crate::bare::{Rewritten, rewrite};
use crate::{Code, Finding};
use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use cel::common::types::CelBool;
use cel::parser::PrattParser;
use cel::{Context, Env, ExecutionError};
use json::{Exceeded, Pointer, Value, json};
pub(crate) use lint::ELEMENT;
use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// Bytes of one expression, at most.
const BYTES_MAX: usize = 2_048;
/// Nodes of its tree, macros written out.
const NODES_MAX: usize = 256;
/// How deep the tree may be, macros written out.
const DEPTH_MAX: usize = 24;
/// Loops inside of each other.
const LOOPS_MAX: usize = 2;
/// What one evaluation may spend on loops and patterns.
const BUDGET: u64 = 100_000;
/// Bytes that one unit of the budget may touch.
const BYTES_PER_UNIT: usize = 40_000;
/// What compiling a pattern costs.
const PATTERN_COST: u64 = 1_000;
/// Bytes of a pattern, and of what it is compiled to.
const PATTERN_BYTES_MAX: usize = 1_000;
const PATTERN_SIZE_MAX: usize = 256 * 1024;
/// Bytes of a selected value, as JSON.
const RESULT_BYTES_MAX: usize = 256 * 1024;
/// The stack that reading and evaluating an expression may need.
const STACK_BYTES: usize = 16 * 1024 * 1024;
/// The stack of a thread that says it [`has_room`]: that, and what everything else on it may need.
pub const ROOMY_STACK_BYTES: usize = STACK_BYTES + 4 * 1024 * 1024;

thread_local! {
    static ROOM: Cell<bool> = const { Cell::new(false) };
}

/// Says that this thread has a stack of [`ROOMY_STACK_BYTES`], so that expressions need no thread of their own here.
pub fn has_room() {
    ROOM.set(true);
}

/// The bounds by name, for the limits table.
pub(crate) fn limits() -> Value {
    json!({
        "bytes": BYTES_MAX, "nodes": NODES_MAX, "depth": DEPTH_MAX, "loops": LOOPS_MAX, "budget": BUDGET,
        "pattern_bytes": PATTERN_BYTES_MAX, "result_bytes": RESULT_BYTES_MAX,
    })
}

/// Names that no expression can spell.
const TICK: &str = "@tick";
const MATCHES: &str = "@matches";

/// What an expression may speak of.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    keys: Vec<String>,
}

impl Scope {
    /// The Engagement of an agent whose capabilities have these keys.
    pub(crate) fn of(keys: &[String]) -> Self {
        Self { keys: keys.to_vec() }
    }

    /// The output of a guardrail's tool.
    pub(crate) fn output() -> Self {
        Self { keys: Vec::new() }
    }
}

/// An expression that was read within the bounds.
#[derive(Clone, Debug)]
pub struct Assertion {
    source: Arc<str>,
    expression: Arc<IdedExpr>,
    mentions: Arc<[Vec<String>]>,
    /// Whether anything in it must be paid for.
    metered: bool,
}

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    pub(crate) code: Code,
    /// Line and column inside the text, from 1.
    pub(crate) position: Option<(usize, usize)>,
    pub(crate) detail: String,
    pub(crate) limit: Option<Exceeded>,
}

/// Why an expression is not true.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failing {
    /// It is false.
    #[error("it is false")]
    False,
    /// It is something else than true or false.
    #[error("it is neither true nor false")]
    NotBoolean,
    /// It spent more than an evaluation may.
    #[error("it takes too many steps")]
    Budget,
    /// It cannot be evaluated.
    #[error("it cannot be evaluated: {0}")]
    Error(String),
}

impl Failing {
    /// One word for it, which tells nothing of the values.
    pub fn name(&self) -> &'static str {
        match self {
            Self::False => "false",
            Self::NotBoolean => "not_boolean",
            Self::Budget => "budget",
            Self::Error(_) => "error",
        }
    }
}

/// The functions and types of standard CEL.
static STANDARD: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

impl Assertion {
    /// Reads an expression.
    pub(crate) fn compile(source: &str, scope: &Scope) -> Result<Self, Invalid> {
        if source.len() > BYTES_MAX {
            return Err(beyond("assertion.bytes", BYTES_MAX, source.len()));
        }
        let rewritten = rewrite(source, &scope.keys);
        let read = apart(|| {
            let parser = PrattParser::new().enable_ident_escape_syntax(true).enable_optional_syntax(true);
            let mut expression = parser.parse(&rewritten.text).map_err(|errors| unread(source, &rewritten, &errors))?;
            let mut survey = Survey::default();
            survey.look(&expression, 1, 0)?;
            let mentions = lint::mentions(&expression);
            meter(&mut expression);
            Ok((expression, mentions, survey.metered))
        });
        let none = || Err(syntax(None, "this is no expression in CEL"));
        let (expression, mentions, metered) = read.unwrap_or_else(none)?;
        Ok(Self { source: source.into(), expression: Arc::new(expression), mentions: mentions.into(), metered })
    }

    /// Reads an expression for an agent whose capabilities have these keys.
    pub fn read(source: &str, keys: &[&str]) -> Result<Self, Finding> {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        Self::compile(source, &Scope::of(&keys)).map_err(|Invalid { code, position, detail, limit }| Finding {
            code,
            at: Pointer::root(),
            position,
            detail,
            limit,
        })
    }

    /// The expression as it is written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it has anything to do with a variable.
    pub(crate) fn speaks_of(&self, variable: &str) -> bool {
        self.mentions.iter().any(|path| path.first().is_some_and(|first| first == variable))
    }

    /// Whether it is true of an Engagement.
    pub fn holds(&self, object: &Value) -> Result<(), Failing> {
        truth(self.evaluate(value::engagement(object, |name| self.speaks_of(name)), object)?)
    }

    /// Whether it is true of a tool's output: of its members by name, and of the whole as `output`.
    pub fn holds_for_output(&self, output: &Value) -> Result<(), Failing> {
        truth(self.evaluate(value::output(output), output)?)
    }

    /// What it selects from an Engagement.
    pub fn select(&self, object: &Value) -> Result<Value, Failing> {
        let selected = self.evaluate(value::engagement(object, |name| self.speaks_of(name)), object)?;
        let selected = value::to_json(&selected).ok_or_else(|| Failing::Error("JSON has no such value".to_owned()))?;
        if selected.to_string().len() > RESULT_BYTES_MAX {
            return Err(Failing::Budget);
        }
        Ok(selected)
    }

    /// What it speaks of: paths from a variable on.
    pub(crate) fn mentions(&self) -> &[Vec<String>] {
        &self.mentions
    }

    fn evaluate(&self, variables: Vec<(String, cel::Value)>, object: &Value) -> Result<cel::Value, Failing> {
        let weight = if self.metered { object.to_string().len() } else { 0 };
        let budget = Arc::new(AtomicU64::new(BUDGET));
        let result = apart(|| {
            let mut context = Context::with_env(Arc::clone(&STANDARD));
            for (name, value) in variables {
                context.add_variable_from_value(name, value);
            }
            if self.metered {
                offer(&mut context, &budget, weight);
            }
            cel::Value::resolve(&self.expression, &context)
        });
        match result {
            Some(Ok(value)) => Ok(value),
            _ if budget.load(Ordering::Relaxed) == 0 => Err(Failing::Budget),
            Some(Err(error)) => Err(Failing::Error(told(&error))),
            None => Err(Failing::Error("the engine gave up".to_owned())),
        }
    }
}

/// Does something on a thread with a large stack; nothing when it could not be done.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    if ROOM.get() {
        // Nothing is looked at that a panic could have left half done.
        return std::panic::catch_unwind(AssertUnwindSafe(work)).ok();
    }
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("assertion".to_owned()).stack_size(STACK_BYTES);
        builder.spawn_scoped(scope, work).ok().and_then(|thread| thread.join().ok())
    })
}

fn truth(value: cel::Value) -> Result<(), Failing> {
    match value {
        cel::Value::Bool(true) => Ok(()),
        cel::Value::Bool(false) => Err(Failing::False),
        _ => Err(Failing::NotBoolean),
    }
}

/// What went wrong, without any of the values.
fn told(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("there is no `{key}`"),
        ExecutionError::UndeclaredReference(name) => format!("there is no variable or function `{name}`"),
        ExecutionError::NoSuchOverload(overload) => overload.to_string(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "a division by zero".to_owned(),
        ExecutionError::Overflow(..) => "a number too large".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "an index beyond the list".to_owned(),
        ExecutionError::FunctionError { function, .. } => format!("`{function}` does not take this"),
        _ => "values that do not go together".to_owned(),
    }
}

fn syntax(position: Option<(usize, usize)>, detail: impl Into<String>) -> Invalid {
    Invalid { code: Code::AssertionSyntax, position, detail: detail.into(), limit: None }
}

fn beyond(name: &str, max: usize, got: usize) -> Invalid {
    let limit = Some(Exceeded { name: name.to_owned(), max: max as u64, got: got as u64 });
    let detail = format!("{name} is at most {max}, here {got}");
    Invalid { code: Code::AssertionTooComplex, position: None, detail, limit }
}

fn unread(source: &str, rewritten: &Rewritten, errors: &cel::ParseErrors) -> Invalid {
    if errors.errors.iter().any(|error| error.msg.contains("recursion")) {
        return beyond("assertion.depth", DEPTH_MAX, DEPTH_MAX + 1);
    }
    let place = errors.errors.iter().map(|error| error.pos).find(|(line, _)| *line > 0);
    let position = place.map(|(line, column)| rewritten.original(source, line.unsigned_abs(), column.unsigned_abs()));
    syntax(position, "this is no expression in CEL")
}

/// Counts what an expression consists of.
#[derive(Default)]
struct Survey {
    nodes: usize,
    metered: bool,
}

impl Survey {
    fn look(&mut self, expression: &IdedExpr, depth: usize, loops: usize) -> Result<(), Invalid> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(beyond("assertion.nodes", NODES_MAX, self.nodes));
        }
        if depth > DEPTH_MAX {
            return Err(beyond("assertion.depth", DEPTH_MAX, depth));
        }
        let mut loops = loops;
        match &expression.expr {
            // The engine has no answer to these but to give up.
            Expr::Unspecified => return Err(syntax(None, "a part of the expression is missing")),
            Expr::Struct(_) => return Err(syntax(None, "there are no messages here; write a map")),
            Expr::Comprehension(_) => {
                (loops, self.metered) = (loops + 1, true);
                if loops > LOOPS_MAX {
                    return Err(beyond("assertion.loops", LOOPS_MAX, loops));
                }
            }
            Expr::Call(call) => self.metered |= call.func_name == "matches",
            Expr::Ident(_) | Expr::List(_) | Expr::Literal(_) | Expr::Map(_) | Expr::Select(_) => {}
        }
        parts(expression).into_iter().try_for_each(|part| self.look(part, depth + 1, loops))
    }
}

/// The expressions directly inside another one.
fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.iter().map(AsRef::as_ref).chain(&call.args).collect(),
        Expr::Comprehension(inner) => {
            vec![&inner.iter_range, &inner.accu_init, &inner.loop_cond, &inner.loop_step, &inner.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Struct(message) => message.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
    }
}

fn entry_parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

/// Lets every round of a loop, and every pattern, be paid for.
fn meter(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => {}
        Expr::Call(call) => {
            if call.func_name == "matches" {
                call.func_name = MATCHES.to_owned();
            }
            call.target.iter_mut().for_each(|target| meter(target));
            call.args.iter_mut().for_each(meter);
        }
        Expr::Comprehension(inner) => {
            let nodes = count(&inner.loop_step);
            for part in [&mut inner.iter_range, &mut inner.accu_init, &mut inner.loop_step, &mut inner.result] {
                meter(part);
            }
            // Lists that grow are built in one piece as long as their condition is a literal.
            let paid =
                if matches!(inner.loop_cond.expr, Expr::Literal(_)) { growing(&mut inner.loop_step) } else { None };
            pay(paid.unwrap_or(&mut inner.loop_cond), nodes);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(meter),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    meter(&mut entry.key);
                    meter(&mut entry.value);
                }
            }
        }
        Expr::Select(select) => meter(&mut select.operand),
    }
}

/// Where a round of `map`, `filter` or `exists_one` is decided.
fn growing(step: &mut IdedExpr) -> Option<&mut IdedExpr> {
    let Expr::Call(call) = &mut step.expr else { return None };
    match call.func_name.as_str() {
        operators::CONDITIONAL => call.args.first_mut(),
        operators::ADD => match call.args.last_mut().map(|last| &mut last.expr) {
            Some(Expr::List(list)) => list.elements.first_mut(),
            _ => None,
        },
        _ => None,
    }
}

/// `tick(nodes) ? expression : false`
fn pay(expression: &mut IdedExpr, nodes: usize) {
    let literal = |value: LiteralValue| IdedExpr { id: 0, expr: Expr::Literal(value) };
    let nodes = LiteralValue::Int((nodes as i64).into());
    let tick = CallExpr { func_name: TICK.to_owned(), target: None, args: vec![literal(nodes)] };
    let tick = IdedExpr { id: 0, expr: Expr::Call(tick) };
    let otherwise = literal(LiteralValue::Boolean(CelBool::from(false)));
    let paid = std::mem::take(expression);
    let args = vec![tick, paid, otherwise];
    expression.expr = Expr::Call(CallExpr { func_name: operators::CONDITIONAL.to_owned(), target: None, args });
}

fn count(expression: &IdedExpr) -> usize {
    1 + parts(expression).into_iter().map(count).sum::<usize>()
}

/// Puts the functions that are paid for into a context.
fn offer(context: &mut Context<'_, '_>, budget: &Arc<AtomicU64>, weight: usize) {
    let purse = Arc::clone(budget);
    let tick = move |nodes: i64| {
        let touched = (nodes.unsigned_abs() as usize).saturating_mul(weight) / BYTES_PER_UNIT;
        spend(&purse, 1 + touched as u64, TICK).map(|()| true)
    };
    let purse = Arc::clone(budget);
    let matches = move |cel::extractors::This(text): cel::extractors::This<Arc<String>>, pattern: Arc<String>| {
        spend(&purse, PATTERN_COST, "matches")?;
        is_match(&text, &pattern)
    };
    // The names are free: nothing that can be spelled begins with `@`.
    let _ = context.add_function(TICK, tick);
    let _ = context.add_function(MATCHES, matches);
}

fn spend(budget: &AtomicU64, cost: u64, function: &str) -> Result<(), ExecutionError> {
    let left = budget.load(Ordering::Relaxed).saturating_sub(cost);
    budget.store(left, Ordering::Relaxed);
    if left == 0 { Err(ExecutionError::function_error(function, "the budget is spent")) } else { Ok(()) }
}

fn is_match(text: &str, pattern: &str) -> Result<bool, ExecutionError> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(ExecutionError::function_error("matches", "the pattern is too long"));
    }
    let compiled = regex::RegexBuilder::new(pattern).size_limit(PATTERN_SIZE_MAX).build();
    compiled
        .map(|compiled| compiled.is_match(text))
        .map_err(|_| ExecutionError::function_error("matches", "no pattern"))
}

#[cfg(test)]
mod tests;
