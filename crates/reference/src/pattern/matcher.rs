//! ECMA-262 §22.2.2: the meaning of a pattern, with the continuations of the standard kept in a list.
//!
//! A state is a position, what was captured, and what is still to be matched. Where the standard tries one thing
//! and then another, the other waits on a stack. INVARIANT: without references the captures decide nothing, so a
//! state that was met before need not be tried again; with references the steps are counted instead.

use std::collections::HashSet;
use std::rc::Rc;

use super::tree::{Assertion, Look, Node, Repeat};

/// The most steps of a match that has to be tried out.
const STEPS_MAX: usize = 100_000;

/// Whether a pattern is found anywhere in a text.
pub(super) fn is_found(tree: &Node, captures: usize, subject: &str) -> Result<bool, &'static str> {
    let subject: Vec<char> = subject.chars().collect();
    let mut matcher = Matcher { subject: &subject, refers_back: tree.refers_back(), steps: 0 };
    let mut met = HashSet::new();
    for start in 0..=subject.len() {
        let rest = push(Task::Node(tree, Direction::Forward), None);
        let state = State { position: start, captures: vec![None; captures + 1], rest };
        if matcher.run(state, &mut met)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Direction {
    Forward,
    Backward,
}

/// Something that is still to be matched.
#[derive(Clone)]
enum Task<'p> {
    Node(&'p Node, Direction),
    Sequence(&'p [Node], Direction),
    /// The end of a capture that began at a position.
    EndCapture(usize, usize),
    /// The end of one repetition that began at a position.
    EndRepeat {
        repeat: &'p Repeat,
        min: usize,
        max: Option<usize>,
        start: usize,
        direction: Direction,
    },
}

/// What is still to be matched, first things first.
type Rest<'p> = Option<Rc<Link<'p>>>;

struct Link<'p> {
    task: Task<'p>,
    next: Rest<'p>,
}

fn push<'p>(task: Task<'p>, next: Rest<'p>) -> Rest<'p> {
    Some(Rc::new(Link { task, next }))
}

#[derive(Clone)]
struct State<'p> {
    position: usize,
    /// Where each capture begins and ends; the place of number 0 stays empty.
    captures: Vec<Option<(usize, usize)>>,
    rest: Rest<'p>,
}

/// What decides the future of a state if captures do not: its position, and for each task which node it concerns,
/// its counts, and whether its repetition has consumed nothing yet.
type Key = (usize, Vec<(usize, usize, usize, Option<usize>, bool)>);

impl State<'_> {
    fn key(&self) -> Key {
        let mut tasks = Vec::new();
        let mut rest = &self.rest;
        while let Some(link) = rest {
            tasks.push(match &link.task {
                Task::Node(node, _) => (std::ptr::from_ref(*node).addr(), 0, 0, None, false),
                Task::Sequence(nodes, _) => (nodes.as_ptr().addr(), nodes.len(), 1, None, false),
                Task::EndCapture(number, _) => (*number, 0, 2, None, false),
                Task::EndRepeat { repeat, min, max, start, .. } => {
                    (std::ptr::from_ref(*repeat).addr(), *min, 3, *max, *start == self.position)
                }
            });
            rest = &link.next;
        }
        (self.position, tasks)
    }
}

struct Matcher<'s> {
    subject: &'s [char],
    refers_back: bool,
    steps: usize,
}

impl Matcher<'_> {
    /// Tries out a state to its end, and gives the first way in which it matches.
    fn run<'p>(&mut self, state: State<'p>, met: &mut HashSet<Key>) -> Result<Option<State<'p>>, &'static str> {
        let mut waiting = vec![state];
        while let Some(mut state) = waiting.pop() {
            let Some(link) = state.rest.clone() else { return Ok(Some(state)) };
            self.steps += 1;
            if self.refers_back && self.steps > STEPS_MAX {
                return Err("regex_budget_exceeded");
            }
            if !self.refers_back && branches(&link.task) && !met.insert(state.key()) {
                continue;
            }
            state.rest = link.next.clone();
            self.step(&link.task, state, &mut waiting)?;
        }
        Ok(None)
    }

    /// Takes one step; what may be tried next is put on the stack, the first choice on top.
    fn step<'p>(
        &mut self,
        task: &Task<'p>,
        mut state: State<'p>,
        waiting: &mut Vec<State<'p>>,
    ) -> Result<(), &'static str> {
        match task {
            Task::Node(node, direction) => self.step_node(node, *direction, state, waiting)?,
            Task::Sequence(nodes, direction) => {
                let split = match direction {
                    Direction::Forward => nodes.split_first(),
                    Direction::Backward => nodes.split_last(),
                };
                if let Some((node, others)) = split {
                    state.rest = push(Task::Sequence(others, *direction), state.rest);
                    state.rest = push(Task::Node(node, *direction), state.rest);
                }
                waiting.push(state);
            }
            Task::EndCapture(number, start) => {
                let span = (*start.min(&state.position), *start.max(&state.position));
                if let Some(capture) = state.captures.get_mut(*number) {
                    *capture = Some(span);
                }
                waiting.push(state);
            }
            Task::EndRepeat { repeat, min, max, start, direction } => {
                // A repetition that is not needed and consumed nothing is a failure, lest it go on for ever.
                if *min > 0 || state.position != *start {
                    let max = max.map(|max| max.saturating_sub(1));
                    begin_repeat(repeat, min.saturating_sub(1), max, *direction, state, waiting);
                }
            }
        }
        Ok(())
    }

    fn step_node<'p>(
        &mut self,
        node: &'p Node,
        direction: Direction,
        mut state: State<'p>,
        waiting: &mut Vec<State<'p>>,
    ) -> Result<(), &'static str> {
        match node {
            Node::Character(character) => {
                waiting.extend(self.consume(state, direction, |found| found == *character));
            }
            Node::Class(class) => waiting.extend(self.consume(state, direction, |found| class.holds(found))),
            Node::Assertion(assertion) => {
                if self.asserts(*assertion, state.position) {
                    waiting.push(state);
                }
            }
            Node::Sequence(nodes) => {
                state.rest = push(Task::Sequence(nodes, direction), state.rest);
                waiting.push(state);
            }
            Node::Choice(alternatives) => {
                for alternative in alternatives.iter().rev() {
                    let rest = push(Task::Node(alternative, direction), state.rest.clone());
                    waiting.push(State { rest, ..state.clone() });
                }
            }
            Node::Capture(number, body) => {
                state.rest = push(Task::EndCapture(*number, state.position), state.rest);
                state.rest = push(Task::Node(body, direction), state.rest);
                waiting.push(state);
            }
            Node::Repeat(repeat) => begin_repeat(repeat, repeat.min, repeat.max, direction, state, waiting),
            Node::Reference(numbers) => waiting.extend(self.refer(numbers, direction, state)),
            Node::Look(look) => waiting.extend(self.look(look, state)?),
        }
        Ok(())
    }

    /// Passes over one character in a direction, if it is one of these.
    fn consume<'p>(
        &self,
        mut state: State<'p>,
        direction: Direction,
        accepts: impl Fn(char) -> bool,
    ) -> Option<State<'p>> {
        let (index, after) = match direction {
            Direction::Forward => (state.position, state.position + 1),
            Direction::Backward => (state.position.checked_sub(1)?, state.position.checked_sub(1)?),
        };
        let found = self.subject.get(index).copied()?;
        state.position = after;
        if accepts(found) { Some(state) } else { None }
    }

    fn asserts(&self, assertion: Assertion, position: usize) -> bool {
        let is_word = |index: Option<usize>| {
            let character = index.and_then(|index| self.subject.get(index));
            character.is_some_and(|character| character.is_ascii_alphanumeric() || *character == '_')
        };
        let boundary = is_word(position.checked_sub(1)) != is_word(Some(position));
        match assertion {
            Assertion::Start => position == 0,
            Assertion::End => position == self.subject.len(),
            Assertion::WordBoundary => boundary,
            Assertion::NoWordBoundary => !boundary,
        }
    }

    /// What was captured must follow here; what was not captured is empty.
    fn refer<'p>(&self, numbers: &[usize], direction: Direction, mut state: State<'p>) -> Option<State<'p>> {
        let captured = numbers.iter().find_map(|number| state.captures.get(*number).copied().flatten());
        let Some((start, end)) = captured else { return Some(state) };
        let length = end - start;
        let (from, after) = match direction {
            Direction::Forward => (state.position, state.position + length),
            Direction::Backward => (state.position.checked_sub(length)?, state.position.checked_sub(length)?),
        };
        let here = self.subject.get(from..from + length)?;
        let same = self.subject.get(start..end)? == here;
        state.position = after;
        if same { Some(state) } else { None }
    }

    /// A lookaround moves nothing; a positive one keeps what it captured, and is not tried in a second way.
    fn look<'p>(&mut self, look: &'p Look, state: State<'p>) -> Result<Option<State<'p>>, &'static str> {
        let direction = if look.behind { Direction::Backward } else { Direction::Forward };
        let inner = State { rest: push(Task::Node(&look.body, direction), None), ..state.clone() };
        let found = self.run(inner, &mut HashSet::new())?;
        match (found, look.negative) {
            (Some(found), false) => Ok(Some(State { captures: found.captures, ..state })),
            (None, true) => Ok(Some(state)),
            (Some(_), true) | (None, false) => Ok(None),
        }
    }
}

/// Only tasks that may lead to more than one state are worth remembering.
fn branches(task: &Task) -> bool {
    matches!(task, Task::Node(Node::Choice(_) | Node::Repeat(_), _) | Task::EndRepeat { .. })
}

/// RepeatMatcher of ECMA-262 §22.2.2.3.1: one more repetition, or what follows, in the order of greed.
fn begin_repeat<'p>(
    repeat: &'p Repeat,
    min: usize,
    max: Option<usize>,
    direction: Direction,
    state: State<'p>,
    waiting: &mut Vec<State<'p>>,
) {
    if max == Some(0) {
        waiting.push(state);
        return;
    }
    let mut again = state.clone();
    for number in repeat.captures.clone() {
        if let Some(capture) = again.captures.get_mut(number) {
            *capture = None;
        }
    }
    let start = state.position;
    again.rest = push(Task::EndRepeat { repeat, min, max, start, direction }, again.rest);
    again.rest = push(Task::Node(&repeat.body, direction), again.rest);
    match (min, repeat.greedy) {
        (0, true) => waiting.extend([state, again]),
        (0, false) => waiting.extend([again, state]),
        (_, _) => waiting.push(again),
    }
}
